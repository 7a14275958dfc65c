//! The result of `linerate bw` as a page of text.

use linerate_facts::Gap;
use linerate_judge::model::Estimate;
use linerate_plan::Handover;
use linerate_plan::path::{Direction, Side};
use linerate_plan::transport;
use linerate_units::{Bytes, Nanos, Rate};

use super::super::words::{self, count};
use super::super::{Document, Tone, flows, verbs};
use super::{DirectionResult, End, FarEnd, Probe, datagrams, memory, search};

/// Largest number of figures in the row of intervals; a longer measurement has longer intervals.
const MOST_INTERVALS: usize = 12;

/// The page of one measurement.
pub fn page(probe: &Probe) -> Document {
    let mut doc = Document::new();
    ended_early(&mut doc, &probe.broken, probe.lasted, probe.time);
    if let Some(found) = &probe.search {
        doc.gap();
        search::lines(&mut doc, found);
    }
    for result in &probe.results {
        doc.gap();
        if probe.results.len() > 1 {
            doc.heading(words::direction(&probe.engine, result.direction));
        }
        goodput(&mut doc, probe, result);
        figures(&mut doc, probe, result);
        if let Some(text) = verbs::proof(&probe.engine, &probe.options, result.direction) {
            doc.entry("counted", &[(Tone::Plain, &text)], 2);
        }
    }
    verbs::lines(&mut doc, &probe.rdma);
    busiest(&mut doc, probe);
    doc.gap();
    doc.line(&[(Tone::Dim, &head(probe))], 0);
    unknown(&mut doc, &probe.gaps);
    doc
}

fn head(probe: &Probe) -> String {
    let after = words::left_out(probe.washout);
    if let Some(load) = &probe.memory {
        return format!("{}, {}{after}", memory::head(probe, load), probe.lasted);
    }
    let starts = words::starts_far_end(&probe.engine);
    let server = match probe.far_end {
        _ if starts => "two processes of this host".to_owned(),
        FarEnd::Linerate => words::server("linerate", &probe.address),
        FarEnd::Iperf3 => words::server("iperf3 server", &probe.address),
        FarEnd::None if transport::of(&probe.engine).far_end == transport::FarEnd::File => {
            probe.target.clone()
        }
        FarEnd::None => "this host alone".to_owned(),
    };
    let directions = match probe.results.as_slice() {
        [result] => words::direction(&probe.engine, result.direction),
        _ => "both directions at once",
    };
    let engine = match &*probe.engine {
        usual if usual == transport::USUAL.name => String::new(),
        other => format!("{}, ", words::engine(other, &probe.options)),
    };
    let streams = count(u64::from(probe.streams), "stream");
    let each = if probe.results.len() > 1 { " each" } else { "" };
    let shared = match probe.same_machine {
        Some(true) if !starts && !transport::of(&probe.engine).is_alone() => {
            ", both ends on this machine"
        }
        _ => "",
    };
    format!("{server}, {engine}{directions}, {streams}{each}, {}{after}{shared}", probe.lasted)
}

/// Writes why the measurement ended before the requested time, and how much was measured; nothing if it was
/// complete.
pub(crate) fn ended_early(doc: &mut Document, why: &str, lasted: Nanos, requested: Nanos) {
    if why.is_empty() {
        return;
    }
    let part = if lasted < requested {
        format!("; {lasted} of {requested} were measured")
    } else {
        String::new()
    };
    doc.line(&[(Tone::Warning, "Ended early: "), (Tone::Plain, &format!("{why}{part}"))], 0);
}

fn goodput(doc: &mut Document, probe: &Probe, result: &DirectionResult) {
    let memory = probe.memory.as_ref();
    let Some(goodput) = &result.goodput else {
        doc.entry("goodput", &[(Tone::Warning, "unknown")], 2);
        // Goodput is unknown, but the payload that the sender handed to its kernel is known.
        if let Some((near, time)) = result.near.as_ref().and_then(|near| Some((near, near.time?))) {
            let rate = format!("{} ", Rate::of(near.bytes, time));
            let how = format!("({} in {time}), {}", near.bytes, transport::of(&probe.engine).taken);
            doc.entry("sent", &[(Tone::Strong, &rate), (Tone::Plain, &how)], 2);
        }
        if let Some((bytes, time)) = result.received {
            let rate = format!("{} ", Rate::of(bytes, time));
            let how = format!("({bytes} in {time}), read by this end");
            doc.entry("received", &[(Tone::Strong, &rate), (Tone::Plain, &how)], 2);
        }
        return;
    };
    let how = how(result, goodput, transport::of(&probe.engine).is_alone());
    if let Some(load) = memory {
        memory::rate(doc, load, goodput, &how);
        return;
    }
    doc.entry("goodput", &[(Tone::Good, &words::goodput(goodput)), (Tone::Plain, &how)], 2);
    if let Some(text) = words::uneven(goodput) {
        doc.detail(&[(Tone::Warning, &text)], 2);
    }
}

