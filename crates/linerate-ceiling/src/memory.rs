//! Memory: bandwidth of the memory channels, and how often each payload byte crosses them.

use super::Bounds;
use linerate_plan::Access;

/// Bytes that a memory channel moves in one transfer.
//= JEDEC JESD21-C: modules have 64 bits of data
const BUS: f64 = 8.0;

/// Memory channels of one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channels {
    /// Number of channels that have memory modules.
    pub count: u32,
    /// Speed of the modules, in millions of transfers per second.
    pub speed: u32,
}

impl Channels {
    /// Capacity in bytes per second, reads and writes together.
    pub fn capacity(self) -> Bounds {
        Bounds::exact(f64::from(self.count) * f64::from(self.speed) * 1e6 * BUS)
    }

    /// The formula of the goodput in words, if each payload byte crosses the channels `crossings` times.
    pub fn words(self, crossings: u32) -> String {
        let crossed = match crossings {
            1 => "once".to_owned(),
            n => format!("{n} times"),
        };
        let Self { count, speed } = self;
        format!("{count} x {speed} MT/s x 8 B, crossed {crossed}")
    }
}

/// Fewest times that a received byte crosses the memory channels if cards cannot write into the cache: the card
/// writes it, and a program that copies reads it. Sent bytes can come from the cache.
pub const fn fewest(copied: bool) -> u32 {
    if copied { 2 } else { 1 }
}

/// How often a received byte usually crosses the memory channels: the card writes it; a copy reads and writes it.
pub const fn typical(copied: bool) -> u32 {
    if copied { 3 } else { 1 }
}

/// Fewest times that each byte of a memory operation crosses the channels: one read or write is one crossing.
/// Writes that bypass the caches need not read the old contents.
pub const fn crossings(access: Access) -> u32 {
    match access {
        Access::Read | Access::Write => 1,
        Access::Copy => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_has_its_published_rate() {
        let one = Channels { count: 1, speed: 2666 };
        let gigabits = one.capacity().low() * 8.0 / 1e9;
        assert!((gigabits - 170.6).abs() < 0.1, "{gigabits}");
        assert_eq!(one.words(1), "1 x 2666 MT/s x 8 B, crossed once");
        assert_eq!(one.words(3), "1 x 2666 MT/s x 8 B, crossed 3 times");
    }
}
