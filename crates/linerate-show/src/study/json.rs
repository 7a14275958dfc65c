//! A study, for programs.
//!
//! The schema of the document is made from `Output`. Units stand in the keys; integers stay below 2^53; unknown values are
//! `null`.

use linerate_ceiling::fingerprint::fit;
use linerate_facts::Gap;
use linerate_judge::figure::{Entry, Figure, Spread, Subject};
use linerate_judge::model::{Cost, Fall, Knee, same_machine};
use linerate_judge::study::Point;
use linerate_judge::verdict::{self, Disturbance};
use linerate_plan::Handover;
use linerate_plan::path::{Direction, Measure};
use linerate_plan::study::Axis;
use linerate_plan::transport::rdma::{DEPTH, QUEUE_PAIRS};
use linerate_plan::transport::{Options, Swept};
use linerate_record::Record;
use linerate_units::stats::FEWEST;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::super::bw::own::broken;
use super::super::fitted::{FitOut, TimerOut, fit_out, timer_out};
use super::super::json::{self as run, FigureId, Located, ValueOut, ends, exact, text};
use super::super::lat;
use super::runs::{Answer, answers, disturbances, limit_of, spreads};
use super::{Found, Loads, Part, Sizes, Study, agreement, layers};
use crate::head::Head;

/// One JSON document: one or two factors varied, and what was measured at each of their values. Keys contain the units.
/// Unknown values are null. This host is near, the other one is far.
#[derive(Serialize, JsonSchema)]
#[schemars(
    title = "Result of a study: several values of a factor, layers of a path, runs of one plan"
)]
pub(crate) struct Output<'a> {
    #[serde(flatten)]
    head: Head<'static>,
    /// The far end in the form that the user typed. Null if there is none.
    target: Option<&'a str>,
    /// False if a part is lacking or not complete.
    complete: bool,
    /// What is varied: from part to part, then within each part.
    #[schemars(length(min = 1, max = 2))]
    axes: &'a [Axis],
    /// The points, in order.
    points: Vec<PointOut>,
    /// The measurements that the points are of, in order.
    parts: Vec<PartOut<'a>>,
    /// Runs of one plan together. Null for other studies.
    together: Option<Together>,
}

/// A value of each axis, and what was measured there.
#[derive(Serialize, JsonSchema)]
struct PointOut {
    /// The label of its value of each axis. Those within a part are missing if the whole part was not measured.
    values: Vec<String>,
    /// Rounds, round trips or runs that were measured.
    samples: u64,
    /// Messages that were sent in the measured time and never answered. They are no samples. Null if none can be lost.
    lost: Option<u64>,
    /// Every figure, in one form. Those without a value are left out.
    figures: Vec<FigureOut>,
    /// Why there is no figure, and what helps. Null if there is one.
    not_measured: Option<Gap>,
}

/// A figure of a point.
#[derive(Serialize, JsonSchema)]
struct FigureOut {
    #[serde(flatten)]
    id: FigureId,
    #[serde(flatten)]
    value: ValueOut,
    /// The figure over that of the reference, round by round. Null for the reference, if there is none, and if fewer than 4
    /// rounds have both.
    #[schemars(range(min = 0))]
    ratio: Option<f64>,
    /// 95 % interval of `ratio`.
    #[schemars(inner(range(min = 0)))]
    ratio_ci: Option<[f64; 2]>,
    /// What `ratio_ci` says. Null if there is none.
    compared: Option<Cost>,
}

/// A measurement.
#[derive(Serialize, JsonSchema)]
struct PartOut<'a> {
    /// The label of its value of each axis that it does not vary itself.
    values: &'a [String],
    /// Name of the saved record. Null if it was not saved.
    saved: Option<&'a str>,
    /// Engine that moved payload. Null if nothing was measured.
    engine: Option<&'a str>,
    /// Options of the engine that are set. Null if nothing was measured.
    options: Option<&'a Options>,
    /// Whether both ends run on one machine and share its CPUs. Null if nothing was measured.
    same_machine: Option<bool>,
    /// Whether its threads poll, and use a whole CPU at any load. Null if nothing was measured.
    polls: Option<bool>,
    /// False if it ended early, or a point that fits in its time was not measured.
    complete: bool,
    /// Why it ended early. Null if it did not.
    ended_early: Option<String>,
    /// A run: the document of run.schema.json. Round trips of one size: that of lat.schema.json. Else null.
    #[schemars(schema_with = "of_another")]
    result: Option<ResultOut<'a>>,
    /// A load with each value of a factor. Else null.
    loads: Option<LoadsOut<'a>>,
    /// Round trips of each size. Else null.
    sizes: Option<SizesOut>,
    /// What could not be read or was refused, and what helps.
    unknown: Vec<Gap>,
    /// Raw readings, with `--with-record` only. This schema does not describe them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "run::described_elsewhere")]
    record: Option<&'a Record>,
}

