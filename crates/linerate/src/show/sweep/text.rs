//! A sweep, on a page.

use linerate_core::model::{Cost, Estimate, Setting};
use linerate_core::path::Side;
use linerate_core::stats::Interval;
use linerate_core::sweep::Swept;

use super::super::bw::text::unknown;
use super::super::page::LABEL;
use super::super::words::{self, count};
use super::super::{Ink, Page, Style};
use super::{Probe, copied, cpu};

/// Columns of goodput, and of CPU time at either end.
const WIDTHS: [usize; 4] = [LABEL, 22, 20, 20];

/// The page of a sweep.
pub fn text(probe: &Probe, style: Style) -> String {
    let mut page = Page::new(style);
    page.line(&[(Ink::Dim, &head(probe))], 0);
    if !probe.broken.is_empty() {
        let why = format!("{}; what was measured until then is told", probe.broken);
        page.line(&[(Ink::Warn, "Ended early: "), (Ink::Plain, &why)], 0);
    }
    page.gap();
    settings(&mut page, probe);
    page.gap();
    match probe.swept {
        Swept::Copy => pays(&mut page, probe),
        Swept::Size | Swept::Streams => knee(&mut page, probe),
    }
    unknown(&mut page, &probe.gaps);
    page.finish()
}

fn head(probe: &Probe) -> String {
    let pace = probe.pace;
    let first = probe.found.settings.first();
    let streams = first.map_or(1, |setting| u64::from(setting.knobs.streams));
    let load = match probe.swept {
        Swept::Streams => String::new(),
        Swept::Copy | Swept::Size => format!("{}, ", count(streams, "stream")),
    };
    let shared = if probe.same_machine {
        ", both ends on this machine"
    } else {
        ""
    };
    format!(
        "linerate at {}, {}, {load}{} in turn, {} of {} each after {} that do not count{shared}",
        probe.address,
        probe.direction.name(),
        count(probe.found.settings.len() as u64, "setting"),
        rounds(probe),
        pace.measure,
        pace.washout,
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

fn settings(page: &mut Page, probe: &Probe) {
    if !page.is_narrow() {
        let heads = [
            (Ink::Dim, probe.swept.name()),
            (Ink::Dim, "goodput"),
            (Ink::Dim, "CPU here, ns/byte"),
            (Ink::Dim, "CPU there, ns/byte"),
        ];
        page.row(&heads, &WIDTHS);
    }
    for (at, setting) in probe.found.settings.iter().enumerate() {
        let name = probe.name(at);
        let goodput = setting
            .goodput
            .as_ref()
            .map_or("not measured".to_owned(), words::goodput);
        let ink = setting.goodput.map_or(Ink::Warn, |_| Ink::Good);
        let [here, there] = [Side::Near, Side::Far].map(|side| spent(setting, probe, side));
        if page.is_narrow() {
            let cpu = format!(", CPU {here} here, {there} there, ns a byte");
            page.entry(&name, &[(ink, &goodput), (Ink::Plain, &cpu)], 2);
        } else {
            let cells = [
                (Ink::Bold, &*name),
                (ink, &*goodput),
                (Ink::Plain, &*here),
                (Ink::Plain, &*there),
            ];
            page.row(&cells, &WIDTHS);
        }
        if let Some(share) = copied(setting) {
            let text = format!("the kernel copied {:.1} % all the same", share * 100.0);
            page.entry("", &[(Ink::Warn, &text)], 2);
        }
    }
}

/// `0.180 ±1.2 %`.
fn spent(setting: &Setting, probe: &Probe, side: Side) -> String {
    let of = |estimate: &Estimate| {
        let half = estimate.interval.and_then(Interval::relative);
        let half = half.map(|half| format!(" {}", words::plus_minus(half * 100.0)));
        format!("{:.3}{}", estimate.mean, half.unwrap_or_default())
    };
    cpu(setting, probe.direction, side).map_or("unknown".to_owned(), of)
}

/// Which ways to hand payload over cost the sender less than copies.
fn pays(page: &mut Page, probe: &Probe) {
    let place = match probe.direction.sender() {
        Side::Near => "here",
        Side::Far => "there",
    };
    for (at, setting) in probe.found.settings.iter().enumerate() {
        if Some(at) == probe.found.reference {
            continue;
        }
        let (label, ink, told) = cost(setting);
        let told = told.replace("{}", place);
        let goodput = setting
            .goodput_ratio
            .map(|ratio| format!(", at {} of their goodput", words::effect(ratio)));
        let text = format!(": {told}{}", goodput.unwrap_or_default());
        page.entry(label, &[(ink, &probe.name(at)), (Ink::Plain, &text)], 2);
    }
}

/// What a setting costs beside copies: its label, how it is drawn, and the words for it, where `{}` stands for the
/// sender's place.
fn cost(setting: &Setting) -> (&'static str, Ink, String) {
    let Some((cost, ratio)) = setting.cost().zip(setting.cpu_ratio) else {
        let why = "not compared with copies: too few rounds have both";
        return ("Unknown", Ink::Warn, why.to_owned());
    };
    let times = words::effect(ratio);
    let text = format!("{times} of the CPU time of copies for each byte {{}}");
    match cost {
        Cost::Less => ("Pays", Ink::Good, text),
        Cost::More => ("Costs", Ink::Warn, text),
        Cost::Same => (
            "No gain",
            Ink::Bold,
            format!("{text}, the same to within 3 %"),
        ),
        Cost::Untold => {
            let text = format!("{text}: no difference that could be told");
            ("Not told", Ink::Bold, text)
        }
    }
}

/// Where larger settings gain nothing.
fn knee(page: &mut Page, probe: &Probe) {
    let found = &probe.found;
    let (Some(knee), Some(best)) = (found.knee, found.reference) else {
        let why = "unknown: too few rounds of two settings were measured";
        page.entry("Knee", &[(Ink::Warn, why)], 2);
        return;
    };
    let last = found.settings.iter().rposition(|s| s.goodput.is_some());
    let name = probe.name(knee.at);
    let (head, how) = if Some(knee.at) == last && knee.from < knee.at {
        let how = format!(": {name}, the most that was measured, had the most goodput");
        ("not told".to_owned(), how)
    } else if Some(knee.at) == last {
        let how = format!(": goodput still grows at {name}, the most that was measured");
        ("none".to_owned(), how)
    } else if knee.at == best {
        (name, ": it has the most goodput".to_owned())
    } else {
        let best = probe.name(best);
        (
            name,
            format!(": within 5 % of the most goodput, that of {best}"),
        )
    };
    let doubt = if knee.from == knee.to {
        String::new()
    } else {
        let (from, to) = (probe.name(knee.from), probe.name(knee.to));
        format!("; by the intervals it may be from {from} to {to}")
    };
    page.entry(
        "Knee",
        &[(Ink::Good, &head), (Ink::Plain, &format!("{how}{doubt}"))],
        2,
    );
}

#[cfg(test)]
mod tests {
    use linerate_core::path::Direction;

    use super::super::sample;
    use super::*;

    #[test]
    fn golden_of_a_sweep() {
        let page = |probe: &Probe| text(probe, Style::PLAIN);
        insta::assert_snapshot!("sweep_copy", page(&sample::copy(Direction::Forward)));
        insta::assert_snapshot!(
            "sweep_copy_reverse",
            page(&sample::copy(Direction::Reverse))
        );
        insta::assert_snapshot!("sweep_size", page(&sample::size()));
        insta::assert_snapshot!("sweep_streams", page(&sample::streams()));
        let narrow = Style {
            width: 40,
            color: false,
        };
        let copy = sample::copy(Direction::Forward);
        insta::assert_snapshot!("sweep_narrow", text(&copy, narrow));
    }
}
