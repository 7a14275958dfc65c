//! A sweep, for programs.
//!
//! Its schema is made from `Output`. Units stand in the keys; integers stay below 2^53; unknown values are `null`.

use linerate_ceiling::fingerprint::fit;
use linerate_facts::Gap;
use linerate_judge::model::{Cost, Estimate, Fall, Setting};
use linerate_plan::Handover;
use linerate_plan::path::{Direction, Side};
use linerate_plan::transport::Options;
use linerate_plan::transport::Swept;
use linerate_plan::transport::rdma::{DEPTH, QUEUE_PAIRS};
use linerate_record::Record;
use linerate_units::Bytes;
use linerate_units::stats::{FEWEST, Interval};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::fitted::{FitOut, fit_out};
use super::super::json::{Format, ci, described_elsewhere, ends, exact, integer, text};
use super::{Probe, cpu};

/// Version of the document; raised when a key changes its meaning or is removed.
pub const FORMAT: u32 = 1;

/// The published schema of the document.
pub const SCHEMA: &str = include_str!("../../schema/sweep.schema.json");

/// One JSON document: the same load with each setting of one factor, in interleaved rounds. Keys contain the
/// units. Unknown values are null. This host is near, the other one is far.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate bw --sweep")]
pub(crate) struct Output<'a> {
    /// Version of this document.
    format: Format<FORMAT>,
    /// Version of linerate.
    linerate: &'static str,
    /// The far end in the form that the user typed.
    target: &'a str,
    /// Address and port of the far end. Empty if there is none.
    address: &'a str,
    /// Engine that moves payload.
    engine: &'a str,
    /// Options of the engine that are set.
    options: &'a Options,
    /// Whether both ends run on one machine and share its CPUs.
    same_machine: bool,
    /// The factor that differs between the settings.
    swept: Swept,
    /// Direction in which payload flowed.
    direction: Direction,
    /// Planned rounds, after one that warms up the connections. There are fewer if time ran short.
    #[schemars(range(min = FEWEST))]
    rounds: u32,
    /// Time at the start of each slice that does not count.
    washout_ns: u64,
    /// Time of each slice that counts.
    slice_ns: u64,
    /// False if the sweep ended early, or a setting was not measured.
    complete: bool,
    /// Why it ended early. Null if it did not.
    ended_early: Option<&'a str>,
    /// The settings in their order, the default or the smallest one first.
    settings: Vec<SettingOut>,
    /// Index of the setting that ratios refer to: plain copies, else the one with the most goodput. Null if it was not
    /// measured.
    reference: Option<usize>,
    /// Knee of sizes, streams, depths or queue pairs. Null if unknown, and for sizes of memory.
    knee: Option<KneeOut>,
    /// Depth: the product of bandwidth and delay. Null for other factors, and if a queue of one request was not compared with
    /// the best.
    bandwidth_delay: Option<HeldOut>,
    /// Sizes of memory: where the rate falls, because a cache is full. Empty for other sweeps.
    falls: &'a [Fall],
    /// Sizes: what the times of operations say, size over goodput. Without candidates if both ends are on one machine. Null if too few sizes are large
    /// enough to show a rate, for sizes of memory, and for other factors.
    fit: Option<FitOut>,
    /// Settings that were refused, and what could not be read.
    unknown: &'a [Gap],
    /// Raw readings, with `--with-record` only. This schema does not describe them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "described_elsewhere")]
    record: Option<&'a Record>,
}

