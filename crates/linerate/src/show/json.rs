//! The verdict for programs: one documented result, not a dump of internal types.
//!
//! Its schema is `schema/run.schema.json`. Units stand in the keys; integers stay below 2^53; what
//! is unknown is `null`.

mod path;

use linerate_core::causes::Advice;
use linerate_core::model::{DirectionModel, Estimate, Latency, Load, Model};
use linerate_core::path::{Direction, Measure};
use linerate_core::record::{Host, Record};
use linerate_core::stats::Interval;
use linerate_core::verdict::{Decided, Disturbance, Entry, Limit, Unknown, Verdict, headline};
use serde::Serialize;

/// Version of the result; raised when a key changes its meaning or goes away.
pub const FORMAT: u32 = 1;

/// The published schema of the result of `run` and `show`.
pub const SCHEMA: &str = include_str!("../../schema/run.schema.json");

/// Integers in JSON are exact up to here.
const EXACT: f64 = 9_007_199_254_740_991.0;

#[derive(Serialize)]
pub(super) struct Output<'a> {
    format: u32,
    linerate: &'a str,
    complete: bool,
    same_machine: bool,
    hosts: Vec<HostOut<'a>>,
    path: Vec<path::StageOut>,
    directions: Directions,
    latency: Latencies,
    verdict: VerdictOut<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'a Record>,
}

#[derive(Serialize)]
pub(super) struct HostOut<'a> {
    side: &'static str,
    name: &'a str,
    kernel: &'a str,
    linerate: &'a str,
    cpu_model: &'a str,
    cpus: usize,
    nodes: Option<u32>,
    port: Option<PortOut<'a>>,
}

#[derive(Serialize)]
struct PortOut<'a> {
    name: &'a str,
    driver: &'a str,
    /// Null for virtual ports too: their speed is nominal.
    speed_bps: Option<u64>,
    mtu_bytes: Option<u32>,
    #[serde(rename = "virtual")]
    is_virtual: bool,
}

#[derive(Serialize)]
struct Directions {
    forward: Option<DirectionOut>,
    reverse: Option<DirectionOut>,
    both: Both,
}

#[derive(Serialize)]
struct Both {
    forward: Option<Goodput>,
    reverse: Option<Goodput>,
}

#[derive(Serialize)]
struct Goodput {
    goodput_bps: u64,
    goodput_ci_bps: Option<[u64; 2]>,
}

#[derive(Serialize)]
struct DirectionOut {
    goodput_bps: u64,
    goodput_ci_bps: Option<[u64; 2]>,
    goodput_with_ramp_bps: u64,
    steady: bool,
    copy: &'static str,
    copied_share: Option<f64>,
    ceiling_bps: Option<u64>,
    ceiling_stage: Option<&'static str>,
    streams: Vec<StreamsOut>,
}

/// A load with a number of streams; the first one is the load that the verdict explains.
#[derive(Serialize)]
struct StreamsOut {
    streams: u32,
    goodput_bps: u64,
    goodput_ci_bps: Option<[u64; 2]>,
}

#[derive(Serialize)]
struct Latencies {
    idle: Option<LatencyOut>,
    loaded: Loaded,
}

#[derive(Serialize)]
struct Loaded {
    forward: Option<LatencyOut>,
    reverse: Option<LatencyOut>,
}

#[derive(Serialize)]
pub(super) struct LatencyOut {
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    p99_9_ns: Option<u64>,
    samples: u64,
}

#[derive(Serialize)]
struct VerdictOut<'a> {
    headline: Option<HeadlineOut>,
    limits: Vec<LimitOut<'a>>,
    disturbances: Vec<DisturbanceOut<'a>>,
    next: Vec<LimitOut<'a>>,
    unknown: &'a [Unknown],
}

/// What the page says first.
#[derive(Serialize)]
pub(super) struct HeadlineOut {
    metric: Measure,
    cause: Option<&'static str>,
    side: Option<&'static str>,
    direction: &'static str,
    certainty: &'static str,
}

#[derive(Serialize)]
struct DisturbanceOut<'a> {
    cause: &'static str,
    stage: &'static str,
    side: &'static str,
    direction: &'static str,
    share: Option<f64>,
    gain_about: Option<f64>,
    evidence: &'a [String],
    advice: &'a [Advice],
}

#[derive(Serialize)]
struct LimitOut<'a> {
    metric: Measure,
    cause: &'static str,
    stage: &'static str,
    side: &'static str,
    direction: &'static str,
    certainty: &'static str,
    evidence: &'a [String],
    trial: Option<TrialOut<'a>>,
    advice: &'a [Advice],
}

