//! Descriptions of faults in words.

use std::fmt;

use linerate_plan::application::{Burden, Role};
use linerate_plan::path::{Direction, Side};
use linerate_units::Rate;

use super::{Depth, Fault, FaultDirection, Manner, Origin, Rhythm};

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PathRate { rate, depth, directions } => {
                let queue = match depth {
                    Depth::Shallow => "shallow",
                    Depth::Deep => "deep",
                };
                write!(f, "the network carries {rate} {directions}, with a {queue} queue")
            }
            Self::ReceiveWindow { side, bytes } => {
                write!(f, "receive buffers of {} end at {bytes}", side.name())
            }
            Self::SendBuffer { side, bytes } => {
                write!(f, "send buffers of {} end at {bytes}", side.name())
            }
            Self::Mtu { bytes } => write!(f, "packets are at most {bytes} bytes long"),
            Self::Delay { forward, reverse } => {
                write!(f, "packets take {forward} longer forward, {reverse} in reverse")
            }
            Self::LinkDown { side, after, lasting } => {
                let side = side.name();
                write!(f, "the link of {side} is down for {lasting}, after {after}")
            }
            Self::Application { side, role, burden } => application(f, *side, *role, *burden),
            Self::Environment { side, name, value } => {
                let side = side.name();
                write!(f, "programs on {side} are started with {name}={value}")
            }
            Self::Police { .. }
            | Self::FlowRate { .. }
            | Self::Loss { .. }
            | Self::Reorder { .. }
            | Self::Jitter { .. }
            | Self::BlackHole { .. }
            | Self::Traffic { .. } => network(self, f),
            _ => host(self, f),
        }
    }
}

impl fmt::Display for FaultDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forward => "forward",
            Self::Reverse => "in reverse",
            Self::Both => "in each direction",
        })
    }
}

/// Describes a fault between the hosts in words.
fn network(fault: &Fault, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fault {
        Fault::Police { rate, directions } => {
            write!(f, "the network drops traffic above {rate} {directions}")
        }
        Fault::FlowRate { rate, manner, directions } => {
            let rest = match manner {
                Manner::Shaped => "queues",
                Manner::Policed => "drops",
            };
            write!(f, "the network carries {rate} of each flow {directions}, and {rest} the rest")
        }
        Fault::Loss { share, burst, directions } => {
            write!(f, "the network loses {share} of the packets {directions}")?;
            match burst {
                1 => Ok(()),
                burst => write!(f, ", {burst} in a row"),
            }
        }
        Fault::Reorder { by, every, directions } => {
            write!(f, "one of {every} packets {directions} arrives {by} late")
        }
        Fault::Jitter { most, directions } => {
            write!(f, "packets take up to {most} longer {directions}, by a varying time")
        }
        Fault::BlackHole { bytes, directions } => {
            write!(f, "packets of more than {bytes} bytes are dropped silently {directions}")
        }
        Fault::Traffic { rate, direction, origin } => traffic(f, *rate, *direction, *origin),
        _ => Ok(()),
    }
}

fn traffic(
    f: &mut fmt::Formatter<'_>,
    rate: Rate,
    direction: Direction,
    origin: Origin,
) -> fmt::Result {
    write!(f, "other traffic of {rate} goes ")?;
    match (origin, direction) {
        (Origin::Ends, _) => write!(f, "{}", FaultDirection::from(direction)),
        (Origin::Elsewhere, Direction::Forward) => f.write_str("through the router to far"),
        (Origin::Elsewhere, Direction::Reverse) => f.write_str("through the router to near"),
    }
}

/// Describes a fault inside a host in words.
fn host(fault: &Fault, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fault {
        Fault::Shape { side, rate } => write!(f, "the port of {} sends {rate}", side.name()),
        Fault::Queue { side, rate, bytes } => {
            let side = side.name();
            write!(f, "the port of {side} sends {rate} and queues {bytes}")
        }
        Fault::Hold { side, period } => {
            let side = side.name();
            write!(f, "packets to {side} are released all at once, every {period}")
        }
        Fault::Hog { cpu, threads } => {
            write!(f, "{threads} threads of others keep CPU {cpu} busy")
        }
        Fault::Cpus { side, cpu } => {
            write!(f, "programs on {} run on CPU {cpu} alone", side.name())
        }
        Fault::Quota { side, share } => {
            let side = side.name();
            write!(f, "programs on {side} get {share} of one CPU's time")
        }
        Fault::Offloads { side } => {
            write!(f, "the port of {} has its offloads off", side.name())
        }
        Fault::Stall { side, lasting, rhythm } => {
            write!(f, "programs on {} stop for {lasting}", side.name())?;
            match rhythm {
                Rhythm::Once(after) => write!(f, ", after {after}"),
                Rhythm::Every(period) => write!(f, ", every {period}"),
            }
        }
        _ => Ok(()),
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
