//! Source `qdisc`: queueing disciplines of the port that the path leaves by.

use linerate_core::facts::Gap;
use linerate_core::metric::{self, Metric};
use linerate_core::parse::qdisc::{self, ROOT};
use linerate_core::record::Table;

use super::sheets::Sheets;
use super::sources::Source;
use super::{Machine, Query, gap, invalid, port, unreadable};

const HINT: &str = "tc -s qdisc";
const METRICS: &[Metric] = &[
    metric::QDISC_BYTES,
    metric::QDISC_PACKETS,
    metric::QDISC_DROPS,
    metric::QDISC_OVERLIMITS,
    metric::QDISC_BACKLOG,
];

/// Reads the disciplines of one port by its index.
pub(super) struct Qdisc {
    port: Result<u32, Gap>,
    /// The port's name, read once.
    name: Option<String>,
    /// By handle and parent.
    sheets: Sheets<(u32, u32)>,
}

impl Qdisc {
    /// The port with this index, or why it is not known.
    pub(super) fn new(port: Result<u32, Gap>) -> Self {
        Self {
            port,
            name: None,
            sheets: Sheets::new(METRICS, ""),
        }
    }

    fn name(&mut self, machine: &dyn Machine, index: u32) -> Result<String, Gap> {
        if self.name.is_none() {
            let what = "the name of the port";
            let reply = machine.query(&Query::Link(index));
            let reply = reply.map_err(|error| unreadable("qdisc", what, &error, HINT))?;
            let link = port::find(&reply, index).map_err(|why| gap("qdisc", &why, HINT))?;
            self.name = Some(link.name.into_owned());
        }
        Ok(self.name.clone().unwrap_or_default())
    }
}

impl Source for Qdisc {
    fn observe(&mut self, machine: &dyn Machine, at: u64, gaps: &mut Vec<Gap>) -> Result<(), Gap> {
        const WHAT: &str = "the queueing disciplines";
        let index = self.port.clone()?;
        let name = self.name(machine, index)?;
        let reply = machine.query(&Query::Qdiscs);
        let reply = reply.map_err(|error| unreadable("qdisc", WHAT, &error, HINT))?;
        let all = qdisc::parse(&reply).filter(|q| q.as_ref().map_or(true, |q| q.port == index));
        let all: Vec<_> = all
            .collect::<Result<_, _>>()
            .map_err(|error| unreadable("qdisc", WHAT, &invalid(error), HINT))?;
        if all.is_empty() {
            return Err(gap(
                "qdisc",
                &format!("the kernel names no discipline of {name}"),
                HINT,
            ));
        }
        for qdisc in all.iter().filter(|q| !summed_up(q, &all)) {
            let stats = qdisc.stats;
            let values = [
                stats.map(|s| s.bytes),
                stats.map(|s| s.packets),
                stats.map(|s| s.drops),
                stats.map(|s| s.overlimits),
                stats.map(|s| s.backlog),
            ];
            let subject = || format!("{name} {} {}", qdisc.kind, handle(qdisc));
            self.sheets
                .push((qdisc.handle, qdisc.parent), subject, at, &values, gaps);
        }
        self.sheets.sweep(gaps);
        Ok(())
    }

    fn take(&mut self) -> Vec<Table> {
        self.sheets.take()
    }
}

/// True for a queue of `mq`, whose own statistics are the sum over its queues: a port with 64 of
/// them would fill the record with 64 tables that say nothing more.
fn summed_up(qdisc: &qdisc::Qdisc<'_>, all: &[qdisc::Qdisc<'_>]) -> bool {
    let major = |id: u32| id >> 16;
    let hangs_on =
        |other: &&qdisc::Qdisc<'_>| other.parent == ROOT && matches!(&*other.kind, "mq" | "mqprio");
    qdisc.parent != ROOT
        && all
            .iter()
            .find(hangs_on)
            .is_some_and(|mq| major(qdisc.parent) == major(mq.handle))
}

