//! The process on the wire between near and the router, and its settings for the planted faults.

use std::io;

use linerate_plan::path::Direction;
use linerate_sys::packet::PacketPort;
use linerate_sys::process;
use linerate_sys::shared::SharedCounters;
use linerate_units::Nanos;
use rustix::io::Errno;

use super::child::Child;
use super::network::Network;
use crate::error::LabError;
use crate::fault::{Fault, FaultDirection};
use crate::forward::{self, Treatment};
use crate::spec::Forwarded;

/// The process on the wire, which forwards frames.
pub(super) struct Wire {
    child: Child,
    counters: SharedCounters,
}

impl Wire {
    pub(super) fn start(
        network: &mut Network,
        treatments: [Treatment; 2],
    ) -> Result<Self, LabError> {
        let failed = |e: io::Error| LabError::step("cannot start a forwarding process", &e);
        let counters = SharedCounters::new().map_err(failed)?;
        let ports = network.open_wire()?;
        let keep = ports.each_ref().map(PacketPort::socket);
        // The child process inherits the ports, whose sockets stay open in it.
        let pid = process::fork(&keep, || {
            let failed = forward::run(&ports, treatments, &counters[..]);
            eprintln!("lab: {failed}");
            1
        });
        let child = Child(pid.map_err(failed)?);
        Ok(Self { child, counters })
    }

    pub(super) fn stop(&self) -> Result<(), LabError> {
        self.child.stop()
    }

    pub(super) fn forwarded(&self) -> Result<Forwarded, LabError> {
        match rustix::process::test_kill_process(self.child.0) {
            Ok(()) => Ok(forward::read(&self.counters[..])),
            Err(Errno::SRCH) => Err(LabError::gone("the forwarding process has ended")),
            Err(e) => Err(LabError::step("cannot see the wire's process", &e.into())),
        }
    }
}

/// Returns whether the process on the wire causes the effect of this fault.
pub(super) const fn is_on_the_wire(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::Delay { .. }
            | Fault::Jitter { .. }
            | Fault::Loss { .. }
            | Fault::Reorder { .. }
            | Fault::Police { .. }
            | Fault::FlowRate { .. }
            | Fault::Hold { .. }
            | Fault::BlackHole { .. }
    )
}

/// Returns the combined effect of all faults on each direction, forward first; `None` if no fault is on the wire.
pub(super) fn treatments<'a>(faults: impl Iterator<Item = &'a Fault>) -> Option<[Treatment; 2]> {
    let mut both = None;
    for fault in faults.filter(|fault| is_on_the_wire(fault)) {
        let both = both.get_or_insert([Treatment::default(); 2]);
        for (treatment, direction) in both.iter_mut().zip(Direction::ALL) {
            apply(fault, direction, treatment);
        }
    }
    both
}

fn apply(fault: &Fault, direction: Direction, to: &mut Treatment) {
    let on = |directions: &FaultDirection| directions.each().contains(&direction);
    match fault {
        Fault::Delay { forward, reverse } => {
            let Nanos(delay) = match direction {
                Direction::Forward => *forward,
                Direction::Reverse => *reverse,
            };
            to.delay = delay;
        }
        Fault::Jitter { most, directions } if on(directions) => to.jitter = most.0,
        Fault::Loss { share, burst, directions } if on(directions) => {
            to.loss = Some((*share, *burst));
        }
        Fault::Reorder { by, every, directions } if on(directions) => {
            to.reorder = Some((*every, by.0));
        }
        Fault::Police { rate, directions } if on(directions) => to.police = Some(*rate),
        Fault::FlowRate { rate, manner, directions } if on(directions) => {
            to.flow = Some((*rate, *manner));
        }
        Fault::Hold { side, period } if *side == direction.receiver() => to.tick = Some(period.0),
        Fault::BlackHole { bytes, directions } if on(directions) => to.largest = Some(*bytes),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Option<[Treatment; 2]> {
        let faults: Vec<Fault> = texts.iter().map(|text| text.parse().unwrap()).collect();
        treatments(faults.iter())
    }

    #[test]
    fn faults_add_up_in_any_order_and_each_on_its_way() {
        let all = ["loss:1%,forward", "delay:2ms,reverse", "police:1Gb/s"];
        let [forward, reverse] = of(&all).unwrap();
        assert!(forward.loss.is_some() && reverse.loss.is_none());
        assert_eq!((forward.delay, reverse.delay), (0, 2_000_000));
        assert_eq!(forward.police, reverse.police);
        let mut other = all;
        other.reverse();
        assert_eq!(of(&all), of(&other));
    }

    #[test]
    fn a_side_holds_the_packets_that_arrive_there() {
        let ticks = |text| of(&[text]).map(|both| both.map(|treatment| treatment.tick));
        assert_eq!(ticks("hold:far,200us"), Some([Some(200_000), None]));
        assert_eq!(ticks("hold:near,1ms"), Some([None, Some(1_000_000)]));
    }

    #[test]
    fn without_a_fault_on_it_there_is_no_wire() {
        assert_eq!(of(&["mtu:1280", "path-rate:1Gb/s,deep", "hog:cpu=0,threads=1"]), None);
    }
}
