//! A study as JSON.
//!
//! The schema of the document is made from `Output`. Keys contain the units; integers stay below 2^53; unknown
//! values are `null`.

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

/// One JSON document: one or two factors varied, and the figures measured at each of their values. Keys contain the
/// units. Unknown values are null. This host is near, the other one is far.
#[derive(Serialize, JsonSchema)]
#[schemars(
    title = "Result of a study: several values of a factor, layers of a path, runs of one plan"
)]
pub(crate) struct Output<'a> {
    #[serde(flatten)]
    head: Head<'static>,
    /// The far end in the form that the user typed. Null if there is none.
    target: Option<&'a str>,
    /// False if a part is missing or not complete.
    complete: bool,
    /// The varied factors with their values: first the one that differs between parts, then the one within each part.
    #[schemars(length(min = 1, max = 2))]
    axes: &'a [Axis],
    /// The points of the study, in order.
    points: Vec<PointOut>,
    /// The measurements that the points come from, in order.
    parts: Vec<PartOut<'a>>,
    /// Several runs of one plan, summed up. Null for other studies.
    together: Option<Together>,
}

/// A point: a value on each axis, and the figures measured there.
#[derive(Serialize, JsonSchema)]
struct PointOut {
    /// The label of the point's value on each axis. Labels of the axis within a part are missing if the part was
    /// not measured.
    values: Vec<String>,
    /// Number of rounds, round trips or runs that were measured.
    samples: u64,
    /// Messages that were sent in the measured time and never answered. They are not in `samples`. Null if none can
    /// be lost.
    lost: Option<u64>,
    /// All figures of the point, in one form. Those without a value are left out.
    figures: Vec<FigureOut>,
    /// Why the point has no figure, and what helps. Null if it has one.
    not_measured: Option<Gap>,
}

/// A figure of a point.
#[derive(Serialize, JsonSchema)]
struct FigureOut {
    #[serde(flatten)]
    id: FigureId,
    #[serde(flatten)]
    value: ValueOut,
    /// The figure divided by that of the reference, round by round. Null for the reference, if there is none, and
    /// if fewer than 4 rounds have both figures.
    #[schemars(range(min = 0))]
    ratio: Option<f64>,
    /// 95 % interval of `ratio`.
    #[schemars(inner(range(min = 0)))]
    ratio_ci: Option<[f64; 2]>,
    /// Whether `ratio_ci` shows a difference. Null if there is no ratio.
    compared: Option<Cost>,
}

/// A measurement of the study.
#[derive(Serialize, JsonSchema)]
struct PartOut<'a> {
    /// The label of the part's value on each axis that the part does not vary itself.
    values: &'a [String],
    /// Name of the saved record. Null if it was not saved.
    saved: Option<&'a str>,
    /// Engine that moved payload. Null if nothing was measured.
    engine: Option<&'a str>,
    /// Options of the engine that are set. Null if nothing was measured.
    options: Option<&'a Options>,
    /// Whether both ends run on one machine and share its CPUs. Null if nothing was measured.
    same_machine: Option<bool>,
    /// Whether the part's threads poll, and so use a whole CPU at any load. Null if nothing was measured.
    polls: Option<bool>,
    /// False if the part ended early, or if a point that fits in its time was not measured.
    complete: bool,
    /// Why the part ended early. Null if it did not.
    ended_early: Option<String>,
    /// For a run, the document of run.schema.json; for round trips of one size, that of lat.schema.json. Else null.
    #[schemars(schema_with = "of_another")]
    result: Option<ResultOut<'a>>,
    /// A load measured with each value of a factor. Null for other parts.
    loads: Option<LoadsOut<'a>>,
    /// Round trips measured with each message size. Null for other parts.
    sizes: Option<SizesOut>,
    /// Values that could not be read, or settings that were refused, and what helps.
    unknown: Vec<Gap>,
    /// Raw readings, with `--with-record` only. This schema does not describe them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "run::described_elsewhere")]
    record: Option<&'a Record>,
}

/// Schema of an object that another schema describes, or null.
fn of_another(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["object", "null"] })
}

