//! `ss -ti`: times and counters of TCP connections, by the kernel of their sender.

use linerate_plan::path::Direction;
use linerate_record::reported::{Carrier, Counted, Held, RoundTrips, Transfer};
use linerate_units::{Bytes, Nanos, Rate};

use crate::format::{Extent, Format, Found, Section};
use crate::reading::{self, Line, Notes, command, figure};

/// The format of ss.
pub(crate) static SS: Format = Format {
    id: "ss",
    label: "ss -ti",
    versions: "iproute2 4.6 to 6.1",
    evidence: "run here: iproute2 6.1, on loopback",
    unknown: "What the connections carried before and after; what limits them where the kernel has no clocks (before Linux 4.10).",
    starts: |at| starts(at.text),
    read,
    extent: Extent::Parts,
    ..Format::RESULTS
};

/// Largest number of connections that are read.
const MOST: usize = 256;
/// Fewest bytes of payload that count as a load.
const LOAD_BYTES: f64 = 1e6;
/// Seconds with data to send from which a connection counts as loaded, however little it sent: the question is what
/// limits it.
const BUSY_SECONDS: f64 = 1.0;
/// Fewest segments retransmitted that are kept for so small a load; fewer may be probes of a closed window.
const RETRANSMITS_MIN: f64 = 10.0;

fn starts(text: &str) -> bool {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let is_head =
        ["State", "Netid"].iter().any(|word| first.starts_with(word)) && first.contains("Recv-Q");
    let next = if is_head { lines.next().unwrap_or_default() } else { first };
    is_info(next)
        || is_connection(next) && (is_info_part(next) || lines.next().is_some_and(is_info))
}

/// Whether a line is `ESTAB 0 2211840 10.0.0.1:50512 10.0.0.2:5201`, possibly after the name of the protocol.
fn is_connection(line: &str) -> bool {
    let mut words = line.split_whitespace().skip_while(|word| *word == "tcp");
    words.next().is_some_and(|word| word == "ESTAB")
}

/// Whether both ends of a connection have the same address.
fn is_local(line: &str) -> Option<bool> {
    let mut words = line.split_whitespace().skip_while(|word| *word != "ESTAB").skip(3);
    let mut address = || words.next()?.rsplit_once(':').map(|(address, _)| address);
    Some(address()? == address()?)
}

fn is_info(line: &str) -> bool {
    line.starts_with([' ', '\t', 'c', 'b', 'r', 't', 's'])
        && !is_connection(line)
        && is_info_part(line)
}

fn is_info_part(line: &str) -> bool {
    line.contains(" rto:") && line.contains(" cwnd:")
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut used = 0;
    let mut results = Vec::new();
    let mut idle = 0_u32;
    let (mut place, mut local) = (section.line, None);
    for Line { number, text, end } in section.lines() {
        let line = text.trim_end();
        let is_ours = is_connection(line)
            || is_info(line)
            || line.starts_with("State")
            || line.starts_with("Netid");
        if !is_ours {
            if used > 0 && (command(line).is_some() || !line.trim().is_empty()) {
                break;
            }
            continue;
        }
        used = end;
        if is_connection(line) {
            (place, local) = (number, is_local(line));
        }
        if is_info_part(line) && results.len() < MOST {
            match transfer(line) {
                Some(one) => results.push(reading::transfer(place, Transfer { local, ..one })),
                None => idle += 1,
            }
        }
    }
    let mut notes = Notes::default();
    if idle > 0 {
        let what = format!(
            "left out: {idle} that sent less than 1 MB and was busy for less than 1 s, or whose rate is not there"
        );
        notes.at(section.line, what);
    }
    if used == 0 {
        return Err("it has no connection".to_owned());
    }
    Ok(Found { results, ..Found::of("ss", used, notes) })
}

/// The transfer of a connection that sends; `None` if it sends almost nothing.
fn transfer(line: &str) -> Option<Transfer> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let text =
        |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix(':'));
    let number = |name: &str| figure(text(name)?);
    let millis = |name: &str| figure(text(name)?.split("ms").next()?);
    let after = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        bits(words.get(at + 1)?)
    };
    let (acked, received) =
        (number("bytes_acked").or(number("bytes_sent")), number("bytes_received"));
    let secs = millis("busy").map(|busy| busy / 1e3).filter(|secs| *secs > 0.0);
    let is_large = acked.unwrap_or(0.0) >= LOAD_BYTES;
    let is_load = is_large || secs.is_some_and(|secs| secs >= BUSY_SECONDS);
    if !is_load || acked.unwrap_or(0.0) < received.unwrap_or(0.0) {
        return None;
    }
    let mean = || Some(acked? * 8.0 / secs?);
    let rate = mean().or_else(|| after("delivery_rate"))?;
    let mut one =
        Transfer::new(Carrier::Tcp, Direction::Forward, Rate(rate as u64), Counted::Receiver);
    one.streams = Some(1);
    one.seconds = secs;
    let segment = number("mss");
    one.segment = segment.map(|bytes| bytes as u32);
    one.window = number("cwnd").zip(segment).map(|(cwnd, segment)| Bytes((cwnd * segment) as u64));
    let pair = |name: &str| text(name)?.split_once('/');
    let retransmits = pair("retrans").and_then(|(_, all)| figure(all));
    // The counter is printed only if it is not zero. `busy` shows that the kernel is new enough to have it.
    let retransmits = retransmits.or(text("busy").map(|_| 0.0));
    one.retransmits = retransmits.filter(|n| is_large || *n >= RETRANSMITS_MIN).map(|n| n as u64);
    let nanos = |ms: f64| Nanos((ms * 1e6) as u64);
    one.round_trip = RoundTrips {
        least: number("minrtt").map(nanos),
        mean: pair("rtt").and_then(|(mean, _)| figure(mean)).map(nanos),
        most: None,
    };
    let share = |name: &str| Some((millis(name).unwrap_or(0.0) / 1e3 / secs?).min(1.0));
    one.held = Held { window: share("rwnd_limited"), buffer: share("sndbuf_limited") };
    one.congestion = words.iter().find(|word| CONTROLS.contains(word)).map(|&name| name.to_owned());
    Some(one)
}