#[derive(Serialize)]
struct TrialOut<'a> {
    id: u32,
    kind: &'static str,
    words: &'a str,
    effect: f64,
    effect_ci: [f64; 2],
    loss: Option<f64>,
    loss_ci: Option<[f64; 2]>,
    latency: Option<f64>,
    latency_ci: Option<[f64; 2]>,
    slices: u32,
    excluded: &'a [&'static str],
}

/// The result as one JSON document, with a line feed at its end. `with_record` adds the readings.
pub fn verdict(
    record: &Record,
    model: &Model,
    verdict: &Verdict,
    with_record: bool,
) -> serde_json::Result<String> {
    let output = output(record, model, verdict, with_record);
    let mut text = serde_json::to_string_pretty(&output)?;
    text.push('\n');
    Ok(text)
}

/// The result, for a document of its own or as part of another.
pub(super) fn output<'a>(
    record: &'a Record,
    model: &'a Model,
    verdict: &'a Verdict,
    with_record: bool,
) -> Output<'a> {
    Output {
        format: FORMAT,
        linerate: &record.start.linerate,
        complete: model.complete,
        same_machine: model.same_machine,
        hosts: model.hosts.iter().map(host).collect(),
        path: path::stages(model),
        directions: directions(model),
        latency: latencies(model),
        verdict: VerdictOut {
            headline: headline(model, verdict).map(first),
            limits: verdict.limits.iter().map(limit).collect(),
            disturbances: verdict.disturbances.iter().map(disturbance).collect(),
            next: verdict.next.iter().map(limit).collect(),
            unknown: &verdict.unknown,
        },
        record: with_record.then_some(record),
    }
}

pub(super) fn host(host: &Host) -> HostOut<'_> {
    let facts = &host.facts;
    HostOut {
        side: host.side.name(),
        name: &facts.name,
        kernel: &facts.kernel,
        linerate: &facts.linerate,
        cpu_model: &facts.cpu_model,
        cpus: facts.cpus.len(),
        nodes: (facts.nodes > 0).then_some(facts.nodes),
        port: facts.port.as_ref().map(|port| PortOut {
            name: &port.name,
            driver: &port.driver,
            speed_bps: port
                .speed_mbps
                .filter(|_| !port.is_virtual)
                .map(|mbps| integer(mbps as f64 * 1e6)),
            mtu_bytes: port.mtu,
            is_virtual: port.is_virtual,
        }),
    }
}

fn directions(model: &Model) -> Directions {
    let one = |d| model.direction(d).map(direction);
    let both = |d| {
        let found = model.both.iter().find(|(way, _)| *way == d);
        found.map(|(_, estimate)| Goodput {
            goodput_bps: integer(estimate.mean),
            goodput_ci_bps: ci(estimate),
        })
    };
    Directions {
        forward: one(Direction::Forward),
        reverse: one(Direction::Reverse),
        both: Both {
            forward: both(Direction::Forward),
            reverse: both(Direction::Reverse),
        },
    }
}

fn direction(direction: &DirectionModel) -> DirectionOut {
    let base = &direction.base;
    DirectionOut {
        goodput_bps: integer(base.goodput.mean),
        goodput_ci_bps: ci(&base.goodput),
        goodput_with_ramp_bps: integer(base.goodput_with_ramp),
        steady: base.steady,
        copy: base.knobs.copy.name(),
        copied_share: base.copied,
        ceiling_bps: direction.ceiling().map(|c| integer(c.rate.0 as f64)),
        ceiling_stage: direction.ceiling().map(|c| c.stage.name()),
        streams: std::iter::once(base)
            .chain(&direction.sweep)
            .map(streams)
            .collect(),
    }
}

fn streams(load: &Load) -> StreamsOut {
    StreamsOut {
        streams: load.streams,
        goodput_bps: integer(load.goodput.mean),
        goodput_ci_bps: ci(&load.goodput),
    }
}

fn latencies(model: &Model) -> Latencies {
    let loaded = |d| {
        model
            .direction(d)
            .and_then(|m| m.base.latency.as_ref())
            .map(latency)
    };
    Latencies {
        idle: model.idle.as_ref().map(latency),
        loaded: Loaded {
            forward: loaded(Direction::Forward),
            reverse: loaded(Direction::Reverse),
        },
    }
}

pub(super) fn latency(latency: &Latency) -> LatencyOut {
    let at = |p| latency.percentile(p).map(|v| integer(v.0 as f64));
    LatencyOut {
        p50_ns: at(50.0),
        p90_ns: at(90.0),
        p99_ns: at(99.0),
        p99_9_ns: at(99.9),
        samples: latency.samples,
    }
}

/// The answer to read first.
pub(super) fn first(told: Entry<'_>) -> HeadlineOut {
    match told {
        Entry::Limit(limit) => HeadlineOut {
            metric: limit.metric,
            cause: Some(limit.cause),
            side: Some(limit.side.name()),
            direction: limit.direction.name(),
            certainty: limit.certainty.name(),
        },
        Entry::Unknown(direction) => HeadlineOut {
            metric: Measure::Goodput,
            cause: None,
            side: None,
            direction: direction.name(),
            certainty: "unknown",
        },
    }
}

