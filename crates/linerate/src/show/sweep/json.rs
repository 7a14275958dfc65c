//! A sweep, for programs.
//!
//! The schema is `schema/sweep.schema.json`. Units stand in the keys; integers stay below 2^53; what is
//! unknown is `null`.

use linerate_core::facts::Gap;
use linerate_core::model::{Cost, Estimate, Setting};
use linerate_core::path::{Direction, Side};
use linerate_core::record::Record;
use linerate_core::stats::Interval;
use linerate_core::units::Bytes;
use serde::Serialize;

use super::super::json::{ci, integer};
use super::{Probe, cpu};

/// Version of the document; raised when a key changes its meaning or goes away.
pub const FORMAT: u32 = 1;

/// The published schema of the document.
pub const SCHEMA: &str = include_str!("../../../schema/sweep.schema.json");

#[derive(Serialize)]
pub(in crate::show) struct Output<'a> {
    format: u32,
    linerate: &'static str,
    target: &'a str,
    address: &'a str,
    same_machine: bool,
    swept: &'static str,
    direction: Direction,
    rounds: u32,
    washout_ns: u64,
    slice_ns: u64,
    complete: bool,
    ended_early: Option<&'a str>,
    settings: Vec<SettingOut>,
    reference: Option<usize>,
    knee: Option<KneeOut>,
    unknown: &'a [Gap],
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'a Record>,
}

#[derive(Serialize)]
struct SettingOut {
    setting: String,
    copy: &'static str,
    size_bytes: Option<u64>,
    streams: u32,
    rounds: u64,
    goodput_bps: Option<u64>,
    goodput_ci_bps: Option<[u64; 2]>,
    goodput_ratio: Option<f64>,
    goodput_ratio_ci: Option<[f64; 2]>,
    near: EndOut,
    far: EndOut,
    cpu_ratio: Option<f64>,
    cpu_ratio_ci: Option<[f64; 2]>,
    cost: Option<&'static str>,
    copied_share: Option<f64>,
}

#[derive(Serialize)]
struct EndOut {
    cpu_ns_per_byte: Option<f64>,
    cpu_ci_ns_per_byte: Option<[f64; 2]>,
}

#[derive(Serialize)]
struct KneeOut {
    setting: usize,
    setting_ci: [usize; 2],
}

/// The sweep as one JSON document, with a line feed at its end; with the raw readings where `record` has
/// them.
pub fn json(probe: &Probe, record: Option<&Record>) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(&output(probe, record))?;
    text.push('\n');
    Ok(text)
}

/// The document.
pub(in crate::show) fn output<'a>(probe: &'a Probe, record: Option<&'a Record>) -> Output<'a> {
    let found = &probe.found;
    Output {
        format: FORMAT,
        linerate: env!("CARGO_PKG_VERSION"),
        target: &probe.target,
        address: &probe.address,
        same_machine: probe.same_machine,
        swept: probe.swept.name(),
        direction: probe.direction,
        rounds: probe.pace.rounds,
        washout_ns: probe.pace.washout.0,
        slice_ns: probe.pace.measure.0,
        complete: probe.complete(),
        ended_early: Some(probe.broken.as_str()).filter(|why| !why.is_empty()),
        settings: found.settings.iter().map(|s| setting(probe, s)).collect(),
        reference: found.reference,
        knee: found.knee.map(|knee| KneeOut {
            setting: knee.at,
            setting_ci: [knee.from, knee.to],
        }),
        unknown: &probe.gaps,
        record,
    }
}

fn setting(probe: &Probe, setting: &Setting) -> SettingOut {
    let (mid, ends) = (
        |ratio: Option<Interval>| ratio.map(|r| r.mid),
        |ratio: Option<Interval>| ratio.map(|r| [r.low, r.high]),
    );
    let size = setting.knobs.write_size;
    SettingOut {
        setting: probe.swept.words(&setting.knobs),
        copy: setting.knobs.copy.name(),
        size_bytes: (size != Bytes(0)).then_some(size.0),
        streams: setting.knobs.streams,
        rounds: setting.goodput.map_or(0, |goodput| goodput.samples as u64),
        goodput_bps: setting.goodput.map(|goodput| integer(goodput.mean)),
        goodput_ci_bps: setting.goodput.as_ref().and_then(ci),
        goodput_ratio: mid(setting.goodput_ratio),
        goodput_ratio_ci: ends(setting.goodput_ratio),
        near: spent(cpu(setting, probe.direction, Side::Near)),
        far: spent(cpu(setting, probe.direction, Side::Far)),
        cpu_ratio: mid(setting.cpu_ratio),
        cpu_ratio_ci: ends(setting.cpu_ratio),
        cost: setting.cost().map(|cost| match cost {
            Cost::Less => "less",
            Cost::Same => "same",
            Cost::More => "more",
            Cost::Untold => "untold",
        }),
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
    use crate::show::schema::{fits, refuses};

    fn output(probe: &Probe) -> Value {
        serde_json::from_str(&json(probe, None).unwrap()).unwrap()
    }

    #[test]
    fn the_document_fits_its_schema_and_tells_cost_and_knee() {
        let copy = output(&sample::copy(Direction::Forward));
        let cost = |at: usize| copy["settings"][at]["cost"].clone();
        assert_eq!(
            [cost(0), cost(1), cost(2)],
            [Value::Null, "less".into(), "more".into()]
        );
        let size = output(&sample::size());
        assert_eq!(size["knee"]["setting"], 5);
        assert_eq!(size["settings"][5]["size_bytes"], 32_768);
        let streams = output(&sample::streams());
        assert_eq!(
            (&streams["complete"], &streams["ended_early"]),
            (&false.into(), &"interrupted".into())
        );
        assert_eq!(streams["settings"][2]["goodput_bps"], Value::Null);
        for document in [
            &copy,
            &size,
            &streams,
            &output(&sample::copy(Direction::Reverse)),
        ] {
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