/// How goodput was measured, in parentheses: which end counted how much, number of samples, ramp.
fn how(result: &DirectionResult, goodput: &Estimate, alone: bool) -> String {
    let who = match result.direction {
        _ if alone => "",
        Direction::Forward => "the far end received ",
        Direction::Reverse => "this end received ",
    };
    let mut parts: Vec<String> = handed(result).into_iter().collect();
    if result.discarded {
        parts.push("discarded, no program read it".to_owned());
    }
    if let Some((bytes, time)) = result.received {
        parts.push(format!("{who}{bytes} in {time}"));
    }
    if goodput.samples > 0 {
        let samples = count(goodput.samples as u64, "sample");
        parts.push(match goodput.interval {
            Some(_) => format!("95 % of {samples}"),
            None => format!("{samples}, too few or too different for an interval"),
        });
    }
    if result.ramp > Nanos(0) {
        parts.push(format!("without a ramp of {} at its start", result.ramp));
    }
    if result.steady == Some(false) {
        parts.push("not steady".to_owned());
    }
    if parts.is_empty() {
        return String::new();
    }
    format!(" ({})", parts.join("; "))
}

/// How payload was handed to the kernel: `zerocopy, the kernel copied 100.0 % anyway`; `None` for ordinary copies.
fn handed(result: &DirectionResult) -> Option<String> {
    let (how, share) = result.handed.filter(|(how, _)| *how != Handover::Copy)?;
    let became = words::copied(how, share).map_or_else(String::new, |words| format!(", {words}"));
    Some(format!("{}{became}", how.name()))
}

/// Writes the goodput over time, in at most a dozen figures.
fn intervals(doc: &mut Document, all: &[(Bytes, Nanos)]) {
    let parts = all.chunks(all.len().div_ceil(MOST_INTERVALS).max(1));
    let parts: Vec<_> = parts.map(together).collect();
    // The last interval may be shorter than the others.
    let Some((_, whole)) = parts.split_last().filter(|(_, whole)| !whole.is_empty()) else {
        return;
    };
    let usual = whole.iter().map(|(_, time)| time.0).min().unwrap_or(0);
    let rates: Vec<String> = parts.iter().map(|part| rate(*part, usual)).collect();
    let label = format!("each {} s", (usual as f64 / 1e9).round());
    doc.entry(&label, &[(Tone::Plain, &rates.join(", "))], 0);
}

fn together(part: &[(Bytes, Nanos)]) -> (Bytes, Nanos) {
    let sum = part.iter().fold((0, 0), |(b, t), (bytes, time)| (b + bytes.0, t + time.0));
    (Bytes(sum.0), Nanos(sum.1))
}

/// A rate; with its time if it is longer than usual because an end stood still for a moment.
fn rate((bytes, time): (Bytes, Nanos), usual: u64) -> String {
    let rate = Rate((bytes.0 as f64 * 8e9 / time.0.max(1) as f64) as u64);
    if time.0 > usual.saturating_add(usual / 2) {
        format!("{rate} in {time}")
    } else {
        rate.to_string()
    }
}

fn figures(doc: &mut Document, probe: &Probe, result: &DirectionResult) {
    intervals(doc, &result.intervals);
    for (at, words) in result.interruptions.iter().enumerate() {
        let label = if at == 0 { "interrupted" } else { "" };
        doc.entry(label, &[(Tone::Warning, words)], 2);
    }
    if let Some(found) = &result.datagrams {
        datagrams::lines(doc, result, found);
    }
    if let Some((figure, counted)) = &result.counted {
        let text = words::per_second(counted);
        doc.entry(figure.label, &[(Tone::Plain, &text)], 2);
    }
    if let Some((missing, sent)) = result.missing {
        let (tone, text) = match missing.0 {
            0 => (Tone::Plain, "none".to_owned()),
            n => {
                let share = words::share(n, sent.0);
                let text = format!("{share} ({missing} of {sent} sent in the whole step)");
                (Tone::Warning, text)
            }
        };
        doc.entry("lost", &[(tone, &text)], 2);
    }
    if let Some(n) = result.retransmitted {
        doc.entry("retransmitted", &[(Tone::Plain, &count(n, "segment"))], 2);
    }
    if let Some(rtt) = result.rtt {
        let least = result.min_rtt.map(|least| format!(", {least} at least"));
        let text =
            format!("{rtt} mean{}, smoothed by the sender's kernel", least.unwrap_or_default());
        doc.entry("round trip", &[(Tone::Plain, &text)], 2);
    }
    let here = if probe.far_end == FarEnd::None { "" } else { " here" };
    let cpus: Vec<String> = [(Side::Near, here), (Side::Far, " there")]
        .into_iter()
        .filter_map(|(side, place)| cpu(result.end(side)?, place))
        .collect();
    if !cpus.is_empty() {
        doc.entry("CPU", &[(Tone::Plain, &cpus.join("; "))], 2);
    }
}