/// Names of Linux's congestion controls.
const CONTROLS: [&str; 9] =
    ["cubic", "bbr", "reno", "dctcp", "htcp", "vegas", "westwood", "bbr2", "bbr3"];

/// Bits per second in `49.1Mbps` or `49100000bps`.
fn bits(text: &str) -> Option<f64> {
    let text = text.strip_suffix("bps")?;
    let scales = [("K", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)];
    let with_unit =
        scales.iter().find_map(|(unit, scale)| Some(figure(text.strip_suffix(unit)?)? * scale));
    with_unit.or_else(|| figure(text))
}

#[cfg(test)]
mod tests {
    use crate::sample::{notes, part, transfer};
    use crate::summary::sample;

    const HEAD: &str = "State  Recv-Q Send-Q Local Address:Port  Peer Address:Port\n";
    const INFO: &str = "\t cubic wscale:9,7 rto:244 rtt:20.5/0.3 mss:1448 cwnd:100 bytes_sent:252000000 bytes_acked:250000000 \
                        segs_out:173000 send 5Mbps delivery_rate 21Mbps busy:100000ms rwnd_limited:90000ms(90.0%) \
                        retrans:0/12 minrtt:19.8\n";

    #[test]
    fn a_connection_that_sends_is_a_transfer() {
        let line = "ESTAB  0      2211840  10.0.0.1:50512     10.0.0.2:5201\n";
        let part = part(&format!("$ ss -tin\n{HEAD}{line}{INFO}$ next\n"));
        let one = transfer(&part.results[0]);
        assert_eq!((one.goodput.0, one.retransmits), (20_000_000, Some(12)));
        assert_eq!((one.held.window, one.held.buffer), (Some(0.9), Some(0.0)));
        assert_eq!(one.window.map(|bytes| bytes.0), Some(144_800));
        assert_eq!(one.round_trip.mean.map(|n| n.0), Some(20_500_000));
        assert_eq!(one.congestion.as_deref(), Some("cubic"));
        // Only the line of details, as people paste it, from a kernel without clocks.
        let old = INFO
            .replace(" busy:100000ms rwnd_limited:90000ms(90.0%)", "")
            .replace(" retrans:0/12", "");
        let part = crate::sample::part(&old);
        let one = transfer(&part.results[0]);
        assert_eq!((one.goodput.0, one.retransmits, one.held.window), (21_000_000, None, None));
    }

    #[test]
    fn a_real_output_on_loopback_is_of_one_host() {
        let part = part(&sample("ss/6.1.0.txt"));
        let one = transfer(&part.results[0]);
        assert_eq!((part.results.len(), part.results[0].line), (1, 4));
        // The connection sent 3,794,665,404 bytes in 1.1 s.
        assert_eq!(
            (one.goodput.0, one.retransmits, one.local),
            (27_597_566_574, Some(9), Some(true))
        );
        assert_eq!((one.segment, one.congestion.as_deref()), (Some(65_483), Some("bbr")));
    }

    #[test]
    fn a_connection_that_carries_next_to_nothing_is_left_out() {
        let idle = INFO.replace("250000000", "2500").replace("busy:100000ms", "busy:999ms");
        let part = part(&format!(
            "{HEAD}ESTAB 0 0 10.0.0.1:22 10.0.0.2:999\n{idle}ESTAB 0 9 10.0.0.1:1 10.0.0.2:2\n{INFO}"
        ));
        assert_eq!(part.results.len(), 1);
        assert_eq!(part.results[0].line, 4);
        assert!(notes(&part, "left out: 1 that"));
    }

    #[test]
    fn a_connection_that_was_busy_and_sent_next_to_nothing_is_held() {
        let line = "ESTAB 0 45104 10.0.0.1:50512 10.0.0.2:5201\n";
        let held = INFO
            .replace("250000000", "150000")
            .replace("busy:100000ms", "busy:1000ms")
            .replace("rwnd_limited:90000ms(90.0%)", "rwnd_limited:970ms(97.0%)")
            .replace("0/12", "0/9");
        let one = part(&format!("{line}{held}"));
        let one = transfer(&one.results[0]);
        assert_eq!((one.goodput.0, one.held.window), (1_200_000, Some(0.97)));
        // Nine of some hundred segments may be probes.
        assert_eq!(one.retransmits, None);
        let many = part(&format!("{line}{}", held.replace("0/9", "0/10")));
        assert_eq!(transfer(&many.results[0]).retransmits, Some(10));
        // This end received more than it sent.
        let answers = held.replace("minrtt", "bytes_received:150001 minrtt");
        assert!(crate::read(format!("{line}{answers}").as_bytes()).is_err());
    }
}
