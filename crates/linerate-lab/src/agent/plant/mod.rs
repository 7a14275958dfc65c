//! Planting and removing faults.

mod bucket;
mod check;
mod events;
mod host;

use std::time::Instant;

use linerate_plan::application::{self, Habit};
use linerate_plan::path::{Direction, Side};
use linerate_sys::ethtool::Offload;

use super::child::{self, Child};
use super::network::{Network, Spot};
use super::quota::Group;
use super::start::Surroundings;
use super::traffic;
use super::wire::{Wire, is_on_the_wire, treatments};
use crate::error::LabError;
use crate::fault::{Depth, Fault, FaultDirection};
use crate::spec::{Forwarded, Host};
pub(super) use events::Act;
use events::Events;

/// How a planted fault is removed.
enum Undo {
    /// Remove the queues in front of these ports.
    Queues(bucket::Ports),
    /// Restore the old value of a host's setting.
    Setting(Spot, &'static str, String),
    /// Switch the offloads of a host's port on.
    Offloads(Spot, Vec<Offload>),
    /// Restore the MTU with which the ports were made.
    Mtu,
    /// Restart the process on the wire with the remaining faults.
    Wire,
    /// Remove the limit of CPU time.
    Quota(Group),
    /// Stop these processes of the lab.
    Children(Vec<Child>),
    /// Nothing to undo in the network: the fault affects only programs that are started while it is planted.
    Nothing,
    /// Remove the planned switches of the link, and switch the link on.
    Link(Host),
    /// Remove the planned stalls, and continue the stopped programs.
    Stall(Host),
}

struct Planted {
    fault: Fault,
    undo: Undo,
}

/// The faults that are planted.
pub(super) struct Plants {
    /// Process id of the lab's outer process.
    outer_pid: u32,
    planted: Vec<Planted>,
    wire: Option<Wire>,
    events: Events,
}

impl Plants {
    pub(super) fn of(outer_pid: u32) -> Self {
        Self { outer_pid, planted: Vec::new(), wire: None, events: Events::default() }
    }

    pub(super) fn plant(&mut self, network: &mut Network, fault: &Fault) -> Result<(), LabError> {
        let refuse = |why| LabError::not_plantable(fault, why);
        if self.planted.iter().any(|p| check::collide(&p.fault, fault)) {
            return Err(refuse("a fault of this kind is already planted there"));
        }
        let misplaced = check::misplaced(fault, network.topology());
        if let Some(why) = misplaced.or_else(|| fault.out_of_bounds()) {
            return Err(refuse(why));
        }
        let undo = if is_on_the_wire(fault) { Undo::Wire } else { self.change(network, fault)? };
        self.planted.push(Planted { fault: fault.clone(), undo });
        if !is_on_the_wire(fault) {
            return Ok(());
        }
        let rewired = self.rewire(network);
        if rewired.is_err() {
            self.planted.pop();
        }
        rewired
    }

    /// Plants a fault that needs no process on the wire.
    fn change(&mut self, network: &mut Network, fault: &Fault) -> Result<Undo, LabError> {
        let now = Instant::now();
        match fault {
            Fault::PathRate { rate, depth, directions } => {
                let bucket = bucket::bucket(*rate, *depth);
                bucket::limit_rate(network, &bucket, bucket::router_ports(*directions))
            }
            Fault::Shape { side, rate } => {
                let bucket = bucket::bucket(*rate, Depth::Deep);
                bucket::limit_rate(network, &bucket, bucket::host_port(*side))
            }
            Fault::Queue { side, rate, bytes } => {
                let bucket = bucket::small(*rate, *bytes);
                bucket::limit_rate(network, &bucket, bucket::host_port(*side))
            }
            Fault::ReceiveWindow { side, bytes } => {
                host::limit_buffers(network, *side, "net.ipv4.tcp_rmem", *bytes)
            }
            Fault::SendBuffer { side, bytes } => {
                host::limit_buffers(network, *side, "net.ipv4.tcp_wmem", *bytes)
            }
            Fault::Offloads { side } => host::offloads_off(network, *side),
            Fault::Mtu { bytes } => {
                network.set_mtu(Some(*bytes))?;
                Ok(Undo::Mtu)
            }
            Fault::LinkDown { side, after, lasting } => {
                let host = Host::from(*side);
                self.events.link_down(now, host, *after, *lasting);
                Ok(Undo::Link(host))
            }
            Fault::Stall { side, lasting, rhythm } => {
                self.events.stall(now, *side, *lasting, *rhythm);
                Ok(Undo::Stall(Host::from(*side)))
            }
            Fault::Hog { cpu, threads } => {
                let hogs = child::hog(*cpu as usize, *threads)?;
                Ok(Undo::Children(hogs))
            }
            Fault::Traffic { rate, direction, origin } => {
                let both = traffic::start(network, *rate, *direction, *origin)?;
                Ok(Undo::Children(both))
            }
            Fault::Quota { side, share } => {
                let group = Group::make(self.outer_pid, *side, *share)?;
                Ok(Undo::Quota(group))
            }
            _ => Ok(Undo::Nothing),
        }
    }

