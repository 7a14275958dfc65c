//! A sweep, for people.

use linerate_ceiling::fingerprint::fit;
use linerate_judge::model::{Cost, Estimate, Setting};
use linerate_plan::Access;
use linerate_plan::path::Side;
use linerate_plan::transport::Swept;
use linerate_units::stats::Interval;
use linerate_units::{Bytes, Rate};

use super::super::bw::text::unknown;
use super::super::document::{Columns, Entry, Item, LABEL, NARROW, Table};
use super::super::words::{self, count};
use super::super::{Document, Tone, fitted};
use super::{Held, Probe, copied, cpu};

/// Columns of goodput, and of CPU time at either end.
const WIDTHS: [usize; 4] = [LABEL, 22, 20, 20];

/// Columns before what belongs to a row.
const BELOW: Columns = Columns { wide: LABEL, narrow: 2 };

/// The page of a sweep.
pub fn page(probe: &Probe) -> Document {
    let mut doc = Document::new();
    if !probe.broken.is_empty() {
        let why = format!("{}; the results until then follow", probe.broken);
        doc.line(&[(Tone::Warning, "Ended early: "), (Tone::Plain, &why)], 0);
    }
    match probe.swept {
        Swept::Size if probe.alone => falls(&mut doc, probe),
        Swept::Copy => pays(&mut doc, probe),
        Swept::Depth => {
            knee(&mut doc, probe);
            held(&mut doc, probe);
        }
        Swept::Size | Swept::Streams | Swept::Qps => knee(&mut doc, probe),
    }
    doc.gap();
    settings(&mut doc, probe);
    shown(&mut doc, probe);
    doc.gap();
    doc.line(&[(Tone::Dim, &head(probe))], 0);
    unknown(&mut doc, &probe.gaps);
    doc
}

/// What the times of operations by size show.
fn shown(doc: &mut Document, probe: &Probe) {
    let points = probe.points();
    if points.is_empty() {
        return;
    }
    doc.gap();
    doc.heading("What times by size show");
    let what = "times of operations, size over goodput";
    fitted::rate(doc, what, fit(&points).as_ref(), probe.agreement());
}

fn head(probe: &Probe) -> String {
    let pace = probe.pace;
    let first = probe.found.settings.first();
    let streams = first.map_or(1, |setting| u64::from(setting.knobs.streams));
    let load = match probe.swept {
        Swept::Streams => String::new(),
        Swept::Copy | Swept::Size | Swept::Depth | Swept::Qps => {
            format!("{}, ", count(streams, "stream"))
        }
    };
    if probe.alone {
        let access = match Access::of(&probe.options) {
            Access::Copy => "copies between two arrays",
            Access::Read => "reads of an array",
            Access::Write => "writes to an array",
        };
        return format!(
            "{} of this host: {access}, {}{} in turn, {} of {} each{}",
            probe.engine,
            load.replace("stream", "thread"),
            count(probe.found.settings.len() as u64, "setting"),
            rounds(probe),
            pace.measure,
            words::left_out(pace.washout),
        );
    }
    let shared = if probe.same_machine { ", both ends on this machine" } else { "" };
    format!(
        "linerate at {}, {}, {load}{} in turn, {} of {} each{}{shared}",
        probe.address,
        probe.direction.name(),
        count(probe.found.settings.len() as u64, "setting"),
        rounds(probe),
        pace.measure,
        words::left_out(pace.washout),
    )
}

/// `12 rounds`, or `3 to 4 of 12 rounds` where fewer were measured.
fn rounds(probe: &Probe) -> String {
    let asked = u64::from(probe.pace.rounds);
    let settings = probe.found.settings.iter();
    let each = settings.map(|s| s.goodput.map_or(0, |goodput| goodput.samples as u64));
    let (least, most) = each.fold((asked, 0), |(least, most), n| (least.min(n), most.max(n)));
    let all = count(asked, "round");
    match (least, most) {
        (least, _) if least >= asked => all,
        (least, most) if least == most => format!("{least} of {all}"),
        (least, most) => format!("{least} to {most} of {all}"),
    }
}

