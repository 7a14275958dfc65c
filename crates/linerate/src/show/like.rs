//! Round trips in the form of other tools, for scripts that read their tables.
//!
//! Columns, number formats and meaning are theirs: microseconds, of half a round trip unless told otherwise. A value
//! that the samples do not support is `nan` in a column, and its line is left out where values have lines.

use std::fmt::Write as _;

use linerate_core::record::Histogram;
use linerate_core::stats::{middle, moments, percentile, samples};
use linerate_core::units::{Bytes, Nanos};

/// The tool in whose form round trips are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Like {
    /// `ib_write_lat` and `ib_send_lat`.
    Perftest,
    /// `sockperf ping-pong`; with `--full-rtt` if `whole`.
    Sockperf {
        /// Whether the times are whole round trips.
        whole: bool,
    },
}

/// Round trips of one message size.
#[derive(Debug, Clone, Copy)]
pub struct Timed<'a> {
    /// Payload of a message, and of its answer.
    pub size: Bytes,
    /// Their times; at least one.
    pub times: &'a Histogram,
    /// Time that counts.
    pub lasted: Nanos,
    /// Time before it that does not count.
    pub washout: Nanos,
}

/// Round trips of each size in the form of a tool.
pub fn page(like: Like, all: &[Timed<'_>]) -> String {
    match like {
        Like::Perftest => perftest(all),
        Like::Sockperf { whole } => all.iter().fold(String::new(), |mut text, timed| {
            if all.len() > 1 {
                let _ = writeln!(text, "sockperf: == message size {} B ==", timed.size.0);
            }
            sockperf(&mut text, timed, whole);
            text
        }),
    }
}

/// Microseconds of a part of a round trip; not a number if it is unknown.
fn micros(nanos: Option<f64>, parts: f64) -> f64 {
    nanos.map_or(f64::NAN, |nanos| nanos / 1e3 / parts)
}

/// A number as the C library prints it.
fn number(value: f64, digits: usize) -> String {
    if value.is_nan() {
        "nan".to_owned()
    } else {
        format!("{value:.digits$}")
    }
}

//= perftest (linux-rdma/perftest, 2026-07), src/perftest_parameters.h: RESULT_LINE, RESULT_FMT_LAT, REPORT_FMT_LAT
const LINE: &str =
    "---------------------------------------------------------------------------------------\n";
const HEAD: &str = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   \
                    99% percentile[usec]   99.9% percentile[usec] \n";

fn perftest(all: &[Timed<'_>]) -> String {
    let mut text = format!("{LINE}{HEAD}");
    for timed in all {
        let times = timed.times;
        let exact = times.exact;
        let found = moments(times);
        let whole = |nanos: Option<u64>| nanos.map(|n| n as f64);
        let cells = [
            whole(exact.map(|exact| exact.least)),
            whole(exact.map(|exact| exact.most)),
            whole(middle(times)),
            found.map(|found| found.mean),
            found.map(|found| found.deviation),
            whole(percentile(times, 0.99)),
            whole(percentile(times, 0.999)),
        ];
        let [least, most, typical, mean, deviation, p99, p999] =
            cells.map(|nanos| format!("{:<7}", number(micros(nanos, 2.0), 2)));
        let _ = writeln!(
            text,
            " {:<7} {}          {least}        {most}      {typical}  \t       {mean}     \t{deviation}\t\t{p99} \t\t{p999}",
            timed.size.0,
            samples(times),
        );
    }
    text.push_str(LINE);
    text
}

//= sockperf 3.7, src/client.cpp: client_statistics, printPercentiles
const PERCENTILES: [f64; 8] = [99.999, 99.99, 99.9, 99.0, 90.0, 75.0, 50.0, 25.0];

fn sockperf(text: &mut String, timed: &Timed<'_>, whole: bool) {
    let times = timed.times;
    let (name, label, parts) = if whole {
        ("rtt", "Round trip", 1.0)
    } else {
        ("latency", "Latency", 2.0)
    };
    let all = samples(times);
    let found = moments(times);
    let mean = number(micros(found.map(|found| found.mean), parts), 3);
    let deviation = number(micros(found.map(|found| found.deviation), parts), 3);
    let us =
        |nanos: Option<u64>| format!("{:>8}", number(micros(nanos.map(|n| n as f64), parts), 3));
    let sent = all.saturating_add(times.lost);
    let lines = [
        format!(
            "[Total Run] RunTime={:.3} sec; Warm up time={} msec; SentMessages={sent}; ReceivedMessages={all}",
            timed.lasted.secs() + timed.washout.secs(),
            timed.washout.0 / 1_000_000,
        ),
        "========= Printing statistics for Server No: 0".to_owned(),
        format!(
            "[Valid Duration] RunTime={:.3} sec; SentMessages={sent}; ReceivedMessages={all}",
            timed.lasted.secs()
        ),
        format!("====> avg-{name}={mean} (std-dev={deviation})"),
        format!(
            "# dropped messages = {}; # duplicated messages = 0; # out-of-order messages = 0",
            times.lost
        ),
        format!("Summary: {label} is {mean} usec"),
        format!(
            "Total {all} observations; each percentile contains {:.2} observations",
            all as f64 / 100.0
        ),
        format!(
            "---> <MAX> observation = {}",
            us(times.exact.map(|exact| exact.most))
        ),
    ];
    let percentiles = PERCENTILES.iter().filter_map(|percent| {
        let found = percentile(times, percent / 100.0)?;
        Some(format!(
            "---> percentile {percent:>6.3} = {}",
            us(Some(found))
        ))
    });
    let least = format!(
        "---> <MIN> observation = {}",
        us(times.exact.map(|exact| exact.least))
    );
    for line in lines.into_iter().chain(percentiles).chain([least]) {
        let _ = writeln!(text, "sockperf: {line}");
    }
}
