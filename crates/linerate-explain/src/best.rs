//! The highest rate among results.

use super::rule::may_cross;
use super::{Material, Table};
use linerate_record::reported::{Carrier, Counted, Measured, Source};

/// The highest rate, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// Payload in a second, in bits.
    pub rate: f64,
    /// The file that has it.
    pub file: String,
}

impl Best {
    /// The highest rate of any result; `None` if there is none. Beside transfers, a disk of the host itself does not count.
    pub fn of(material: &Material) -> Option<Self> {
        let has_path = material.transfers().next().is_some();
        let all = material.sources.iter().flat_map(|source| {
            let each = source.results.iter().filter_map(|r| highest(source, &r.measured, has_path));
            each.map(|rate| Self { rate, file: source.file.clone() })
        });
        all.max_by(|a, b| a.rate.total_cmp(&b.rate))
    }
}

/// Of a transfer of datagrams only the receiver's count tells what was carried.
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
