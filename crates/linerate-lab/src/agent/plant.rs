//! Planting and removing faults.

use std::time::Instant;

use linerate_core::application::{self, Habit};
use linerate_core::plan::{Direction, Side};
use linerate_core::units::{Bytes, Rate};

use super::delay::{Delay, LONGEST_DELAY};
use super::network::{Network, Spot};
use crate::error::LabError;
use crate::fault::{Depth, Fault, Way};
use crate::spec::{Forwarded, Host, Topology};

/// How a planted fault is taken away.
enum Undo {
    /// Remove the queues of these ports of the router.
    Queues(Vec<&'static str>),
    /// Give a setting of a host its old value.
    Setting(Spot, &'static str, String),
    /// Give the ports the MTU that they were made with.
    Mtu,
    /// Stop the forwarding process, and take its wire out.
    Delay(Delay),
    /// Nothing in the network: the programs started from now on differ.
    Nothing,
    /// Forget the times, and switch the link on.
    Link(Host),
}

struct Planted {
    fault: Fault,
    undo: Undo,
}

/// A link to be switched at a time.
struct Switch {
    at: Instant,
    host: Host,
    up: bool,
}

/// The faults that are planted.
#[derive(Default)]
pub(super) struct Plants {
    planted: Vec<Planted>,
    switches: Vec<Switch>,
}

impl Plants {
    pub(super) fn plant(&mut self, network: &mut Network, fault: &Fault) -> Result<(), LabError> {
        let refuse = |why: &str| LabError::NotPlantable {
            fault: fault.code(),
            why: why.to_owned(),
        };
        if self.planted.iter().any(|p| collide(&p.fault, fault)) {
            return Err(refuse("a fault of this kind is already planted there"));
        }
        let undo = match fault {
            Fault::PathRate { rate, depth, way } => {
                if network.topology() == Topology::Direct {
                    return Err(refuse("it needs a router, and this lab has none"));
                }
                let bucket = bucket(*rate, *depth)
                    .ok_or_else(|| refuse("the rate is outside 100 kb/s to 300 Gb/s"))?;
                Undo::Queues(limit_rate(network, &bucket, *way)?)
            }
            Fault::ReceiveWindow { side, bytes } => {
                limit_buffers(network, *side, "net.ipv4.tcp_rmem", *bytes, refuse)?
            }
            Fault::SendBuffer { side, bytes } => {
                limit_buffers(network, *side, "net.ipv4.tcp_wmem", *bytes, refuse)?
            }
            Fault::Mtu { bytes } => {
                if !(576..=65535).contains(bytes) {
                    return Err(refuse("the MTU is outside 576 to 65535"));
                }
                network.set_mtu(Some(*bytes))?;
                Undo::Mtu
            }
            Fault::Delay { forward, reverse } => {
                if network.topology() == Topology::Direct {
                    return Err(refuse("it needs a router, and this lab has none"));
                }
                let delays = [forward.0, reverse.0];
                if delays == [0, 0] || delays.iter().any(|delay| *delay > LONGEST_DELAY) {
                    return Err(refuse("the delay is outside 1 ns to 10 s"));
                }
                network.insert_wire()?;
                self.queue_again(network)?;
                Undo::Delay(Delay::start(network, delays)?)
            }
            Fault::LinkDown {
                side,
                after,
                lasting,
            } => {
                let host = Host::from(*side);
                let down = Instant::now() + after.duration();
                for (at, up) in [(down, false), (down + lasting.duration(), true)] {
                    self.switches.push(Switch { at, host, up });
                }
                Undo::Link(host)
            }
            Fault::Application { .. } | Fault::Environment { .. } => Undo::Nothing,
        };
        self.planted.push(Planted {
            fault: fault.clone(),
            undo,
        });
        Ok(())
    }

    pub(super) fn remove(&mut self, network: &mut Network, fault: &Fault) -> Result<(), LabError> {
        let at = self.planted.iter().position(|p| p.fault == *fault);
        let at = at.ok_or_else(|| LabError::NotPlanted {
            fault: fault.code(),
        })?;
        match self.planted.swap_remove(at).undo {
            Undo::Queues(ports) => {
                for port in ports {
                    let removed = network.place(Spot::Router).netlink.remove_queue(port);
                    let what = || format!("cannot remove the queue of port {port}");
                    removed.map_err(|e| LabError::step(what(), &e))?;
                }
                Ok(())
            }
            Undo::Setting(spot, name, value) => network.set(spot, name, &value),
            Undo::Mtu => network.set_mtu(None),
            Undo::Nothing => Ok(()),
            Undo::Delay(delay) => {
                delay.stop()?;
                network.remove_wire()?;
                self.queue_again(network)
            }
            Undo::Link(host) => {
                self.switches.retain(|switch| switch.host != host);
                network.switch_link(host, true)
            }
        }
    }

    /// What the programs on a host find in their environment.
    pub(super) fn environment(&self, host: Host) -> Vec<(String, String)> {
        let on = |side: Side| Host::from(side) == host;
        self.planted
            .iter()
            .filter_map(|planted| match &planted.fault {
                Fault::Application { side, role, burden } if on(*side) => {
                    let (role, burden) = (*role, *burden);
                    let habit = Habit { role, burden }.to_string();
                    Some((application::VARIABLE.to_owned(), habit))
                }
                Fault::Environment { side, name, value } if on(*side) => {
                    Some((name.clone(), value.clone()))
                }
                _ => None,
            })
            .collect()
    }

    /// Puts the queues back in front of the router's port `near`, which was made anew.
    fn queue_again(&self, network: &mut Network) -> Result<(), LabError> {
        for planted in &self.planted {
            if let Fault::PathRate { rate, depth, way } = planted.fault
                && way.directions().contains(&Direction::Reverse)
                && let Some(bucket) = bucket(rate, depth)
            {
                limit_rate(network, &bucket, Way::Reverse)?;
            }
        }
        Ok(())
    }

    /// What the process behind a planted delay did.
    pub(super) fn forwarded(&self) -> Result<Option<Forwarded>, LabError> {
        let delay = self.planted.iter().find_map(|planted| match &planted.undo {
            Undo::Delay(delay) => Some(delay),
            _ => None,
        });
        delay.map(Delay::forwarded).transpose()
    }

    /// When the next link is to be switched.
    pub(super) fn next_switch(&self) -> Option<Instant> {
        self.switches.iter().map(|switch| switch.at).min()
    }

    pub(super) fn switch_due_links(&mut self, network: &mut Network) -> Result<(), LabError> {
        let now = Instant::now();
        self.switches.sort_by_key(|switch| switch.at);
        let due = self.switches.partition_point(|switch| switch.at <= now);
        for switch in self.switches.drain(..due) {
            network.switch_link(switch.host, switch.up)?;
        }
        Ok(())
    }
}

/// Whether two faults act on the same thing.
fn collide(a: &Fault, b: &Fault) -> bool {
    match (a, b) {
        (Fault::PathRate { way: a, .. }, Fault::PathRate { way: b, .. }) => {
            a.directions().iter().any(|d| b.directions().contains(d))
        }
        (Fault::ReceiveWindow { side: a, .. }, Fault::ReceiveWindow { side: b, .. })
        | (Fault::SendBuffer { side: a, .. }, Fault::SendBuffer { side: b, .. })
        | (Fault::LinkDown { side: a, .. }, Fault::LinkDown { side: b, .. })
        | (Fault::Application { side: a, .. }, Fault::Application { side: b, .. }) => a == b,
        (
            Fault::Environment { side, name, .. },
            Fault::Environment {
                side: other_side,
                name: other_name,
                ..
            },
        ) => (side, name) == (other_side, other_name),
        (Fault::Mtu { .. }, Fault::Mtu { .. }) | (Fault::Delay { .. }, Fault::Delay { .. }) => true,
        _ => false,
    }
}

/// The parameters of a token bucket, in bytes and bytes per second.
#[derive(Debug, PartialEq, Eq)]
struct Bucket {
    rate: u64,
    burst: u32,
    limit: u32,
}

/// Room for one group of segments as TCP hands it down; a smaller bucket has to split it.
const ONE_GROUP: u64 = 64 * 1024;

fn bucket(rate: Rate, depth: Depth) -> Option<Bucket> {
    if !(100_000..=300_000_000_000).contains(&rate.0) {
        return None;
    }
    let rate = rate.0 / 8;
    // A kernel that looks once in 4 ms must find that much to send.
    let burst = (rate / 250).max(ONE_GROUP);
    let limit = match depth {
        Depth::Shallow => (rate / 200).max(2 * ONE_GROUP),
        Depth::Deep => (rate / 10).max(8 * ONE_GROUP),
    };
    Some(Bucket {
        rate,
        burst: u32::try_from(burst).ok()?,
        limit: u32::try_from(limit).ok()?,
    })
}

/// Puts the bucket in front of the router's ports that send in the given directions.
fn limit_rate(
    network: &mut Network,
    bucket: &Bucket,
    way: Way,
) -> Result<Vec<&'static str>, LabError> {
    let mut done = Vec::new();
    for direction in way.directions() {
        let port = match direction {
            Direction::Forward => "far",
            Direction::Reverse => "near",
        };
        let netlink = &mut network.place(Spot::Router).netlink;
        let added = netlink.add_token_bucket(port, bucket.rate, bucket.burst, bucket.limit);
        if let Err(e) = added {
            for port in done {
                // The first error is the one to tell.
                let _ = netlink.remove_queue(port);
            }
            let what = format!("cannot put a token bucket (tbf) in front of port {port}");
            return Err(LabError::step(what, &e));
        }
        done.push(port);
    }
    Ok(done)
}

/// Lowers the end of `tcp_rmem` or `tcp_wmem` in a host.
fn limit_buffers(
    network: &Network,
    side: Side,
    name: &'static str,
    bytes: Bytes,
    refuse: impl Fn(&str) -> LabError,
) -> Result<Undo, LabError> {
    // Below this the kernel's own minimum of a socket rules.
    if !(4096..=(1 << 30)).contains(&bytes.0) {
        return Err(refuse("the size is outside 4 KiB to 1 GiB"));
    }
    let spot = Spot::of(side.into());
    let old = network.setting(spot, name)?;
    let mut values = old.split_whitespace().map(|v| v.parse().unwrap_or(bytes.0));
    let mut lowered = || values.next().unwrap_or(bytes.0).min(bytes.0);
    let (least, usual) = (lowered(), lowered());
    network.set(spot, name, &format!("{least} {usual} {}", bytes.0))?;
    Ok(Undo::Setting(spot, name, old.trim().to_owned()))
}
