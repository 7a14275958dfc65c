//! The highest rate among results.

use super::{Material, Table};
use crate::reported::Measured;

/// The highest rate, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// Payload in a second, in bits.
    pub rate: f64,
    /// The file that has it.
    pub file: String,
}

impl Best {
    /// The highest rate of any result; `None` if there is none.
    pub fn of(material: &Material) -> Option<Self> {
        let all = material.sources.iter().flat_map(|source| {
            let each = source.results.iter().filter_map(|r| highest(&r.measured));
            each.map(|rate| Self {
                rate,
                file: source.file.clone(),
            })
        });
        all.max_by(|a, b| a.rate.total_cmp(&b.rate))
    }
}

fn highest(measured: &Measured) -> Option<f64> {
    let most = |rates: &mut dyn Iterator<Item = f64>| rates.reduce(f64::max);
    match measured {
        Measured::Transfer(one) => Some(one.goodput.0 as f64),
        Measured::Sizes(sizes) => {
            let rates = sizes.rows.iter().filter_map(|row| Table::rate(sizes, row));
            most(&mut rates.map(|rate| rate.0 as f64))
        }
        Measured::Disk(disk) => most(&mut disk.rows.iter().map(|row| row.bytes_per_sec * 8.0)),
    }
}
