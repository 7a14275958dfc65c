//! The result of `linerate lat` as a page of text.

use linerate_facts::memory::BATCH;
use linerate_plan::transport::{self, FarEnd, Feature};
use linerate_plan::{Handover, Knobs};
use linerate_units::stats::percentile_ci;
use linerate_units::{Nanos, Rate};

use super::super::bw::text::{ended_early, unknown};
use super::super::document::{LABEL, Table};
use super::super::words::{self, count, share};
use super::super::{Document, Tone, verbs};
use super::{Beside, PERCENTILES, Probe};

/// The page of one measurement of round trips.
pub fn page(probe: &Probe) -> Document {
    let mut doc = Document::new();
    ended_early(&mut doc, &probe.broken, probe.lasted, probe.time);
    if let (Some(latency), Some(longest)) = (&probe.latency, probe.longest()) {
        let samples = match probe.array {
            Some(_) => format!("{} batches of {BATCH}, whose means are", latency.samples),
            None => count(latency.samples, probe.unit()),
        };
        let comma = if probe.array.is_some() { "" } else { "," };
        let extent = format!("{samples}{comma} {} to {longest}", latency.least);
        let label = match probe.array {
            Some(_) => "loads",
            None if probe.unanswered() > 0 => "due",
            None => "answered",
        };
        doc.entry(label, &[(Tone::Plain, &extent)], 2);
        mean(&mut doc, probe);
        lost(&mut doc, probe);
        rate(&mut doc, probe);
        percentiles(&mut doc, probe);
        unread(&mut doc, probe);
        if let Some(more) = probe.delayed {
            doc.entry("wait", &[(Tone::Warning, &words::delayed(more))], 2);
        }
    } else {
        doc.entry(&words::plural(probe.unit()), &[(Tone::Warning, "unknown")], 2);
        lost(&mut doc, probe);
    }
    for load in &probe.beside {
        beside(&mut doc, load, &probe.knobs);
    }
    histogram(&mut doc, probe);
    if let Some(text) = verbs::proof_of_time(&probe.engine, &probe.options) {
        doc.entry("timed", &[(Tone::Plain, &text)], 2);
    }
    verbs::lines(&mut doc, &probe.rdma);
    doc.gap();
    doc.line(&[(Tone::Dim, &head(probe))], 0);
    unknown(&mut doc, &probe.gaps);
    doc
}

fn head(probe: &Probe) -> String {
    if let Some(array) = probe.array {
        return format!(
            "memory of this host: loads, each of which needs the result of the one before it, in an array of {array}, {}{}",
            probe.lasted,
            words::left_out(probe.washout)
        );
    }
    let how = match probe.interval {
        Some(interval) => format!("open loop, one due every {interval}"),
        None => "closed loop".to_owned(),
    };
    let busy = words::how_sent(&probe.own);
    let path = match probe.beside.as_slice() {
        [] => "idle path".to_owned(),
        [load] => format!("during a {} load", load.direction.name()),
        _ => "during a load in both directions".to_owned(),
    };
    let starts = words::starts_far_end(&probe.engine);
    let server = if starts {
        "two processes of this host".to_owned()
    } else {
        words::server("linerate", &probe.address)
    };
    let info = transport::of(&probe.engine);
    let server = if info.far_end == FarEnd::File { probe.target.clone() } else { server };
    let shared = if probe.same_machine && !starts && !info.is_alone() {
        ", both ends on this machine"
    } else {
        ""
    };
    let what = if probe.makes_connections() {
        format!("connections with {} there and back", probe.size)
    } else {
        let engine = words::engine(&probe.engine, &probe.options);
        let trips = if info.has(Feature::Disk) { ", operations" } else { " round trips" };
        format!("{engine}{trips} of {}", probe.size)
    };
    format!(
        "{server}, {what}, {how}{busy}, {path}, {}{}{shared}",
        probe.lasted,
        words::left_out(probe.washout)
    )
}

