//! Finds the options that differ between two plans, and the figures that cannot be compared then.

use std::collections::BTreeSet;

use super::Change;
use linerate_plan::path::Direction;
use linerate_plan::transport::{Options, Setting};
use linerate_plan::{Knobs, Plan, Receive};
use linerate_units::{Bytes, Rate};

/// An option that has another value in the second plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanChange {
    /// The option, with both values.
    pub change: Change,
    /// Whether the option changes the load: figures under different loads show nothing about a change of the path.
    pub load: bool,
    /// Whether the option also changes the round trips that are measured on the idle path.
    pub idle: bool,
}

/// The options that differ between two plans.
pub(super) fn changes(before: &Plan, after: &Plan) -> Vec<PlanChange> {
    let change_of =
        |what: &str, of: &dyn Fn(&Plan) -> String| Change::of(what, of(before), of(after));
    let engine = change_of("engine", &|p| p.engine.clone());
    let budget = [
        change_of("peer", &|p| p.peer.clone().unwrap_or_else(|| "none".into())),
        change_of("directions", &|p| names(&p.directions)),
        change_of("time", &|p| p.time.to_string()),
        change_of("more streams tried", &|p| yes(p.sweep)),
        change_of("trials", &|p| yes(p.trials)),
    ];
    let plan = |load, idle| move |change| PlanChange { change, load, idle };
    let knobs = knobs(&before.knobs, &after.knobs);
    let knobs = knobs.into_iter().flatten().map(plan(true, false));
    let engine = engine.into_iter().map(plan(true, true));
    // Options of a transport apply to all its sets, so they change the idle round trips too.
    let options = options(&before.knobs.options, &after.knobs.options);
    let options = options.into_iter().map(plan(true, true));
    let rest = budget.into_iter().flatten().map(plan(false, false));
    engine.chain(knobs).chain(options).chain(rest).collect()
}

/// The settings of connections that differ between two plans. Settings that only trials change are left out: every plan
/// has the same.
fn knobs(before: &Knobs, after: &Knobs) -> [Option<Change>; 11] {
    let change_of =
        |what: &str, of: &dyn Fn(&Knobs) -> String| Change::of(what, of(before), of(after));
    [
        change_of("streams", &|k| k.streams.to_string()),
        change_of("write size", &|k| size(Some(k.write_size))),
        change_of("read size", &|k| size(Some(k.read_size))),
        change_of("TCP_NODELAY", &|k| yes(k.nodelay)),
        change_of("send buffer", &|k| size(k.send_buffer)),
        change_of("receive buffer", &|k| size(k.recv_buffer)),
        change_of("MSS", &|k| k.mss.map_or_else(open, |m| m.to_string())),
        change_of("pacing", &|k| pace(k.pacing)),
        change_of("congestion control", &|k| k.congestion.clone().unwrap_or_else(open)),
        change_of("send", &|k| k.copy.name().to_owned()),
        change_of("receive", &|k| {
            match k.receive {
                Receive::Copy => "copy",
                Receive::Discard => "discard",
            }
            .to_owned()
        }),
    ]
}

/// The options of a transport that differ. An option counts if either plan sets it.
fn options(before: &Options, after: &Options) -> Vec<Change> {
    let both = before.iter().chain(after.iter());
    let keys: BTreeSet<&str> = both.map(|(key, _)| key).collect();
    let value_of = |of: &Options, key| of.get(key).map_or_else(open, Setting::to_string);
    let change = |key| Change::of(key, value_of(before, key), value_of(after, key));
    keys.into_iter().filter_map(change).collect()
}

/// The word for a setting that the plan leaves to the ends and the kernel.
fn open() -> String {
    "left open".to_owned()
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

fn size(bytes: Option<Bytes>) -> String {
    let requested = bytes.filter(|b| *b != Bytes(0));
    requested.map_or_else(open, |b| b.to_string())
}

fn pace(rate: Option<Rate>) -> String {
    rate.map_or_else(|| "none".to_owned(), |r| r.to_string())
}

fn names(directions: &[Direction]) -> String {
    let names: Vec<&str> = directions.iter().map(|d| d.name()).collect();
    names.join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_plan::Handover;
    use linerate_units::Nanos;

    fn plan() -> Plan {
        Plan {
            engine: "tcp".into(),
            peer: Some("brook".into()),
            reach: Vec::new(),
            knobs: Knobs::default(),
            directions: Direction::ALL.to_vec(),
            time: Nanos::from_secs(60),
            sweep: true,
            trials: true,
        }
    }

    fn change_of(change: impl FnOnce(&mut Plan)) -> Vec<(String, bool, bool)> {
        let (before, mut after) = (plan(), plan());
        change(&mut after);
        let change_of = |p: PlanChange| {
            let Change { what, before, after } = p.change;
            (format!("{what}: {before} -> {after}"), p.load, p.idle)
        };
        changes(&before, &after).into_iter().map(change_of).collect()
    }

    #[test]
    fn another_load_is_told_from_another_budget() {
        assert_eq!(change_of(|_| ()), []);
        let streams = change_of(|p| p.knobs.streams = 4);
        assert_eq!(streams, [("streams: 1 -> 4".into(), true, false)]);
        let buffer = change_of(|p| p.knobs.send_buffer = Some(Bytes(65_536)));
        let words = "send buffer: left open -> 64 KiB".to_owned();
        assert_eq!(buffer, [(words, true, false)]);
        let copy = change_of(|p| p.knobs.copy = Handover::Zerocopy);
        assert_eq!(copy, [("send: copy -> zerocopy".into(), true, false)]);
        let time = change_of(|p| p.time = Nanos::from_secs(20));
        assert_eq!(time, [("time: 60 s -> 20 s".into(), false, false)]);
        let peer = change_of(|p| p.peer = None);
        assert_eq!(peer, [("peer: brook -> none".into(), false, false)]);
        let option = change_of(|p| p.knobs.options.set("access", Setting::Word("read".into())));
        let words = "access: left open -> read".to_owned();
        assert_eq!(option, [(words, true, true)]);
        let engine = change_of(|p| p.engine = "sim".into());
        assert_eq!(engine, [("engine: tcp -> sim".into(), true, true)]);
    }
}
