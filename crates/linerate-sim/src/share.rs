//! Max-min fair rates of flows that share resources.

/// What one flow can use, and what it needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demand {
    /// Highest rate that the flow would have alone, in bytes per second.
    pub cap: f64,
    /// Resources that the flow uses, such as CPUs, each with the seconds that it needs per byte.
    pub uses: [(usize, f64); 2],
}

/// What limits the rate of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The flow's own highest rate.
    Cap,
    Resource(usize),
}

/// Computes the rates of all flows. All rates rise together; each stops when it reaches the flow's cap or when one of
/// the flow's resources is exhausted. `room` is the capacity of each resource, in seconds per second; what the flows
/// use is subtracted from it.
pub(super) fn fair(demands: &[Demand], room: &mut [f64], rates: &mut Vec<(f64, Stop)>) {
    rates.clear();
    rates.resize(demands.len(), (0.0, Stop::Cap));
    let mut open = vec![true; demands.len()];
    let mut load = vec![0.0_f64; room.len()];
    let mut level = 0.0;
    while open.iter().any(|&o| o) {
        load.fill(0.0);
        for (demand, _) in demands.iter().zip(&open).filter(|(_, o)| **o) {
            for (resource, seconds) in demand.uses {
                load[resource] += seconds;
            }
        }
        let mut rise = f64::MAX;
        for (demand, _) in demands.iter().zip(&open).filter(|(_, o)| **o) {
            rise = rise.min(demand.cap - level);
        }
        for (load, room) in load.iter().zip(room.iter()).filter(|(l, _)| **l > 0.0) {
            rise = rise.min(room.max(0.0) / load);
        }
        let rise = rise.max(0.0);
        level += rise;
        for (room, load) in room.iter_mut().zip(&load) {
            *room -= rise * load;
        }
        for ((demand, open), rate) in demands.iter().zip(&mut open).zip(rates.iter_mut()) {
            if *open && let Some(stop) = stopped(demand, level, room) {
                *rate = (level, stop);
                *open = false;
            }
        }
    }
}

/// Returns why a flow cannot have a higher rate than `level`; `None` if it can.
fn stopped(demand: &Demand, level: f64, room: &[f64]) -> Option<Stop> {
    if level >= demand.cap * (1.0 - 1e-9) {
        return Some(Stop::Cap);
    }
    let full =
        demand.uses.iter().find(|(resource, seconds)| *seconds > 0.0 && room[*resource] <= 1e-9);
    full.map(|&(resource, _)| Stop::Resource(resource))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(demands: &[Demand], room: &[f64]) -> Vec<(f64, Stop)> {
        let mut rates = Vec::new();
        fair(demands, &mut room.to_vec(), &mut rates);
        rates
    }

    #[test]
    fn a_full_resource_is_shared_and_its_rest_goes_to_who_can_use_it() {
        let flow = |cap, a, b| Demand { cap, uses: [(a, 0.01), (b, 0.0)] };
        // Two flows share resource 0, which can carry 100 bytes/s. The first flow needs only 30.
        let got = rates(&[flow(30.0, 0, 1), flow(500.0, 0, 1)], &[1.0, 1.0]);
        assert!((got[0].0 - 30.0).abs() < 1e-6 && got[0].1 == Stop::Cap);
        assert!((got[1].0 - 70.0).abs() < 1e-6 && got[1].1 == Stop::Resource(0));
        // Flows with separate resources do not slow each other down.
        let got = rates(&[flow(80.0, 0, 1), flow(500.0, 1, 0)], &[1.0, 1.0]);
        assert!((got[0].0 - 80.0).abs() < 1e-6);
        assert!((got[1].0 - 100.0).abs() < 1e-6);
    }
}