/// Another document, or null.
fn of_another(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["object", "null"] })
}

/// The document of a part.
#[derive(Serialize)]
#[serde(untagged)]
enum ResultOut<'a> {
    Run(Box<run::Output<'a>>),
    Trips(Box<lat::Output<'a>>),
}

/// A load with each value of a factor, in interleaved rounds. The settings are those beside the factor. Indices count the
/// values of its axis.
#[derive(Serialize, JsonSchema)]
struct LoadsOut<'a> {
    /// Address and port of the far end. Empty if there is none, or if it is not known.
    address: &'a str,
    /// Direction in which payload flowed.
    direction: Direction,
    /// How the sender hands payload to the kernel. Null if that is varied.
    copy: Option<Handover>,
    /// Payload of each read and write. Null if that is varied, or if each end chose it by the rate.
    #[schemars(range(min = 1))]
    size_bytes: Option<u64>,
    /// Connections. Null if their number is varied.
    #[schemars(range(min = 1))]
    streams: Option<u32>,
    /// Requests in flight on each queue pair. Null if that is varied, or if the engine chose the number, or has none.
    #[schemars(range(min = 1))]
    depth: Option<u64>,
    /// Queue pairs of each stream. Null if their number is varied, or if the engine chose the number, or has none.
    #[schemars(range(min = 1))]
    queue_pairs: Option<u64>,
    /// Planned rounds, after one that warms up the connections. There are fewer if time ran short.
    #[schemars(range(min = FEWEST))]
    rounds: u32,
    /// Time at the start of each slice that does not count.
    washout_ns: u64,
    /// Time of each slice that counts.
    slice_ns: u64,
    /// Index of the value that ratios refer to: plain copies, else the one with the most goodput. Null if it was not
    /// measured.
    reference: Option<usize>,
    /// Knee of sizes, streams, depths or queue pairs. Null if unknown, and for sizes of memory.
    knee: Option<Knee>,
    /// Depth: the product of bandwidth and delay. Null for other factors, and if a queue of one request was not compared with
    /// the best.
    bandwidth_delay: Option<HeldOut>,
    /// Sizes of memory: where the rate falls, because a cache is full. Empty for others.
    falls: &'a [Fall],
    /// Sizes: what the times of operations say, size over goodput. Without candidates if both ends are on one machine. Null
    /// if too few sizes are large enough to show a rate, for sizes of memory, and for other factors.
    fit: Option<FitOut>,
}

/// What moves at the best goodput in the time of a request that is alone in flight.
#[derive(Serialize, JsonSchema)]
struct HeldOut {
    /// Payload of a request.
    #[schemars(range(min = 1))]
    request_bytes: u64,
    /// Time of a request that is alone in flight: its payload over the goodput of a queue pair.
    alone_ns: u64,
    /// The product in requests of each queue pair.
    #[schemars(range(min = 0))]
    requests: f64,
    /// 95 % interval of `requests`.
    #[schemars(inner(range(min = 0)))]
    requests_ci: [f64; 2],
}

/// Round trips of each size, in interleaved rounds. All times of its points are of whole round trips.
#[derive(Serialize, JsonSchema)]
struct SizesOut {
    /// Whether both ends polled their sockets without sleeping.
    busy_poll: bool,
    /// Whether Nagle's algorithm was on for the timed messages.
    nagle: bool,
    /// Whether each message was sent in two writes.
    two_writes: bool,
    /// Time of all sizes, as asked for.
    time_ns: u64,
    /// A timer that sets whole round trips. Null if they show none.
    timer: Option<TimerOut>,
    /// What the times say. Its times are halves of round trips, so that the rate is that of one direction. Without
    /// candidates if both ends are on one machine. Null if too few messages are large enough to show a rate.
    fit: Option<FitOut>,
}

/// Runs of one plan together.
#[derive(Serialize, JsonSchema)]
struct Together {
    /// Every figure over the runs.
    figures: Vec<SpreadOut>,
    /// Limits that any run found: goodput before latency, a direction whose median is less than half of the
    /// other one's before that one, then the limits of most runs.
    limits: Vec<LimitOut>,
    /// Directions in which runs found no limit of goodput.
    unknown: Vec<UnknownOut>,
    /// The disturbances of any run that are not its limit; those of most runs first.
    disturbances: Vec<DisturbanceOut>,
}