/// The handle as `tc` writes it; the class it hangs on where it has none of its own.
fn handle(qdisc: &qdisc::Qdisc<'_>) -> String {
    if qdisc.handle == 0 && qdisc.parent != ROOT {
        return format!("{:x}:{:x}", qdisc.parent >> 16, qdisc.parent & 0xffff);
    }
    format!("{:x}:", qdisc.handle >> 16)
}

#[cfg(test)]
mod tests {
    use linerate_core::metric;

    use crate::host::Query;
    use crate::host::testing::{Fake, LOOPBACK, link, qdisc, route};

    const ROOT: u32 = u32::MAX;

    /// What the source makes of the disciplines that the kernel lists in each row.
    fn watch(rows: &[&[Vec<u8>]]) -> (Vec<(String, Vec<u64>)>, usize) {
        let replies: Vec<Vec<u8>> = rows.iter().map(|row| row.concat()).collect();
        let replies: Vec<&[u8]> = replies.iter().map(Vec::as_slice).collect();
        let (route, link) = (route(4), link(4, "eth0", &[]));
        let (tables, gaps) = Fake::default()
            .reply(Query::Route(LOOPBACK.into()), &[&route, &route])
            .reply(Query::Link(4), &[&link, &link])
            .reply(Query::Qdiscs, &replies)
            .watch("qdisc", rows.len() as u64);
        assert!(
            tables
                .iter()
                .all(|t| t.column(metric::QDISC_BYTES).is_some())
        );
        (
            tables.into_iter().map(|t| (t.subject, t.at)).collect(),
            gaps.len(),
        )
    }

    fn subjects(row: &[Vec<u8>]) -> Vec<String> {
        watch(&[row])
            .0
            .into_iter()
            .map(|(subject, _)| subject)
            .collect()
    }

    #[test]
    fn only_the_disciplines_of_the_port_are_watched() {
        let row = [
            qdisc(1, "noqueue", 0, ROOT, 0),
            qdisc(4, "pfifo_fast", 0, ROOT, 9),
        ];
        assert_eq!(subjects(&row), ["eth0 pfifo_fast 0:"]);
    }

    #[test]
    fn a_port_without_disciplines_is_a_gap() {
        assert_eq!(watch(&[&[qdisc(1, "noqueue", 0, ROOT, 0)]]), (vec![], 1));
    }

    #[test]
    fn the_queues_of_mq_are_left_to_their_sum_but_classes_are_not() {
        let mq = [
            qdisc(4, "mq", 0x8001_0000, ROOT, 9),
            qdisc(4, "fq_codel", 0, 0x8001_0001, 4),
            qdisc(4, "fq_codel", 0, 0x8001_0002, 5),
            qdisc(4, "ingress", 0xffff_0000, 0xffff_fff1, 0),
        ];
        assert_eq!(subjects(&mq), ["eth0 mq 8001:", "eth0 ingress ffff:"]);
        let htb = [
            qdisc(4, "htb", 0x1_0000, ROOT, 9),
            qdisc(4, "pfifo", 0, 0x1_0010, 4),
            qdisc(4, "fq", 0x20_0000, 0x1_0011, 4),
        ];
        assert_eq!(
            subjects(&htb),
            ["eth0 htb 1:", "eth0 pfifo 1:10", "eth0 fq 20:"]
        );
    }

    #[test]
    fn a_discipline_that_is_replaced_ends_its_table() {
        let before = [qdisc(4, "fq", 0x1_0000, ROOT, 9)];
        let after = [qdisc(4, "tbf", 0x2_0000, ROOT, 0)];
        let (tables, gaps) = watch(&[&before, &after, &after]);
        let want = [
            ("eth0 fq 1:".to_owned(), vec![0]),
            ("eth0 tbf 2:".to_owned(), vec![1, 2]),
        ];
        assert_eq!(tables, want);
        assert_eq!(gaps, 1);
    }
}
