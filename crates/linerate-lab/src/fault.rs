//! What can be planted, in words and as typed text.

use std::fmt;
use std::str::FromStr;

use linerate_core::plan::{Direction, Side};
use linerate_core::units::{Bytes, Nanos, Rate, UnitError};
use serde::{Deserialize, Serialize};

/// How much a rate limit queues before it drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Depth {
    /// 5 ms at the rate, as a policer or a switch with little memory.
    Shallow,
    /// 100 ms at the rate, as a home router.
    Deep,
}

/// Which way a fault acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// Near to far.
    Forward,
    /// Far to near.
    Reverse,
    /// Each direction by itself.
    Both,
}

impl Way {
    /// The directions it stands for.
    pub const fn directions(self) -> &'static [Direction] {
        match self {
            Self::Forward => &[Direction::Forward],
            Self::Reverse => &[Direction::Reverse],
            Self::Both => &Direction::ALL,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Reverse => "reverse",
            Self::Both => "both",
        }
    }
}

/// What an application does on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It sends payload.
    Sender,
    /// It receives payload.
    Receiver,
}

/// What makes an application slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Burden {
    /// CPU time for each byte of payload, in picoseconds.
    Work {
        /// Picoseconds per byte.
        ps_per_byte: u64,
    },
    /// A pause between operations, without CPU use.
    Pause {
        /// Its length.
        per_operation: Nanos,
    },
}

/// A fault that a lab can plant.
///
/// [`Display`](fmt::Display) says it in words; [`Fault::code`] gives the text that
/// [`FromStr`] reads back as the same fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "fault")]
pub enum Fault {
    /// The router forwards at most `rate`, counted in Ethernet frames without preamble and gap.
    /// `path-rate:100Mb/s,shallow,forward`; both ways when none is named.
    PathRate {
        /// The limit.
        rate: Rate,
        /// How much is queued in front of it.
        depth: Depth,
        /// Which way.
        way: Way,
    },
    /// `net.ipv4.tcp_rmem` of one host ends at `bytes`; the window offered is about half of it.
    /// `receive-window:far,256KiB`.
    ReceiveWindow {
        /// The host.
        side: Side,
        /// The largest receive buffer of a connection.
        bytes: Bytes,
    },
    /// `net.ipv4.tcp_wmem` of one host ends at `bytes`. `send-buffer:near,64KiB`.
    SendBuffer {
        /// The host.
        side: Side,
        /// The largest send buffer of a connection.
        bytes: Bytes,
    },
    /// Every port of the path has this MTU. `mtu:1280`.
    Mtu {
        /// Bytes of IP packet.
        bytes: u32,
    },
    /// Packets take longer, in order and without loss. `delay:20ms` (round trip, half each way),
    /// `delay:20ms,forward`, `delay:5ms,reverse`.
    Delay {
        /// Added from near to far.
        forward: Nanos,
        /// Added from far to near.
        reverse: Nanos,
    },
    /// The link of one host goes down for a time. `link-down:far,2s,500ms`.
    LinkDown {
        /// The host.
        side: Side,
        /// Time from planting until it goes down.
        after: Nanos,
        /// Time until it comes up again.
        lasting: Nanos,
    },
    /// The tool's own threads on one host are slow, in programs started after planting.
    /// `application:far,work=800ps/B`, `application:near,sender,pause=200us/op`.
    Application {
        /// The host.
        side: Side,
        /// Which of its threads; both kinds if none is named.
        role: Option<Role>,
        /// What they do besides.
        burden: Burden,
    },
}

/// Why a text is not a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No fault has this name.
    #[error(
        "`{0}` is not a fault (expected path-rate, receive-window, send-buffer, mtu, delay, \
         link-down or application)"
    )]
    Unknown(String),
    /// A part is missing, wrong or one too many.
    #[error("`{text}` is not a fault (expected for example `{example}`)")]
    Form {
        /// What was typed.
        text: String,
        /// A correct one.
        example: &'static str,
    },
    /// A quantity in it cannot be read.
    #[error("in `{text}`: {error}")]
    Quantity {
        /// What was typed.
        text: String,
        /// What is wrong.
        error: UnitError,
    },
}

