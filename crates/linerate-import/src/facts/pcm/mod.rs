//! Readers of Intel PCM's tables. These are measurements and not facts of a host: each figure becomes a note.

mod memory;
mod pcie;
#[cfg(test)]
mod tests;

pub(crate) use memory::PCM_MEMORY;
pub(crate) use pcie::PCM_PCIE;

/// A number of bytes per second in words: `1.47 GB/s`.
fn rate(bytes: u64) -> String {
    let units = [("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)];
    let value = bytes as f64;
    let unit = units.iter().find(|(_, unit)| value >= *unit);
    unit.map_or_else(
        || format!("{bytes} B/s"),
        |(name, unit)| format!("{:.2} {name}", value / unit),
    )
}