/// A setting and what was measured with it.
#[derive(Serialize, JsonSchema)]
struct SettingOut {
    /// The setting in words: `zerocopy`, `64 KiB`, `4 streams`.
    setting: String,
    /// How the sender hands payload to the kernel.
    copy: Handover,
    /// Payload of each read and write. Null if each end chose it by the rate.
    #[schemars(range(min = 1))]
    size_bytes: Option<u64>,
    /// Connections.
    #[schemars(range(min = 1))]
    streams: u32,
    /// Requests in flight on each queue pair. Null if the engine chose the number, or has none.
    #[schemars(range(min = 1))]
    depth: Option<u64>,
    /// Queue pairs of each stream. Null if the engine chose the number, or has none.
    #[schemars(range(min = 1))]
    queue_pairs: Option<u64>,
    /// Slices that were measured completely and undisturbed.
    rounds: u64,
    /// Mean over the rounds of payload that the receiver counted, over its clock. Null if none was measured.
    goodput_bps: Option<u64>,
    /// 95 % interval of the goodput. Null for fewer than 4 rounds.
    goodput_ci_bps: Option<[u64; 2]>,
    /// Ratio of the goodput to that of the reference, round by round. Null for the reference, and if fewer than
    /// 4 rounds have both.
    #[schemars(range(min = 0))]
    goodput_ratio: Option<f64>,
    /// 95 % interval of `goodput_ratio`.
    #[schemars(inner(range(min = 0)))]
    goodput_ratio_ci: Option<[f64; 2]>,
    near: EndOut,
    far: EndOut,
    /// Ratio of the sender's CPU time per byte to that of the reference, round by round. Null as for
    /// `goodput_ratio`.
    #[schemars(range(min = 0))]
    cpu_ratio: Option<f64>,
    /// 95 % interval of `cpu_ratio`.
    #[schemars(inner(range(min = 0)))]
    cpu_ratio_ci: Option<[f64; 2]>,
    /// What `cpu_ratio_ci` says. Null if there is none.
    cost: Option<Cost>,
    /// Share of the sends without a copy that the kernel copied anyway. Null if the kernel reported none.
    #[schemars(range(min = 0, max = 1))]
    copied_share: Option<f64>,
}

/// CPU time of one end.
#[derive(Serialize, JsonSchema)]
struct EndOut {
    /// Mean over the rounds of the CPU time of the threads that move payload, for each byte of goodput. Null if unknown.
    #[schemars(range(min = 0))]
    cpu_ns_per_byte: Option<f64>,
    /// 95 % interval of `cpu_ns_per_byte`. Null for fewer than 4 rounds.
    #[schemars(inner(range(min = 0)))]
    cpu_ci_ns_per_byte: Option<[f64; 2]>,
}

