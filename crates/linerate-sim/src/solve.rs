//! One tick of the path: the rate of each flow, and the queue at the rate limit.

use linerate_plan::path::Direction;

use super::flow::{Bound, POLICED, SimStream};
use super::noise::Random;
use super::path::Congestion;
use super::share::{Demand, Stop, fair};

/// The state of one direction of the path in a tick.
#[derive(Debug, Clone, Copy)]
pub(super) struct DirectionState {
    /// Payload per second that can pass; zero while the link is down.
    pub rate: f64,
    /// Capacity of the buffer, in seconds of queueing delay.
    pub depth: f64,
    /// Round-trip time without a queue, in seconds.
    pub rtt: f64,
    /// Factor of the noise.
    pub noise: f64,
    /// Queueing delay computed by this tick, in seconds.
    pub queue: f64,
}

/// Buffers that are reused from tick to tick.
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
    /// Sets the rate, round-trip time and bound of every flow for `dt` seconds. `cpus` is the capacity of each CPU,
    /// in seconds per second.
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
                // With a queue, windows are not the limit: the rate is determined by the hosts alone.
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

    /// Computes fair rates of all flows, with their windows on an empty path or without windows.
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

    /// Handles a path with room: every flow gets the rate that its windows and the hosts allow.
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

    /// Handles a full path: a queue grows until windows limit the flows, or until it overflows.
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

/// Share of the data in flight that is lost once a policer's bucket is empty. While the bucket had tokens, the window
/// grew beyond the rate.
const OVERSHOT: f64 = 0.3;

/// Share of the data in flight that a queue drops when it overflows.
const QUEUED: f64 = 0.01;

/// Adapts the flow's congestion window to a full path.
fn react(
    flow: &mut SimStream,
    queue: f64,
    overflow: bool,
    state: &DirectionState,
    random: &mut Random,
) {
    match flow.congestion {
        // Not every flow loses a packet in the same overflow.
        Congestion::Cubic if overflow && random.uniform() < 0.8 => {
            flow.give_way(if state.depth > 0.0 { QUEUED } else { OVERSHOT });
        }
        Congestion::Cubic => {}
        Congestion::Bbr => {
            // The target is a queue of a quarter of a round trip, whatever is lost.
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

/// Stops all flows of a direction that is down.
fn stall(flows: &mut [&mut SimStream], which: usize) {
    for flow in flows.iter_mut().filter(|f| index(f.direction) == which) {
        if flow.rate > 0.0 {
            flow.stall();
        }
        flow.bound = Bound::Rate;
    }
}

/// Returns the total rate of all flows, each with its window and the rate that its hosts allow, at a round-trip time.
fn total(flows: &[(f64, f64)], rtt: f64) -> f64 {
    flows.iter().map(|&(window, host)| host.min(window / rtt)).sum()
}

/// Returns the round-trip time at which the flows' rates add up to `rate`. Each flow has its window and the rate that
/// its hosts allow. Sorts the flows by the round trip at which their windows begin to limit.
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

/// Returns which host, or which rate of the flow itself, limits it.
fn host_bound(flow: &SimStream, stop: Stop, noise: f64) -> Bound {
    match stop {
        Stop::Cap => flow.cap(noise).1,
        Stop::Resource(cpu) if cpu != flow.rx.cpu => Bound::Sender,
        Stop::Resource(cpu) if cpu != flow.tx.cpu => Bound::Receiver,
        // If one CPU serves both ends, the costlier end is the limit.
        Stop::Resource(_) if flow.tx.per_byte() > flow.rx.per_byte() => Bound::Sender,
        Stop::Resource(_) => Bound::Receiver,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_round_trip_makes_the_windows_fit_the_rate() {
        // Limits by windows only; by hosts for some flows; and a host so slow that its window never limits.
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