/// The CPU time of an end: `0.18 ns a byte here`, or `61 % of one there, 0.5 ns a byte`.
fn cpu(end: &End, place: &str) -> Option<String> {
    let each = end.cpu_per_byte.map(|ns| format!("{ns:.3} ns a byte"));
    match (end.cpu_percent, each) {
        (Some(share), Some(each)) => Some(format!("{share:.0} % of one{place}, {each}")),
        (Some(share), None) => Some(format!("{share:.0} % of one{place}")),
        (None, Some(each)) => Some(format!("{each}{place}")),
        (None, None) => None,
    }
}

/// Writes the limit of the busiest connection, if only this end was read.
fn busiest(doc: &mut Document, probe: &Probe) {
    let Some(judged) = probe.look.as_ref().and_then(|look| look.flows.first()) else {
        return;
    };
    doc.gap();
    let whose = match probe.streams {
        1 => String::new(),
        n => format!("the busiest of {n}, "),
    };
    let note = format!(
        "{whose}seen from this end alone, without the start, and not proved by an experiment:"
    );
    doc.line(&[(Tone::Dim, &note)], 0);
    flows::one(doc, judged);
}

/// Writes the unknown values, each with the command that would make it known.
pub(crate) fn unknown(doc: &mut Document, gaps: &[Gap]) {
    for gap in gaps {
        doc.gap();
        let text = format!("{}: {}", gap.what, gap.why);
        doc.entry("Unknown", &[(Tone::Plain, &text)], 2);
        if !gap.hint.is_empty() {
            doc.detail(&[(Tone::Dim, "hint: "), (Tone::Plain, &gap.hint)], 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Style;
    use super::super::sample;
    use super::*;

    #[test]
    fn a_part_that_lasts_longer_than_the_others_says_so() {
        let result_of = |millis: &[u64]| {
            let parts = millis.iter().map(|&ms| (Bytes(ms * 125_000), Nanos::from_millis(ms)));
            let mut doc = Document::new();
            intervals(&mut doc, &parts.collect::<Vec<_>>());
            doc.text(Style::PLAIN)
        };
        assert_eq!(result_of(&[1000]), "");
        assert!(
            result_of(&[1000, 1010, 400]).ends_with("each 1 s        1 Gb/s, 1 Gb/s, 1 Gb/s\n")
        );
        let stood = result_of(&[1000, 2490, 1000]);
        assert!(stood.ends_with("1 Gb/s, 1 Gb/s in 2.49 s, 1 Gb/s\n"), "{stood}");
        assert!(result_of(&[1000, 3690]).ends_with("1 Gb/s, 1 Gb/s in 3.69 s\n"));
        assert!(result_of(&[2000, 1000, 1000]).starts_with("each 1 s "));
    }

    #[test]
    fn what_was_sent_is_where_the_transport_takes_it() {
        let page = |engine: &str| {
            let probe = Probe { engine: engine.to_owned(), ..sample::part() };
            page(&probe).text(Style::PLAIN)
        };
        assert!(page("tcp").contains("taken by this end's kernel"));
        assert!(page("udp").contains("taken by this end's kernel"));
        assert!(page("shm").contains("written to shared memory"));
        assert!(!page("shm").contains("kernel\n"));
    }

    #[test]
    fn golden_of_a_measurement() {
        let page = |probe: &Probe| page(probe).text(Style::PLAIN);
        insta::assert_snapshot!("bw_forward", page(&sample::whole(Direction::Forward)));
        insta::assert_snapshot!("bw_reverse", page(&sample::whole(Direction::Reverse)));
        let udp = |direction| page(&sample::iperf3_udp(direction));
        insta::assert_snapshot!("bw_iperf3_udp_forward", udp(Direction::Forward));
        insta::assert_snapshot!("bw_iperf3_udp_reverse", udp(Direction::Reverse));
        insta::assert_snapshot!("bw_part", page(&sample::part()));
        insta::assert_snapshot!("bw_own", page(&sample::own(Direction::Forward)));
        insta::assert_snapshot!("bw_interrupted", page(&sample::interrupted()));
        insta::assert_snapshot!("bw_udp", page(&sample::udp()));
        insta::assert_snapshot!("bw_search", page(&sample::search(0.05)));
        insta::assert_snapshot!("bw_both", page(&sample::both()));
        insta::assert_snapshot!("bw_memory", page(&sample::memory(true)));
        insta::assert_snapshot!("bw_memory_unknown", page(&sample::memory(false)));
        let memory = super::page(&sample::memory(true));
        insta::assert_snapshot!("bw_memory_markdown", memory.markdown());
    }
}
