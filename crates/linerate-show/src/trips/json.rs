//! Round trips by message size, for programs.
//!
//! The schema of the document is made from `Output`. Units stand in the keys; integers stay below 2^53; unknown
//! values are `null`.

use linerate_facts::Gap;
use linerate_judge::model::SizeTrips;
use linerate_plan::transport::Options;
use linerate_record::Record;
use linerate_units::stats::{moments, percentile};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::fitted::{FitOut, TimerOut, fit_out, timer_out};
use super::super::json::{Format, described_elsewhere, exact, text};
use super::{Probe, number};

/// One JSON document: round trips of several message sizes, in turn. Keys contain the units. Unknown values are null.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate lat --sweep")]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct Output<'a> {
    /// Version of this document.
    format: Format<1>,
    /// Version of linerate.
    linerate: &'static str,
    /// The far end in the form that the user typed. Null for engines within this host.
    target: Option<&'a str>,
    /// Engine that sends the messages.
    engine: &'a str,
    /// Options of the engine that are set.
    options: &'a Options,
    /// Whether both ends run on one machine and share its CPUs.
    same_machine: bool,
    /// Whether both ends polled their sockets without sleeping.
    busy_poll: bool,
    /// Whether Nagle's algorithm was on for the timed messages.
    nagle: bool,
    /// Whether each message was sent in two writes.
    two_writes: bool,
    /// Time of the whole sweep, as asked for.
    time_ns: u64,
    /// False if the sweep ended early, or a size that fits in its time was not timed.
    complete: bool,
    /// Why it ended early. Null if it did not.
    ended_early: Option<&'a str>,
    /// The sizes, ascending. All times are of whole round trips.
    sizes: Vec<SizeOut>,
    /// A timer that sets whole round trips. Null if they show none.
    timer: Option<TimerOut>,
    /// What the times say. Its times are halves of round trips, so that the rate is that of one direction. Without
    /// candidates if both ends are on one machine. Null if too few messages are large enough to show a rate.
    fit: Option<FitOut>,
    /// Sizes that were refused, and what could not be read.
    unknown: &'a [Gap],
    /// Raw readings, with `--with-record` only. This schema does not describe them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "described_elsewhere")]
    record: Option<&'a Record>,
}

/// A message size and its round trips.
#[derive(Serialize, JsonSchema)]
struct SizeOut {
    /// Payload of a message, and of its answer.
    #[schemars(range(min = 1))]
    size_bytes: u64,
    /// Round trips that were timed.
    samples: u64,
    /// Messages that were sent in the measured time and never answered. They are no samples. Null for engines that lose
    /// nothing.
    lost: Option<u64>,
    /// Shortest round trip, to the nanosecond. Null if none was timed.
    least_ns: Option<u64>,
    /// Median. Null for fewer than six samples.
    typical_ns: Option<u64>,
    /// Mean of all round trips, to the nanosecond. Null if none was timed.
    #[schemars(range(min = 0))]
    mean_ns: Option<f64>,
    /// Standard deviation of the round trips. Null for fewer than two.
    #[schemars(range(min = 0))]
    deviation_ns: Option<f64>,
    /// A time that 99 % of the round trips do not exceed. Null for fewer than 1,000 samples.
    p99_ns: Option<u64>,
    /// A time that 99.9 % of the round trips do not exceed. Null for fewer than 10,000 samples.
    p999_ns: Option<u64>,
    /// Longest round trip, to the nanosecond. Null if none was timed.
    most_ns: Option<u64>,
    /// Time that the typical round trip waited for an acknowledgement that the far end delayed. Null if it did not, or if
    /// that is unknown.
    delayed_ns: Option<u64>,
    /// Why the size was not timed. Null if it was.
    not_measured: Option<String>,
}

/// The sweep as one JSON document, with a line feed at its end; with the raw readings where `record` has them.
pub fn json(probe: &Probe, record: Option<&Record>) -> serde_json::Result<String> {
    text(&output(probe, record))
}

