//! Shows the counts of datagrams on a page.

use linerate_judge::model::Counted;
use linerate_units::stats::percentile;
use linerate_units::{Nanos, Rate};

use super::super::words::{count, share};
use super::super::{Document, Tone};
use super::{Datagrams, DirectionResult};

/// Writes the lines about datagrams in one direction.
pub(super) fn lines(doc: &mut Document, result: &DirectionResult, datagrams: &Datagrams) {
    if let Some(text) = sent(result, datagrams) {
        doc.entry("sent", &[(Tone::Plain, &text)], 2);
    }
    if let Some(text) = bursts(datagrams) {
        doc.entry("bursts", &[(Tone::Plain, &text)], 2);
    }
    let Datagrams { size, per_sec, .. } = datagrams;
    let text = format!("{per_sec:.0} a second arrived, {} B each", size.0);
    doc.entry("datagrams", &[(Tone::Plain, &text)], 2);
    let tone = if datagrams.counted.lost > 0 { Tone::Warning } else { Tone::Plain };
    let text = format!("{}{}", lost(&datagrams.counted), after(datagrams));
    doc.entry("lost", &[(tone, &text)], 2);
    let order = order(&datagrams.counted);
    let order = order.unwrap_or_else(|| "unknown".to_owned());
    doc.entry("order", &[(Tone::Plain, &order)], 2);
    if let Some(jitter) = datagrams.jitter {
        let text = format!("{jitter}, smoothed by the receiver (RFC 3550)");
        doc.entry("jitter", &[(Tone::Plain, &text)], 2);
    }
}

/// A remark about the last datagrams sent, if an iperf3 server receives: it does not know where the stream ends, so
/// it does not count them. With linerate at both ends every datagram is counted.
fn after(datagrams: &Datagrams) -> String {
    match datagrams.after() {
        Some(n) if n > 0 && datagrams.counted.reordered.is_none() => {
            format!(
                "; the receiver counted the last {n} that were sent neither as received nor as lost"
            )
        }
        _ => String::new(),
    }
}

/// The sent rate in words: `105 Mb/s, 105 Mb/s requested, timed by the sending program's own clock`.
fn sent(result: &DirectionResult, datagrams: &Datagrams) -> Option<String> {
    let (bytes, time) = result.sent()?;
    let how = match datagrams.requested {
        Some(requested) => {
            format!("{requested} requested, timed by the sending program's own clock")
        }
        None => "as fast as the sending program can".to_owned(),
    };
    let waited = datagrams.counted.refused.filter(|n| *n > 0);
    let waited = waited.map(|n| {
        let which = count(n, "datagram");
        format!("; {which} had to wait: a queue of the sending host was full, or a firewall rule there rejected them")
    });
    let rate = Rate::of(bytes, time);
    Some(format!("{rate}, {how}{}", waited.unwrap_or_default()))
}

/// The bursts in words: `21 datagrams each 248 us requested; 249 us p50, 312 us p99 achieved`.
fn bursts(datagrams: &Datagrams) -> Option<String> {
    let ((burst, gaps), requested) = (datagrams.bursts.as_ref()?, datagrams.gap()?);
    let reported: Vec<String> = [50.0, 99.0]
        .iter()
        .filter_map(|p| Some(format!("{} p{p}", Nanos(percentile(gaps, p / 100.0)?))))
        .collect();
    let which = count(*burst, "datagram");
    let real = reported.join(", ");
    (!reported.is_empty()).then(|| format!("{which} each {requested} requested; {real} achieved"))
}

/// The share of datagrams lost, and where they were lost if that is known. The socket's count is a lower bound: it
/// counts coalesced datagrams as one.
fn lost(counted: &Counted) -> String {
    let Counted { received, lost, .. } = *counted;
    if lost == 0 {
        return "none".to_owned();
    }
    let place = match counted.at_socket {
        None => "on the path or at the receiver's socket, unknown which".to_owned(),
        Some(0) => "none of them at the receiver's socket".to_owned(),
        Some(n) => format!("{n} or more of them at the receiver's socket, whose buffer was full"),
    };
    let all = received + lost;
    format!("{} ({lost} of {all}), {place}", share(lost, all))
}

/// The shares of datagrams received out of order and twice, in words; `None` if the receiver does not count them.
fn order(counted: &Counted) -> Option<String> {
    let part = |n: u64, none: &str, some: &str| match n {
        0 => none.to_owned(),
        n => format!("{} {some}", share(n, counted.received)),
    };
    let late = part(counted.reordered?, "none out of order", "out of order");
    let twice = part(counted.duplicated?, "none twice", "twice");
    Some(format!("{late}, {twice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTED: Counted = Counted {
        sent: Some(1000),
        refused: Some(0),
        received: 900,
        lost: 100,
        at_socket: Some(40),
        reordered: Some(0),
        duplicated: Some(9),
    };

    #[test]
    fn loss_is_told_with_the_part_that_is_the_receiver_s() {
        let of = |at_socket| lost(&Counted { at_socket, ..COUNTED });
        assert_eq!(
            of(Some(40)),
            "10.0 % (100 of 1000), 40 or more of them at the receiver's socket, whose buffer was full"
        );
        assert!(of(Some(0)).ends_with("none of them at the receiver's socket"));
        assert!(of(None).ends_with("unknown which"));
        assert_eq!(lost(&Counted { lost: 0, ..COUNTED }), "none");
    }

    #[test]
    fn order_is_of_what_came() {
        let result_of = |counted| order(&counted).unwrap_or_default();
        assert_eq!(result_of(COUNTED), "none out of order, 1.0 % twice");
        let late = Counted { reordered: Some(90), duplicated: Some(0), ..COUNTED };
        assert_eq!(result_of(late), "10.0 % out of order, none twice");
        let untold = Counted { reordered: None, ..COUNTED };
        assert_eq!(order(&untold), None);
    }
}
