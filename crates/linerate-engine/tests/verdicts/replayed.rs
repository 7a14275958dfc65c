//! Records of whole runs with the facts of hardware that no lab here has, each beside a near miss:
//! the same run on hardware that is innocent.

use linerate_core::facts::nic::Duplex;
use linerate_core::facts::route::{Other, Route};
use linerate_core::metric::{self, Metric};
use linerate_core::record::{Column, Record};
use linerate_core::units::Transfers;
use linerate_core::verdict::Measure;

use super::slot::card_in;
use super::*;

/// A run between ports of this speed, over a path of this rate.
fn run_of(port: f64, path: f64) -> Record {
    let mut sim = SimPath::default();
    sim.near.port_speed = Some(gigabits(port));
    sim.far.port_speed = Some(gigabits(port));
    sim.forward.rate = gigabits(path);
    let mut sim = Sim::new(sim, 7);
    let (record, error) = run(&mut sim, plan(Knobs::default()), 0, &mut ());
    assert!(error.is_none(), "{error:?}");
    record
}

/// What is named of goodput on a record whose routes were changed.
fn named(record: &Record, change: impl FnOnce([&mut Route; 2])) -> Vec<(&'static str, Certainty)> {
    let mut record = record.clone();
    let [near, far] = &mut record.hosts[..] else {
        panic!("two hosts")
    };
    change([near, far].map(|host| host.facts.route.as_mut().expect("a route")));
    let verdict = judge(&derive(&record));
    verdict
        .limits
        .iter()
        .filter(|l| l.metric == Measure::Goodput)
        .map(|l| (l.cause, l.certainty))
        .collect()
}

/// Puts the card of a port into a slot of the second generation with so many lanes.
fn put_in_slot(route: &mut Route, lanes: u8) {
    route.pci = card_in(Transfers(5_000_000_000), lanes, lanes, Some(256));
    let nic = &mut route.ports[0];
    "0000:01:00.0".clone_into(&mut nic.device);
    "0000:01:00.0".clone_into(&mut nic.pci);
}

#[test]
fn a_card_in_a_narrow_slot_and_one_in_a_slot_that_is_wide_enough() {
    // Reads over two lanes leave 8 Gb/s x 256/276 = 7.42 at most: 7.88 on the wire.
    let record = run_of(10.0, 7.85);
    let two = named(&record, |[near, _]| put_in_slot(near, 2));
    assert_eq!(two, [("pcie-slot", Certainty::Proved)]);
    let four = named(&record, |[near, _]| put_in_slot(near, 4));
    assert_eq!(four, [("path-rate", Certainty::Proved)]);
    // The interval goes on to below 7: it may be the slot, and may be the path.
    let record = run_of(10.0, 7.5);
    let inside = named(&record, |[near, _]| put_in_slot(near, 2));
    assert!(
        inside.contains(&("pcie-slot", Certainty::Supported)),
        "{inside:?}"
    );
}

#[test]
fn a_full_port_beside_a_faster_one_and_beside_one_that_leads_elsewhere() {
    let record = run_of(1.0, 1.0);
    let beside = |third: u8| {
        named(&record, |routes| {
            for (route, host) in routes.into_iter().zip([1, 2]) {
                let network = if host == 1 { 0 } else { third };
                route.others.push(Other {
                    name: "fast0".to_owned(),
                    speed: Some(gigabits(10.0)),
                    networks: vec![([10, 0, network, host].into(), 24)],
                });
            }
        })
    };
    let wire = ("wire-full", Certainty::Proved);
    assert_eq!(beside(0), [wire, ("wrong-route", Certainty::Supported)]);
    assert_eq!(beside(1), [wire]);
}

/// Makes the far port count so many collisions for each packet that it sends.
fn collide(record: &mut Record, share: f64) {
    let count = |metric: Metric, values: Vec<i64>| Column {
        name: metric.name.to_owned(),
        unit: metric.unit,
        kind: metric.kind,
        values,
    };
    let tables = record
        .steps
        .iter_mut()
        .flat_map(|step| &mut step.ends[1].tables);
    for table in tables.filter(|table| table.source == "port") {
        let sent: Vec<i64> = (0..table.at.len() as i64).map(|row| row * 1_000).collect();
        let collided = sent.iter().map(|n| (*n as f64 * share) as i64).collect();
        let ours = [metric::PORT_TX_PACKETS, metric::PORT_COLLISIONS];
        table
            .columns
            .retain(|c| ours.iter().all(|m| m.name != c.name));
        table.columns.push(count(ours[0], sent));
        table.columns.push(count(ours[1], collided));
    }
}

#[test]
fn a_port_at_half_duplex_and_a_slow_path_behind_a_good_one() {
    let cell = |share: f64, duplex: Duplex| {
        let mut record = run_of(0.1, 0.06);
        collide(&mut record, share);
        named(&record, |[_, far]| far.ports[0].link.duplex = Some(duplex))
    };
    let half = cell(0.05, Duplex::Half);
    assert_eq!(half, [("duplex", Certainty::Supported)]);
    assert_eq!(cell(0.0, Duplex::Full), [("path-rate", Certainty::Proved)]);
}
