//! What can be planted, in words and as typed text.

mod text;

use std::fmt;

pub use linerate_core::application::{Burden, Role};
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

/// A fault that a lab can plant.
///
/// [`Display`](fmt::Display) says it in words; [`Fault::code`] gives the text that
/// [`FromStr`](std::str::FromStr) reads back as the same fault.
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
    /// Programs started on one host after planting find this in their environment, as a setting
    /// that was forgotten there. `environment:near,LINERATE_PACING=500Mb/s`.
    Environment {
        /// The host.
        side: Side,
        /// The variable.
        name: String,
        /// Its value.
        value: String,
    },
}

/// Why a text is not a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No fault has this name.
    #[error(
        "`{0}` is not a fault (expected path-rate, receive-window, send-buffer, mtu, delay, \
         link-down, application or environment)"
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
            Self::Application { side, role, burden } => application(f, *side, *role, *burden),
            Self::Environment { side, name, value } => {
                let side = side.name();
                write!(f, "programs on {side} are started with {name}={value}")
            }
        }
    }
}

fn application(
    f: &mut fmt::Formatter<'_>,
    side: Side,
    role: Option<Role>,
    burden: Burden,
) -> fmt::Result {
    let who = match role {
        None => "application",
        Some(Role::Sender) => "sender",
        Some(Role::Receiver) => "receiver",
    };
    write!(f, "the {who} on {} ", side.name())?;
    match burden {
        Burden::Work { ps_per_byte } => write!(f, "works {ps_per_byte} ps for each byte"),
        Burden::Pause { per_operation } => write!(f, "pauses {per_operation} at each operation"),
    }
}
