//! Numbers that a user types: each type has its unit and its allowed range.
//!
//! Flags, environment and configuration file are read by the same type, so that all three refuse a wrong value with the
//! same words.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use linerate_units::{Bytes, Nanos, Percent, Rate};
use serde::de::{self, Visitor};

/// A value that can be written as text from which reading gives exactly this value.
trait Exact {
    fn exact(&self) -> String;
}

impl Exact for Bytes {
    fn exact(&self) -> String {
        format!("{}B", self.0)
    }
}

impl Exact for Rate {
    fn exact(&self) -> String {
        format!("{}b/s", self.0)
    }
}

impl Exact for Nanos {
    fn exact(&self) -> String {
        format!("{}ns", self.0)
    }
}

impl Exact for u32 {
    fn exact(&self) -> String {
        self.to_string()
    }
}

impl Exact for u64 {
    fn exact(&self) -> String {
        self.to_string()
    }
}

impl Exact for Percent {
    fn exact(&self) -> String {
        self.to_string()
    }
}

/// Upper bound for sizes that every engine limits further by itself.
const ENGINE_MOST: Bytes = Bytes(1 << 40);

/// Parses `text` and checks that it is within the range; each error message states the range.
pub(super) fn read<T>(text: &str, (low, high): (T, T)) -> Result<T, String>
where
    T: FromStr + PartialOrd + fmt::Display,
    T::Err: fmt::Display,
{
    let most = high.to_string();
    // The range in words; an upper bound that depends on the engine is stated by that engine.
    let range = if most == ENGINE_MOST.to_string() {
        format!("allowed: {low} or more, as much as the engine takes")
    } else {
        format!("allowed: {low} to {most}")
    };
    let value: T = text.parse().map_err(|e: T::Err| {
        let why = e.to_string();
        // Error messages of integers do not contain the typed text.
        if why.contains(&format!("`{text}`")) {
            format!("{why}; {range}")
        } else {
            format!("`{text}` is not a whole number; {range}")
        }
    })?;
    if value < low || value > high {
        return Err(format!("`{text}` is out of range; {range}"));
    }
    Ok(value)
}

/// Deserializes a string or a whole number, so that a file may have `streams = 4` and `time = "30s"`.
struct Text;

impl Visitor<'_> for Text {
    type Value = String;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number with its unit, in quotes")
    }
    fn visit_str<E: de::Error>(self, v: &str) -> Result<String, E> {
        Ok(v.to_owned())
    }
    fn visit_i64<E: de::Error>(self, v: i64) -> Result<String, E> {
        Ok(v.to_string())
    }
    fn visit_u64<E: de::Error>(self, v: u64) -> Result<String, E> {
        Ok(v.to_string())
    }
}

macro_rules! quantity {
    ($($(#[$doc:meta])* $name:ident($inner:ty) $low:expr, $high:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub(crate) struct $name(pub(crate) $inner);

        impl FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                read(text, ($low, $high)).map(Self)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(&self.0.exact())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                d.deserialize_any(Text)?.parse().map_err(de::Error::custom)
            }
        }
    )*};
}

