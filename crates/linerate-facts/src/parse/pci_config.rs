//! Parses a PCI device's `config`, which is its configuration space, and sysfs's text about its link.
//!
//! Any user can read the first 64 bytes; only root can read the rest.

use super::{Malformed, text};
use crate::pci::{Buses, Link, Payload, PortKind};
use linerate_units::Transfers;

const WHAT: &str = "configuration space";
/// Length of the header in bytes, which any user may read.
const HEADER: usize = 64;
/// Most bytes that are read. They contain all capabilities that are used here. The whole PCI Express configuration
/// space is sixteen times as large, and slow to read from the device.
pub const LENGTH: usize = 256;
/// Largest number of capabilities of 4 bytes that fit. A longer chain of pointers is a loop.
const MOST: usize = (LENGTH - HEADER) / 4;
const EXPRESS: u8 = 0x10;
/// Bytes of one register, which one access reads.
const REGISTER: usize = 4;
/// Length of the first registers: ids, status, class and kind of header.
const IDENTITY: usize = 0x10;
/// Offset of the register with the numbers of a bridge's buses.
const BUSES: usize = 0x18;
/// Offset of the pointer to the first capability.
const FIRST: usize = 0x34;
/// Length of the part of the PCI Express capability that is used.
const CAPABILITY: usize = 0x14;

/// The fields of the configuration space that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Vendor id of the device.
    pub vendor: u16,
    /// Device id, which the vendor assigns.
    pub device: u16,
    /// Class, subclass and programming interface of the device.
    pub class: u32,
    /// Buses behind the device, if the device is a bridge with buses behind it.
    pub buses: Option<Buses>,
    /// PCI Express capability of the device.
    pub express: Express,
}

/// What is known of the PCI Express capability of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Express {
    /// Unknown: the bytes end before the capabilities, as for users other than root.
    Hidden,
    /// The device has none: it is conventional PCI, or inside the chip set.
    Absent,
    /// The device has the capability, with these values.
    Here(Capability),
}

/// The used values of the PCI Express capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capability {
    /// What the device is in the PCI Express tree: card, root port, port of a switch.
    pub kind: PortKind,
    /// Sizes of packets on the link.
    pub payload: Payload,
    /// Speed and width at which the link runs; `None` for devices without a link.
    pub now: Option<Link>,
    /// The best speed and width that this end of the link supports.
    pub max: Option<Link>,
}

/// Parses the configuration space, or as much of it as was read.
pub fn parse(space: &[u8]) -> Result<Config, Malformed> {
    let header = space.get(..HEADER).ok_or(Malformed::Short(WHAT))?;
    let vendor = u16::from_le_bytes([header[0], header[1]]);
    if matches!(vendor, 0 | 0xffff) {
        return Err(Malformed::Missing("the device, which does not answer,"));
    }
    let buses = Buses { secondary: header[BUSES + 1], subordinate: header[BUSES + 2] };
    Ok(Config {
        vendor,
        device: u16::from_le_bytes([header[2], header[3]]),
        class: u32::from_le_bytes([header[9], header[10], header[11], 0]),
        buses: (is_bridge(header) && buses.secondary > 0).then_some(buses),
        express: express(space, header),
    })
}

/// Reads only the registers that [`parse`] uses, and leaves the others zero. Each register costs an access to the
/// device, and in a virtual machine an exit to its host. `read` reads at an offset and returns the length, which is
/// shorter at the end of the space. The header is assumed to be readable.
pub fn gather<E>(mut read: impl FnMut(usize, &mut [u8]) -> Result<usize, E>) -> Result<Vec<u8>, E> {
    let mut space = vec![0; LENGTH];
    let mut end = LENGTH;
    let mut fetch = |space: &mut [u8], at: usize, length: usize| {
        let into = space.get_mut(at..at + length).unwrap_or_default();
        let wanted = into.len();
        let got = read(at, into)?;
        if got < wanted {
            end = end.min(at + got);
        }
        Ok(())
    };
    fetch(&mut space, 0, IDENTITY)?;
    if is_bridge(&space) {
        fetch(&mut space, BUSES, REGISTER)?;
    }
    if has_capabilities(&space) {
        fetch(&mut space, FIRST, REGISTER)?;
        let mut at = usize::from(space[FIRST] & 0xfc);
        for _ in 0..MOST {
            if at < HEADER {
                break;
            }
            fetch(&mut space, at, REGISTER)?;
            if space[at] == EXPRESS {
                fetch(&mut space, at + REGISTER, CAPABILITY - REGISTER)?;
                break;
            }
            at = usize::from(space[at + 1] & 0xfc);
        }
    }
    space.truncate(end);
    Ok(space)
}

/// Whether the device is a bridge, so that there may be buses behind it.
fn is_bridge(header: &[u8]) -> bool {
    header[0x0e] & 0x7f == 1
}

/// Whether the device has a list of capabilities, by a bit in its status register.
fn has_capabilities(header: &[u8]) -> bool {
    header[6] & 0x10 != 0
}