/// The document that a part's measurement alone would have.
#[derive(Serialize)]
#[serde(untagged)]
enum ResultOut<'a> {
    Run(Box<run::Output<'a>>),
    Trips(Box<lat::Output<'a>>),
}

/// A load measured with each value of a factor, in interleaved rounds. The settings here are those that do not
/// vary. An index counts the values of the varied axis.
#[derive(Serialize, JsonSchema)]
struct LoadsOut<'a> {
    /// Address and port of the far end. Empty if there is none, or if it is not known.
    address: &'a str,
    /// Direction in which payload flowed.
    direction: Direction,
    /// How the sender hands payload to the kernel. Null if this is the varied factor.
    copy: Option<Handover>,
    /// Payload of each read and write. Null if the size is varied, or if each end chose it by the rate.
    #[schemars(range(min = 1))]
    size_bytes: Option<u64>,
    /// Number of connections. Null if the number is varied.
    #[schemars(range(min = 1))]
    streams: Option<u32>,
    /// Requests in flight on each queue pair. Null if the number is varied, or if the engine chose it, or has no
    /// queue pairs.
    #[schemars(range(min = 1))]
    depth: Option<u64>,
    /// Queue pairs of each stream. Null if the number is varied, or if the engine chose it, or has no queue pairs.
    #[schemars(range(min = 1))]
    queue_pairs: Option<u64>,
    /// Planned rounds, without the first one, which warms up the connections. Fewer were measured if time ran short.
    #[schemars(range(min = FEWEST))]
    rounds: u32,
    /// Length of the start of each slice, which does not count.
    washout_ns: u64,
    /// Length of the part of each slice that counts.
    slice_ns: u64,
    /// Index of the value that ratios refer to: ordinary copies for ways to hand payload over, else the value with
    /// the most goodput. Null if it was not measured.
    reference: Option<usize>,
    /// The knee: the smallest size, or number of streams, requests or queue pairs, within 5 % of the best. Null if
    /// unknown, and for sizes of memory.
    knee: Option<Knee>,
    /// For a varied depth: the bandwidth-delay product. Null for other factors, and if a queue of one request was
    /// not compared with the best.
    bandwidth_delay: Option<HeldOut>,
    /// For sizes of memory: where the rate falls because a cache is full. Empty for other factors.
    falls: &'a [Fall],
    /// For sizes: what the times of operations (size divided by goodput) show. It has no candidates if both ends
    /// are on one machine. Null if too few sizes are large enough to show a rate, for sizes of memory, and for
    /// other factors.
    fit: Option<FitOut>,
}

/// The bandwidth-delay product: what the best goodput moves in the time of a request that is alone in flight.
#[derive(Serialize, JsonSchema)]
struct HeldOut {
    /// Payload of a request.
    #[schemars(range(min = 1))]
    request_bytes: u64,
    /// Time of a request that is alone in flight: its payload divided by the goodput of a queue pair.
    alone_ns: u64,
    /// The product as a number of requests on each queue pair.
    #[schemars(range(min = 0))]
    requests: f64,
    /// 95 % interval of `requests`.
    #[schemars(inner(range(min = 0)))]
    requests_ci: [f64; 2],
}

/// Round trips measured with each message size, in interleaved rounds. Times of the points are whole round trips.
#[derive(Serialize, JsonSchema)]
struct SizesOut {
    /// Whether both ends polled their sockets without sleeping.
    busy_poll: bool,
    /// Whether Nagle's algorithm was on for the timed messages.
    nagle: bool,
    /// Whether each message was sent in two writes.
    two_writes: bool,
    /// Requested time for all sizes together.
    time_ns: u64,
    /// The timer that sets the times of whole round trips. Null if they show none.
    timer: Option<TimerOut>,
    /// What the times show. It is computed from halves of round trips, so that its rate is that of one direction.
    /// It has no candidates if both ends are on one machine. Null if too few messages are large enough to show a
    /// rate.
    fit: Option<FitOut>,
}

