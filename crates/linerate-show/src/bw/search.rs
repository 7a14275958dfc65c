//! Shows the highest rate without loss, and how it was found, on a page.

use linerate_plan::search::{Look, Search};
use linerate_units::Rate;

use super::super::words::count;
use super::super::{Document, Tone};

/// Writes the lines about a search for the highest rate.
pub(super) fn lines(doc: &mut Document, search: &Search) {
    let tone = match search.found() {
        Some(_) => Tone::Good,
        None => Tone::Warning,
    };
    doc.entry("highest rate", &[(tone, &found(search))], 2);
    if let Some(next) = next(search) {
        doc.entry("above it", &[(Tone::Plain, &next)], 2);
    }
    doc.entry("search", &[(Tone::Plain, &steps(search))], 2);
}

/// The rate that was found, in words: `95.6 Mb/s at which no datagram is lost`.
fn found(search: &Search) -> String {
    let within = match search.allowed() {
        a if a <= 0.0 => "no datagram is lost".to_owned(),
        a => format!("at most {} % of datagrams are lost", a * 100.0),
    };
    match (search.found(), search.passed()) {
        (Some(look), _) => format!("{} at which {within}", rate(look.sent)),
        (None, Some(look)) => format!(
            "unknown: {} passed a short step, and none of the longer ones confirmed a rate",
            rate(look.sent)
        ),
        (None, None) => format!("unknown: at no rate that was tried {within}"),
    }
}

/// The loss at the lowest rate that lost too much, or why no higher rate was tried.
fn next(search: &Search) -> Option<String> {
    let Some(look) = search.failed() else {
        return not_tried(search);
    };
    let place = match look.at_socket {
        Some(0) => ", none of it at the receiver's socket".to_owned(),
        Some(n) => format!(", {} or more of it at the receiver's socket", count(n, "datagram")),
        None => String::new(),
    };
    let sent = rate(look.sent);
    Some(format!("{sent}: {:.2} % lost{place}", look.lost * 100.0))
}

/// Why no higher rate was tried, in words; `None` if there is no reason to report.
fn not_tried(search: &Search) -> Option<String> {
    if let Some(most) = search.sender_limit() {
        let most = rate(most);
        return Some(format!("not tried: the sender could not send more than {most}"));
    }
    let short = search.found().filter(|look| look.short_of())?;
    let (sent, requested) = (rate(short.sent), short.requested);
    Some(format!("not tried: the sender sent {sent} instead of the requested {requested}"))
}

fn steps(search: &Search) -> String {
    let looks = search.looks();
    let long = looks.iter().filter(|look| look.long).count() as u64;
    let short = count(looks.len() as u64 - long, "short step");
    let extent = |pick: fn(f64, f64) -> f64, from: f64| {
        let requested = looks.iter().map(|look: &Look| look.requested.0 as f64);
        rate(requested.fold(from, pick))
    };
    let (least, most) = (extent(f64::min, f64::MAX), extent(f64::max, 0.0));
    format!("{short} and {} from {least} to {most}", count(long, "longer one"))
}

fn rate(bits: f64) -> String {
    Rate(bits.max(0.0) as u64).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(requested: u64, sent: f64, lost: f64, long: bool) -> Look {
        Look {
            requested: Rate(requested),
            sent,
            received: sent * (1.0 - lost),
            lost,
            at_socket: Some(0),
            long,
        }
    }

    fn result_of(looks: &[Look]) -> [Option<String>; 3] {
        let search = Search::replay(0.0, None, looks.iter().copied());
        [Some(found(&search)), next(&search), Some(steps(&search))]
    }

    #[test]
    fn what_is_found_is_told_with_what_the_next_rate_lost() {
        let short = [
            look(10_000_000, 1e7, 0.0, false),
            look(20_000_000, 2e7, 0.5, false),
            look(20_000_000, 2e7, 0.5, false),
        ];
        let [found, next, steps] = result_of(&short);
        assert!(found.is_some_and(|w| w.starts_with("unknown: 10 Mb/s passed a short step")));
        let words = "20 Mb/s: 50.00 % lost, none of it at the receiver's socket";
        assert_eq!(next.as_deref(), Some(words));
        let words = "3 short steps and 0 longer ones from 10 Mb/s to 20 Mb/s";
        assert_eq!(steps.as_deref(), Some(words));
        let long = look(10_000_000, 1e7, 0.0, true);
        let [found, ..] = result_of(&[&short[..], &[long]].concat());
        assert_eq!(found.as_deref(), Some("10 Mb/s at which no datagram is lost"));
    }

    #[test]
    fn a_sender_at_its_limit_is_named() {
        let short = look(10_000_000, 8e6, 0.0, false);
        let [_, next, _] = result_of(&[short]);
        assert_eq!(next, None, "one step may have been disturbed");
        let [_, next, _] = result_of(&[short, short]);
        assert_eq!(next, None, "a busy host costs a share of every rate");
        let long = look(8_000_000, 7e6, 0.0, true);
        let [_, next, _] = result_of(&[short, short, long]);
        let words = "not tried: the sender sent 7 Mb/s instead of the requested 8 Mb/s";
        assert_eq!(next.as_deref(), Some(words));
        let more = look(20_000_000, 8.1e6, 0.0, false);
        let [_, next, _] = result_of(&[short, short, more, more]);
        let words = "not tried: the sender could not send more than 8.1 Mb/s";
        assert_eq!(next.as_deref(), Some(words));
    }
}