impl Fault {
    /// The text that [`FromStr`] reads back as this fault, exactly.
    pub fn code(&self) -> String {
        match self {
            Self::PathRate { rate, depth, way } => {
                let depth = match depth {
                    Depth::Shallow => "shallow",
                    Depth::Deep => "deep",
                };
                format!("path-rate:{},{depth},{}", rate_code(*rate), way.name())
            }
            Self::ReceiveWindow { side, bytes } => {
                format!("receive-window:{},{}", side.name(), bytes_code(*bytes))
            }
            Self::SendBuffer { side, bytes } => {
                format!("send-buffer:{},{}", side.name(), bytes_code(*bytes))
            }
            Self::Mtu { bytes } => format!("mtu:{bytes}"),
            Self::Delay { forward, reverse } => delay_code(*forward, *reverse),
            Self::LinkDown {
                side,
                after,
                lasting,
            } => format!(
                "link-down:{},{},{}",
                side.name(),
                time_code(*after),
                time_code(*lasting)
            ),
            Self::Application { side, role, burden } => {
                format!(
                    "application:{},{}",
                    side.name(),
                    application_value(*role, *burden)
                )
            }
        }
    }
}

/// The value of `LINERATE_LAB_APPLICATION` for a burden: `[sender,|receiver,]work=800ps/B` or
/// `...pause=200us/op`.
pub(crate) fn application_value(role: Option<Role>, burden: Burden) -> String {
    let role = match role {
        None => "",
        Some(Role::Sender) => "sender,",
        Some(Role::Receiver) => "receiver,",
    };
    match burden {
        Burden::Work { ps_per_byte } => format!("{role}work={ps_per_byte}ps/B"),
        Burden::Pause { per_operation } => {
            format!("{role}pause={}/op", time_code(per_operation))
        }
    }
}

/// A number in the largest unit that divides it.
fn exact(value: u64, units: &[(u64, &str)]) -> String {
    let (factor, unit) = units
        .iter()
        .find(|(factor, _)| value >= *factor && value.is_multiple_of(*factor))
        .or(units.last())
        .copied()
        .unwrap_or((1, ""));
    format!("{}{unit}", value / factor)
}

fn rate_code(rate: Rate) -> String {
    let units = [
        (1_000_000_000, "Gb/s"),
        (1_000_000, "Mb/s"),
        (1_000, "kb/s"),
        (1, "b/s"),
    ];
    exact(rate.0, &units)
}

fn bytes_code(bytes: Bytes) -> String {
    exact(
        bytes.0,
        &[
            (1 << 30, "GiB"),
            (1 << 20, "MiB"),
            (1 << 10, "KiB"),
            (1, "B"),
        ],
    )
}

fn time_code(time: Nanos) -> String {
    let units = [
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    exact(time.0, &units)
}

fn delay_code(forward: Nanos, reverse: Nanos) -> String {
    if forward == reverse {
        return format!("delay:{}", time_code(Nanos(forward.0.saturating_mul(2))));
    }
    match (forward.0, reverse.0) {
        (_, 0) => format!("delay:{},forward", time_code(forward)),
        (0, _) => format!("delay:{},reverse", time_code(reverse)),
        _ => format!("delay:{},{}", time_code(forward), time_code(reverse)),
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PathRate { rate, depth, way } => {
                let queue = match depth {
                    Depth::Shallow => "shallow",
                    Depth::Deep => "deep",
                };
                let way = match way {
                    Way::Forward => "forward",
                    Way::Reverse => "in reverse",
                    Way::Both => "each way",
                };
                write!(f, "the network carries {rate} {way}, with a {queue} queue")
            }
            Self::ReceiveWindow { side, bytes } => {
                write!(f, "receive buffers of {} end at {bytes}", side.name())
            }
            Self::SendBuffer { side, bytes } => {
                write!(f, "send buffers of {} end at {bytes}", side.name())
            }
            Self::Mtu { bytes } => write!(f, "packets are at most {bytes} bytes long"),
            Self::Delay { forward, reverse } => {
                write!(
                    f,
                    "packets take {forward} longer forward, {reverse} in reverse"
                )
            }
            Self::LinkDown {
                side,
                after,
                lasting,
            } => {
                let side = side.name();
                write!(f, "the link of {side} is down for {lasting}, after {after}")
            }
            Self::Application { side, role, burden } => {
                let who = match role {
                    None => "application",
                    Some(Role::Sender) => "sender",
                    Some(Role::Receiver) => "receiver",
                };
                let side = side.name();
                match burden {
                    Burden::Work { ps_per_byte } => {
                        write!(
                            f,
                            "the {who} on {side} works {ps_per_byte} ps for each byte"
                        )
                    }
                    Burden::Pause { per_operation } => {
                        write!(
                            f,
                            "the {who} on {side} pauses {per_operation} at each operation"
                        )
                    }
                }
            }
        }
    }
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let parts: Vec<&str> = rest.split(',').map(str::trim).collect();
        let reader = Reader { text };
        match name.trim() {
            "path-rate" => reader.path_rate(&parts),
            "receive-window" => {
                let (side, bytes) = reader.side_bytes(&parts, "receive-window:far,256KiB")?;
                Ok(Self::ReceiveWindow { side, bytes })
            }
            "send-buffer" => {
                let (side, bytes) = reader.side_bytes(&parts, "send-buffer:near,64KiB")?;
                Ok(Self::SendBuffer { side, bytes })
            }
            "mtu" => reader.mtu(&parts),
            "delay" => reader.delay(&parts),
            "link-down" => reader.link_down(&parts),
            "application" => reader.application(&parts),
            other => Err(FaultError::Unknown(other.to_owned())),
        }
    }
}

