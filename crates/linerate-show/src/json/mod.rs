//! The result of a run as JSON: one documented result, not a dump of internal types.
//!
//! The schema is made from `Output`. Keys contain the units; integers stay below 2^53; unknown values are `null`.

mod parts;
mod path;
mod summary;

use linerate_explain::Headline;
use linerate_facts::Gap;
use linerate_facts::advice::Advice;
use linerate_judge::figure::Summary;
use linerate_judge::model::{DirectionModel, Latency, Load, Model};
use linerate_judge::verdict::{Decided, Disturbance, Limit, Unknown, Verdict};
use linerate_plan::Handover;
use linerate_plan::path::{Certainty, Direction, Measure, Side, Stage};
use linerate_record::{Host, Record};
use schemars::JsonSchema;
use serde::Serialize;

use super::refused;
use crate::head::Head;

pub(super) use parts::{
    Acting, CauseId, Goodput, Located, ci, described_elsewhere, ends, exact, integer, one_of, text,
};
pub(super) use summary::{FigureId, FigureOut, ValueOut, figures};

/// One JSON document. Keys contain the units. Unknown values are null.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate run and linerate show")]
pub(super) struct Output<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    /// False if the run was interrupted.
    complete: bool,
    /// Whether both ends run on one machine and share its CPUs.
    same_machine: bool,
    /// Settings of the user that an end refused: the run was made without these settings.
    refused: Vec<Gap>,
    /// The hosts of the run, the near one first.
    hosts: Vec<HostOut<'a>>,
    /// Stages that bytes cross, from the near program to the far one.
    path: Vec<path::PathStageOut>,
    /// Goodput of each direction. Forward is from near to far.
    directions: Directions,
    /// Percentiles of round trips, without and with a load.
    latency: Latencies,
    /// All figures of the run, as a list of one form.
    figures: Vec<FigureOut>,
    verdict: VerdictOut<'a>,
    /// Raw readings, with `--with-record` only. This schema does not describe them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "described_elsewhere")]
    record: Option<&'a Record>,
}

/// Facts of a host.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct HostOut<'a> {
    side: Side,
    /// Host name.
    name: &'a str,
    /// Kernel release.
    kernel: &'a str,
    /// Version of linerate on this host.
    linerate: &'a str,
    /// Model of the processor.
    cpu_model: &'a str,
    /// Number of CPUs that linerate may use.
    cpus: usize,
    /// Number of NUMA nodes. Null if unknown.
    nodes: Option<u32>,
    /// Network port through which the route to the other end leaves. Null if unknown.
    port: Option<PortOut<'a>>,
}

/// A network port.
#[derive(Serialize, JsonSchema)]
struct PortOut<'a> {
    /// Interface name.
    name: &'a str,
    /// Driver. Empty if unknown.
    driver: &'a str,
    /// Link speed. Null if unknown, and for virtual ports, whose speed is nominal.
    speed_bps: Option<u64>,
    /// Maximum transmission unit. Null if unknown.
    mtu_bytes: Option<u32>,
    /// Whether the port has no wire of its own.
    #[serde(rename = "virtual")]
    is_virtual: bool,
}

/// Figures of each direction loaded alone, and of both loaded at once.
#[derive(Serialize, JsonSchema)]
struct Directions {
    /// From near to far. Null if not measured.
    forward: Option<DirectionFigures>,
    /// From far to near. Null if not measured.
    reverse: Option<DirectionFigures>,
    /// Goodput of each direction while both directions were loaded.
    both: Both,
}

/// Goodput of each direction while both directions were loaded.
#[derive(Serialize, JsonSchema)]
struct Both {
    /// From near to far. Null if not measured.
    forward: Option<Goodput>,
    /// From far to near. Null if not measured.
    reverse: Option<Goodput>,
}

/// The figures of one direction.
#[derive(Serialize, JsonSchema)]
struct DirectionFigures {
    #[serde(flatten)]
    goodput: Goodput,
    /// Goodput over the whole load, including the ramp at its start.
    goodput_with_ramp_bps: u64,
    /// Whether a steady part of the load was found.
    steady: bool,
    /// How the sender hands payload to the kernel.
    copy: Handover,
    /// Share of the zerocopy sends that the kernel copied anyway. Null if the kernel reported none.
    #[schemars(range(min = 0, max = 1))]
    copied_share: Option<f64>,
    /// Highest goodput that the known resources allow. Null if unknown.
    ceiling_bps: Option<u64>,
    /// Stage of the path whose ceiling this is. Null if unknown.
    ceiling_stage: Option<Stage>,
    /// Goodput with each number of streams that was tried. The first one is the load that the verdict explains.
    streams: Vec<StreamsOut>,
}

/// Goodput of a load with this number of streams.
#[derive(Serialize, JsonSchema)]
struct StreamsOut {
    /// Number of connections.
    streams: u32,
    #[serde(flatten)]
    goodput: Goodput,
}