    pub(super) fn remove(&mut self, network: &mut Network, fault: &Fault) -> Result<(), LabError> {
        let at = self.planted.iter().position(|p| p.fault == *fault);
        let at = at.ok_or_else(|| LabError::NotPlanted { fault: fault.code() })?;
        match self.planted.swap_remove(at).undo {
            Undo::Queues(ports) => bucket::remove_queues(network, &ports),
            Undo::Setting(spot, name, value) => network.set(spot, name, &value),
            Undo::Offloads(spot, all) => host::switch_offloads(network, spot, &all, true),
            Undo::Mtu => network.set_mtu(None),
            Undo::Nothing => Ok(()),
            Undo::Wire => self.rewire(network),
            Undo::Children(all) => child::stop_all(&all),
            Undo::Quota(group) => group.remove(),
            Undo::Link(host) => {
                self.events.end_switches(host);
                network.switch_link(host, true)
            }
            Undo::Stall(host) => {
                self.events.end_stalls(Instant::now(), host);
                Ok(())
            }
        }
    }

    /// Restarts the process on the wire with the effects of all planted faults; removes the wire if no fault needs it.
    fn rewire(&mut self, network: &mut Network) -> Result<(), LabError> {
        let treatments = treatments(self.planted.iter().map(|planted| &planted.fault));
        let was_there = self.wire.is_some();
        if let Some(wire) = self.wire.take() {
            wire.stop()?;
        }
        match treatments {
            Some(treatments) => {
                if !was_there {
                    network.insert_wire()?;
                    self.requeue(network)?;
                }
                self.wire = Some(Wire::start(network, treatments)?);
                Ok(())
            }
            None if was_there => {
                network.remove_wire()?;
                self.requeue(network)
            }
            None => Ok(()),
        }
    }

    /// Returns the environment, the CPUs and the control group with which programs on a host are started.
    pub(super) fn surroundings(&self, host: Host) -> Surroundings {
        let on = |side: Side| Host::from(side) == host;
        let mut all = Surroundings::default();
        for planted in &self.planted {
            match &planted.fault {
                Fault::Application { side, role, burden } if on(*side) => {
                    let (role, burden) = (*role, *burden);
                    let habit = Habit { role, burden }.to_string();
                    all.environment.push((application::VARIABLE.to_owned(), habit));
                }
                Fault::Environment { side, name, value } if on(*side) => {
                    all.environment.push((name.clone(), value.clone()));
                }
                Fault::Cpus { side, cpu } if on(*side) => all.cpus.push(*cpu as usize),
                Fault::Quota { side, .. } if on(*side) => {
                    if let Undo::Quota(group) = &planted.undo {
                        all.group = Some(group.clone());
                    }
                }
                _ => {}
            }
        }
        all
    }

    /// Puts the queues of planted faults in front of the router's port `near` again, after the port was made anew.
    fn requeue(&self, network: &mut Network) -> Result<(), LabError> {
        for planted in &self.planted {
            if let Fault::PathRate { rate, depth, directions } = planted.fault
                && directions.each().contains(&Direction::Reverse)
            {
                let ports = bucket::router_ports(FaultDirection::Reverse);
                bucket::limit_rate(network, &bucket::bucket(rate, depth), ports)?;
            }
        }
        Ok(())
    }

    /// Returns the counters of the process on the wire.
    pub(super) fn forwarded(&self) -> Result<Option<Forwarded>, LabError> {
        self.wire.as_ref().map(Wire::forwarded).transpose()
    }

    /// Returns the time at which the next action is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.events.next()
    }

    /// Returns the actions that are due now.
    pub(super) fn due(&mut self) -> Vec<Act> {
        self.events.due(Instant::now())
    }
}