/// The setting from which on larger ones gain little.
#[derive(Serialize, JsonSchema)]
struct KneeOut {
    /// Index of the smallest setting within 5 % of the best goodput. If it is the last one that was measured, goodput may
    /// still grow.
    setting: usize,
    /// Index of the smallest setting that it may be, and of the smallest one that surely comes within 5 %.
    setting_ci: [usize; 2],
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

/// The sweep as one JSON document, with a line feed at its end; with the raw readings where `record` has
/// them.
pub fn json(probe: &Probe, record: Option<&Record>) -> serde_json::Result<String> {
    text(&output(probe, record))
}

/// The document.
pub(crate) fn output<'a>(probe: &'a Probe, record: Option<&'a Record>) -> Output<'a> {
    let found = &probe.found;
    let points = probe.points();
    Output {
        format: Format,
        linerate: env!("CARGO_PKG_VERSION"),
        target: &probe.target,
        address: &probe.address,
        engine: &probe.engine,
        options: &probe.options,
        same_machine: probe.same_machine,
        swept: probe.swept,
        direction: probe.direction,
        rounds: probe.pace.rounds,
        washout_ns: probe.pace.washout.0,
        slice_ns: probe.pace.measure.0,
        complete: probe.complete(),
        ended_early: Some(probe.broken.as_str()).filter(|why| !why.is_empty()),
        settings: found.settings.iter().map(|s| setting(probe, s)).collect(),
        reference: found.reference,
        bandwidth_delay: probe.held().map(|held| HeldOut {
            request_bytes: held.size.0,
            alone_ns: exact(held.time.0),
            requests: held.requests.mid,
            requests_ci: ends(held.requests),
        }),
        falls: &probe.found.falls,
        knee: found.knee.map(|knee| KneeOut { setting: knee.at, setting_ci: [knee.from, knee.to] }),
        fit: fit(&points).map(|fit| fit_out(&fit, probe.agreement())),
        unknown: &probe.gaps,
        record,
    }
}

fn setting(probe: &Probe, setting: &Setting) -> SettingOut {
    let mid = |ratio: Option<Interval>| ratio.map(|r| r.mid);
    let size = setting.knobs.write_size;
    SettingOut {
        setting: probe.swept.words(&setting.knobs),
        copy: setting.knobs.copy,
        size_bytes: (size != Bytes(0)).then_some(size.0),
        streams: setting.knobs.streams,
        depth: setting.knobs.options.number(DEPTH.key),
        queue_pairs: setting.knobs.options.number(QUEUE_PAIRS.key),
        rounds: setting.goodput.map_or(0, |goodput| goodput.samples as u64),
        goodput_bps: setting.goodput.map(|goodput| integer(goodput.mean)),
        goodput_ci_bps: setting.goodput.as_ref().and_then(ci),
        goodput_ratio: mid(setting.goodput_ratio),
        goodput_ratio_ci: setting.goodput_ratio.map(ends),
        near: spent(cpu(setting, probe.direction, Side::Near)),
        far: spent(cpu(setting, probe.direction, Side::Far)),
        cpu_ratio: mid(setting.cpu_ratio),
        cpu_ratio_ci: setting.cpu_ratio.map(ends),
        cost: setting.cost(),
        copied_share: setting.copied,
    }
}

fn spent(estimate: Option<&Estimate>) -> EndOut {
    let interval = estimate.and_then(|estimate| estimate.interval);
    EndOut {
        cpu_ns_per_byte: estimate.map(|estimate| estimate.mean),
        cpu_ci_ns_per_byte: interval.map(|i| [i.low.max(0.0), i.high]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::sample;
    use super::*;
    use crate::schema::{fits, refuses};

    fn output(probe: &Probe) -> Value {
        serde_json::from_str(&json(probe, None).unwrap()).unwrap()
    }

    #[test]
    fn the_document_fits_its_schema_and_tells_cost_and_knee() {
        let copy = output(&sample::copy(Direction::Forward));
        let cost = |at: usize| copy["settings"][at]["cost"].clone();
        assert_eq!([cost(0), cost(1), cost(2)], [Value::Null, "less".into(), "more".into()]);
        let size = output(&sample::size());
        assert_eq!(size["knee"]["setting"], 5);
        assert_eq!(size["settings"][5]["size_bytes"], 32_768);
        let depth = output(&sample::depth());
        fits(SCHEMA, &depth);
        let held = &depth["bandwidth_delay"];
        assert_eq!(
            (&depth["settings"][4]["depth"], &held["request_bytes"]),
            (&16.into(), &65_536.into())
        );
        assert!((held["requests"].as_f64().unwrap() - 5.0).abs() < 1e-9, "{held}");
        assert_eq!(held["alone_ns"], 52_429);
        let memory = output(&sample::memory());
        fits(SCHEMA, &memory);
        assert_eq!(memory["falls"][0]["from"], 1);
        assert_eq!(memory["knee"], Value::Null);
        let streams = output(&sample::streams());
        assert_eq!(
            (&streams["complete"], &streams["ended_early"]),
            (&false.into(), &"interrupted".into())
        );
        assert_eq!(streams["settings"][2]["goodput_bps"], Value::Null);
        for document in [&copy, &size, &streams, &output(&sample::copy(Direction::Reverse))] {
            fits(SCHEMA, document);
        }
    }

    #[test]
    fn the_schema_refuses_what_the_document_does_not_promise() {
        let good = output(&sample::size());
        let wrong = [
            ("/format", Value::from(2)),
            ("/swept", Value::from("weather")),
            ("/settings/0/streams", Value::from(0)),
            ("/settings/0/cost", Value::from("maybe")),
            ("/settings/0/near/cpu_ns_per_byte", Value::from(-1)),
            ("/knee/setting_ci", Value::from(vec![1])),
            ("/unknown", Value::Null),
        ];
        refuses(SCHEMA, &good, wrong, "");
    }
}
