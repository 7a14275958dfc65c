//! A rule about the hops of a path: loss that reaches the last hop, and answers that a router leaves out.

use super::super::Explained;
use super::Remark;
use super::transfers::MOST_RUNS;
use linerate_facts::finding::Stands;
use linerate_record::reported::{Hop, Measured};
use linerate_units::Nanos;

/// Least share of packets lost to the last hop at which the path loses packets, and the least number: fewer may be
/// chance.
const LEAST_LOSS: f64 = 0.01;
const FEWEST: u64 = 3;

/// Range of a hop's share of loss over that of the last hop, within which both are losses of the path. A router that
/// limits its answers loses more.
const LEAST_OF_PATH: f64 = 0.5;
const MOST_OF_PATH: f64 = 1.5;

/// Least number of packets that, if none is lost, excludes a loss of more than 3 %.
//= rule of three: 3 / n bounds a share of which n trials show none, with 95 % confidence
const ENOUGH: u64 = 100;

/// Longest mean round trip that is healthy at any distance: light in fibre goes 100 km for each millisecond of round
/// trip, and 50 ms cross a continent. Then the most by which the longest may exceed the shortest: a queue adds more.
const NEAR: Nanos = Nanos::from_millis(50);
const VARIES: Nanos = Nanos::from_millis(30);

/// Most hops that are named in a remark.
const NAMED: usize = 4;

pub(super) fn path(explained: &Explained<'_>) -> Vec<Remark> {
    let all = || explained.material.runs().take(MOST_RUNS);
    let is_alone = all().all(|(_, result)| matches!(result.measured, Measured::Hops(_)));
    let remark = |(source, result)| {
        let outcome: &linerate_record::reported::Outcome = result;
        let Measured::Hops(hops) = &outcome.measured else {
            return None;
        };
        let remark = of_path(hops, is_alone)?;
        Some(if remark.answer.is_some() { remark.shown_by(source, outcome) } else { remark })
    };
    all().filter_map(remark).collect()
}

fn share((lost, sent): (u64, u64)) -> f64 {
    lost as f64 / (sent as f64).max(1.0)
}

/// A hop in words: `hop 4 (192.0.2.1)`.
fn named(hop: &Hop) -> String {
    format!("hop {} ({})", hop.number, hop.host)
}

fn of_path(hops: &[Hop], is_alone: bool) -> Option<Remark> {
    let found = |what: String| Remark::new(Stands::Found, what);
    // If there are other results too, what is unknown of the path is not the answer.
    let open = |remark: Remark| if is_alone { remark.names(&[]) } else { remark };
    let last = hops.last()?;
    let Some(counted @ (lost, of)) = last.lost() else {
        let what = "the last hop does not answer: loss of the hops before it may be theirs alone";
        let next = "with packets that the host answers";
        return Some(open(found(what.to_owned())).next(next, "mtr -rw -c 200 -T -P 443 HOST"));
    };
    let counts = format!("{lost} of {of} packets to {} were lost", named(last));
    if lost == 0 {
        return Some(whole(hops, last, of, is_alone));
    }
    if lost < FEWEST || share(counted) < LEAST_LOSS {
        let what = format!("{counts}: too few to tell loss from chance");
        return Some(open(found(what)).next("more packets", "mtr -rw -c 1000 HOST"));
    }
    let of_path = share(counted);
    let answering: Vec<(&Hop, f64)> =
        hops.iter().filter_map(|hop| Some((hop, share(hop.lost()?)))).collect();
    let clean = answering.iter().rposition(|(_, lost)| *lost < of_path * LEAST_OF_PATH);
    let lossy = answering.get(clean.map_or(0, |at| at + 1)..).unwrap_or_default();
    // A hop that loses more than the last one limits its own answers: it does not show loss of the path.
    if lossy.iter().filter(|(_, lost)| *lost <= of_path * MOST_OF_PATH).count() < 2 {
        let what = format!(
            "{counts}, and none of the hops before it lose as much: that host limits its answers, or loses them, or the link before it does"
        );
        return Some(
            open(found(what))
                .next("with packets of the service itself", "mtr -rw -c 200 -T -P 443 HOST"),
        );
    }
    let begins = lossy.iter().find(|(_, lost)| *lost <= of_path * MOST_OF_PATH);
    let before = clean.and_then(|at| answering.get(at));
    let from = before.map_or("this host".to_owned(), |(hop, _)| named(hop));
    let to = begins.map_or(String::new(), |(hop, _)| named(hop));
    let what = format!(
        "{counts}, and the loss begins between {from} and {to}: each hop from there on has it"
    );
    Some(
        found(what)
            .because(shares(lossy))
            .because("in which direction they are lost is not known")
            .names(&["path-loss"])
            .next("the same from the other end, for the way back", "mtr -rw -c 200 HOST"),
    )
}

/// Hops with their shares of lost packets: `hop 4 (192.0.2.1) 71.5 %, hop 6 (192.0.2.9) 2.0 %`.
fn shares(hops: &[(&Hop, f64)]) -> String {
    let each = hops.iter().take(NAMED);
    let each = each.map(|(hop, lost)| format!("{} {:.1} %", named(hop), lost * 100.0));
    each.collect::<Vec<_>>().join(", ")
}

/// Whether a hop has a private address: then the report shows only the inside of a network, and not the path beyond.
fn is_inside(hop: &Hop) -> bool {
    let address = hop.host.parse::<std::net::Ipv4Addr>();
    address.is_ok_and(|address| address.is_private())
}

/// Remark on a path whose last hop answered each packet.
fn whole(hops: &[Hop], last: &Hop, sent: u64, is_alone: bool) -> Remark {
    let lossy: Vec<(&Hop, f64)> = hops
        .iter()
        .filter_map(|hop| Some((hop, share(hop.lost().filter(|(lost, _)| *lost > 0)?))))
        .collect();
    let row = &last.row;
    let times = row.mean.zip(row.least).zip(row.most);
    let is_near = times.is_some_and(|((mean, least), most)| {
        mean <= NEAR && most.0.saturating_sub(least.0) < VARIES.0
    });
    let words = times
        .map_or(String::new(), |((mean, least), most)| format!(", in {mean} ({least} to {most})"));
    let what = format!("none of {sent} packets to {} was lost{words}", named(last));
    let (stands, what) = if sent < ENOUGH {
        (Stands::Found, format!("{what}: too few to exclude a loss of some percent"))
    } else if is_near && !is_inside(last) {
        (Stands::Good, format!("{what}: the path loses nothing"))
    } else {
        (
            Stands::Found,
            format!(
                "{what}: nothing is lost; whether the time is distance or a queue is not known"
            ),
        )
    };
    let mut remark = Remark::new(stands, what);
    if !lossy.is_empty() {
        remark = remark.because(format!(
            "{}: what a hop alone loses are answers that it limits, and no packets of the path",
            shares(&lossy)
        ));
    }
    remark = remark.because(
        "it holds if the last line is the destination, and says nothing of the throughput",
    );
    if stands == Stands::Found {
        remark =
            remark.next("more packets, on the idle path and under load", "mtr -rw -c 200 HOST");
    }
    if is_alone { remark.names(&[]).rules_out(&["path-loss"]) } else { remark }
}