fn settings(doc: &mut Document, probe: &Probe) {
    let rate = if probe.alone { "rate" } else { "goodput" };
    let heads = [
        (Tone::Dim, probe.swept.name()),
        (Tone::Dim, rate),
        (Tone::Dim, "CPU here, ns/byte"),
        (Tone::Dim, "CPU there, ns/byte"),
    ];
    // Without a far end there is no column for its counts.
    let columns = if probe.alone { 3 } else { 4 };
    let table = Table::new(&WIDTHS[..columns]).head(&heads[..columns]);
    let mut table = table.least(NARROW);
    for (at, setting) in probe.found.settings.iter().enumerate() {
        let name = probe.name(at);
        let goodput = setting.goodput.as_ref().map_or("not measured".to_owned(), words::bits);
        let tone = setting.goodput.map_or(Tone::Warning, |_| Tone::Good);
        let [here, there] = [Side::Near, Side::Far].map(|side| spent(setting, probe, side));
        let cpu = if probe.alone {
            format!(", CPU {here} ns a byte")
        } else {
            format!(", CPU {here} here, {there} there, ns a byte")
        };
        let entry = Entry::new(&name, &[(tone, &goodput), (Tone::Plain, &cpu)], 2);
        let cells = [
            (Tone::Strong, &*name),
            (tone, &*goodput),
            (Tone::Plain, &*here),
            (Tone::Plain, &*there),
        ];
        table.row_or(&cells[..columns], entry);
        if let Some(share) = copied(setting) {
            let text = format!("the kernel copied {:.1} % anyway", share * 100.0);
            let item = Item::new(&[(Tone::Warning, &text)]).depth(1);
            table.below(item.indent(BELOW, BELOW.plus(2)));
        }
    }
    doc.table(table);
}

/// CPU time for each byte with its interval: `0.180 ±1.2 %`.
fn spent(setting: &Setting, probe: &Probe, side: Side) -> String {
    let of = |estimate: &Estimate| {
        let half = estimate.interval.and_then(Interval::relative);
        let half = half.map(|half| format!(" {}", words::plus_minus(half * 100.0)));
        format!("{:.3}{}", estimate.mean, half.unwrap_or_default())
    };
    cpu(setting, probe.direction, side).map_or("unknown".to_owned(), of)
}

/// The way to hand payload over that costs the sender least, and how each compares with copies.
fn pays(doc: &mut Document, probe: &Probe) {
    doc.line(&[(Tone::Strong, &cheapest(probe))], 2);
    doc.gap();
    let place = match probe.direction.sender() {
        Side::Near => "here",
        Side::Far => "there",
    };
    for (at, setting) in probe.found.settings.iter().enumerate() {
        if Some(at) == probe.found.reference {
            continue;
        }
        let (label, tone, told) = cost(setting);
        let told = told.replace("{}", place);
        let goodput = setting
            .goodput_ratio
            .map(|ratio| format!(", at {} of their goodput", words::effect(ratio)));
        let text = format!(": {told}{}", goodput.unwrap_or_default());
        doc.entry(label, &[(tone, &probe.name(at)), (Tone::Plain, &text)], 2);
    }
}

/// `zerocopy costs least: x0.55 (0.54 to 0.56) of the CPU time of copies`.
fn cheapest(probe: &Probe) -> String {
    let settings = probe.found.settings.iter().enumerate();
    let less = settings.filter(|(_, setting)| matches!(setting.cost(), Some(Cost::Less)));
    let less = less.filter_map(|(at, setting)| Some((at, setting.cpu_ratio?)));
    match less.min_by(|a, b| a.1.mid.total_cmp(&b.1.mid)) {
        Some((at, ratio)) => format!(
            "{} costs least: {} of the CPU time of copies",
            probe.name(at),
            words::effect(ratio)
        ),
        None => "No way was shown to cost less CPU time than copies".to_owned(),
    }
}

/// The cost of a setting compared with copies: its label, its tone and its text. In the text, `{}` stands for
/// the sender's place.
fn cost(setting: &Setting) -> (&'static str, Tone, String) {
    let Some((cost, ratio)) = setting.cost().zip(setting.cpu_ratio) else {
        let why = "not compared with copies: too few rounds have both";
        return ("Unknown", Tone::Warning, why.to_owned());
    };
    let times = words::effect(ratio);
    let text = format!("{times} of the CPU time of copies for each byte {{}}");
    match cost {
        Cost::Less => ("Pays", Tone::Good, text),
        Cost::More => ("Costs", Tone::Warning, text),
        Cost::Same => ("No gain", Tone::Strong, format!("{text}, the same to within 3 %")),
        Cost::Untold => {
            let text = format!("{text}: no measurable difference");
            ("Not told", Tone::Strong, text)
        }
    }
}

/// `9.41 Gb/s`, of a setting.
fn rate(probe: &Probe, at: usize) -> String {
    let found = probe.found.settings[at].goodput;
    found.map_or("unknown".to_owned(), |rate| Rate(rate.mean as u64).to_string())
}

