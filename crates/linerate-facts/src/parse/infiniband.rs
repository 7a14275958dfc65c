//! Parses the files of a port below `/sys/class/infiniband`.

use super::{Malformed, text};
use crate::infiniband::{Guid, IbRate, NodeType};
use linerate_units::Rate;

/// The number in front of a state such as `4: ACTIVE`.
pub fn state(text: &[u8]) -> Result<u32, Malformed> {
    const WHAT: &str = "state of the port";
    let line = text::first_line(text, WHAT)?;
    let number = line.split(|&b| b == b':').next().unwrap_or_default();
    let number = text::decimal(number.trim_ascii()).and_then(|n| u32::try_from(n).ok());
    number.ok_or(Malformed::NotANumber(WHAT))
}

/// The kind of a device, from text such as `1: CA` or `4: RNIC`; `None` if the text has no known kind.
//= torvalds/linux, include/rdma/ib_verbs.h: enum rdma_node_type
pub fn node_type(text: &str) -> Option<NodeType> {
    Some(match text.split(':').next()?.parse().ok()? {
        1u32 => NodeType::ChannelAdapter,
        4 => NodeType::Iwarp,
        _ => NodeType::Other,
    })
}

/// Parses a rate such as `56 Gb/sec (4X FDR)`, `2.5 Gb/sec (1X SDR)`, or `10 Gb/sec (4X)`.
pub fn rate(text: &[u8]) -> Result<IbRate, Malformed> {
    const WHAT: &str = "rate of the port";
    let line = text::first_line(text, WHAT)?;
    let mut fields = text::fields(line);
    let tenths = tenths(fields.next().unwrap_or_default()).ok_or(Malformed::NotANumber(WHAT))?;
    let mut rest = fields.skip(1);
    let width = rest.next().and_then(|field| {
        let digits = field.strip_prefix(b"(")?.split(|&b| b == b'X').next()?;
        text::decimal(digits).and_then(|width| u32::try_from(width).ok())
    });
    let speed = rest.next().map(|field| text::trimmed(field.strip_suffix(b")").unwrap_or(field)));
    Ok(IbRate {
        rate: Rate(tenths.checked_mul(100_000_000).ok_or(Malformed::NotANumber(WHAT))?),
        width: width.ok_or(Malformed::NotANumber(WHAT))?,
        // Old kernels print no speed for SDR.
        speed: speed.unwrap_or_else(|| "SDR".to_owned()),
    })
}

/// Parses a GUID such as `0002:c903:004c:5e32`.
pub fn guid(text: &[u8]) -> Result<Guid, Malformed> {
    const WHAT: &str = "GUID";
    let line = text::first_line(text, WHAT)?.trim_ascii();
    groups(line).map(Guid).ok_or(Malformed::NotANumber(WHAT))
}

/// The number in four groups of four hexadecimal digits.
fn groups(text: &[u8]) -> Option<u64> {
    let (mut value, mut count) = (0, 0);
    for group in text.split(|&b| b == b':') {
        let group = Some(group).filter(|group| group.len() == 4);
        value = value << 16 | text::hexadecimal(group?)?;
        count += 1;
    }
    (count == 4).then_some(value)
}

/// A number with at most one digit after the point, in tenths.
fn tenths(field: &[u8]) -> Option<u64> {
    let mut parts = field.splitn(2, |&b| b == b'.');
    let whole = text::decimal(parts.next()?)?.checked_mul(10)?;
    match parts.next() {
        None => Some(whole),
        Some(digit) if digit.len() == 1 => whole.checked_add(text::decimal(digit)?),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{NodeType, guid, node_type, rate, state};
    use linerate_units::Rate;

    #[test]
    fn a_device_has_a_kind() {
        for (text, kind) in [
            ("1: CA", Some(NodeType::ChannelAdapter)),
            ("4: RNIC", Some(NodeType::Iwarp)),
            ("5: usNIC", Some(NodeType::Other)),
            ("7: unspecified", Some(NodeType::Other)),
            ("", None),
            ("CA", None),
        ] {
            assert_eq!(node_type(text), kind, "{text}");
        }
    }

    #[test]
    fn states_are_their_numbers() {
        assert_eq!(state(b"4: ACTIVE\n"), Ok(4));
        assert_eq!(state(b"2: Polling\n"), Ok(2));
        assert!(state(b"ACTIVE\n").is_err() && state(b"4: ACTIVE").is_err());
    }

    #[test]
    fn rates_have_width_and_speed() {
        for (text, tenths, width, speed) in [
            ("56 Gb/sec (4X FDR)\n", 560, 4, "FDR"),
            ("2.5 Gb/sec (1X SDR)\n", 25, 1, "SDR"),
            ("10 Gb/sec (4X)\n", 100, 4, "SDR"),
            ("100 Gb/sec (2X HDR)\n", 1000, 2, "HDR"),
            ("300 Gb/sec (12X EDR)\n", 3000, 12, "EDR"),
        ] {
            let got = rate(text.as_bytes()).unwrap();
            assert_eq!(got.rate, Rate(tenths * 100_000_000), "{text}");
            assert_eq!((got.width, got.speed.as_str()), (width, speed), "{text}");
        }
        for bad in
            ["", "56 Gb/sec\n", "x Gb/sec (4X FDR)\n", "2.55 Gb/sec (4X)\n", "56 Gb/sec (4X FDR)"]
        {
            assert!(rate(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn guids_are_groups_of_four_digits() {
        let got = guid(b"0002:c903:004c:5e32\n").unwrap();
        assert_eq!(got.to_string(), "0x0002c903004c5e32");
        for bad in [
            "",
            "0002:c903:004c\n",
            "0002:c903:004c:5e32:0001\n",
            "0002:c903:004c:5e3\n",
            "0002:c903:004c:5e3g\n",
            "0002:c903:004c:5e32",
        ] {
            assert!(guid(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(text: Vec<u8>) {
            let _ = (state(&text), rate(&text), guid(&text));
            let _ = rate(&[b"18446744073709551615 Gb/sec (4X ", &text[..], b"\n"].concat());
        }
    }
}