fn express(space: &[u8], header: &[u8]) -> Express {
    if !has_capabilities(header) {
        return Express::Absent;
    }
    let mut at = usize::from(header[FIRST] & 0xfc);
    for _ in 0..MOST {
        if at < HEADER {
            return Express::Absent;
        }
        let Some(&[id, next]) = space.get(at..at + 2) else {
            return Express::Hidden;
        };
        if id == EXPRESS {
            return capability(space, at).map_or(Express::Hidden, Express::Here);
        }
        at = usize::from(next & 0xfc);
    }
    Express::Absent
}

/// The values of the PCI Express capability at offset `at`; `None` if the space ends before them.
fn capability(space: &[u8], at: usize) -> Option<Capability> {
    let word = |offset: usize| {
        let raw = space.get(at + offset..at + offset + 2)?;
        Some(u16::from_le_bytes([raw[0], raw[1]]))
    };
    let (flags, able, control) = (word(2)?, word(4)?, word(8)?);
    let (link_able, link_now) = (word(0x0c)?, word(0x12)?);
    let kind = PortKind::of((flags >> 4) as u8 & 15);
    let has_link = link_able & 0x3ff != 0;
    Some(Capability {
        kind,
        payload: Payload {
            now: 128 << (control >> 5 & 7),
            max: 128 << (able & 7),
            read_request: 128 << (control >> 12 & 7),
        },
        now: has_link.then(|| link(link_now)),
        max: has_link.then(|| link(link_able)),
    })
}

/// Speed and width of a link, from a link register. The status and the capability register have the same format.
fn link(register: u16) -> Link {
    let code = usize::from(register & 15);
    let speed = code.checked_sub(1).and_then(|c| SPEEDS.get(c));
    Link {
        speed: speed.copied().map(Transfers),
        width: u8::try_from(register >> 4 & 63).ok().filter(|&w| is_width(w)),
    }
}

/// Transfers per second of each PCI Express generation, from 1 on.
const SPEEDS: [u64; 7] = [
    2_500_000_000,
    5_000_000_000,
    8_000_000_000,
    16_000_000_000,
    32_000_000_000,
    64_000_000_000,
    128_000_000_000,
];

fn is_width(lanes: u8) -> bool {
    matches!(lanes, 1 | 2 | 4 | 8 | 12 | 16 | 32)
}

/// Parses the speed as sysfs writes it: `8.0 GT/s PCIe`, `2.5 GT/s`; `None` for `Unknown`.
pub fn speed(text: &[u8]) -> Result<Option<Transfers>, Malformed> {
    const WHAT: &str = "speed of the link";
    let mut fields = text::fields(text::first_line(text, WHAT)?);
    let number = fields.next().ok_or(Malformed::Missing(WHAT))?;
    if number.starts_with(b"Unknown") {
        return Ok(None);
    }
    let mut parts = number.splitn(2, |&b| b == b'.');
    let whole = parts.next().and_then(text::decimal);
    let tenth = parts.next().map_or(Some(0), text::decimal);
    let (Some(whole @ 0..=1000), Some(tenth @ 0..=9), Some(b"GT/s")) =
        (whole, tenth, fields.next())
    else {
        return Err(Malformed::NotANumber(WHAT));
    };
    match whole * 1_000_000_000 + tenth * 100_000_000 {
        0 => Ok(None),
        speed if SPEEDS.contains(&speed) => Ok(Some(Transfers(speed))),
        _ => Err(Malformed::NotANumber(WHAT)),
    }
}

