//! Parsers for the values of a case file. A value for which no hardware exists is refused with an explanation.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error};

use linerate_ceiling::ethernet::{Ip, Tunnel};
use linerate_ceiling::fingerprint::{MOST_POINTS, Point};
use linerate_ceiling::link::{lanes, named};
use linerate_ceiling::pci::{BUSES, Bus};
use linerate_ceiling::pcie;
use linerate_ceiling::storage::Policy;
use linerate_units::{Bytes, Nanos, Rate, UnitError};

/// Longest accepted time of one point of a sweep, in microseconds: eleven days.
const LONGEST_MICROS: f64 = 1e12;
/// Largest accepted message of one point of a sweep, in bytes: 1 PiB.
const LARGEST_SIZE: u64 = 1 << 50;

/// The slot of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// The port has no slot, or one that cannot be known: the port is on the board, or virtual.
    NoSlot,
    /// A bus that the cards share.
    Bus(Bus),
    /// The known properties of a PCI Express slot.
    Express {
        /// Generation of PCI Express; `None` if the case leaves it open.
        generation: Option<u32>,
        /// Number of PCI Express lanes; `None` if the case leaves it open.
        lanes: Option<u32>,
    },
}

impl FromStr for Slot {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::NoSlot);
        }
        if text.starts_with("pci") {
            return named(text, &BUSES.map(|b| (b.name, b)), "bus").map(Self::Bus);
        }
        let (generation, width) = match text.split_once('x') {
            Some((generation, width)) => (generation, Some(width)),
            None => (text, None),
        };
        let generation = match generation.strip_prefix("gen") {
            Some(number) => Some(generation_of(number)?),
            None if generation.is_empty() => None,
            None => return Err(no_slot(text)),
        };
        let lanes = width.map(|w| lanes(w, &pcie::WIDTHS, "PCIe")).transpose()?;
        if generation.is_none() && lanes.is_none() {
            return Err(no_slot(text));
        }
        Ok(Self::Express { generation, lanes })
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSlot => f.write_str("none"),
            Self::Bus(bus) => f.write_str(bus.name),
            Self::Express { generation, lanes } => {
                if let Some(generation) = generation {
                    write!(f, "gen{generation}")?;
                }
                lanes.map_or(Ok(()), |lanes| write!(f, "x{lanes}"))
            }
        }
    }
}

fn no_slot(text: &str) -> String {
    format!("`{text}` is not a slot: expected `gen3x8`, `gen3`, `x8`, `pci-32/33` or `none`")
}

fn generation_of(number: &str) -> Result<u32, String> {
    let found = pcie::GENERATIONS.into_iter().find(|g| g.to_string() == number);
    found.ok_or_else(|| format!("there is no generation {number} of PCIe: expected 1 to 7"))
}

/// A rate, with the text in which it was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// The parsed rate.
    pub rate: Rate,
    /// The rate as it was written in the file.
    pub text: String,
}

impl FromStr for Figure {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let rate = text.parse()?;
        let text = text.to_owned();
        Ok(Self { rate, text })
    }
}

/// Clock rate of a core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clock {
    /// Clock rate in hertz: cycles per second.
    pub hertz: f64,
}

impl FromStr for Clock {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("`{text}` is not a clock (expected for example `3.3GHz`)");
        let (number, factor) = text
            .strip_suffix("GHz")
            .map(|n| (n, 1e9))
            .or_else(|| text.strip_suffix("MHz").map(|n| (n, 1e6)))
            .ok_or_else(refuse)?;
        let hertz = number.trim().parse::<f64>().map_err(|_| refuse())? * factor;
        if (1e6..1e11).contains(&hertz) { Ok(Self { hertz }) } else { Err(refuse()) }
    }
}

/// Reads a required value that is written as text.
pub(super) fn word<'de, D, T>(d: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: fmt::Display,
{
    String::deserialize(d)?.parse().map_err(Error::custom)
}

/// Reads an optional value that is written as text.
pub(super) fn text<'de, D, T>(d: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: fmt::Display,
{
    word(d).map(Some)
}

