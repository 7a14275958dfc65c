//! The text form of faults, as users type them.

use linerate_plan::application::Habit;
use linerate_units::Nanos;

use super::{Depth, Fault, Manner, Origin, Rhythm};

impl Fault {
    /// Returns the text that [`FromStr`](std::str::FromStr) parses to exactly this fault.
    pub fn code(&self) -> String {
        match self {
            Self::PathRate { rate, depth, directions } => {
                let depth = match depth {
                    Depth::Shallow => "shallow",
                    Depth::Deep => "deep",
                };
                format!("path-rate:{},{depth},{}", rate.exact(), directions.name())
            }
            Self::ReceiveWindow { side, bytes } => {
                format!("receive-window:{},{}", side.name(), bytes.exact())
            }
            Self::SendBuffer { side, bytes } => {
                format!("send-buffer:{},{}", side.name(), bytes.exact())
            }
            Self::Mtu { bytes } => format!("mtu:{bytes}"),
            Self::Delay { forward, reverse } => delay_code(*forward, *reverse),
            Self::LinkDown { side, after, lasting } => {
                format!("link-down:{},{},{}", side.name(), after.exact(), lasting.exact())
            }
            Self::Application { side, role, burden } => {
                let (role, burden) = (*role, *burden);
                format!("application:{},{}", side.name(), Habit { role, burden })
            }
            Self::Environment { side, name, value } => {
                format!("environment:{},{name}={value}", side.name())
            }
            Self::Police { .. }
            | Self::FlowRate { .. }
            | Self::Loss { .. }
            | Self::Reorder { .. }
            | Self::Jitter { .. }
            | Self::BlackHole { .. }
            | Self::Traffic { .. } => network_code(self),
            _ => host_code(self),
        }
    }
}

/// Returns the typed text of a fault between the hosts.
fn network_code(fault: &Fault) -> String {
    match fault {
        Fault::Police { rate, directions } => {
            format!("police:{},{}", rate.exact(), directions.name())
        }
        Fault::FlowRate { rate, manner, directions } => {
            let manner = match manner {
                Manner::Shaped => "shaped",
                Manner::Policed => "policed",
            };
            format!("flow-rate:{},{manner},{}", rate.exact(), directions.name())
        }
        Fault::Loss { share, burst, directions } => match burst {
            1 => format!("loss:{share},{}", directions.name()),
            burst => format!("loss:{share},bursts={burst},{}", directions.name()),
        },
        Fault::Reorder { by, every, directions } => {
            format!("reorder:{},every={every},{}", by.exact(), directions.name())
        }
        Fault::Jitter { most, directions } => {
            format!("jitter:{},{}", most.exact(), directions.name())
        }
        Fault::BlackHole { bytes, directions } => {
            format!("black-hole:{bytes},{}", directions.name())
        }
        Fault::Traffic { rate, direction, origin } => {
            let origin = match origin {
                Origin::Elsewhere => "",
                Origin::Ends => ",ends",
            };
            format!("traffic:{},{}{origin}", rate.exact(), direction.name())
        }
        _ => String::new(),
    }
}

/// Returns the typed text of a fault inside a host.
fn host_code(fault: &Fault) -> String {
    match fault {
        Fault::Shape { side, rate } => format!("shape:{},{}", side.name(), rate.exact()),
        Fault::Hold { side, period } => format!("hold:{},{}", side.name(), period.exact()),
        Fault::Queue { side, rate, bytes } => {
            format!("queue:{},{},{}", side.name(), rate.exact(), bytes.exact())
        }
        Fault::Hog { cpu, threads } => format!("hog:cpu={cpu},threads={threads}"),
        Fault::Cpus { side, cpu } => format!("cpus:{},{cpu}", side.name()),
        Fault::Quota { side, share } => format!("quota:{},{share}", side.name()),
        Fault::Offloads { side } => format!("offloads:{},off", side.name()),
        Fault::Stall { side, lasting, rhythm } => {
            let (side, lasting) = (side.name(), lasting.exact());
            match rhythm {
                Rhythm::Once(after) => format!("stall:{side},{},{lasting}", after.exact()),
                Rhythm::Every(period) => format!("stall:{side},{lasting},every={}", period.exact()),
            }
        }
        _ => String::new(),
    }
}

fn delay_code(forward: Nanos, reverse: Nanos) -> String {
    if forward == reverse {
        return format!("delay:{}", Nanos(forward.0.saturating_mul(2)).exact());
    }
    match (forward.0, reverse.0) {
        (_, 0) => format!("delay:{},forward", forward.exact()),
        (0, _) => format!("delay:{},reverse", reverse.exact()),
        _ => format!("delay:{},{}", forward.exact(), reverse.exact()),
    }
}
