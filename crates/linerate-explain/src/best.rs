//! Finds the highest rate among results.

use super::rule::may_cross;
use super::{Material, Table};
use linerate_record::reported::{Carrier, Counted, Measured, Source};

/// The highest rate, and the file in which it was reported.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// Payload in bits per second.
    pub rate: f64,
    /// Name of the file that reports the rate.
    pub file: String,
}

impl Best {
    /// The highest rate of any result; `None` if no result has a rate. Where the results include transfers over a
    /// network, a disk of the host itself is left out.
    pub fn of(material: &Material) -> Option<Self> {
        let has_path = material.transfers().next().is_some();
        let all = material.sources.iter().flat_map(|source| {
            let each = source.results.iter().filter_map(|r| highest(source, &r.measured, has_path));
            each.map(|rate| Self { rate, file: source.file.clone() })
        });
        all.max_by(|a, b| a.rate.total_cmp(&b.rate))
    }
}

/// The highest rate of a result in bits per second. Of a UDP transfer only the receiver's count is used: what the
/// sender counted may have been lost.
fn highest(source: &Source, measured: &Measured, has_path: bool) -> Option<f64> {
    let most = |rates: &mut dyn Iterator<Item = f64>| rates.reduce(f64::max);
    match measured {
        Measured::Transfer(one) => {
            let is_only_sent = one.carrier == Carrier::Udp && one.counted == Counted::Sender;
            (!is_only_sent).then_some(one.goodput.0 as f64)
        }
        Measured::Sizes(sizes) => {
            let rates = sizes.rows.iter().filter_map(|row| Table::each_way(sizes, row));
            most(&mut rates.map(|rate| rate.0 as f64))
        }
        Measured::Counters(_) | Measured::Cpus(_) | Measured::Hops(_) => None,
        Measured::Disk(disk) if has_path && !may_cross(source, disk) => None,
        Measured::Disk(disk) => most(&mut disk.rows.iter().map(|row| row.bytes_per_sec * 8.0)),
    }
}