/// Several runs of one plan, summed up.
#[derive(Serialize, JsonSchema)]
struct Together {
    /// Figures with their spread over the runs.
    figures: Vec<SpreadOut>,
    /// Limits that any run found, in reading order: goodput before latency; a direction whose median goodput is
    /// less than half of the other one's before the other; then limits that more runs found.
    limits: Vec<LimitOut>,
    /// Directions in which at least one run found no limit of goodput.
    unknown: Vec<UnknownOut>,
    /// The disturbances of any run; those that more runs had come first.
    disturbances: Vec<DisturbanceOut>,
}

/// The spread of a figure over the runs that have it.
#[derive(Serialize, JsonSchema)]
struct SpreadOut {
    #[serde(flatten)]
    id: FigureId,
    /// Number of runs that have the figure.
    #[schemars(range(min = 1))]
    runs: usize,
    /// One value for all runs: the median; for shares, the events of all runs divided by all that could have been one.
    merged: f64,
    lowest: f64,
    highest: f64,
}

/// A direction in which runs found no limit of goodput.
#[derive(Serialize, JsonSchema)]
struct UnknownOut {
    direction: Direction,
    /// Number of runs that found none.
    #[schemars(range(min = 1))]
    runs: usize,
}

/// A disturbance that runs had and that was not found to limit them.
#[derive(Serialize, JsonSchema)]
struct DisturbanceOut {
    #[serde(flatten)]
    located: Located,
    /// Number of runs that had the disturbance.
    #[schemars(range(min = 1))]
    runs: usize,
    /// Estimated goodput without the disturbance, divided by the measured goodput, in the run where it took most.
    /// Null if unknown.
    #[schemars(range(min = 1))]
    gain_about: Option<f64>,
}

/// A limit that runs found.
#[derive(Serialize, JsonSchema)]
struct LimitOut {
    metric: Measure,
    #[serde(flatten)]
    located: Located,
    /// Number of runs that found the limit.
    #[schemars(range(min = 1))]
    runs: usize,
    /// Number of runs that proved the limit.
    proved: usize,
}

/// The study as one JSON document, with a line feed at its end; `with_record` adds the raw readings.
pub fn json(study: &Study<'_>, with_record: bool) -> serde_json::Result<String> {
    text(&output(study, with_record))
}

/// The content of the JSON document.
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
    limit_of(answer.entry).map(|limit| LimitOut {
        metric: limit.metric,
        located: limit.into(),
        runs: answer.runs,
        proved: answer.proved,
    })
}

fn unknown(answer: &Answer<'_>) -> Option<UnknownOut> {
    match answer.entry {
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

    /// The document of a study, which is checked against its schema.
    fn document(study: &Study<'_>) -> Value {
        let document = serde_json::from_str(&json(study, false).unwrap()).unwrap();
        fits("study", &document);
        document
    }

    /// A figure of the point at index `at`.
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
        let reported = document(&sample::values(&samples));
        let names = reported["axes"].as_array().unwrap().iter().map(|axis| axis["name"].clone());
        assert_eq!(names.collect::<Vec<_>>(), ["op", "size"]);
        assert_eq!(reported["complete"], false);
        let [read, write, send] = [0, 1, 2].map(|at| &reported["parts"][at]);
        assert_eq!(read["complete"], true);
        assert_eq!(write["ended_early"], "interrupted");
        assert_eq!((&send["values"][0], &send["engine"]), (&"send".into(), &Value::Null));
        let last = reported["points"].as_array().unwrap().last().unwrap();
        assert_eq!(last["not_measured"]["why"], "interrupted before");
        needs_all("study", &reported, "");
    }

    #[test]
    fn runs_have_the_document_of_each_and_the_answer_of_all() {
        let results = [records::limited(), records::healthy(), records::disturbed()];
        let reported = document(&sample::runs(&results));
        // One direction reaches the ceiling of its wire, the other one does not.
        let headline = &reported["headline"];
        assert_eq!(
            (&headline["cause"], &headline["stands"]),
            (&"wire-full".into(), &"limit".into())
        );
        for part in reported["parts"].as_array().unwrap() {
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
        refuses("study", &reported, wrong, "");
    }
}
