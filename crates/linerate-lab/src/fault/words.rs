//! Faults in words.

use std::fmt;

use linerate_core::application::{Burden, Role};
use linerate_core::path::{Direction, Side};

use super::{Depth, Fault, FaultDirection, Manner, Origin, Rhythm};

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PathRate {
                rate,
                depth,
                directions,
            } => {
                let queue = match depth {
                    Depth::Shallow => "shallow",
                    Depth::Deep => "deep",
                };
                let directions = words(*directions);
                write!(
                    f,
                    "the network carries {rate} {directions}, with a {queue} queue"
                )
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

const fn words(directions: FaultDirection) -> &'static str {
    match directions {
        FaultDirection::Forward => "forward",
        FaultDirection::Reverse => "in reverse",
        FaultDirection::Both => "each way",
    }
}

/// What happens between the hosts.
fn network(fault: &Fault, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fault {
        Fault::Police { rate, directions } => {
            let directions = words(*directions);
            write!(f, "the network drops what exceeds {rate} {directions}")
        }
        Fault::FlowRate {
            rate,
            manner,
            directions,
        } => {
            let rest = match manner {
                Manner::Shaped => "queues",
                Manner::Policed => "drops",
            };
            let directions = words(*directions);
            write!(
                f,
                "the network carries {rate} of each flow {directions}, and {rest} the rest"
            )
        }
        Fault::Loss {
            share,
            burst,
            directions,
        } => {
            let directions = words(*directions);
            write!(f, "the network loses {share} of the packets {directions}")?;
            match burst {
                1 => Ok(()),
                burst => write!(f, ", {burst} in a row"),
            }
        }
        Fault::Reorder {
            by,
            every,
            directions,
        } => {
            let directions = words(*directions);
            write!(f, "one of {every} packets {directions} comes {by} late")
        }
        Fault::Jitter { most, directions } => {
            let directions = words(*directions);
            write!(
                f,
                "packets take up to {most} longer {directions}, now more, now less"
            )
        }
        Fault::BlackHole { bytes, directions } => {
            let directions = words(*directions);
            write!(f, "packets of more than {bytes} bytes vanish {directions}")
        }
        Fault::Traffic {
            rate,
            direction,
            origin,
        } => {
            let directions = words((*direction).into());
            match (origin, direction) {
                (Origin::Ends, _) => write!(f, "other traffic of {rate} goes {directions}"),
                (Origin::Elsewhere, Direction::Forward) => {
                    write!(f, "other traffic of {rate} goes through the router to far")
                }
                (Origin::Elsewhere, Direction::Reverse) => {
                    write!(f, "other traffic of {rate} goes through the router to near")
                }
            }
        }
        _ => Ok(()),
    }
}

/// What happens in a host.
fn host(fault: &Fault, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fault {
        Fault::Shape { side, rate } => write!(f, "the port of {} sends {rate}", side.name()),
        Fault::Queue { side, rate, bytes } => {
            let side = side.name();
            write!(f, "the port of {side} sends {rate} and queues {bytes}")
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
        Fault::Stall {
            side,
            lasting,
            rhythm,
        } => {
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