/// Percentiles of round trips, without and with a load.
#[derive(Serialize, JsonSchema)]
struct Latencies {
    /// Round trips on the idle path. Null if not measured.
    idle: Option<LatencyOut>,
    /// Round trips while one direction was loaded.
    loaded: Loaded,
}

/// Round trips while one direction was loaded.
#[derive(Serialize, JsonSchema)]
struct Loaded {
    /// Load from near to far. Null if not measured.
    forward: Option<LatencyOut>,
    /// Load from far to near. Null if not measured.
    reverse: Option<LatencyOut>,
}

/// Percentiles of round trips.
#[derive(Serialize, JsonSchema)]
pub(super) struct LatencyOut {
    /// Median round trip. Null if there are too few samples.
    p50_ns: Option<u64>,
    /// Round trip that 90 % of the round trips do not exceed. Null if there are too few samples.
    p90_ns: Option<u64>,
    /// Round trip that 99 % of the round trips do not exceed. Null if there are too few samples.
    p99_ns: Option<u64>,
    /// Round trip that 99.9 % of the round trips do not exceed. Null if there are too few samples.
    p99_9_ns: Option<u64>,
    /// Number of round trips that were timed.
    samples: u64,
}

/// The verdict: limits of the path, disturbances and unknown facts.
#[derive(Serialize, JsonSchema)]
struct VerdictOut<'a> {
    /// What limits the path, in reading order: goodput before latency; a direction with less than half of the
    /// goodput of the other one before the other; proved limits before supported ones.
    limits: Vec<LimitOut<'a>>,
    /// What disturbed the measurement and was not found to limit the path.
    disturbances: Vec<DisturbanceOut<'a>>,
    /// Limits that are expected once the first ones are removed.
    next: Vec<LimitOut<'a>>,
    /// Missing readings or trials that prevent an answer, or a part of it.
    unknown: &'a [Unknown],
}

/// A disturbance: it took a part of the measurement and was not found to limit the path.
#[derive(Serialize, JsonSchema)]
struct DisturbanceOut<'a> {
    #[serde(flatten)]
    located: Located,
    /// Share of the time, or of the port's traffic, that the disturbance used. Null if unknown.
    #[schemars(range(min = 0, max = 1))]
    share: Option<f64>,
    /// Estimated goodput without the disturbance, divided by the measured goodput. Null if unknown.
    #[schemars(range(min = 1))]
    gain_about: Option<f64>,
    /// Readings that speak for the disturbance, with numbers.
    evidence: &'a [String],
    advice: &'a [Advice],
}

/// A limit of one direction.
#[derive(Serialize, JsonSchema)]
struct LimitOut<'a> {
    metric: Measure,
    #[serde(flatten)]
    located: Located,
    certainty: Certainty,
    /// Readings that speak for the limit, with numbers.
    evidence: &'a [String],
    /// The trial that proved the limit. Null if there was none.
    trial: Option<TrialOut<'a>>,
    advice: &'a [Advice],
}

/// A trial that proved a limit. Effects are ratios: the figure after the change divided by the figure before.
#[derive(Serialize, JsonSchema)]
struct TrialOut<'a> {
    /// Number of the trial in the record.
    id: u32,
    /// Kind of the trial.
    kind: &'static str,
    /// What the trial changed, in words.
    words: &'a str,
    /// Goodput after the change divided by goodput before.
    effect: f64,
    /// 95 % interval of `effect`.
    effect_ci: [f64; 2],
    /// Share of retransmitted bytes or lost datagrams after the change, divided by the share before. Null if this
    /// did not decide the trial.
    loss: Option<f64>,
    /// 95 % interval of `loss`.
    loss_ci: Option<[f64; 2]>,
    /// Median round trip under load after the change, divided by that before. Null if this did not decide the trial.
    latency: Option<f64>,
    /// 95 % interval of `latency`.
    latency_ci: Option<[f64; 2]>,
    /// Number of slices that were measured.
    slices: u32,
    /// Causes that the effect of the trial excludes.
    #[schemars(with = "Vec<CauseId>")]
    excluded: &'a [&'static str],
}

/// The result as one JSON document, with a line feed at its end. `with_record` adds the raw readings.
pub fn verdict(
    record: &Record,
    model: &Model,
    verdict: &Verdict,
    with_record: bool,
) -> serde_json::Result<String> {
    text(&output(record, model, verdict, with_record))
}

/// The content of the document, also for use as a part of another document.
pub(super) fn output<'a>(
    record: &'a Record,
    model: &'a Model,
    verdict: &'a Verdict,
    with_record: bool,
) -> Output<'a> {
    Output {
        head: Head::new(Headline::of_run(model, verdict).map(|one| one.of_part(model.complete)))
            .by(&record.start.linerate),
        complete: model.complete,
        same_machine: model.same_machine,
        refused: refused::of_base(record),
        hosts: model.hosts.iter().map(host).collect(),
        path: path::stages(model),
        directions: directions(model),
        latency: latencies(model),
        figures: figures(&Summary::of(record, model)),
        verdict: VerdictOut {
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
        side: host.side,
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
        found.map(|(_, estimate)| estimate.into())
    };
    Directions {
        forward: one(Direction::Forward),
        reverse: one(Direction::Reverse),
        both: Both { forward: both(Direction::Forward), reverse: both(Direction::Reverse) },
    }
}

