//! Layers of a path, for programs.
//!
//! The schema of the document is made from `Output`. Units stand in the keys; integers stay below 2^53; unknown
//! values are `null`.

use linerate_facts::Gap;
use linerate_plan::path::{Direction, Side};
use linerate_plan::transport::Options;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::json::{Format, exact, integer, text};
use super::{Layer, Layers, Load, Trips};

/// One JSON document: one path, measured by several layers in turn. Keys contain the units. Unknown values are null.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate run --layers")]
pub(crate) struct Output<'a> {
    /// Version of this document.
    format: Format<1>,
    /// Version of linerate.
    linerate: &'static str,
    /// The far end in the form that the user typed.
    target: &'a str,
    /// Whether both ends run on one machine and share its CPUs. Null if nothing was measured.
    same_machine: Option<bool>,
    /// False if any layer lacks round trips of a size, or goodput of a direction.
    complete: bool,
    /// Verbs, sockets, an ordinary program, and that program with the socket preload.
    layers: Vec<LayerOut<'a>>,
}

/// What one layer gives.
#[derive(Serialize, JsonSchema)]
struct LayerOut<'a> {
    /// Which layer.
    #[schemars(extend("enum" = ["verbs", "sockets", "program", "preload"]))]
    name: &'static str,
    /// Engine that moved the bytes.
    engine: &'static str,
    /// Options of the engine that are set.
    options: &'a Options,
    /// Whether its threads poll, and use a whole CPU at any load.
    polls: bool,
    /// Whole round trips on the idle path, by size.
    round_trips: Vec<TripsOut>,
    /// Loads of one connection or queue pair, one direction at a time.
    loads: Vec<LoadOut>,
    /// What could not be measured, and what helps.
    unknown: &'a [Gap],
}

/// Round trips of one size.
#[derive(Serialize, JsonSchema)]
struct TripsOut {
    /// Payload of a message, and of its answer.
    #[schemars(range(min = 1))]
    size_bytes: u64,
    /// Round trips that were timed.
    samples: u64,
    /// Median. Null if there are too few round trips.
    typical_ns: Option<u64>,
    /// A time that 99 % of the round trips do not exceed. Null if there are too few round trips.
    p99_ns: Option<u64>,
}

/// A load in one direction.
#[derive(Serialize, JsonSchema)]
struct LoadOut {
    direction: Direction,
    /// Payload that was received in a second. Null if unknown.
    goodput_bps: Option<u64>,
    /// Share of the lowest known ceiling that the goodput reaches. Null if no ceiling is known.
    #[schemars(range(min = 0))]
    ceiling_share: Option<f64>,
    /// CPU time for each byte of payload, of the threads that move it.
    cpu_ns_per_byte: Ends,
}

/// A value of each end.
#[derive(Serialize, JsonSchema)]
struct Ends {
    /// Null if unknown.
    #[schemars(range(min = 0))]
    near: Option<f64>,
    /// Null if unknown.
    #[schemars(range(min = 0))]
    far: Option<f64>,
}

/// The layers as one JSON document, with a line feed at its end.
pub fn json(layers: &Layers) -> serde_json::Result<String> {
    text(&Output {
        format: Format,
        linerate: env!("CARGO_PKG_VERSION"),
        target: &layers.target,
        same_machine: layers.same_machine,
        complete: layers.complete(),
        layers: layers.layers.iter().map(layer).collect(),
    })
}

fn layer(layer: &Layer) -> LayerOut<'_> {
    LayerOut {
        name: layer.name,
        engine: layer.engine,
        options: &layer.options,
        polls: layer.polls(),
        round_trips: layer.trips.iter().map(trips).collect(),
        loads: layer.loads.iter().map(load).collect(),
        unknown: &layer.gaps,
    }
}

fn trips(trips: &Trips) -> TripsOut {
    TripsOut {
        size_bytes: exact(trips.size.0),
        samples: exact(trips.samples),
        typical_ns: trips.percentile(50.0).map(integer),
        p99_ns: trips.percentile(99.0).map(integer),
    }
}

fn load(load: &Load) -> LoadOut {
    LoadOut {
        direction: load.direction,
        goodput_bps: load.goodput().map(integer),
        ceiling_share: load.share,
        cpu_ns_per_byte: Ends { near: load.cpu(Side::Near), far: load.cpu(Side::Far) },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::sample;
    use super::*;
    use crate::schema::{fits, needs_all, refuses};

    fn parsed(layers: &Layers) -> Value {
        serde_json::from_str(&json(layers).unwrap()).unwrap()
    }

    #[test]
    fn the_document_fits_its_schema_and_no_less() {
        let all = parsed(&sample::all());
        fits("layers", &all);
        fits("layers", &parsed(&sample::without_preload()));
        let wrong = [
            ("/format", Value::from(2)),
            ("/layers/0/name", Value::from("pigeon")),
            ("/layers/0/polls", Value::Null),
            ("/layers/0/round_trips/0/size_bytes", Value::from(0)),
            ("/layers/0/loads/0/goodput_bps", Value::from(-1)),
            ("/layers/0/loads/0/cpu_ns_per_byte", Value::Null),
            ("/layers/0/unknown", Value::Null),
        ];
        refuses("layers", &all, wrong, "");
        needs_all("layers", &all, "");
    }

    #[test]
    fn a_missing_library_is_a_gap_and_nothing_else_is_lost() {
        let told = parsed(&sample::without_preload());
        assert_eq!(told["complete"], false);
        assert_eq!(told["layers"][3]["round_trips"], Value::Array(Vec::new()));
        let why = told["layers"][3]["unknown"][0]["why"].as_str().unwrap();
        assert!(why.contains("librspreload"), "{why}");
        assert_eq!(told["layers"][0]["round_trips"][0]["typical_ns"], 3264);
        assert_eq!(told["layers"][1]["loads"][1]["direction"], "reverse");
    }
}