/// A figure over the runs that have it.
#[derive(Serialize, JsonSchema)]
struct SpreadOut {
    #[serde(flatten)]
    id: FigureId,
    /// Runs that have the figure.
    #[schemars(range(min = 1))]
    runs: usize,
    /// All runs in one value: the median; for shares, the events of all runs over all that could have been one.
    merged: f64,
    lowest: f64,
    highest: f64,
}

/// A direction in which runs found no limit.
#[derive(Serialize, JsonSchema)]
struct UnknownOut {
    direction: Direction,
    /// Runs that found none.
    #[schemars(range(min = 1))]
    runs: usize,
}

/// What disturbed runs and was not found to limit them.
#[derive(Serialize, JsonSchema)]
struct DisturbanceOut {
    #[serde(flatten)]
    located: Located,
    /// Runs that it disturbed.
    #[schemars(range(min = 1))]
    runs: usize,
    /// Estimated goodput without it over the measured goodput, in the run that it took most of. Null if unknown.
    #[schemars(range(min = 1))]
    gain_about: Option<f64>,
}

/// A limit that runs found.
#[derive(Serialize, JsonSchema)]
struct LimitOut {
    metric: Measure,
    #[serde(flatten)]
    located: Located,
    /// Runs that found it.
    #[schemars(range(min = 1))]
    runs: usize,
    /// Runs that proved it.
    proved: usize,
}

/// The study as one JSON document, with a line feed at its end; `with_record` adds the raw readings.
pub fn json(study: &Study<'_>, with_record: bool) -> serde_json::Result<String> {
    text(&output(study, with_record))
}

/// The document.
pub(crate) fn output<'a>(study: &'a Study<'_>, with_record: bool) -> Output<'a> {
    Output {
        head: Head::new(study.headline()),
        target: study.target,
        complete: study.complete(),
        axes: &study.axes,
        points: study.points().into_iter().map(point).collect(),
        parts: study.parts.iter().map(|one| part(one, with_record)).collect(),
        together: together(study),
    }
}

fn point(point: Point) -> PointOut {
    let figure = |entry: &Entry| {
        let ratio = point.ratio(entry.figure, entry.of);
        Some(FigureOut {
            id: FigureId::new(entry.figure, entry.of),
            value: entry.value.as_ref().ok()?.into(),
            ratio: ratio.map(|ratio| ratio.mid),
            ratio_ci: ratio.map(ends),
            compared: ratio.map(Cost::of),
        })
    };
    PointOut {
        samples: exact(point.samples),
        lost: point.lost.map(exact),
        figures: point.summary.entries.iter().filter_map(figure).collect(),
        values: point.values,
        not_measured: point.lacks,
    }
}

fn part<'a>(part: &'a Part<'_>, with_record: bool) -> PartOut<'a> {
    let made = part.made.as_ref().ok();
    let plan = made.map(|made| &made.record.start.plan);
    let (mut result, mut loads, mut sizes) = (None, None, None);
    match made.map(|made| &made.found) {
        Some(Found::Run(judged)) => {
            let run = run::output(judged.record, &judged.model, &judged.verdict, with_record);
            result = Some(ResultOut::Run(Box::new(run)));
        }
        Some(Found::Trips(probe)) => {
            let record = made.map(|made| made.record).filter(|_| with_record);
            result = Some(ResultOut::Trips(Box::new(lat::output(probe, record))));
        }
        Some(Found::Sizes(found)) => sizes = Some(of_sizes(found)),
        Some(Found::Loads(found)) => loads = Some(of_loads(found)),
        Some(Found::Load(_)) | None => {}
    }
    PartOut {
        values: &part.values,
        saved: made.and_then(|made| made.saved),
        engine: plan.map(|plan| plan.engine.as_str()),
        options: plan.map(|plan| &plan.knobs.options),
        same_machine: made.map(|made| same_machine(made.record)),
        polls: made.map(|made| layers::polls(made.record)),
        complete: made.is_some_and(|made| made.found.complete()),
        ended_early: made.map(|made| broken(made.record)).filter(|why| !why.is_empty()),
        unknown: made.map(|made| made.found.gaps()).unwrap_or_default(),
        record: made.map(|made| made.record).filter(|_| with_record && result.is_none()),
        result,
        loads,
        sizes,
    }
}

