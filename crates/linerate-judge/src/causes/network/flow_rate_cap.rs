//! The path limits each stream to one rate, so more streams carry more in total.

use crate::causes::network::ack_way::held_by_network;
use crate::causes::network::held::{of_each_stream, scales};
use crate::causes::network::path_reordering;
use crate::causes::predict::{around, bystander};
use crate::causes::prelude::*;
use crate::causes::rerun;
use crate::causes::tcp::congestion_control::clamped;
use crate::causes::udp::datagrams::{self, on_the_way};
use crate::model::DirectionModel;
use crate::signs::lossy::{lost, lost_in_words, of_a_rate, of_other_congestion, only_dropped};

/// Relative distance from a multiple of the single rate, up to which the streams count as carrying that rate each.
const WITHIN: f64 = 0.12;

/// Ratio of numbers of streams that proves a rate for each stream, if no other cause is left.
const MANY: f64 = 4.0;

/// Largest relative variation of a stream's goodput at which one rate may limit it; a queue or a stolen CPU causes
/// more.
const SURE: f64 = 0.3;

/// Least share of the single rate that each of many streams must carry.
const EACH: f64 = 0.75;

pub(crate) static CAUSE: Cause = Cause {
    id: "flow-rate-cap",
    name: "each connection is limited to a rate",
    needs: &[Feature::Stack],
    stage: Stage::Net,
    decided_by: &[Factor::MoreStreams],
    page: include_str!("../pages/flow-rate-cap.md"),
    check,
    is_last,
    predict,
    predict_loss: |model, trial| of_a_rate(model, trial),
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    if let Some(answer) = of_datagrams(model, direction) {
        return answer;
    }
    let held = held_by_network(model, direction)?;
    if let Some(stood) = clamped(model, direction) {
        return Err(clear(stood));
    }
    if let Some(late) = path_reordering::alone(model, direction) {
        return Err(clear(late));
    }
    if let Some((streams, gain)) = too_few(model, direction) {
        return Err(clear(format!(
            "{streams} streams carried only {gain:.2} times as much: they share one rate, and \
             traffic above it is dropped"
        )));
    }
    let mut evidence = vec![held.why.clone()];
    let lossy = lost(held.load);
    evidence.extend(lossy.map(|share| lost_in_words(held.load, share)));
    let scaled = model.direction(direction).and_then(scales);
    // One short measurement with more streams is no experiment: a rate limit for each stream stays a rival until a
    // trial separates it from a rate limit that all streams share.
    let many = many(model, direction).filter(|(n, _)| scaled.is_none_or(|(two, _)| *n > two));
    let looks = scaled.into_iter().chain(many);
    evidence.extend(looks.map(|(n, gain)| format!("{n} streams carried {gain:.2} times as much")));
    Ok(Finding::at(Place::Path, held.share / 2.0 * of_each_stream(model, direction), evidence))
}

fn is_last(model: &Model, direction: Direction) -> bool {
    let doubt = model.direction(direction).and_then(|d| d.base.doubt());
    many(model, direction).is_some() && doubt.is_some_and(|doubt| doubt <= SURE)
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        Factor::OtherCongestion => {
            let load = &model.direction(trial.direction)?.base;
            Some(of_other_congestion(model, load))
        }
        Factor::MoreStreams | Factor::Crowd => Some(around(trial.stream_ratio(), WITHIN)),
        _ => bystander(model, trial),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let knee = model.direction(direction).map(|d| (d.knee(), &d.base));
    knee.filter(|(knee, base)| knee.streams > base.streams)
        .map(|(knee, base)| {
            Advice::new(format!(
                "use {} streams (your own program: several connections)",
                knee.streams
            ))
            .on(Side::Near, rerun(model, &format!(" --streams {}", knee.streams)))
            .gain(Some(knee.goodput.mean / base.goodput.mean))
        })
        .into_iter()
        .collect()
}

/// The load with the most streams, and the ratio of its goodput to the base load's: if it has at least `MANY` times as
/// many streams and each of them got its full rate.
fn many(model: &Model, direction: Direction) -> Option<(u32, f64)> {
    let dir = model.direction(direction)?;
    let most = dir.sweep.iter().max_by_key(|more| more.streams)?;
    let times = times(dir, most);
    let gain = most.goodput.mean / dir.base.goodput.mean;
    let each = (1.0 - WITHIN..=1.0 + WITHIN).contains(&(gain / times));
    (times >= MANY && each).then_some((most.streams, gain))
}

/// The result for a load of datagrams, which fill whatever rate there is; `None` for a load of connections.
fn of_datagrams(model: &Model, direction: Direction) -> Option<Answer> {
    let dir = model.direction(direction)?;
    let reported = dir.base.datagrams.as_ref()?;
    let way = match on_the_way(model, direction, (&dir.base, reported)) {
        Ok(way) => way,
        Err(answer) => return Some(Err(answer)),
    };
    if dir.base.silent().is_some() {
        return Some(Err(clear("no datagram arrived: that is no rate")));
    }
    let few = |more: &&Load| more.over(&dir.base).high < times(dir, more) * EACH;
    let scaled = |more: &Load| {
        let gain = more.over(&dir.base).mid;
        format!("{} streams carried {gain:.2} times as much", more.streams)
    };
    if let Some(more) = dir.sweep.iter().find(few) {
        return Some(Err(clear(scaled(more))));
    }
    let evidence = std::iter::once(datagrams::words(reported, way, "lost on the path"))
        .chain(dir.sweep.first().map(scaled))
        .collect();
    Some(Ok(Finding::at(Place::Path, way / 2.0, evidence)))
}

/// A load with at least `MANY` times as many streams, whose goodput is well below that multiple. One stream may use so
/// little of a rate that drops excess packets that two streams carry twice as much. If many streams got their full rate
/// each, a limit shared by even more streams is a different one.
fn too_few(model: &Model, direction: Direction) -> Option<(u32, f64)> {
    let dir = model.direction(direction)?;
    let many = |more: &&Load| times(dir, more) >= MANY;
    let few = |more: &&Load| more.over(&dir.base).high < times(dir, more) * EACH;
    let whole = |more: &Load| more.over(&dir.base).mid >= times(dir, more) * (1.0 - WITHIN);
    if dir.sweep.iter().filter(many).any(whole) {
        return None;
    }
    let more = dir.sweep.iter().filter(many).find(few)?;
    only_dropped(model, &dir.base).then(|| (more.streams, more.over(&dir.base).mid))
}

/// Ratio of the number of streams in `more` to that in the base load.
fn times(dir: &DirectionModel, more: &Load) -> f64 {
    f64::from(more.streams) / f64::from(dir.base.streams.max(1))
}