fn direction(direction: &DirectionModel) -> DirectionFigures {
    let base = &direction.base;
    DirectionFigures {
        goodput: (&base.goodput).into(),
        goodput_with_ramp_bps: integer(base.goodput_with_ramp),
        steady: base.steady,
        copy: base.knobs.copy,
        copied_share: base.copied,
        ceiling_bps: direction.ceiling().map(|c| exact(c.rate.0)),
        ceiling_stage: direction.ceiling().map(|c| c.stage),
        streams: std::iter::once(base).chain(&direction.sweep).map(streams).collect(),
    }
}

fn streams(load: &Load) -> StreamsOut {
    StreamsOut { streams: load.streams, goodput: (&load.goodput).into() }
}

fn latencies(model: &Model) -> Latencies {
    let loaded = |d| model.direction(d).and_then(|m| m.base.latency.as_ref()).map(latency);
    Latencies {
        idle: model.idle.as_ref().map(latency),
        loaded: Loaded { forward: loaded(Direction::Forward), reverse: loaded(Direction::Reverse) },
    }
}

pub(super) fn latency(latency: &Latency) -> LatencyOut {
    let at = |p| latency.percentile(p).map(|v| exact(v.0));
    LatencyOut {
        p50_ns: at(50.0),
        p90_ns: at(90.0),
        p99_ns: at(99.0),
        p99_9_ns: at(99.9),
        samples: latency.samples,
    }
}

fn disturbance(disturbance: &Disturbance) -> DisturbanceOut<'_> {
    DisturbanceOut {
        located: disturbance.into(),
        share: disturbance.share,
        gain_about: disturbance.gain(),
        evidence: &disturbance.evidence,
        advice: &disturbance.advice,
    }
}

fn limit(limit: &Limit) -> LimitOut<'_> {
    LimitOut {
        metric: limit.metric,
        located: limit.into(),
        certainty: limit.certainty,
        evidence: &limit.evidence,
        trial: limit.trial.as_ref().map(trial),
        advice: &limit.advice,
    }
}

fn trial(trial: &Decided) -> TrialOut<'_> {
    TrialOut {
        id: trial.id,
        kind: trial.kind,
        words: trial.words,
        effect: trial.effect.mid,
        effect_ci: ends(trial.effect),
        loss: trial.loss.map(|l| l.mid),
        loss_ci: trial.loss.map(ends),
        latency: trial.latency.map(|l| l.mid),
        latency_ci: trial.latency.map(ends),
        slices: trial.slices,
        excluded: &trial.excluded,
    }
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
                fits("run", &output(&result, with_record));
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
            ("/headline/certainty", Value::from("likely")),
            ("/headline/stands", Value::Null),
        ];
        refuses("run", &good, wrong, "");
        let disturbed = output(&sample::disturbed(), false);
        let wrong = [
            ("/verdict/disturbances/0/gain_about", Value::from(0.9)),
            ("/verdict/disturbances/0/share", Value::from(1.1)),
        ];
        refuses("run", &disturbed, wrong, "");
    }

    #[test]
    fn the_headline_is_the_unknown_of_a_far_slower_direction_else_the_first_limit() {
        let headline = |result: &sample::Result| {
            let document = output(result, false);
            let headline = &document["headline"];
            let of = |key: &str| headline[key].as_str().map(str::to_owned);
            (of("stands"), of("cause"), of("direction"), of("certainty"))
        };
        let [forward, unknown, limit, window, proved] =
            ["forward", "unknown", "limit", "receive-window", "proved"]
                .map(|text| Some(text.to_owned()));
        assert_eq!(headline(&sample::disturbed()), (unknown, None, forward.clone(), None));
        assert_eq!(headline(&sample::limited()), (limit, window, forward, proved));
        assert_eq!(headline(&sample::healthy()).0.as_deref(), Some("healthy"));
    }

    #[test]
    fn golden_of_a_limited_path() {
        let (record, model, judged) = sample::limited();
        insta::assert_snapshot!("limited_json", verdict(&record, &model, &judged, false).unwrap());
    }

    #[test]
    fn integers_stay_exact_and_nothing_is_negative() {
        assert_eq!(integer(-1.0), 0);
        assert_eq!(integer(1e300), 9_007_199_254_740_991);
        assert_eq!(integer(f64::NAN), 0);
        assert_eq!(exact(u64::MAX), 9_007_199_254_740_991);
        assert_eq!(exact(9_007_199_254_740_990), 9_007_199_254_740_990);
    }
}
