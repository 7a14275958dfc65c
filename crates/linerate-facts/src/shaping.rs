//! Settings of a port's queueing that delay, limit or lose packets.

use std::fmt;

use serde::{Deserialize, Serialize};

use linerate_units::{Bytes, Nanos, Rate};

/// A queueing discipline or class that delays or loses packets on purpose.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shaper {
    /// Kind of the discipline or class: `tbf`, `htb`, `fq` ...
    pub kind: String,
    /// Handle of the discipline, or number of the class, as `tc` writes it: `1:`, `1:10`.
    pub id: String,
    /// Settings of the discipline or class.
    pub set: Shaping,
}

/// Settings that delay or lose packets. Rates count the bytes of frames, as the kernel does: with the Ethernet header,
/// but without preamble, gap and check sequence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shaping {
    /// Highest rate of all packets together: `rate` of tbf, `ceil` of an htb class, `bandwidth` of cake.
    pub rate: Option<Rate>,
    /// The rate that an htb class is guaranteed. For more it competes with other classes.
    pub assured: Option<Rate>,
    /// Highest rate of each flow: `maxrate` of fq.
    pub flow_rate: Option<Rate>,
    /// Bytes that may pass at once, faster than the rate.
    pub burst: Option<Bytes>,
    /// Additional delay of packets, on purpose (netem).
    pub delay: Option<Nanos>,
    /// Packets lost on purpose, in millionths of all packets (netem).
    pub loss_ppm: Option<u32>,
    /// The most packets that the queue of netem holds; not read for other kinds.
    pub limit: Option<u32>,
    /// Bytes that are counted for each packet in addition to its frame; may be negative.
    pub overhead: i32,
}

impl Shaping {
    /// Whether any packet is delayed, limited or lost by these settings.
    pub fn is_set(&self) -> bool {
        let rate = self.rate.or(self.flow_rate);
        rate.is_some() || self.delay.is_some() || self.loss_ppm.is_some()
    }
}

impl fmt::Display for Shaper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shaping { rate, flow_rate, .. } = self.set;
        write!(f, "{} {}", self.kind, self.id)?;
        if let Some(rate) = rate {
            write!(f, " {rate}")?;
        }
        if let Some(assured) = self.set.assured.filter(|a| Some(*a) != rate) {
            write!(f, " ({assured} assured)")?;
        }
        if let Some(rate) = flow_rate {
            write!(f, " {rate} for each flow")?;
        }
        if let Some(delay) = self.set.delay {
            write!(f, " delay {delay}")?;
        }
        if let Some(ppm) = self.set.loss_ppm {
            write!(f, " loss {} %", f64::from(ppm) / 1e4)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shaper_tells_what_it_does() {
        let shaper = |kind: &str, set| Shaper { kind: kind.to_owned(), id: "1:".to_owned(), set };
        let class = Shaping {
            rate: Some(Rate(1_000_000_000)),
            assured: Some(Rate(500_000_000)),
            ..Shaping::default()
        };
        let reported = shaper("htb", class).to_string();
        assert_eq!(reported, "htb 1: 1 Gb/s (500 Mb/s assured)");
        let netem = Shaping {
            delay: Some(Nanos::from_millis(10)),
            loss_ppm: Some(5_000),
            ..Shaping::default()
        };
        assert_eq!(shaper("netem", netem).to_string(), "netem 1: delay 10 ms loss 0.5 %");
        assert!(netem.is_set() && class.is_set());
        let burst = Shaping { burst: Some(Bytes(1)), ..Shaping::default() };
        assert!(!burst.is_set(), "alone it holds nothing back");
    }
}