/// Writes the load that ran while the round trips were timed, and its loss.
fn beside(doc: &mut Document, load: &Beside, knobs: &Knobs) {
    let rate = load.goodput.map(|g| Rate(g as u64).to_string());
    let rate = rate.as_deref().unwrap_or("unknown");
    let text = format!("{rate} {}, {}", load.direction.name(), with(knobs));
    let lost = load.lost.filter(|lost| *lost > 0.0);
    let lost = lost
        .map_or_else(String::new, |lost| format!(", lost {:.2} % of its datagrams", lost * 100.0));
    doc.entry("beside", &[(Tone::Plain, &text), (Tone::Warning, &lost)], 2);
}

/// The settings of a load: `4 streams, bbr, at most 1 Gb/s each`.
fn with(knobs: &Knobs) -> String {
    let mut parts = vec![count(u64::from(knobs.streams), "stream")];
    parts.extend(knobs.congestion.clone());
    if knobs.write_size.0 > 0 {
        parts.push(format!("writes of {}", knobs.write_size));
    }
    if knobs.copy != Handover::Copy {
        parts.push(knobs.copy.name().to_owned());
    }
    if let Some(pacing) = knobs.pacing {
        let each = if knobs.streams > 1 { " each" } else { "" };
        parts.push(format!("at most {pacing}{each}"));
    }
    parts.join(", ")
}

/// Writes the mean time of a memory load. It is computed over all loads; times of batches are whole nanoseconds only.
fn mean(doc: &mut Document, probe: &Probe) {
    if let Some(nanos) = probe.mean_load() {
        let text = format!("{nanos:.2} ns");
        let how = " a load, over all loads in that time";
        doc.entry("mean", &[(Tone::Good, &text), (Tone::Plain, how)], 2);
    }
}

/// Writes how many messages were never answered, for an engine that may lose them.
fn lost(doc: &mut Document, probe: &Probe) {
    let Some(lost) = probe.lost() else { return };
    let answered = probe.latency.as_ref().map_or(0, |latency| latency.samples);
    let (tone, text) = match lost {
        0 => (Tone::Plain, "none".to_owned()),
        n => {
            let all = answered + n;
            let text = format!(
                "{} ({n} of {all}) never answered, and not part of the figures below",
                share(n, all)
            );
            (Tone::Warning, text)
        }
    };
    doc.entry("lost", &[(tone, &text)], 2);
}

/// Writes the part of round trips in which the answer waited in the kernel here.
fn unread(doc: &mut Document, probe: &Probe) {
    let Some(unread) = probe.unread() else { return };
    let reported: Vec<String> = PERCENTILES
        .iter()
        .filter_map(|percent| {
            let found = percentile_ci(&unread, percent / 100.0)?;
            Some(format!("{} p{percent}", Nanos(found.mid as u64)))
        })
        .collect();
    if !reported.is_empty() {
        let text = format!(
            "{}, from the kernel's receipt of an answer here to its reading",
            reported.join(", ")
        );
        doc.entry("unread", &[(Tone::Plain, &text)], 2);
    }
}

/// Writes the requested and the achieved rate in open loop; for new connections the achieved rate only.
fn rate(doc: &mut Document, probe: &Probe) {
    if let (true, Some(achieved)) = (probe.makes_connections(), probe.rate) {
        let text = format!("{achieved:.0} connections a second, one after another");
        doc.entry("rate", &[(Tone::Good, &text)], 2);
    }
    let (Some(requested), Some(achieved)) = (probe.requested(), probe.rate) else {
        return;
    };
    let text = format!("{requested:.0} a second requested, {achieved:.0} a second achieved");
    let tone = if probe.unanswered() > 0 { Tone::Warning } else { Tone::Plain };
    doc.entry("rate", &[(tone, &text)], 2);
}

fn percentiles(doc: &mut Document, probe: &Probe) {
    let Some(times) = &probe.times else { return };
    let mut missing = Vec::new();
    for percent in PERCENTILES {
        let label = format!("p{percent}");
        match percentile_ci(times, percent / 100.0) {
            Some(found) if probe.is_least(percent) => {
                let value = format!("at least {}", Nanos(found.mid as u64));
                let why = " (not answered by the end)";
                doc.entry(&label, &[(Tone::Warning, &value), (Tone::Plain, why)], 2);
            }
            Some(found) => {
                let value = Nanos(found.mid as u64).to_string();
                let (low, high) = (Nanos(found.low as u64), Nanos(found.high as u64));
                let range = format!(" ({low} to {high})");
                doc.entry(&label, &[(Tone::Good, &value), (Tone::Plain, &range)], 2);
            }
            None => missing.push(label),
        }
    }
    if !missing.is_empty() {
        let plural = if probe.array.is_some() { "es" } else { "s" };
        let text = format!("too few {}{plural} for {}", probe.unit(), missing.join(", "));
        doc.remark(&[(Tone::Dim, &text)]);
    }
}

