//! The memory of a machine, its modules and its channels.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use linerate_ceiling::memory;
use linerate_units::{Bytes, Transfers};

/// Number of loads from memory that are timed together. From the nearest cache they take 100 times as long as reading
/// the clock, and from memory less than a millisecond.
pub const BATCH: usize = 4096;
/// Size of an array, as a multiple of the last cache's size, so that the cache holds hardly any of the array.
pub const CACHES: u64 = 4;

/// Memory of the whole machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// The memory that the kernel manages.
    pub total: Option<Bytes>,
    /// The memory that programs could get without swapping.
    pub available: Option<Bytes>,
    /// Size of a huge page.
    pub huge_page: Option<Bytes>,
    /// Number of huge pages that are set aside.
    pub huge_pages: Option<u64>,
    /// Slots for memory modules, as the firmware lists them; `None` if its list cannot be read.
    pub modules: Option<Vec<Module>>,
}

/// A slot for a memory module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Module {
    /// The slot's location: `DIMM_A1`.
    pub locator: String,
    /// The slot's bank, as the firmware names it: `P0 CHANNEL A`.
    pub bank: String,
    /// Size of the module; `None` when the slot is empty.
    pub size: Option<Bytes>,
    /// Kind of the module, such as `DDR4`; empty when unknown.
    pub kind: &'static str,
    /// Speed that the module is rated for.
    pub rated: Option<Transfers>,
    /// Speed at which the module runs.
    pub now: Option<Transfers>,
    /// Data bits of each transfer.
    pub width_bits: Option<u16>,
    /// Whether the module has additional bits to correct errors.
    pub ecc: Option<bool>,
    /// Number of ranks of the module.
    pub ranks: Option<u8>,
}

/// The memory channels that have modules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Channels {
    /// The least possible number of channels.
    pub least: u32,
    /// The largest possible number of channels.
    pub most: u32,
    /// Speed of the slowest module.
    pub speed: Transfers,
}

impl Channels {
    /// The channels with `modules`; `None` if the speed of a module is unknown, if there are no modules, or if a module
    /// is narrower than a channel: soldered LPDDR counts parts of channels.
    pub fn of(modules: &[Module]) -> Option<Self> {
        let there = || modules.iter().filter(|m| m.size.is_some());
        if there().any(|m| m.width_bits.is_some_and(|bits| bits != 64)) {
            return None;
        }
        let speeds: Option<Vec<Transfers>> = there().map(|m| m.now).collect();
        let speed = speeds?.into_iter().min()?;
        let most = u32::try_from(there().count()).ok()?;
        let named: Option<BTreeSet<&str>> = there().map(Module::channel).collect();
        let named = named.map(|names| names.len() as u32);
        Some(Self { least: named.unwrap_or(1), most: named.unwrap_or(most), speed })
    }

    /// Bytes per second that the least and that the largest possible number of channels carry.
    pub fn capacity(self) -> (f64, f64) {
        let speed = u32::try_from(self.speed.0 / 1_000_000).unwrap_or(u32::MAX);
        let of = |count| memory::Channels { count, speed }.capacity().low();
        (of(self.least), of(self.most))
    }

    /// The channels as a formula: `2 x 2666 MT/s x 8 B`.
    pub fn words(self) -> String {
        let Self { least, most, speed } = self;
        let count = if least == most { most.to_string() } else { format!("{least} to {most}") };
        format!("{count} x {} MT/s x 8 B", speed.0 / 1_000_000)
    }
}

impl Module {
    /// The channel's name, if the firmware gives one: `P0 CHANNEL A`. It is never guessed from letters alone.
    pub fn channel(&self) -> Option<&str> {
        [&self.bank, &self.locator].into_iter().find_map(|text| {
            let start = text.to_ascii_lowercase().find("channel")? + "channel".len();
            let rest = text.get(start..)?;
            let name = rest.find(|c: char| c.is_ascii_alphanumeric())?;
            let name_end = rest[name..]
                .find(|c: char| !c.is_ascii_alphanumeric())
                .map_or(text.len(), |n| start + name + n);
            text.get(..name_end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Channels, Module};
    use linerate_units::{Bytes, Transfers};

    #[test]
    fn channels_are_as_many_as_firmware_names_else_one_to_as_many_as_modules() {
        let module = |bank: &str, mega: u64| Module {
            bank: bank.to_owned(),
            size: Some(Bytes(1 << 30)),
            now: Some(Transfers(mega * 1_000_000)),
            ..Module::default()
        };
        let of = |modules: &[Module]| {
            let channels = Channels::of(modules)?;
            Some((channels.words(), channels.capacity()))
        };
        let two = [module("CHANNEL A", 3200), module("CHANNEL A", 3200), module("CHANNEL B", 2666)];
        let rate = 2.0 * 2666e6 * 8.0;
        assert_eq!(of(&two), Some(("2 x 2666 MT/s x 8 B".to_owned(), (rate, rate))));
        let unnamed = [module("BANK 0", 2000), module("BANK 1", 2000), Module::default()];
        let want = ("1 to 2 x 2000 MT/s x 8 B".to_owned(), (16e9, 32e9));
        assert_eq!(of(&unnamed), Some(want));
        let part = Module { width_bits: Some(16), ..module("CHANNEL A", 6400) };
        assert_eq!(of(&[part]), None);
        let guest = Module { now: None, ..module("", 1) };
        assert_eq!(of(&[guest]), None);
        assert_eq!(of(&[Module::default()]), None);
    }

    #[test]
    fn a_channel_is_what_the_firmware_calls_so() {
        let channel = |bank: &str, locator: &str| {
            let module =
                Module { bank: bank.to_owned(), locator: locator.to_owned(), ..Module::default() };
            module.channel().map(str::to_owned)
        };
        assert_eq!(channel("P0 CHANNEL A", "DIMM 1").unwrap(), "P0 CHANNEL A");
        assert_eq!(
            channel("BANK 0", "Controller0-ChannelB-DIMM0").unwrap(),
            "Controller0-ChannelB"
        );
        assert_eq!(channel("", "DIMM_A1"), None);
        assert_eq!(channel("channel", "channel -"), None);
    }
}