fn of_loads<'a>(probe: &'a Loads<'_>) -> LoadsOut<'a> {
    let (found, base) = (&probe.found, &probe.record.start.plan.knobs);
    let is_fixed = |factor: Swept| probe.swept != factor;
    LoadsOut {
        address: probe.address,
        direction: probe.direction,
        copy: Some(base.copy).filter(|_| is_fixed(Swept::Copy)),
        size_bytes: Some(base.write_size.0).filter(|size| *size > 0 && is_fixed(Swept::Size)),
        streams: Some(base.streams).filter(|_| is_fixed(Swept::Streams)),
        depth: base.options.number(DEPTH.key).filter(|_| is_fixed(Swept::Depth)),
        queue_pairs: base.options.number(QUEUE_PAIRS.key).filter(|_| is_fixed(Swept::Qps)),
        rounds: probe.pace.rounds,
        washout_ns: probe.pace.washout.0,
        slice_ns: probe.pace.measure.0,
        reference: found.reference,
        knee: found.knee,
        bandwidth_delay: probe.held().map(|held| HeldOut {
            request_bytes: held.size.0,
            alone_ns: exact(held.time.0),
            requests: held.requests.mid,
            requests_ci: ends(held.requests),
        }),
        falls: &found.falls,
        fit: fit(&probe.times()).map(|fit| fit_out(&fit, &agreement(probe.record))),
    }
}

fn of_sizes(probe: &Sizes<'_>) -> SizesOut {
    let knobs = probe.knobs();
    SizesOut {
        busy_poll: knobs.busy_poll,
        nagle: knobs.nagle,
        two_writes: knobs.two_writes,
        time_ns: probe.time().0,
        timer: probe.timer().map(|timer| timer_out(&timer, &agreement(probe.record))),
        fit: probe.fit().map(|fit| fit_out(&fit, &agreement(probe.record))),
    }
}

fn together(study: &Study<'_>) -> Option<Together> {
    let runs = study.runs();
    if runs.is_empty() {
        return None;
    }
    let answers = answers(&runs);
    Some(Together {
        figures: spreads(&runs).into_iter().map(spread).collect(),
        limits: answers.iter().filter_map(limit).collect(),
        unknown: answers.iter().filter_map(unknown).collect(),
        disturbances: disturbances(&runs).into_iter().map(disturbance).collect(),
    })
}