/// The document.
pub(crate) fn output<'a>(probe: &'a Probe, record: Option<&'a Record>) -> Output<'a> {
    Output {
        format: Format,
        linerate: env!("CARGO_PKG_VERSION"),
        target: probe.target.as_deref(),
        engine: &probe.engine,
        options: &probe.options,
        same_machine: probe.same_machine,
        busy_poll: probe.knobs.busy_poll,
        nagle: probe.knobs.nagle,
        two_writes: probe.knobs.two_writes,
        time_ns: probe.time.0,
        complete: probe.complete(),
        ended_early: Some(probe.broken.as_str()).filter(|why| !why.is_empty()),
        sizes: probe.rows.iter().map(|row| size(probe, row)).collect(),
        timer: probe.timer().map(|timer| timer_out(&timer, probe.agreement())),
        fit: probe.fit().map(|fit| fit_out(&fit, probe.agreement())),
        unknown: &probe.gaps,
        record,
    }
}

fn size(probe: &Probe, row: &SizeTrips) -> SizeOut {
    let times = row.times.as_ref();
    let sums = times.and_then(|times| times.exact);
    let found = times.and_then(moments);
    let share = |q| times.and_then(|times| percentile(times, q)).map(exact);
    SizeOut {
        size_bytes: row.size.0,
        samples: exact(number(row)),
        lost: probe.lost(row).map(exact),
        least_ns: sums.map(|sums| exact(sums.least)),
        typical_ns: row.typical().map(|typical| exact(typical.0)),
        mean_ns: found.map(|found| found.mean),
        deviation_ns: found.filter(|_| number(row) > 1).map(|found| found.deviation),
        p99_ns: share(0.99),
        p999_ns: share(0.999),
        most_ns: sums.map(|sums| exact(sums.most)),
        delayed_ns: row.delayed.map(|more| exact(more.0)),
        not_measured: probe.lack(row).map(|lack| probe.why(lack)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::sample;
    use super::*;
    use crate::schema::{fits, needs_all, refuses};

    fn output(probe: &Probe) -> Value {
        serde_json::from_str(&json(probe, None).unwrap()).unwrap()
    }

    #[test]
    fn the_document_fits_its_schema_and_has_the_fit_of_one_direction() {
        let all = [sample::whole(), sample::slow(), sample::broken(), sample::delayed()];
        let [whole, slow, broken, delayed] = all.map(|probe| output(&probe));
        for document in [&whole, &slow, &broken, &delayed] {
            fits("lat-sweep", document);
        }
        let rate = whole["fit"]["rate_bps"].as_f64().unwrap();
        assert!((rate / 12.4e9 - 1.0).abs() < 0.01, "{rate}");
        assert!(whole["fit"]["floor_ns"].as_u64().unwrap().abs_diff(26_000) < 10);
        assert!(!whole["fit"]["candidates"].as_array().unwrap().is_empty());
        assert_eq!(
            (&whole["complete"], &whole["sizes"][0]["p999_ns"]),
            (&true.into(), &57_202.into())
        );
        assert_eq!(
            (&slow["complete"], &slow["sizes"][22]["most_ns"]),
            (&true.into(), &Value::Null)
        );
        assert!(slow["sizes"][22]["not_measured"].is_string());
        assert_eq!((&broken["ended_early"], &broken["fit"]), (&"interrupted".into(), &Value::Null));
        assert_eq!(
            (&delayed["nagle"], &delayed["sizes"][0]["delayed_ns"]),
            (&true.into(), &43_900_000.into())
        );
    }

    #[test]
    fn the_schema_refuses_what_the_document_does_not_promise() {
        let good = output(&sample::whole());
        let wrong = [
            ("/format", Value::from(2)),
            ("/sizes/0/size_bytes", Value::from(0)),
            ("/sizes/0/mean_ns", Value::from(-1)),
            ("/fit/interval_bps", serde_json::json!([1])),
            ("/unknown", Value::Null),
        ];
        refuses("lat-sweep", &good, wrong, "");
        needs_all("lat-sweep", &good, "");
    }
}