/// The upper ends of the bins of a histogram, in nanoseconds: 1, 2 and 5 of each power of ten.
fn bounds() -> impl Iterator<Item = u64> {
    (0..18).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_u64.pow(power)))
}

/// A share with enough digits to tell it from 0 and from all: `99.973 %`.
fn share_so_far(part: u64, all: u64) -> String {
    let rest = all.saturating_sub(part);
    if part < rest {
        return share(part, all);
    }
    let missing = share(rest, all);
    let digits = missing.split_once('.').map_or(0, |(_, digits)| digits.len() - " %".len());
    let percent = part as f64 / all.max(1) as f64 * 100.0;
    format!("{percent:.digits$} %")
}

/// Writes for each bin of the histogram its number of round trips, and the share of all up to its upper end. Runs
/// of empty bins are left out.
fn histogram(doc: &mut Document, probe: &Probe) {
    let Some(times) = &probe.times else { return };
    let all = times.counts.iter().fold(0, |sum: u64, (_, n)| sum.saturating_add(*n));
    let (mut before, mut from, mut skips) = (0_u64, 0, false);
    let mut rows = Vec::new();
    for bound in bounds() {
        let within = |value: &u64| (from..bound).contains(value);
        let n = times.counts.iter().filter(|(value, _)| within(value));
        let n = n.fold(0, |sum: u64, (_, n)| sum.saturating_add(*n));
        from = bound;
        if n == 0 {
            skips = before > 0;
            continue;
        }
        before = before.saturating_add(n);
        rows.push((std::mem::take(&mut skips), bound, n, before));
        if before == all {
            break;
        }
    }
    if rows.is_empty() {
        return;
    }
    doc.gap();
    let widths = [LABEL, 12, 12, 13, 0];
    let head = ["below", "number", "share", "total", ""];
    let mut table = Table::new(&widths).head(&head.map(|cell| (Tone::Strong, cell)));
    for (skips, bound, n, before) in rows {
        if skips {
            table.row(&[(Tone::Dim, "...")]);
        }
        let bar = "#".repeat((n as f64 / all as f64 * 26.0).round() as usize);
        let cells = [
            Nanos(bound).to_string(),
            n.to_string(),
            share(n, all),
            share_so_far(before, all),
            bar,
        ];
        table.row(&cells.each_ref().map(|cell| (Tone::Plain, cell.as_str())));
    }
    doc.table(table);
}

#[cfg(test)]
mod tests {
    use super::super::super::Style;
    use super::super::sample;
    use super::*;

    #[test]
    fn golden_of_round_trips() {
        let page = |probe: &Probe| page(probe).text(Style::PLAIN);
        insta::assert_snapshot!("lat_idle", page(&sample::idle()));
        insta::assert_snapshot!("lat_beside", page(&sample::beside()));
        insta::assert_snapshot!("lat_udp", page(&sample::udp()));
        insta::assert_snapshot!("lat_lossy", page(&sample::lossy()));
        insta::assert_snapshot!("lat_memory", page(&sample::memory()));
        insta::assert_snapshot!("lat_markdown", super::page(&sample::beside()).markdown());
    }

    #[test]
    fn a_share_is_100_percent_only_where_nothing_is_missing() {
        let of = |part| share_so_far(part, 100_000);
        assert_eq!(
            [1, 50_000, 99_000, 99_999, 100_000].map(of),
            ["0.0010 %", "50.0 %", "99.0 %", "99.9990 %", "100 %"]
        );
    }

    #[test]
    fn the_load_is_named_with_what_differs_from_the_usual() {
        let mut knobs = Knobs::default();
        assert_eq!(with(&knobs), "1 stream");
        knobs.streams = 4;
        knobs.pacing = Some(Rate(1_000_000_000));
        knobs.copy = Handover::Zerocopy;
        assert_eq!(with(&knobs), "4 streams, zerocopy, at most 1 Gb/s each");
    }
}
