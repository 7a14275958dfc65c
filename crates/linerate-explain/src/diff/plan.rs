//! Differences between two plans, and the figures that they make incomparable.

use std::collections::BTreeSet;

use super::Change;
use linerate_plan::path::Direction;
use linerate_plan::transport::{Options, Setting};
use linerate_plan::{Knobs, Plan, Receive};
use linerate_units::{Bytes, Rate};

/// A setting that two plans request differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanChange {
    /// The option that differs.
    pub change: Change,
    /// Whether the two runs used another load: figures under different loads say nothing about a change of the
    /// path.
    pub load: bool,
    /// Whether other round trips were requested too.
    pub idle: bool,
}

/// The differences of two plans.
pub(super) fn changes(before: &Plan, after: &Plan) -> Vec<PlanChange> {
    let told = |what: &str, of: &dyn Fn(&Plan) -> String| Change::of(what, of(before), of(after));
    let engine = told("engine", &|p| p.engine.clone());
    let budget = [
        told("peer", &|p| p.peer.clone().unwrap_or_else(|| "none".into())),
        told("directions", &|p| names(&p.directions)),
        told("time", &|p| p.time.to_string()),
        told("more streams tried", &|p| yes(p.sweep)),
        told("trials", &|p| yes(p.trials)),
    ];
    let plan = |load, idle| move |change| PlanChange { change, load, idle };
    let knobs = knobs(&before.knobs, &after.knobs);
    let knobs = knobs.into_iter().flatten().map(plan(true, false));
    let engine = engine.into_iter().map(plan(true, true));
    // The options of a transport are the same for all its sets.
    let options = options(&before.knobs.options, &after.knobs.options);
    let options = options.into_iter().map(plan(true, true));
    let rest = budget.into_iter().flatten().map(plan(false, false));
    engine.chain(knobs).chain(options).chain(rest).collect()
}

/// Differences of the settings that connections are made with. Settings that only trials change are the same
/// in all plans.
fn knobs(before: &Knobs, after: &Knobs) -> [Option<Change>; 11] {
    let told = |what: &str, of: &dyn Fn(&Knobs) -> String| Change::of(what, of(before), of(after));
    [
        told("streams", &|k| k.streams.to_string()),
        told("write size", &|k| size(Some(k.write_size))),
        told("read size", &|k| size(Some(k.read_size))),
        told("TCP_NODELAY", &|k| yes(k.nodelay)),
        told("send buffer", &|k| size(k.send_buffer)),
        told("receive buffer", &|k| size(k.recv_buffer)),
        told("MSS", &|k| k.mss.map_or_else(open, |m| m.to_string())),
        told("pacing", &|k| pace(k.pacing)),
        told("congestion control", &|k| k.congestion.clone().unwrap_or_else(open)),
        told("send", &|k| k.copy.name().to_owned()),
        told("receive", &|k| {
            match k.receive {
                Receive::Copy => "copy",
                Receive::Discard => "discard",
            }
            .to_owned()
        }),
    ]
}

/// The options of transports that are set in either plan.
fn options(before: &Options, after: &Options) -> Vec<Change> {
    let both = before.iter().chain(after.iter());
    let keys: BTreeSet<&str> = both.map(|(key, _)| key).collect();
    let told = |of: &Options, key| of.get(key).map_or_else(open, Setting::to_string);
    let change = |key| Change::of(key, told(before, key), told(after, key));
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
    let asked = bytes.filter(|b| *b != Bytes(0));
    asked.map_or_else(open, |b| b.to_string())
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

    fn told(change: impl FnOnce(&mut Plan)) -> Vec<(String, bool, bool)> {
        let (before, mut after) = (plan(), plan());
        change(&mut after);
        let told = |p: PlanChange| {
            let Change { what, before, after } = p.change;
            (format!("{what}: {before} -> {after}"), p.load, p.idle)
        };
        changes(&before, &after).into_iter().map(told).collect()
    }

    #[test]
    fn another_load_is_told_from_another_budget() {
        assert_eq!(told(|_| ()), []);
        let streams = told(|p| p.knobs.streams = 4);
        assert_eq!(streams, [("streams: 1 -> 4".into(), true, false)]);
        let buffer = told(|p| p.knobs.send_buffer = Some(Bytes(65_536)));
        let words = "send buffer: left open -> 64 KiB".to_owned();
        assert_eq!(buffer, [(words, true, false)]);
        let copy = told(|p| p.knobs.copy = Handover::Zerocopy);
        assert_eq!(copy, [("send: copy -> zerocopy".into(), true, false)]);
        let time = told(|p| p.time = Nanos::from_secs(20));
        assert_eq!(time, [("time: 60 s -> 20 s".into(), false, false)]);
        let peer = told(|p| p.peer = None);
        assert_eq!(peer, [("peer: brook -> none".into(), false, false)]);
        let option = told(|p| p.knobs.options.set("access", Setting::Word("read".into())));
        let words = "access: left open -> read".to_owned();
        assert_eq!(option, [(words, true, true)]);
        let engine = told(|p| p.engine = "sim".into());
        assert_eq!(engine, [("engine: tcp -> sim".into(), true, true)]);
    }
}
