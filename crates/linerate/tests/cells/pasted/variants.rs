//! Models with facts that no cell has, and for which some cause gives other advice.

use linerate_facts::BufferLimits;
use linerate_facts::cpu::Clock;
use linerate_facts::route::Route;
use linerate_judge::model::{Load, Local, LocalEvent, Model, Shaping};
use linerate_plan::path::Side;
use linerate_units::{Hertz, Rate};

use super::super::CELLS;

pub(super) fn all() -> Vec<Model> {
    let mut all = dropped();
    all.extend(shaped());
    all.extend(clocked());
    all.extend([paused(), by_another_port()]);
    all.extend([
        lossy(|load| load.tcp.window_scaling = Some(false)),
        lossy(|load| load.knobs.congestion = Some("cubic".to_owned())),
        varied("planted-socket-drops", |m| {
            for host in &mut m.hosts {
                host.facts.buffers = BufferLimits::default();
            }
        }),
    ]);
    all
}

/// The model of a cell, changed by `change`; the cell's ports are known.
fn varied(name: &str, change: impl Fn(&mut Model)) -> Model {
    let cell = CELLS.iter().find(|cell| cell.name == name).unwrap();
    let mut model = cell.model.clone();
    change(&mut model);
    model
}

fn lossy(change: impl Fn(&mut Load)) -> Model {
    varied("planted-loss", |m| change(&mut m.directions[0].base))
}

/// Models in which one counter of a host shows dropped packets.
fn dropped() -> Vec<Model> {
    use LocalEvent::{Arrival, Backlog, Departure, Queue, Ring};
    let of = |(side, what, subject): (Side, LocalEvent, &str)| {
        lossy(|load| {
            load.local = vec![Local {
                side,
                what,
                subject: subject.to_owned(),
                count: 1_200.0,
                per_sec: 400.0,
                bytes: None,
                meant: None,
            }];
        })
    };
    let each = [
        (Side::Far, Ring, "eth0"),
        (Side::Far, Backlog, "3"),
        (Side::Far, Arrival, "eth0"),
        (Side::Far, Queue, "eth0 clsact ffff:"),
        (Side::Near, Departure, "eth0"),
        (Side::Near, Departure, "eth0 tx_dropped"),
        (Side::Near, Queue, "eth0 fq_codel 1:"),
    ];
    each.map(of).into()
}

/// Models with queues that limit the rate of all streams together, or of each stream.
fn shaped() -> Vec<Model> {
    let mbits = Some(Rate(4_000_000));
    let of = |subjects: &[&str], rate, flow_rate| {
        lossy(|load| {
            let shaper = |subject: &&str| Shaping {
                subject: (*subject).to_owned(),
                rate,
                flow_rate,
                frame: 14.0,
                waiting: Some(1.0),
                held: Some(10.0),
            };
            load.shapers = Some(subjects.iter().map(shaper).collect());
        })
    };
    vec![
        of(&["eth0 fq 1:"], None, mbits),
        of(&["eth0 fq 1:", "eth0 fq 2:"], None, mbits),
        of(&["eth0 htb 1:10"], mbits, None),
    ]
}

/// Models whose CPU clocks are held down, but not by the governor.
fn clocked() -> Vec<Model> {
    let of = |change: fn(&mut Clock)| {
        let name = "receiver-core-over, the receiver's CPU runs at 88 % of its nominal clock";
        varied(name, |m| {
            let clocks = m.hosts.iter_mut();
            let clocks = clocks.filter_map(|host| host.facts.clocks.as_mut());
            for kind in clocks.flatten() {
                change(&mut kind.clock);
            }
        })
    };
    vec![
        of(|clock| "performance".clone_into(&mut clock.governor)),
        of(|clock| {
            clock.limit = Some(Hertz(2_000_000_000));
            clock.max = Some(Hertz(3_000_000_000));
        }),
    ]
}

/// A model whose cards negotiate pauses, so that their driver ignores the setting of pauses.
fn paused() -> Model {
    let name = "path-rate-5g, pauses stop the sender's port of 10 Gb/s 6 % of the time";
    varied(name, |m| {
        let routes = m.hosts.iter_mut();
        let routes = routes.filter_map(|host| host.facts.route.as_mut());
        for card in routes.flat_map(|route| &mut route.ports) {
            "e1000e".clone_into(&mut card.driver);
            card.pause.get_or_insert_default().autoneg = Some(true);
        }
    })
}

/// A model in which only the near end has a second, faster port in the network of the far end's address.
fn by_another_port() -> Model {
    let name = "path-rate-1g, 941 Mb/s by ports of 1 Gb/s, beside ones of 2.5 Gb/s";
    varied(name, |m| {
        let [mut near, far] = [0, 1].map(|at| m.hosts[at].facts.route.clone().unwrap());
        let peer = near.peer.unwrap().to_string();
        let (network, _) = peer.rsplit_once('.').unwrap();
        near.others[0].networks = vec![(format!("{network}.9").parse().unwrap(), 24)];
        let mut other = Route { others: Vec::new(), ..far };
        for card in &mut other.ports {
            card.link.speed = near.others[0].speed;
        }
        m.hosts[0].facts.route = Some(near);
        m.hosts[1].facts.route = Some(other);
    })
}
