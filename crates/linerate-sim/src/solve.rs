//! Computes one tick of the path: the rate of each flow, and the queue before the rate limit.

use linerate_plan::path::Direction;

use super::flow::{Bound, POLICED, SimStream};
use super::noise::Random;
use super::path::Congestion;
use super::share::{Demand, Stop, fair};

/// The state of one direction of the path in a tick.
#[derive(Debug, Clone, Copy)]
pub(super) struct DirectionState {
    /// Payload rate that the path can carry, in bytes per second; zero while the link is down.
    pub rate: f64,
    /// Size of the queue's buffer, as the delay of a full queue in seconds.
    pub depth: f64,
    /// Round-trip time without a queue, in seconds.
    pub rtt: f64,
    /// Factor of the noise on the limits.
    pub noise: f64,
    /// Delay by the queue in this tick, in seconds; it is computed.
    pub queue: f64,
}

/// Computes ticks. It keeps its buffers, so that each tick can reuse them.
#[derive(Debug, Default)]
pub(super) struct Solver {
    demands: Vec<Demand>,
    windowed: Vec<(f64, Stop)>,
    hosts: Vec<(f64, Stop)>,
    room: Vec<f64>,
}

/// Returns the index of a direction in lists of both directions.
pub(super) const fn index(direction: Direction) -> usize {
    match direction {
        Direction::Forward => 0,
        Direction::Reverse => 1,
    }
}

impl Solver {
    /// Computes the rate, round-trip time and limit of every flow for a tick of `dt` seconds. `cpus` is the capacity of
    /// each CPU, in seconds per second.
    pub(super) fn tick(
        &mut self,
        flows: &mut [&mut SimStream],
        states: &mut [DirectionState; 2],
        cpus: &[f64],
        dt: f64,
        random: &mut Random,
    ) {
        self.fill(flows, states, cpus, true);
        let over = states.map(|w| w.rate);
        for which in 0..2 {
            states[which].queue = 0.0;
            let mine = |f: &SimStream| index(f.direction) == which;
            let wanted: f64 = flows
                .iter()
                .zip(&self.windowed)
                .filter(|(f, _)| mine(f))
                .map(|(_, (rate, _))| rate)
                .sum();
            if wanted > over[which] {
                // If there is a queue, the windows do not determine the flows' demand on the hosts: rates are computed
                // without windows.
                self.fill(flows, states, cpus, false);
                self.queue_up(flows, &mut states[which], which, random);
            } else {
                self.pass(flows, &states[which], which);
            }
        }
        for flow in flows.iter_mut() {
            flow.grow(dt);
        }
    }

    /// Computes fair rates of all flows on the hosts: with the windows of a path without a queue, or without windows.
    fn fill(
        &mut self,
        flows: &[&mut SimStream],
        states: &[DirectionState; 2],
        cpus: &[f64],
        windows: bool,
    ) {
        self.demands.clear();
        self.demands.extend(flows.iter().map(|flow| {
            let state = &states[index(flow.direction)];
            let window = flow.window().0 / state.rtt;
            let cap = flow.cap(state.noise).0;
            Demand {
                cap: if windows { cap.min(window) } else { cap },
                uses: [&flow.tx, &flow.rx].map(|w| (w.cpu, w.per_byte() / state.noise)),
            }
        }));
        self.room.clear();
        self.room.extend_from_slice(cpus);
        let rates = if windows { &mut self.windowed } else { &mut self.hosts };
        fair(&self.demands, &mut self.room, rates);
    }

    /// Computes a direction that is not full: every flow gets the rate that its windows and the hosts permit.
    fn pass(&self, flows: &mut [&mut SimStream], state: &DirectionState, which: usize) {
        let pairs = flows.iter_mut().zip(&self.windowed);
        for (flow, &(rate, stop)) in pairs.filter(|(f, _)| index(f.direction) == which) {
            let (window, bound) = flow.window();
            flow.bound = match stop {
                Stop::Cap if window / state.rtt <= rate * (1.0 + 1e-6) => bound,
                stop => host_bound(flow, stop, state.noise),
            };
            flow.rate = rate;
            flow.rtt = state.rtt;
        }
    }

    /// Computes a direction that is full: its queue grows until the windows limit the flows, or until it overflows.
    fn queue_up(
        &self,
        flows: &mut [&mut SimStream],
        state: &mut DirectionState,
        which: usize,
        random: &mut Random,
    ) {
        if state.rate <= 0.0 {
            stall(flows, which);
            return;
        }
        let rate_at = |flow: &SimStream, host: f64, queue: f64| {
            host.min(flow.window().0 / (state.rtt + queue))
        };
        let mut mine: Vec<(f64, f64)> = flows
            .iter()
            .zip(&self.hosts)
            .filter(|(f, _)| index(f.direction) == which)
            .map(|(f, (host, _))| (f.window().0, *host))
            .collect();
        let overflow = total(&mine, state.rtt + state.depth) > state.rate;
        let queue = if overflow {
            state.depth
        } else {
            (round_trip(&mut mine, state.rate) - state.rtt).clamp(0.0, state.depth)
        };
        let scale = state.rate / total(&mine, state.rtt + queue).max(1.0);
        for (flow, &(host, stop)) in flows.iter_mut().zip(&self.hosts) {
            if index(flow.direction) != which {
                continue;
            }
            let rate = rate_at(flow, host, queue);
            flow.bound = match flow.window().1 {
                _ if rate >= host * (1.0 - 1e-6) && scale > 0.99 => {
                    host_bound(flow, stop, state.noise)
                }
                Bound::ReceiveWindow | Bound::SendBuffer if overflow => Bound::Rate,
                Bound::Congestion => Bound::Rate,
                window => window,
            };
            flow.rate = rate * scale.min(1.0);
            flow.rtt = state.rtt + queue;
            react(flow, queue, overflow, state, random);
        }
        state.queue = queue;
    }
}