/// Parses the width as sysfs writes it; `None` for 0 and 255, which mean that there is no link.
pub fn width(text: &[u8]) -> Result<Option<u8>, Malformed> {
    const WHAT: &str = "width of the link";
    match super::sysctl::number(text)? {
        0 | 255 => Ok(None),
        lanes => u8::try_from(lanes)
            .ok()
            .filter(|&w| is_width(w))
            .map(Some)
            .ok_or(Malformed::NotANumber(WHAT)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A network card with one capability before the PCI Express capability. The card supports x8 of generation 3 and
    /// runs at x4 of generation 2.
    fn card() -> Vec<u8> {
        let mut space = vec![0; 256];
        let mut put = |at: usize, bytes: &[u8]| space[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &[0xb3, 0x15, 0x03, 0x10]);
        put(6, &[0x10, 0]);
        put(9, &[0, 0x80, 0x02]);
        put(0x34, &[0x40]);
        put(0x40, &[0x01, 0x60]);
        put(0x60, &[EXPRESS, 0, 0x02, 0]);
        put(0x64, &[0x02, 0]);
        put(0x68, &[0x20, 0x50]);
        put(0x6c, &[0x83, 0]);
        put(0x72, &[0x42, 0]);
        space
    }

    fn lanes(giga: f64, width: u8) -> Link {
        Link { speed: Some(Transfers((giga * 1e9) as u64)), width: Some(width) }
    }

    #[test]
    fn a_card_tells_its_link_and_its_sizes() {
        let config = parse(&card()).unwrap();
        assert_eq!((config.vendor, config.device), (0x15b3, 0x1003));
        assert_eq!((config.class, config.buses), (0x02_8000, None));
        let want = Capability {
            kind: PortKind::Endpoint,
            payload: Payload { now: 256, max: 512, read_request: 4096 },
            now: Some(lanes(5.0, 4)),
            max: Some(lanes(8.0, 8)),
        };
        assert_eq!(config.express, Express::Here(want));
    }

    #[test]
    fn what_root_alone_may_read_is_hidden_and_not_absent() {
        let card = card();
        assert_eq!(parse(&card[..64]).unwrap().express, Express::Hidden);
        assert_eq!(parse(&card[..0x70]).unwrap().express, Express::Hidden);
        let mut plain = card.clone();
        plain[6] = 0;
        assert_eq!(parse(&plain[..64]).unwrap().express, Express::Absent);
        assert!(parse(&card[..63]).is_err());
        assert!(parse(&[0xff; 256]).is_err());
    }

    #[test]
    fn a_chain_that_runs_in_a_circle_ends() {
        let mut space = card();
        space[0x41] = 0x40;
        assert_eq!(parse(&space).unwrap().express, Express::Absent);
    }

    #[test]
    fn a_bridge_has_buses_once_they_are_set_up() {
        let mut space = card();
        (space[0x0e], space[0x19], space[0x1a]) = (0x81, 4, 5);
        let buses = Buses { secondary: 4, subordinate: 5 };
        assert_eq!(parse(&space).unwrap().buses, Some(buses));
        space[0x19] = 0;
        assert_eq!(parse(&space).unwrap().buses, None);
    }

    #[test]
    fn the_words_of_sysfs() {
        for (text, want) in [
            ("8.0 GT/s PCIe\n", Some(8_000_000_000)),
            ("2.5 GT/s\n", Some(2_500_000_000)),
            ("8 GT/s\n", Some(8_000_000_000)),
            ("Unknown\n", None),
            ("Unknown speed\n", None),
        ] {
            assert_eq!(speed(text.as_bytes()), Ok(want.map(Transfers)), "{text:?}");
        }
        for bad in [
            "",
            "8.0 GT/s",
            "-1 GT/s\n",
            "2 GT/s\n",
            "9.9 GT/s\n",
            "8.0\n",
            "8.0 MT/s\n",
            "99999999999 GT/s\n",
        ] {
            assert!(speed(bad.as_bytes()).is_err(), "{bad:?}");
        }
        assert_eq!(width(b"16\n"), Ok(Some(16)));
        assert_eq!((width(b"0\n"), width(b"255\n")), (Ok(None), Ok(None)));
        assert!(width(b"3\n").is_err() && width(b"65535\n").is_err());
    }

    /// What [`gather`] returns for a space, and the offsets and lengths that it read.
    fn gathered(space: &[u8]) -> (Vec<u8>, Vec<(usize, usize)>) {
        let mut reads = Vec::new();
        let got = gather(|at, into| {
            reads.push((at, into.len()));
            let rest = space.get(at..).unwrap_or_default();
            let length = rest.len().min(into.len());
            into[..length].copy_from_slice(&rest[..length]);
            Ok::<_, ()>(length)
        });
        (got.unwrap(), reads)
    }

    #[test]
    fn each_register_that_is_used_is_read_once_and_no_other() {
        let (space, reads) = gathered(&card());
        assert_eq!(parse(&space), parse(&card()));
        let chain = [(0x40, 4), (0x60, 4), (0x64, 16)];
        assert_eq!(reads, [&[(0, 16), (0x34, 4)][..], &chain].concat());
        let mut bridge = card();
        (bridge[6], bridge[0x0e], bridge[0x19]) = (0, 1, 4);
        let (space, reads) = gathered(&bridge);
        assert_eq!(parse(&space), parse(&bridge));
        assert_eq!(reads, [(0, 16), (0x18, 4)]);
    }

    proptest! {
        #[test]
        fn the_registers_say_the_same_as_the_whole_space(
            changes in prop::collection::vec((0usize..256, any::<u8>()), 0..6),
            links in prop::collection::vec((0x40usize..0x80, 0x40u8..), 0..4),
            length in 64usize..=256,
        ) {
            let mut space = card();
            for (at, byte) in changes.into_iter().chain(links) {
                space[at] = byte;
            }
            space.truncate(length);
            prop_assert_eq!(parse(&gathered(&space).0), parse(&space));
        }

        #[test]
        fn the_registers_of_any_space_say_the_same(
            space in prop::collection::vec(any::<u8>(), 64..=256),
        ) {
            prop_assert_eq!(parse(&gathered(&space).0), parse(&space));
        }

        #[test]
        fn arbitrary_bytes_never_panic(text: Vec<u8>, at in 0usize..256, byte: u8) {
            let _ = (parse(&text), speed(&text), width(&text));
            let mut space = card();
            space[at] = byte;
            let _ = parse(&space);
        }
    }
}