/// Reads the parts of one fault's text.
struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    fn form(&self, example: &'static str) -> FaultError {
        FaultError::Form {
            text: self.text.to_owned(),
            example,
        }
    }

    fn quantity<T: FromStr<Err = UnitError>>(&self, part: &str) -> Result<T, FaultError> {
        part.parse().map_err(|error| FaultError::Quantity {
            text: self.text.to_owned(),
            error,
        })
    }

    fn path_rate(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let example = "path-rate:100Mb/s,shallow";
        let (rate, depth, way) = match parts {
            [rate, depth] => (rate, depth, "both"),
            [rate, depth, way] => (rate, depth, *way),
            _ => return Err(self.form(example)),
        };
        let depth = match *depth {
            "shallow" => Depth::Shallow,
            "deep" => Depth::Deep,
            _ => return Err(self.form(example)),
        };
        let way = match way {
            "forward" => Way::Forward,
            "reverse" => Way::Reverse,
            "both" => Way::Both,
            _ => return Err(self.form("path-rate:100Mb/s,shallow,forward")),
        };
        let rate = self.quantity(rate)?;
        Ok(Fault::PathRate { rate, depth, way })
    }

    fn side(&self, part: &str, example: &'static str) -> Result<Side, FaultError> {
        match part {
            "near" => Ok(Side::Near),
            "far" => Ok(Side::Far),
            _ => Err(self.form(example)),
        }
    }

    fn side_bytes(
        &self,
        parts: &[&str],
        example: &'static str,
    ) -> Result<(Side, Bytes), FaultError> {
        let [side, bytes] = parts else {
            return Err(self.form(example));
        };
        Ok((self.side(side, example)?, self.quantity(bytes)?))
    }

    fn mtu(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let [bytes] = parts else {
            return Err(self.form("mtu:1280"));
        };
        let bytes = bytes.parse().map_err(|_| self.form("mtu:1280"))?;
        Ok(Fault::Mtu { bytes })
    }

    fn delay(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let (forward, reverse) = match parts {
            [round_trip] => {
                let Nanos(all) = self.quantity(round_trip)?;
                (Nanos(all / 2), Nanos(all / 2))
            }
            [time, "forward"] => (self.quantity(time)?, Nanos(0)),
            [time, "reverse"] => (Nanos(0), self.quantity(time)?),
            [forward, reverse] => (self.quantity(forward)?, self.quantity(reverse)?),
            _ => return Err(self.form("delay:20ms")),
        };
        Ok(Fault::Delay { forward, reverse })
    }

    fn link_down(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let example = "link-down:far,2s,500ms";
        let [side, after, lasting] = parts else {
            return Err(self.form(example));
        };
        Ok(Fault::LinkDown {
            side: self.side(side, example)?,
            after: self.quantity(after)?,
            lasting: self.quantity(lasting)?,
        })
    }

    fn application(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let example = "application:far,receiver,work=800ps/B";
        let (side, role, burden) = match parts {
            [side, burden] => (side, None, burden),
            [side, "sender", burden] => (side, Some(Role::Sender), burden),
            [side, "receiver", burden] => (side, Some(Role::Receiver), burden),
            _ => return Err(self.form(example)),
        };
        let burden = match burden.split_once('=') {
            Some(("work", value)) => {
                let number = value.strip_suffix("ps/B").and_then(|n| n.parse().ok());
                let ps_per_byte = number.ok_or_else(|| self.form(example))?;
                Burden::Work { ps_per_byte }
            }
            Some(("pause", value)) => {
                let example = "application:near,pause=200us/op";
                let time = value
                    .strip_suffix("/op")
                    .ok_or_else(|| self.form(example))?;
                Burden::Pause {
                    per_operation: self.quantity(time)?,
                }
            }
            _ => return Err(self.form(example)),
        };
        Ok(Fault::Application {
            side: self.side(side, example)?,
            role,
            burden,
        })
    }
}