/// Reads a whole number from 1 to `MOST`.
pub(super) fn count<'de, D, const MOST: u32>(d: D) -> Result<Option<u32>, D::Error>
where
    D: Deserializer<'de>,
{
    let number = i64::deserialize(d)?;
    let fits = u32::try_from(number).ok().filter(|n| (1..=MOST).contains(n));
    let refuse = || Error::custom(format!("`{number}` is out of range; allowed: 1 to {MOST}"));
    fits.map(Some).ok_or_else(refuse)
}

/// Reads a size in bytes that PCIe allows for a payload or a read request.
pub(super) fn size<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u32>, D::Error> {
    let number = i64::deserialize(d)?;
    let found = pcie::SIZES.into_iter().find(|s| i64::from(*s) == number);
    found.map(Some).ok_or_else(|| {
        let there = pcie::SIZES.map(|s| s.to_string()).join(", ");
        Error::custom(format!("PCIe has no size `{number}`: there are {there}"))
    })
}

/// Reads a number above zero.
pub(super) fn amount<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(d)?;
    if number > 0.0 && number <= 1e15 {
        Ok(number)
    } else {
        Err(Error::custom(format!("`{number}` is out of range; allowed: above 0, to 1e15")))
    }
}

/// Reads an optional number above zero.
pub(super) fn positive<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
    amount(d).map(Some)
}

/// Reads the points of a sweep: pairs of a message size in bytes and a time in microseconds.
pub(super) fn points<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Point>, D::Error> {
    let pairs = Vec::<(u64, f64)>::deserialize(d)?;
    if pairs.len() > MOST_POINTS {
        return Err(Error::custom(format!(
            "{} points are too many; allowed: {MOST_POINTS}",
            pairs.len()
        )));
    }
    let point = |(size, micros): (u64, f64)| {
        if micros > 0.0 && micros <= LONGEST_MICROS && size <= LARGEST_SIZE {
            Ok(Point { size: Bytes(size), time: Nanos((micros * 1e3) as u64) })
        } else {
            Err(Error::custom(format!(
                "`[{size}, {micros}]` is out of range; allowed: up to 1 PiB, above 0 to 1e12 us"
            )))
        }
    };
    pairs.into_iter().map(point).collect()
}

pub(super) fn ip<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Ip>, D::Error> {
    match i64::deserialize(d)? {
        4 => Ok(Some(Ip::V4)),
        6 => Ok(Some(Ip::V6)),
        other => Err(Error::custom(format!("there is no IP version {other}: expected 4 or 6"))),
    }
}

pub(super) fn tunnel<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Tunnel>, D::Error> {
    let name = String::deserialize(d)?;
    let found = named(&name, &Tunnel::NAMES, "tunnel");
    found.map(Some).map_err(Error::custom)
}

pub(super) fn policy<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Policy>, D::Error> {
    let name = String::deserialize(d)?;
    let found = named(&name, &Policy::NAMES, "policy");
    found.map(Some).map_err(Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_that_were_built_are_read_and_written_alike() {
        for text in
            ["gen3x8", "gen1x1", "gen7x16", "gen4", "x12", "pci-32/33", "pcix-64/133", "none"]
        {
            let card: Slot = text.parse().unwrap();
            assert_eq!(card.to_string(), text);
        }
    }

    #[test]
    fn hardware_that_cannot_be_is_refused_in_words() {
        for (text, part) in [
            ("gen3x3", "no link of PCIe has 3 lanes"),
            ("gen3x32", "no link of PCIe has 32 lanes"),
            ("gen0x8", "no generation 0"),
            ("gen8", "no generation 8"),
            ("pci-32/34", "there is no bus"),
            ("", "is not a slot"),
            ("fast", "is not a slot"),
        ] {
            let why = text.parse::<Slot>().unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
    }

    #[test]
    fn clocks_have_their_unit() {
        assert!("3.3GHz".parse::<Clock>().is_ok());
        for bad in ["3.3", "GHz", "0GHz", "-1GHz", "nanGHz", "999GHz"] {
            assert!(bad.parse::<Clock>().is_err(), "{bad}");
        }
    }
}