fn disturbance(disturbance: &Disturbance) -> DisturbanceOut<'_> {
    DisturbanceOut {
        cause: disturbance.cause,
        stage: disturbance.stage.name(),
        side: disturbance.side.name(),
        direction: disturbance.direction.name(),
        share: disturbance.share,
        gain_about: disturbance.gain(),
        evidence: &disturbance.evidence,
        advice: &disturbance.advice,
    }
}

fn limit(limit: &Limit) -> LimitOut<'_> {
    LimitOut {
        metric: limit.metric,
        cause: limit.cause,
        stage: limit.stage.name(),
        side: limit.side.name(),
        direction: limit.direction.name(),
        certainty: limit.certainty.name(),
        evidence: &limit.evidence,
        trial: limit.trial.as_ref().map(trial),
        advice: &limit.advice,
    }
}

fn trial(trial: &Decided) -> TrialOut<'_> {
    let Interval { low, mid, high } = trial.effect;
    TrialOut {
        id: trial.id,
        kind: trial.kind,
        words: trial.words,
        effect: mid,
        effect_ci: [low, high],
        loss: trial.loss.map(|l| l.mid),
        loss_ci: trial.loss.map(|l| [l.low, l.high]),
        latency: trial.latency.map(|l| l.mid),
        latency_ci: trial.latency.map(|l| [l.low, l.high]),
        slices: trial.slices,
        excluded: &trial.excluded,
    }
}

pub(super) fn ci(estimate: &Estimate) -> Option<[u64; 2]> {
    estimate.interval.map(|i| [integer(i.low), integer(i.high)])
}

/// A whole number that every JSON reader keeps; negative values, as of an interval's end, are 0.
pub(super) fn integer(value: f64) -> u64 {
    value.clamp(0.0, EXACT) as u64
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::sample;
    use super::super::schema::{fits, refuses};
    use super::*;

    fn output((record, model, judged): &sample::Result, with_record: bool) -> Value {
        let text = verdict(record, model, judged, with_record).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn every_result_fits_the_published_schema() {
        for result in [
            sample::healthy(),
            sample::limited(),
            sample::unknowing(),
            sample::interrupted(),
            sample::queued(),
            sample::disturbed(),
        ] {
            for with_record in [false, true] {
                fits(SCHEMA, &output(&result, with_record));
            }
        }
    }

    #[test]
    fn the_schema_refuses_what_the_document_does_not_promise() {
        let good = output(&sample::limited(), false);
        let wrong = [
            ("/directions/forward/goodput_bps", Value::from(1.5)),
            ("/directions/forward/goodput_bps", Value::Null),
            ("/verdict/limits/0/certainty", Value::from("likely")),
            ("/verdict/limits/0/side", Value::from("net")),
            ("/latency/idle/p50_ns", Value::from(-1)),
            ("/complete", Value::Null),
            ("/verdict/headline/certainty", Value::from("likely")),
            ("/verdict/headline/direction", Value::Null),
        ];
        refuses(SCHEMA, &good, wrong, "");
        let disturbed = output(&sample::disturbed(), false);
        let wrong = [
            ("/verdict/disturbances/0/gain_about", Value::from(0.9)),
            ("/verdict/disturbances/0/share", Value::from(1.1)),
        ];
        refuses(SCHEMA, &disturbed, wrong, "");
    }

    #[test]
    fn the_headline_is_the_unknown_of_a_far_slower_direction_else_the_first_limit() {
        let headline = |result: &sample::Result| {
            let document = output(result, false);
            let headline = &document["verdict"]["headline"];
            let of = |key: &str| headline[key].as_str().map(str::to_owned);
            (of("cause"), of("direction"), of("certainty"))
        };
        let told = |cause: Option<&str>, direction: &str, certainty: &str| {
            let owned = |text: &str| Some(text.to_owned());
            (cause.and_then(owned), owned(direction), owned(certainty))
        };
        let unknown = told(None, "forward", "unknown");
        assert_eq!(headline(&sample::disturbed()), unknown);
        let window = told(Some("receive-window"), "forward", "proved");
        assert_eq!(headline(&sample::limited()), window);
    }

    #[test]
    fn golden_of_a_limited_path() {
        let (record, model, judged) = sample::limited();
        insta::assert_snapshot!(
            "limited_json",
            verdict(&record, &model, &judged, false).unwrap()
        );
    }

    #[test]
    fn integers_stay_exact_and_nothing_is_negative() {
        assert_eq!(integer(-1.0), 0);
        assert_eq!(integer(1e300), 9_007_199_254_740_991);
        assert_eq!(integer(f64::NAN), 0);
    }
}
