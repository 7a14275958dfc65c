//! RDMA ports and their counters.

use linerate_facts::infiniband::Layer;
use linerate_facts::metric as m;
use linerate_facts::rdma::{Netdev, RdmaEnd};
use linerate_plan::Purpose;
use linerate_plan::path::Side;
use linerate_plan::transport::Setting;
use linerate_plan::transport::rdma::OPERATION;
use linerate_record::{Record, Step};

use super::super::hardware::{column, reads, round_trips, tables};
use super::{Replay, Shown};

pub(super) const REPLAYS: &[Replay] = &[
    Replay {
        cause: "rdma-loss",
        on: "path-rate-1g",
        over: Shown {
            words: "RDMA that misses 600 packets a second, at round trips of 100 us",
            show: |r| loses(r, 600.0),
            named: &["rdma-loss"],
            disturbed: &[],
        },
        under: Shown {
            words: "400 packets",
            show: |r| loses(r, 400.0),
            named: &[],
            disturbed: &[],
        },
    },
    Replay {
        cause: "rdma-receiver-not-ready",
        on: "path-rate-1g",
        over: Shown {
            words: "RDMA whose receiver refuses 100 sends a second",
            show: |r| refuses(r, 100.0),
            named: &["rdma-receiver-not-ready"],
            disturbed: &[],
        },
        under: Shown { words: "50 sends", show: |r| refuses(r, 50.0), named: &[], disturbed: &[] },
    },
    Replay {
        cause: "rdma-link-down",
        on: "path-rate-1g",
        over: Shown {
            words: "RDMA over a link that went down",
            show: |r| goes_down(r, true),
            named: &["rdma-link-down"],
            disturbed: &[],
        },
        under: Shown {
            words: "a link that went down while payload arrived",
            show: |r| goes_down(r, false),
            named: &[],
            disturbed: &[],
        },
    },
];

/// Counters of a port that do not grow while it is healthy.
const HEALTHY: [&str; 4] =
    ["packet_seq_err", "out_of_sequence", "rnr_nak_retry_err", "link_downed"];

/// A port of an RDMA card.
pub(super) fn port() -> RdmaEnd {
    RdmaEnd {
        device: "mlx5_0".to_owned(),
        port: 1,
        layer: Some(Layer::Ethernet),
        netdev: Some(Netdev { name: "eth0".to_owned(), ..Netdev::default() }),
        ..RdmaEnd::default()
    }
}

/// Replaces the run by RDMA sends between two cards; the counter `counted` of a side grows by `per_sec` in a second.
fn by_sends(record: &mut Record, side: Side, counted: &str, per_sec: f64) {
    record.trials.clear();
    carried(record, &port(), "send", (side, counted, per_sec));
}

/// Replaces the run by an RDMA operation between two such ports; the counter `counted` of a side grows by `per_sec` in
/// a second.
pub(super) fn carried(
    record: &mut Record,
    port: &RdmaEnd,
    op: &str,
    (side, counted, per_sec): (Side, &str, f64),
) {
    "rdma".clone_into(&mut record.start.plan.engine);
    for set in &mut record.sets {
        let op = Setting::Word(op.to_owned());
        set.plan.knobs.options.set(OPERATION.key, op);
        for end in &mut set.ends {
            end.rdma = Some(Box::new(port.clone()));
        }
    }
    let of_sockets = ["tcp", "socket"];
    for end in record.steps.iter_mut().flat_map(|step| &mut step.ends) {
        end.tables.retain(|table| !of_sockets.contains(&table.source.as_str()));
    }
    round_trips(record, 100, 100);
    for own in [Side::Near, Side::Far] {
        reads(record, own, (m::RDMA_ACTIVE, "mlx5_0/1"), |_| 1.0);
        for name in HEALTHY {
            let grown = if own == side && name == counted { per_sec } else { 0.0 };
            let subject = format!("mlx5_0/1 {name}");
            reads(record, own, (m::RDMA_COUNT, &subject), |secs| secs * grown);
        }
    }
    // On the idle path no counter grows.
    let idle = |step: &&mut Step| step.plan.purpose == Purpose::IdleLatency;
    let steps = record.steps.iter_mut().filter(idle);
    for table in steps.flat_map(|step| &mut step.ends).flat_map(|end| &mut end.tables) {
        if table.column(m::RDMA_COUNT).is_some() {
            column(table, m::RDMA_COUNT).fill(0);
        }
    }
}

fn loses(record: &mut Record, per_sec: f64) {
    by_sends(record, Side::Near, "packet_seq_err", per_sec);
}

fn refuses(record: &mut Record, per_sec: f64) {
    by_sends(record, Side::Near, "rnr_nak_retry_err", per_sec);
}

/// The far link went down once; if `stops`, nothing was received for half a second.
fn goes_down(record: &mut Record, stops: bool) {
    by_sends(record, Side::Far, "link_downed", 1.0);
    if stops {
        for table in tables(record, Side::Far, "worker") {
            let bytes = column(table, m::WORKER_BYTES);
            let half = bytes.len() / 2;
            let stood = bytes[half];
            let until = (half + 5).min(bytes.len());
            bytes[half..until].fill(stood);
        }
    }
}
