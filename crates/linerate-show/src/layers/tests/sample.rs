//! Results of layers, made up for tests.

use linerate_facts::Gap;
use linerate_judge::figure::{CPU, Entry, GOODPUT, LATENCY, Subject, Summary};
use linerate_plan::path::{Direction, Side};
use linerate_units::Bytes;

use super::{Layer, Layers, Load, Trips};

const SIZES: [u64; 2] = [64, 4096];

fn trips(size: u64, nanos: f64) -> Trips {
    let entry = |percent: f64, nanos| {
        let of = Subject { percentile: Some(percent), ..Subject::default() };
        Entry::bare(&LATENCY, of, nanos)
    };
    Trips {
        size: Bytes(size),
        samples: 5000,
        summary: Summary::sorted([entry(50.0, nanos), entry(99.0, 1.5 * nanos)]),
    }
}

fn load(direction: Direction, rate: f64, cost: f64) -> Load {
    let of = Subject::load(direction);
    let cpu = [Side::Near, Side::Far].map(|side| {
        let side = Some(side);
        Entry::bare(&CPU, Subject { side, ..of }, cost)
    });
    let goodput = Entry::bare(&GOODPUT, of, rate);
    Load {
        direction,
        summary: Summary::sorted(cpu.into_iter().chain([goodput])),
        share: Some(rate / 97.5e9),
    }
}

fn layer(name: &'static str, engine: &'static str, nanos: f64, rate: f64) -> Layer {
    Layer {
        name,
        engine,
        trips: SIZES.map(|size| trips(size, nanos + size as f64)).into(),
        loads: Direction::ALL.map(|way| load(way, rate, 8e9 / rate)).into(),
        ..Layer::default()
    }
}

/// All layers, measured.
pub(super) fn all() -> Layers {
    Layers {
        target: "brook".to_owned(),
        same_machine: Some(false),
        sizes: SIZES.map(Bytes).into(),
        directions: Direction::ALL.into(),
        layers: vec![
            layer("verbs", "rdma", 3200.0, 97.1e9),
            layer("sockets", "tcp", 21_000.0, 36.4e9),
            layer("program", "program", 24_000.0, 31.2e9),
            layer("preload", "program", 6_100.0, 71.9e9),
        ],
    }
}

/// The preload is not installed.
pub(super) fn without_preload() -> Layers {
    let mut layers = all();
    let preload = layers.layers.last_mut().unwrap();
    (preload.trips, preload.loads) = (Vec::new(), Vec::new());
    preload.gaps = vec![Gap {
        what: "preload".to_owned(),
        why: "this host has no librspreload, librdmacm's socket preload".to_owned(),
        hint: "install the library at both ends (Debian, Ubuntu: librdmacm1)".to_owned(),
    }];
    layers
}
