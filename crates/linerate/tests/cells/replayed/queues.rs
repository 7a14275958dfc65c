//! Queue pairs, packets and ports of RDMA loads.

use linerate_facts::rdma::{Netdev, OtherPort, RdmaEnd};
use linerate_facts::route::{Other, Route};
use linerate_plan::path::Side;
use linerate_plan::transport::Setting;
use linerate_plan::transport::rdma::{Addressing, DEPTH, INLINE};
use linerate_record::Record;
use linerate_units::Rate;

use super::verbs::{carried, port};
use super::{Replay, Shown};

/// No counter of the ports grows.
const NOTHING: (Side, &str, f64) = (Side::Near, "", 0.0);

pub(super) const REPLAYS: &[Replay] = &[
    Replay {
        cause: "rdma-depth",
        on: "path-rate-1g",
        over: Shown {
            words: "RDMA reads of 13,000 B one at a time, at round trips of 100 us",
            show: |r| reads(r, (1, 16), 13_000),
            named: &["rdma-depth"],
            disturbed: &[],
        },
        under: Shown {
            words: "RDMA reads of 30,000 B",
            show: |r| reads(r, (1, 16), 30_000),
            named: &[],
            disturbed: &[],
        },
    },
    Replay {
        cause: "rdma-read-depth",
        on: "path-rate-1g",
        over: Shown {
            words: "128 RDMA reads of 13,000 B, of which the devices allow one",
            show: |r| reads(r, (128, 1), 13_000),
            named: &["rdma-read-depth"],
            disturbed: &[],
        },
        under: Shown {
            words: "RDMA reads, of which the devices allow two",
            show: |r| reads(r, (128, 2), 13_000),
            named: &[],
            disturbed: &[],
        },
    },
    Replay {
        cause: "rdma-one-qp",
        on: "planted-flow-rate",
        over: Shown {
            words: "RDMA that carries twice as much on twice the queue pairs",
            show: |r| tried(r, "more-queue-pairs", 65_536),
            named: &["rdma-one-qp"],
            disturbed: &[],
        },
        under: Shown {
            words: "RDMA that carries twice as much in requests that are inline",
            show: |r| tried(r, "more-inline", 65_536),
            named: &[],
            disturbed: &[],
        },
    },
    Replay {
        cause: "rdma-inline",
        on: "planted-flow-rate",
        over: Shown {
            words: "RDMA requests of 64 B that carry twice as much if they are inline",
            show: |r| tried(r, "more-inline", 64),
            named: &["rdma-inline"],
            disturbed: &[],
        },
        under: Shown {
            words: "RDMA requests of 64 B on twice the queue pairs",
            show: |r| tried(r, "more-reads", 64),
            named: &[],
            disturbed: &[],
        },
    },
    Replay {
        cause: "rdma-mtu",
        on: "path-rate-1g",
        over: Shown {
            words: "RDMA packets of 1024 B on a full wire",
            show: |r| full(r, 1024, 1_040_000_000, None),
            named: &["wire-full", "rdma-mtu"],
            disturbed: &[],
        },
        under: Shown {
            words: "RDMA packets of 4096 B on a full wire",
            show: |r| full(r, 4096, 980_000_000, None),
            named: &["wire-full"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "rdma-one-port",
        on: "path-rate-1g",
        over: Shown {
            words: "a full RDMA port beside another one of the same network",
            show: |r| full(r, 4096, 980_000_000, Some(0)),
            named: &["wire-full", "rdma-one-port"],
            disturbed: &[],
        },
        under: Shown {
            words: "a full RDMA port beside one of another network",
            show: |r| full(r, 4096, 980_000_000, Some(1)),
            named: &["wire-full"],
            disturbed: &[],
        },
    },
];

/// An RDMA port of this speed in bits per second.
fn rated(speed: u64) -> RdmaEnd {
    RdmaEnd {
        addressing: Addressing::RoceV2,
        gid_index: Some(3),
        gid: "::ffff:10.9.0.1".parse().ok(),
        netdev: Some(Netdev {
            name: "roce0".to_owned(),
            speed: Some(Rate(speed)),
            mtu: Some(4200),
        }),
        mtu: 4096,
        mtu_own: 4096,
        mtu_most: 4096,
        polls: true,
        ..port()
    }
}

/// All requests carry this many bytes.
fn sized(record: &mut Record, size: u64) {
    for end in record.sets.iter_mut().flat_map(|set| &mut set.ends) {
        (end.write_size, end.read_size) = (size, size);
    }
}

/// RDMA reads over 10 Gb/s, with `depth` of them in flight; the devices allow `allowed`.
fn reads(record: &mut Record, (depth, allowed): (u64, u32), size: u64) {
    record.trials.clear();
    let end = RdmaEnd { reads_out: allowed, ..rated(10_000_000_000) };
    carried(record, &end, "read", NOTHING);
    for set in &mut record.sets {
        let depth = Setting::Number(depth);
        set.plan.knobs.options.set(DEPTH.key, depth);
    }
    sized(record, size);
}

/// RDMA writes of this size over 10 Gb/s, none of them inline. The record's trial becomes one of this kind.
fn tried(record: &mut Record, kind: &str, size: u64) {
    record.trials.retain(|trial| trial.kind == "more-streams");
    for trial in &mut record.trials {
        kind.clone_into(&mut trial.kind);
    }
    carried(record, &rated(10_000_000_000), "write", NOTHING);
    for set in &mut record.sets {
        let none = Setting::Number(0);
        set.plan.knobs.options.set(INLINE.key, none);
    }
    sized(record, size);
}

/// Large RDMA writes over a port of this speed. With `other` the hosts have a second port; its value is the third
/// number of that port's network, 0 for the network of the far end's address.
fn full(record: &mut Record, mtu: u32, speed: u64, other: Option<u8>) {
    record.trials.clear();
    let mut end = RdmaEnd { mtu, mtu_own: mtu, ..rated(speed) };
    if other.is_some() {
        end.others.push(OtherPort {
            device: "mlx5_1".to_owned(),
            port: 1,
            netdev: "roce1".to_owned(),
            rate: None,
            pci: String::new(),
        });
    }
    carried(record, &end, "write", NOTHING);
    sized(record, 1 << 20);
    for host in &mut record.hosts {
        let route = host.facts.route.get_or_insert_with(Route::default);
        route.peer = "10.9.0.9".parse().ok();
        route.others = other
            .map(|third| Other {
                name: "roce1".to_owned(),
                speed: None,
                networks: vec![([10, 9, third, 7].into(), 24)],
            })
            .into_iter()
            .collect();
    }
}