/// Share of the data in flight that is lost when the bucket of a policer is empty. While the bucket had tokens, the
/// congestion window has grown too far.
const OVERSHOT: f64 = 0.3;

/// Share of the data in flight that is dropped when a queue overflows.
const QUEUED: f64 = 0.01;

/// Adapts a flow's congestion window to a direction that is full.
fn react(
    flow: &mut SimStream,
    queue: f64,
    overflow: bool,
    state: &DirectionState,
    random: &mut Random,
) {
    match flow.congestion {
        // When a queue overflows, not every flow loses a packet.
        Congestion::Cubic if overflow && random.uniform() < 0.8 => {
            flow.give_way(if state.depth > 0.0 { QUEUED } else { OVERSHOT });
        }
        Congestion::Cubic => {}
        Congestion::Bbr => {
            // BBR keeps a queue of a quarter of a round trip, whatever is lost.
            let short = (0.25 * state.rtt).max(50e-6);
            if overflow || queue > short {
                flow.cwnd = (flow.rate * (state.rtt + short)).max(4.0 * flow.mss);
                flow.ssthresh = flow.cwnd;
            }
            if overflow {
                let lost = if state.depth > 0.0 { QUEUED / 2.0 } else { POLICED };
                flow.tcp.retrans += (lost * flow.in_flight() / flow.mss).max(1.0);
            }
        }
    }
}

/// Stops all flows of a direction whose link is down.
fn stall(flows: &mut [&mut SimStream], which: usize) {
    for flow in flows.iter_mut().filter(|f| index(f.direction) == which) {
        if flow.rate > 0.0 {
            flow.stall();
        }
        flow.bound = Bound::Rate;
    }
}

/// Returns the sum of the rates of all flows at a round-trip time. Each flow has a window and the rate that the hosts
/// permit.
fn total(flows: &[(f64, f64)], rtt: f64) -> f64 {
    flows.iter().map(|&(window, host)| host.min(window / rtt)).sum()
}

/// Returns the round-trip time at which the rates of all flows add up to `rate`. Each flow has a window and the rate
/// that the hosts permit. Sorts the flows by the round-trip time from which on their windows limit them.
fn round_trip(flows: &mut [(f64, f64)], rate: f64) -> f64 {
    let binds = |&(window, host): &(f64, f64)| window / host.max(1.0);
    flows.sort_unstable_by(|a, b| binds(a).total_cmp(&binds(b)));
    let mut rest: f64 = flows.iter().map(|(_, host)| host).sum();
    let mut windows = 0.0;
    let mut rtt = f64::MAX;
    for (k, (window, host)) in flows.iter().enumerate() {
        windows += window;
        rest -= host;
        if rate > rest {
            rtt = windows / (rate - rest);
            if flows.get(k + 1).is_none_or(|next| rtt <= binds(next)) {
                break;
            }
        }
    }
    rtt
}

/// Returns which host limits the flow, or which limit of the flow's own rate.
fn host_bound(flow: &SimStream, stop: Stop, noise: f64) -> Bound {
    match stop {
        Stop::Cap => flow.cap(noise).1,
        Stop::Resource(cpu) if cpu != flow.rx.cpu => Bound::Sender,
        Stop::Resource(cpu) if cpu != flow.tx.cpu => Bound::Receiver,
        // If one CPU runs both ends of the flow, the end that needs more CPU time is the limit.
        Stop::Resource(_) if flow.tx.per_byte() > flow.rx.per_byte() => Bound::Sender,
        Stop::Resource(_) => Bound::Receiver,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_round_trip_makes_the_windows_fit_the_rate() {
        // All flows limited by windows; some flows limited by hosts; one flow whose host is so slow that its window
        // never limits it.
        for flows in [
            vec![(1e6, 1e12), (3e6, 1e12)],
            vec![(1e6, 3e8), (3e6, 9e8), (1e6, 1e8)],
            vec![(1e9, 1e8), (1e6, 2e9)],
        ] {
            let rtt = round_trip(&mut flows.clone(), 1e9);
            assert!((total(&flows, rtt) / 1e9 - 1.0).abs() < 1e-9, "{flows:?}: {rtt}");
        }
    }
}
