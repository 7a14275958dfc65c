//! Source `conntrack`: packets that were dropped because the table of tracked connections was full.

use std::io;

use linerate_facts::Gap;
use linerate_facts::metric::{self, Metric};
use linerate_facts::parse::{Malformed, conntrack};

use super::source::{Row, Source};
use super::{read, unreadable};

const PATH: &str = "/proc/net/stat/nf_conntrack";
const METRICS: &[Metric] = &[metric::CONNTRACK_DROPPED];
/// Subject of the rows: the name of the connection table.
const SUBJECT: &str = "nf_conntrack";
/// Number of rows of the sampler per reading: the file has a line for each CPU.
const EVERY: usize = 5;

/// Reads the kernel's count of packets whose connection found no room in the table.
pub(super) struct Conntrack;

impl Source for Conntrack {
    fn every(&self) -> usize {
        EVERY
    }

    fn observe(&mut self, row: &mut Row<'_>) -> Result<(), Gap> {
        let decode = |text: &[u8]| conntrack::sum(text, "drop").ok_or(Malformed::Missing("drop"));
        match read(row.machine, PATH, decode) {
            Ok(dropped) => row.push(METRICS, (), || SUBJECT.to_owned(), &[Some(dropped)]),
            // This host does not track connections.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable("conntrack", PATH, &error, "")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Fake;

    const PATH: &str = "/proc/net/stat/nf_conntrack";

    #[test]
    fn drops_are_counted_where_connections_are_tracked() {
        let text = "entries drop\n00000001 0000000f\n00000001 00000001\n";
        let (tables, gaps) = Fake::default().file(PATH, &[text]).watch("conntrack", 3);
        assert_eq!((tables[0].columns[0].values.as_slice(), gaps), (&[16][..], vec![]));
        let none = rustix::io::Errno::NOENT;
        let (tables, gaps) = Fake::default().failing(PATH, &[], none).watch("conntrack", 1);
        assert_eq!((tables.len(), gaps.len()), (0, 0));
        let refused = rustix::io::Errno::ACCESS;
        let (tables, gaps) = Fake::default().failing(PATH, &[], refused).watch("conntrack", 1);
        assert_eq!((tables.len(), gaps.len()), (0, 1));
    }
}
