//! Round trips in the output format of other tools, for scripts that read that format.
//!
//! Columns, number formats and meaning are those of the tool: microseconds, of half a round trip unless whole ones
//! are requested. If there are too few samples for a value, it is `nan` in a column; where values have lines, its
//! line is left out.

use std::fmt::Write as _;

use linerate_units::stats::{Histogram, middle, moments, percentile, samples};
use linerate_units::{Bytes, Nanos};

/// The tool whose output format is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Like {
    /// perftest: `ib_write_lat` and `ib_send_lat`.
    Perftest,
    /// `sockperf ping-pong`; with `--full-rtt` if `whole`.
    Sockperf {
        /// Whether whole round trips are printed, not halves.
        whole: bool,
    },
}

/// Round trips of one message size.
#[derive(Debug, Clone, Copy)]
pub struct Timed<'a> {
    /// Payload of a message, and of its answer.
    pub size: Bytes,
    /// Times of the round trips; there is at least one.
    pub times: &'a Histogram,
    /// Length of the measured time.
    pub lasted: Nanos,
    /// Length of the time before the measured time, which does not count.
    pub washout: Nanos,
    /// Whether the timed operation, such as an RDMA read, is a round trip by itself: its time is not halved, as in
    /// the tools.
    pub whole: bool,
}