fn spread((figure, of, spread): (&'static Figure, Subject, Spread)) -> SpreadOut {
    SpreadOut {
        id: FigureId::new(figure, of),
        runs: spread.runs,
        merged: spread.middle,
        lowest: spread.low,
        highest: spread.high,
    }
}

fn limit(answer: &Answer<'_>) -> Option<LimitOut> {
    limit_of(answer.told).map(|limit| LimitOut {
        metric: limit.metric,
        located: limit.into(),
        runs: answer.runs,
        proved: answer.proved,
    })
}

fn unknown(answer: &Answer<'_>) -> Option<UnknownOut> {
    match answer.told {
        verdict::Entry::Unknown(direction) => Some(UnknownOut { direction, runs: answer.runs }),
        verdict::Entry::Limit(_) => None,
    }
}

fn disturbance((disturbance, runs): (&Disturbance, usize)) -> DisturbanceOut {
    DisturbanceOut { located: disturbance.into(), runs, gain_about: disturbance.gain() }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::{loads, sample, sizes};
    use super::*;
    use crate::sample as records;
    use crate::schema::{fits, needs_all, refuses};

    /// The document, which fits its schema.
    fn document(study: &Study<'_>) -> Value {
        let document = serde_json::from_str(&json(study, false).unwrap()).unwrap();
        fits("study", &document);
        document
    }

    /// A figure of a point.
    fn figure<'a>(document: &'a Value, at: usize, name: &str) -> &'a Value {
        let figures = document["points"][at]["figures"].as_array().unwrap();
        figures.iter().find(|figure| figure["figure"] == name).unwrap_or(&Value::Null)
    }

    #[test]
    fn loads_have_their_cost_knee_falls_and_fit() {
        use loads::sample as made;
        let copy = document(&made::copy(Direction::Forward).study());
        let cost = |at: usize| figure(&copy, at, "cpu_ns_per_byte")["compared"].clone();
        assert_eq!([cost(0), cost(1), cost(2)], [Value::Null, "less".into(), "more".into()]);
        document(&made::copy(Direction::Reverse).study());
        let size = document(&made::size().study());
        assert_eq!(size["parts"][0]["loads"]["knee"]["at"], 5);
        assert_eq!(size["axes"][0]["values"][5]["number"], 32_768);
        let depth = document(&made::depth().study());
        let held = &depth["parts"][0]["loads"]["bandwidth_delay"];
        assert_eq!(
            (&depth["points"][4]["values"][0], &held["request_bytes"]),
            (&"depth 16".into(), &65_536.into())
        );
        assert!((held["requests"].as_f64().unwrap() - 5.0).abs() < 1e-9, "{held}");
        assert_eq!(held["alone_ns"], 52_429);
        let memory = document(&made::memory().study());
        let loads = &memory["parts"][0]["loads"];
        assert_eq!((&loads["falls"][0]["from"], &loads["knee"]), (&1.into(), &Value::Null));
        let streams = document(&made::streams().study());
        let part = &streams["parts"][0];
        assert_eq!(
            (&part["complete"], &part["ended_early"]),
            (&false.into(), &"interrupted".into())
        );
        let lacks = &streams["points"][2]["not_measured"];
        assert_eq!(lacks["why"], "left out: no descriptor left");
        assert_eq!(lacks["hint"], "ulimit -n 4096");
    }

    #[test]
    fn sizes_have_the_fit_of_one_direction_and_each_lack_its_reason() {
        use sizes::sample as made;
        let samples = [made::whole(), made::slow(), made::broken(), made::delayed()];
        let [whole, slow, broken, delayed] = samples.each_ref().map(|one| document(&one.study()));
        let fit = &whole["parts"][0]["sizes"]["fit"];
        let rate = fit["rate_bps"].as_f64().unwrap();
        assert!((rate / 12.4e9 - 1.0).abs() < 0.01, "{rate}");
        assert!(fit["floor_ns"].as_u64().unwrap().abs_diff(26_000) < 10);
        assert!(!fit["candidates"].as_array().unwrap().is_empty());
        assert_eq!((&whole["complete"], &slow["complete"]), (&true.into(), &true.into()));
        let p999 = whole["points"][0]["figures"].as_array().unwrap();
        let p999 = p999.iter().find(|figure| figure["percentile"] == 99.9).unwrap();
        assert_eq!(p999["value"], 57_202.0);
        assert_eq!(figure(&slow, 22, "most_round_trip_ns"), &Value::Null);
        assert!(slow["points"][22]["not_measured"]["why"].is_string());
        let part = &broken["parts"][0];
        assert_eq!(
            (&part["ended_early"], &part["sizes"]["fit"]),
            (&"interrupted".into(), &Value::Null)
        );
        assert_eq!(delayed["parts"][0]["sizes"]["nagle"], true);
        assert_eq!(figure(&delayed, 0, "delayed_ns")["value"], 43_900_000.0);
    }

    #[test]
    fn values_beside_each_other_say_what_is_lacking() {
        let samples = [sizes::sample::whole(), sizes::sample::broken()];
        let told = document(&sample::values(&samples));
        let names = told["axes"].as_array().unwrap().iter().map(|axis| axis["name"].clone());
        assert_eq!(names.collect::<Vec<_>>(), ["op", "size"]);
        assert_eq!(told["complete"], false);
        let [read, write, send] = [0, 1, 2].map(|at| &told["parts"][at]);
        assert_eq!(read["complete"], true);
        assert_eq!(write["ended_early"], "interrupted");
        assert_eq!((&send["values"][0], &send["engine"]), (&"send".into(), &Value::Null));
        let last = told["points"].as_array().unwrap().last().unwrap();
        assert_eq!(last["not_measured"]["why"], "interrupted before");
        needs_all("study", &told, "");
    }

    #[test]
    fn runs_have_the_document_of_each_and_the_answer_of_all() {
        let results = [records::limited(), records::healthy(), records::disturbed()];
        let told = document(&sample::runs(&results));
        // One direction is as fast as its wire, and the other one is not.
        let headline = &told["headline"];
        assert_eq!(
            (&headline["cause"], &headline["stands"]),
            (&"wire-full".into(), &"limit".into())
        );
        for part in told["parts"].as_array().unwrap() {
            fits("run", &part["result"]);
        }
        let wrong = [
            ("/format", Value::from(2)),
            ("/axes", Value::Array(Vec::new())),
            ("/points/0/samples", Value::from(-1)),
            ("/points/0/figures/0/compared", Value::from("maybe")),
            ("/parts/0/result", Value::from(1)),
            ("/parts/0/unknown", Value::Null),
            ("/together/limits/0/proved", Value::from(-1)),
        ];
        refuses("study", &told, wrong, "");
    }
}