/// Writes where the rate falls as arrays grow: a cache is full there.
fn falls(doc: &mut Document, probe: &Probe) {
    let goodput = |at: &usize| probe.found.settings[*at].goodput.map_or(0.0, |rate| rate.mean);
    let all = 0..probe.found.settings.len();
    let best = all.max_by(|a, b| goodput(a).total_cmp(&goodput(b)));
    let most = best.map(|at| format!("{} at {}", rate(probe, at), probe.name(at)));
    let most = format!("Fastest: {}", most.as_deref().unwrap_or("unknown"));
    let none = if probe.found.falls.is_empty() { "; the rate falls at no larger size" } else { "" };
    doc.line(&[(Tone::Strong, &most), (Tone::Plain, none)], 2);
    for fall in &probe.found.falls {
        let text = format!(
            "falls after {}: {} -> {} at {}",
            probe.name(fall.from),
            rate(probe, fall.from),
            rate(probe, fall.to),
            probe.name(fall.to)
        );
        doc.line(&[(Tone::Plain, &text)], 2);
    }
}

/// Writes the setting above which larger ones gain nothing, and the one with most goodput.
fn knee(doc: &mut Document, probe: &Probe) {
    let found = &probe.found;
    let what = if probe.alone { "The rate" } else { "Goodput" };
    let (Some(knee), Some(best)) = (found.knee, found.reference) else {
        let why = format!(
            "Where {} stops growing is unknown: too few rounds of two settings were measured",
            what.to_lowercase()
        );
        doc.line(&[(Tone::Warning, &why)], 2);
        return;
    };
    let last = found.settings.iter().rposition(|s| s.goodput.is_some());
    let (name, value) = (probe.name(knee.at), rate(probe, knee.at));
    let (head, how) = if Some(knee.at) == last {
        let verb = if knee.from < knee.at { "may still grow" } else { "still grows" };
        let how = format!(": {value}, the most that was measured");
        (format!("{what} {verb} at {name}"), how)
    } else if knee.at == best {
        let how = format!(": {value}, the most of all");
        (format!("{what} stops growing at {name}"), how)
    } else {
        let (most, with) = (rate(probe, best), probe.name(best));
        let how = format!(": {value}, within 5 % of the most, {most} with {with}");
        (format!("{what} stops growing at {name}"), how)
    };
    let doubt = if knee.from == knee.to {
        String::new()
    } else {
        let (from, to) = (probe.name(knee.from), probe.name(knee.to));
        format!("; by the intervals it may stop anywhere from {from} to {to}")
    };
    doc.line(&[(Tone::Strong, &head), (Tone::Plain, &format!("{how}{doubt}"))], 2);
}

/// Writes how many requests the path holds: its bandwidth times its delay.
fn held(doc: &mut Document, probe: &Probe) {
    let Some(Held { size, time, requests }) = probe.held() else {
        return;
    };
    let Interval { low, mid, high } = requests;
    let bytes = Bytes((mid * size.0 as f64) as u64);
    let text = format!(
        "A request of {size} takes {time} if it is alone in flight. In that time the most goodput moves {mid:.1} \
         ({low:.1} to {high:.1}) of them on each queue pair, {bytes}: the bandwidth-delay product"
    );
    doc.line(&[(Tone::Plain, &text)], 2);
}

#[cfg(test)]
mod tests {
    use linerate_plan::path::Direction;

    use super::super::super::Style;
    use super::super::sample;
    use super::*;

    #[test]
    fn golden_of_a_sweep() {
        let page = |probe: &Probe| page(probe).text(Style::PLAIN);
        insta::assert_snapshot!("sweep_copy", page(&sample::copy(Direction::Forward)));
        insta::assert_snapshot!("sweep_copy_reverse", page(&sample::copy(Direction::Reverse)));
        insta::assert_snapshot!("sweep_size", page(&sample::size()));
        insta::assert_snapshot!("sweep_memory", page(&sample::memory()));
        insta::assert_snapshot!("sweep_streams", page(&sample::streams()));
        insta::assert_snapshot!("sweep_depth", page(&sample::depth()));
        insta::assert_snapshot!("sweep_qps", page(&sample::queue_pairs()));
        let narrow = Style { width: 40, color: false };
        let copy = sample::copy(Direction::Forward);
        insta::assert_snapshot!("sweep_markdown", super::page(&copy).markdown());
        insta::assert_snapshot!("sweep_narrow", super::page(&copy).text(narrow));
    }
}
