//! One path by several layers: verbs, sockets, and an ordinary program with and without the socket preload.

pub mod json;
#[cfg(test)]
#[path = "tests/sample.rs"]
mod sample;
mod text;

use linerate_facts::Gap;
use linerate_judge::figure::{CPU, GOODPUT, LATENCY, Subject, Summary};
use linerate_plan::path::{Direction, Side};
use linerate_plan::transport::{Options, rdma};
use linerate_units::Bytes;

pub use json::json;
pub use text::page;

/// All layers of a path.
#[derive(Debug)]
pub struct Layers {
    /// The far end in the form that the user typed.
    pub target: String,
    /// Whether both ends run on one machine; `None` if nothing was measured.
    pub same_machine: Option<bool>,
    /// The sizes of round trips, and the directions of loads.
    pub sizes: Vec<Bytes>,
    /// The directions that were loaded, in turn.
    pub directions: Vec<Direction>,
    /// The layers, in the order of columns.
    pub layers: Vec<Layer>,
}

/// What one layer gives.
#[derive(Debug, Default)]
pub struct Layer {
    /// Its name in text and JSON.
    pub name: &'static str,
    /// The transport.
    pub engine: &'static str,
    /// The options of the transport that are set.
    pub options: Options,
    /// Round trips of each size that was timed.
    pub trips: Vec<Trips>,
    /// Each direction that was loaded.
    pub loads: Vec<Load>,
    /// What could not be measured.
    pub gaps: Vec<Gap>,
}

/// Round trips of one size.
#[derive(Debug, Clone, PartialEq)]
pub struct Trips {
    /// Payload of a message, and of its answer.
    pub size: Bytes,
    /// Round trips that were timed.
    pub samples: u64,
    /// The figures.
    pub summary: Summary,
}

/// A load in one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// The direction.
    pub direction: Direction,
    /// The figures.
    pub summary: Summary,
    /// The share of the lowest known ceiling that the goodput reaches; `None` if no ceiling is known.
    pub share: Option<f64>,
}

impl Layers {
    /// Whether each layer has round trips of all sizes, and goodput of all directions.
    pub fn complete(&self) -> bool {
        let all = |layer: &Layer| {
            let timed = layer.trips.iter().filter(|trips| trips.samples > 0);
            let trips = timed.count() == self.sizes.len();
            let loads = layer.loads.iter().all(|load| load.goodput().is_some());
            trips && loads && layer.loads.len() == self.directions.len()
        };
        self.layers.iter().all(all)
    }
}

impl Layer {
    /// Whether its threads poll, and so are busy whatever they move.
    fn polls(&self) -> bool {
        self.engine == "rdma" && rdma::polls(&self.options)
    }

    fn trips(&self, size: Bytes) -> Option<&Trips> {
        self.trips.iter().find(|trips| trips.size == size)
    }

    fn load(&self, direction: Direction) -> Option<&Load> {
        self.loads.iter().find(|load| load.direction == direction)
    }
}

impl Trips {
    /// A percentile in nanoseconds; `None` if there are too few round trips for it.
    fn percentile(&self, percent: f64) -> Option<f64> {
        let of = Subject { percentile: Some(percent), ..Subject::default() };
        Some(self.summary.value(&LATENCY, of)?.mid)
    }
}

impl Load {
    /// Goodput in bits per second.
    fn goodput(&self) -> Option<f64> {
        let of = Subject::load(self.direction);
        Some(self.summary.value(&GOODPUT, of)?.mid)
    }

    /// CPU time of one end in nanoseconds for each byte.
    fn cpu(&self, side: Side) -> Option<f64> {
        let of = Subject { side: Some(side), ..Subject::load(self.direction) };
        Some(self.summary.value(&CPU, of)?.mid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_that_lacks_anything_is_not_complete() {
        assert!(sample::all().complete());
        let lacks: [fn(&mut Layer); 4] = [
            |layer| layer.trips[1].samples = 0,
            |layer| drop(layer.trips.pop()),
            |layer| drop(layer.loads.pop()),
            |layer| layer.loads[0].summary = Summary::default(),
        ];
        for lack in lacks {
            let mut layers = sample::all();
            lack(&mut layers.layers[1]);
            assert!(!layers.complete());
        }
        assert!(!sample::without_preload().complete());
    }

    #[test]
    fn only_verbs_poll_and_not_with_events() {
        let polls: Vec<bool> = sample::all().layers.iter().map(Layer::polls).collect();
        assert_eq!(polls, [true, false, false, false]);
        let mut layer = sample::all().layers.remove(0);
        layer.options.set(rdma::EVENTS.key, linerate_plan::transport::Setting::Switch(true));
        assert!(!layer.polls());
    }
}