quantity! {
    /// Share of datagrams that may be lost. If half of the datagrams are lost, no rate is found.
    LossShare(Percent) Percent(0.0), Percent(50.0);
    /// Budget of a run. Below five seconds not even one direction can be measured.
    Budget(Nanos) Nanos::from_secs(5), Nanos::from_secs(3600);
    /// Payload of one read or write, or for engine `memory` the size of the array that is used. Each transport limits
    /// it further.
    OpSize(Bytes) Bytes(1), ENGINE_MOST;
    /// Size of a file that is made to be measured.
    FileSize(Bytes) Bytes(1 << 20), Bytes(1 << 40);
    /// Size of a socket buffer. Kernels refuse less than about 4 KiB, and store twice the size in 31 bits.
    Buffer(Bytes) Bytes(4096), Bytes(1 << 30);
    /// Pace of one stream: from the slowest useful pace of the kernel to more than any port carries.
    Pace(Rate) Rate(8_000), Rate(1_000_000_000_000);
    /// Value of `TCP_MAXSEG`, within the kernel's own bounds.
    SegmentSize(u32) 88, 32_767;
    /// Number of connections: each needs a descriptor and memory of the kernel at both ends.
    Streams(u32) 1, 10_000;
    /// Observation time: counters tick in milliseconds, and for hours other tools are better.
    LookTime(Nanos) Nanos::from_secs(1), Nanos::from_secs(600);
    /// Time between two readings of counters; 0 means that they are read once.
    Interval(Nanos) Nanos(0), Nanos::from_secs(3600);
    /// Time of a single measurement. A server ends sessions that last two hours.
    ProbeTime(Nanos) Nanos::from_secs(1), Nanos::from_secs(3600);
    /// Number of runs with one plan.
    Times(u32) 2, 100;
    /// Messages per second, up to what one thread can send.
    MessageRate(u32) 1, 1_000_000;
    /// Size of a message of round trips, or for engine `memory` of the array that loads read. Each transport limits it
    /// further.
    Message(Bytes) Bytes(1), ENGINE_MOST;
    /// Number of connections that are shown.
    Top(u32) 1, 100;
    /// Number of clients that a server serves at the same time; each has a thread, and one more for each of its
    /// streams.
    Clients(u32) 1, 1024;
    /// A port number.
    PortNumber(u32) 1, 65_535;
}

/// A network of IP addresses; a single address is a network of one address.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Network(pub(crate) IpNet);

impl FromStr for Network {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let one = text.parse().map(|address: IpAddr| IpNet::from(address));
        one.or_else(|_| text.parse()).map(Self).map_err(|_| {
            format!(
                "`{text}` is not a network; allowed: an address such as 10.1.2.3, or a network such \
                 as 10.1.0.0/16 or 2001:db8::/32"
            )
        })
    }
}

impl TryFrom<String> for Network {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.0.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_range_are_allowed_and_what_is_beyond_is_not() {
        assert_eq!("5s".parse(), Ok(Budget(Nanos::from_secs(5))));
        assert!("4999ms".parse::<Budget>().is_err());
        assert!("60min".parse::<Budget>().is_ok());
        assert!("3601s".parse::<Budget>().is_err());
        assert!("10000".parse::<Streams>().is_ok());
        assert!("10001".parse::<Streams>().is_err());
        assert!("0".parse::<Streams>().is_err());
    }

    #[test]
    fn every_refusal_names_value_and_range() {
        for text in ["0s", "-3s", "30", "30KiB", "99999999999min", "soon", ""] {
            let why = text.parse::<Budget>().unwrap_err();
            assert!(why.contains(&format!("`{text}`")), "{why}");
            assert!(why.contains("allowed: 5 s to 3600 s"), "{why}");
        }
    }

    #[test]
    fn a_network_is_an_address_or_one_with_the_length_of_its_prefix() {
        let of = |text: &str| text.parse::<Network>();
        assert_eq!(of("10.1.2.3"), of("10.1.2.3/32"));
        for text in ["10.0.0.0/0", "10.1.0.0/16", "::1", "2001:db8::/32"] {
            let network = of(text).unwrap();
            assert_eq!(of(&String::from(network)), Ok(network));
        }
        for text in ["", "10.1.0.0/33", "10.1/16", "brook", "::/129", "10.0.0.0-10.0.0.9"] {
            let why = of(text).unwrap_err();
            assert!(why.contains(&format!("`{text}`")) && why.contains("allowed: "), "{why}");
        }
    }

    #[test]
    fn a_value_survives_being_written_and_read() {
        for text in ["1B", "65537B", "16MiB"] {
            let size: OpSize = text.parse().unwrap();
            assert_eq!(size.0.exact().parse(), Ok(size));
        }
        let pace: Pace = "1.5Gbit/s".parse().unwrap();
        assert_eq!(pace.0.exact().parse(), Ok(pace));
    }
}