/// Round trips of each size in the output format of a tool.
pub fn page(like: Like, all: &[Timed<'_>]) -> String {
    match like {
        Like::Perftest => perftest(all),
        Like::Sockperf { whole } => all.iter().fold(String::new(), |mut text, one| {
            if all.len() > 1 {
                let _ = writeln!(text, "sockperf: == message size {} B ==", one.size.0);
            }
            sockperf(&mut text, one, whole);
            text
        }),
    }
}

/// Nanoseconds divided by `parts`, in microseconds; not a number if the time is unknown.
fn micros(nanos: Option<f64>, parts: f64) -> f64 {
    nanos.map_or(f64::NAN, |nanos| nanos / 1e3 / parts)
}

/// A number in the format of C's `printf`: with `digits` decimals, or `nan`.
fn number(value: f64, digits: usize) -> String {
    if value.is_nan() { "nan".to_owned() } else { format!("{value:.digits$}") }
}

//= perftest (linux-rdma/perftest, 2026-07), src/perftest_parameters.h: RESULT_LINE, RESULT_FMT_LAT, REPORT_FMT_LAT
const LINE: &str =
    "---------------------------------------------------------------------------------------\n";
const HEAD: &str = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   \
                    99% percentile[usec]   99.9% percentile[usec] \n";

fn perftest(all: &[Timed<'_>]) -> String {
    let mut text = format!("{LINE}{HEAD}");
    for one in all {
        let times = one.times;
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
        let parts = if one.whole { 1.0 } else { 2.0 };
        let cells = cells.map(|nanos| micros(nanos, parts));
        text.push_str(&row(one.size.0, samples(times), cells));
    }
    text.push_str(LINE);
    text
}

/// A row of perftest's table: shortest, longest, typical and mean time, standard deviation, and two percentiles.
fn row(size: u64, number_of: u64, micros: [f64; 7]) -> String {
    let [least, most, typical, mean, deviation, p99, p999] =
        micros.map(|value| format!("{:<7}", number(value, 2)));
    format!(
        " {size:<7} {number_of}          {least}        {most}      {typical}  \t       {mean}     \t{deviation}\t\t{p99} \t\t{p999}\n"
    )
}

//= sockperf 3.7, src/client.cpp: client_statistics, printPercentiles
const PERCENTILES: [f64; 8] = [99.999, 99.99, 99.9, 99.0, 90.0, 75.0, 50.0, 25.0];

fn sockperf(text: &mut String, one: &Timed<'_>, whole: bool) {
    let times = one.times;
    let (name, label, parts) =
        if whole || one.whole { ("rtt", "Round trip", 1.0) } else { ("latency", "Latency", 2.0) };
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
            one.lasted.secs() + one.washout.secs(),
            one.washout.0 / 1_000_000,
        ),
        "========= Printing statistics for Server No: 0".to_owned(),
        format!(
            "[Valid Duration] RunTime={:.3} sec; SentMessages={sent}; ReceivedMessages={all}",
            one.lasted.secs()
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
        format!("---> <MAX> observation = {}", us(times.exact.map(|exact| exact.most))),
    ];
    let percentiles = PERCENTILES.iter().filter_map(|percent| {
        let found = percentile(times, percent / 100.0)?;
        Some(format!("---> percentile {percent:>6.3} = {}", us(Some(found))))
    });
    let least = format!("---> <MIN> observation = {}", us(times.exact.map(|exact| exact.least)));
    for line in lines.into_iter().chain(percentiles).chain([least]) {
        let _ = writeln!(text, "sockperf: {line}");
    }
}

#[cfg(test)]
mod tests {
    use linerate_units::stats::Exact;

    use super::*;

    /// Output of sockperf 3.7 ping-pong on loopback, as it was printed, escapes for colour included.
    const SOCKPERF: &str = include_str!("sockperf.txt");
    const SOCKPERF_FULL_RTT: &str = include_str!("sockperf-full-rtt.txt");
    /// A table of ib_write_lat -a over Soft-RoCE, as published on the mailing list linux-rdma in February 2022.
    const PERFTEST: &str = include_str!("perftest.txt");

    /// 20,000 round trips of 10 to 30 us, and one of about 5 ms.
    fn times() -> Histogram {
        let counts: Vec<(u64, u64)> =
            (0..20).map(|k| (10_000 + k * 1000, 1000)).chain([(5_000_000, 1)]).collect();
        let sum = counts.iter().map(|(value, n)| value * n).sum::<u64>() + 1;
        Histogram {
            counts,
            lost: 2,
            exact: Some(Exact { least: 9_998, most: 5_000_001, sum, deviation_ps: 36_500_000 }),
            ..Histogram::default()
        }
    }

    fn timed(times: &Histogram, size: u64) -> Timed<'_> {
        Timed {
            size: Bytes(size),
            times,
            lasted: Nanos::from_secs(1),
            washout: Nanos::from_millis(200),
            whole: false,
        }
    }

    /// What a script reads from sockperf's output without its colour codes: each number by its name.
    fn read_sockperf(text: &str) -> Vec<(String, f64)> {
        let plain = text.replace("\u{1b}[2;35m", "").replace("\u{1b}[0m", "");
        let lines = plain.lines().filter_map(|line| line.strip_prefix("sockperf: "));
        let value = |line: &str, from: &str, to: &str| -> Option<f64> {
            let (_, rest) = line.split_once(from)?;
            rest.split(to).next()?.trim().parse().ok()
        };
        let mut found = Vec::new();
        for line in lines {
            for (name, from, to) in [
                ("mean", "====> avg-latency=", " "),
                ("mean rtt", "====> avg-rtt=", " "),
                ("deviation", "(std-dev=", ")"),
                ("summary", "Summary: Latency is ", " usec"),
                ("summary rtt", "Summary: Round trip is ", " usec"),
                ("observations", "Total ", " observations"),
                ("dropped", "# dropped messages = ", ";"),
                ("run time", "[Valid Duration] RunTime=", " sec"),
                ("most", "---> <MAX> observation = ", "\n"),
                ("least", "---> <MIN> observation = ", "\n"),
            ] {
                found.extend(value(line, from, to).map(|v| (name.to_owned(), v)));
            }
            if let Some((percent, us)) =
                line.strip_prefix("---> percentile ").and_then(|rest| rest.split_once(" = "))
            {
                found.push((percent.trim().to_owned(), us.trim().parse().unwrap()));
            }
        }
        found
    }

    fn names(found: &[(String, f64)]) -> Vec<&str> {
        found.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn one_parser_reads_the_summary_of_sockperf_and_ours() {
        let times = times();
        for (whole, theirs) in [(false, SOCKPERF), (true, SOCKPERF_FULL_RTT)] {
            let ours = page(Like::Sockperf { whole }, &[timed(&times, 64)]);
            let (read, ours) = (read_sockperf(theirs), read_sockperf(&ours));
            // 20,001 samples do not support the two highest percentiles.
            let known: Vec<&str> =
                names(&read).into_iter().filter(|n| !["99.999", "99.990"].contains(n)).collect();
            assert_eq!(names(&ours), known);
            let parts = if whole { 1.0 } else { 2.0 };
            let value = |name: &str| ours.iter().find(|(known, _)| known == name).unwrap().1;
            assert_eq!(
                (value("most"), value("least")),
                (((5_000.001 / parts) * 1e3_f64).round() / 1e3, 9.998 / parts)
            );
            assert_eq!((value("observations"), value("dropped")), (20_001.0, 2.0));
            assert!((value("50.000") - 20.0 / parts).abs() < 1e-9);
        }
    }

    /// What a script reads from perftest's output: the rows that begin with a number.
    fn read_perftest(text: &str) -> Vec<Vec<f64>> {
        let row = |line: &str| {
            line.split_whitespace().map(|cell| cell.parse().ok()).collect::<Option<Vec<f64>>>()
        };
        text.lines().filter_map(row).filter(|row| !row.is_empty()).collect()
    }

    #[test]
    fn one_parser_reads_the_table_of_perftest_and_ours() {
        let (times, few) = (
            times(),
            Histogram {
                counts: vec![(8_000, 5)],
                exact: Some(Exact { least: 8_000, most: 8_000, sum: 40_000, deviation_ps: 0 }),
                ..Histogram::default()
            },
        );
        let ours = page(Like::Perftest, &[timed(&times, 64), timed(&few, 8 << 20)]);
        let head =
            |text: &str| text.lines().find(|line| line.contains("#bytes")).map(str::to_owned);
        let words = |line: Option<String>| -> Vec<String> {
            line.unwrap().split_whitespace().map(str::to_owned).collect()
        };
        assert_eq!(words(head(&ours)), words(head(PERFTEST)));
        let (read, ours) = (read_perftest(PERFTEST), read_perftest(&ours));
        assert!(read.len() == 12 && read.iter().all(|row| row.len() == 9), "{read:?}");
        assert_eq!(ours[0][..5], [64.0, 20_001.0, 5.0, 2500.0, 10.0]);
        assert_eq!(ours[0][7..], [14.5, 14.5]);
        assert_eq!(ours[1][..4], [8_388_608.0, 5.0, 4.0, 4.0]);
        assert!(ours[1][4].is_nan() && ours[1][7].is_nan() && ours[1].len() == 9);
    }

    /// The columns t_max and 99.9 % of perftest's table, if `long` of `all` round trips take 100 us and the others
    /// 2 us.
    fn with_long_ones(all: u64, long: u64) -> [f64; 2] {
        let short = all - long;
        let times = Histogram {
            counts: vec![(2_000, short), (100_000, long)],
            exact: Some(Exact {
                least: 2_000,
                most: 100_000,
                sum: 2_000 * short + 100_000 * long,
                deviation_ps: 3_000_000,
            }),
            ..Histogram::default()
        };
        let whole = Timed { whole: true, ..timed(&times, 2) };
        let row = read_perftest(&page(Like::Perftest, &[whole])).remove(0);
        [row[3], row[8]]
    }

    #[test]
    fn a_long_round_trip_stays_in_the_table_of_perftest() {
        // perftest itself leaves the two longest times out: its t_max and its 99.9 % would be 2.00 here.
        let [longest, p999] = with_long_ones(1_000, 1);
        assert!((longest - 100.0).abs() < 1e-9);
        assert!(p999.is_nan(), "a thousand do not tell one of a thousand");
        // With 10 long ones of 10,000, p99.9 is the longest of the short ones; with 11 it is a long one.
        let near = |of: [f64; 2], want: [f64; 2]| {
            of.iter().zip(want).all(|(of, want)| (of - want).abs() < 1e-9)
        };
        assert!(near(with_long_ones(10_000, 11), [100.0, 100.0]));
        assert!(near(with_long_ones(10_000, 10), [100.0, 2.0]));
    }

    #[test]
    fn a_row_of_perftest_is_printed_to_the_byte() {
        let lines = PERFTEST.lines().skip(1);
        for (line, values) in lines.zip(read_perftest(PERFTEST)) {
            let cells: [f64; 7] = values[2..].try_into().unwrap();
            let ours = row(values[0] as u64, values[1] as u64, cells);
            assert_eq!(ours.trim_end_matches('\n'), line);
        }
        assert!(HEAD.starts_with(PERFTEST.lines().next().unwrap()));
    }

    #[test]
    fn each_size_of_a_sweep_is_named_where_the_tool_has_no_column_for_it() {
        let times = times();
        let both = [timed(&times, 64), timed(&times, 128)];
        let text = page(Like::Sockperf { whole: false }, &both);
        assert_eq!(text.matches("sockperf: == message size ").count(), 2);
        assert!(!page(Like::Sockperf { whole: false }, &both[..1]).contains("message size"));
    }
}
