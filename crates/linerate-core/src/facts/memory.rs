//! Memory of a machine.

use crate::units::{Bytes, Transfers};

/// Memory of the whole machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// What the kernel has.
    pub total: Option<Bytes>,
    /// What programs could get without swapping.
    pub available: Option<Bytes>,
    /// Size of a huge page.
    pub huge_page: Option<Bytes>,
    /// Huge pages set aside.
    pub huge_pages: Option<u64>,
    /// Slots and what is in them, as the firmware says; `None` where that cannot be read.
    pub modules: Option<Vec<Module>>,
}

/// A slot for a memory module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Module {
    /// Where it is: `DIMM_A1`.
    pub locator: String,
    /// Which bank, in the firmware's words: `P0 CHANNEL A`.
    pub bank: String,
    /// Its size; `None` when the slot is empty.
    pub size: Option<Bytes>,
    /// `DDR4`; empty when unknown.
    pub kind: &'static str,
    /// What it is made for.
    pub rated: Option<Transfers>,
    /// What it is set to.
    pub now: Option<Transfers>,
    /// Bits of data in each transfer.
    pub width_bits: Option<u16>,
    /// Whether it has further bits to correct errors.
    pub ecc: Option<bool>,
    /// Ranks.
    pub ranks: Option<u8>,
}

impl Module {
    /// The channel, where the firmware names one: `P0 CHANNEL A`. Nothing is guessed from letters.
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
    use super::Module;

    #[test]
    fn a_channel_is_what_the_firmware_calls_so() {
        let channel = |bank: &str, locator: &str| {
            let module = Module {
                bank: bank.to_owned(),
                locator: locator.to_owned(),
                ..Module::default()
            };
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
