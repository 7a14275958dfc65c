//! Reads the outputs of `nstat` and `netstat -s`: counters of the kernel's network code.

use linerate_record::reported::{Counters, Measured};

use crate::format::{Extent, Format, Found, Section};
use crate::reading::{Line, Notes, lookup, run};

/// The format of nstat.
pub(crate) static NSTAT: Format = Format {
    id: "nstat",
    label: "nstat",
    versions: "iproute2 2.6 to 6",
    evidence: "run here: iproute2 6.1",
    unknown: "Which connection a count belongs to; whether it grew since the last call, or since the start (-a).",
    starts: |at| {
        counter(at.line).is_some() || at.line.trim() == "#kernel" && counter(at.next).is_some()
    },
    read: read_nstat,
    extent: Extent::Parts,
    ..Format::RESULTS
};

/// The format of netstat -s.
pub(crate) static NETSTAT: Format = Format {
    id: "netstat",
    label: "netstat -s",
    versions: "net-tools 1.60 and 2.10, of Linux",
    evidence: "run here: net-tools 2.10",
    unknown: "Which connection a count belongs to, and what it was before: it counts since the host started.",
    starts: |at| {
        let is_group = GROUPS.iter().any(|group| at.line.strip_prefix(group) == Some(":"));
        is_group && at.next.starts_with(' ') && at.next.chars().any(|c| c.is_ascii_digit())
    },
    read: read_netstat,
    extent: Extent::Parts,
    ..Format::RESULTS
};

/// Largest number of counters that are kept.
const MOST: usize = 1_000;

/// Sentences of `netstat -s`, with the kernel's names of their counters.
//= net-tools: statistics.c, Tcptab and Tcpexttab
const SENTENCES: [(&str, &str); 12] = [
    ("segments sent out", "TcpOutSegs"),
    ("segments send out", "TcpOutSegs"),
    ("segments received", "TcpInSegs"),
    ("segments retransmitted", "TcpRetransSegs"),
    ("segments retransmited", "TcpRetransSegs"),
    ("DSACKs received", "TcpExtTCPDSACKRecv"),
    ("packet reassembles failed", "IpReasmFails"),
    ("packet reassemblies failed", "IpReasmFails"),
    ("packet receive errors", "UdpInErrors"),
    ("receive buffer errors", "UdpRcvbufErrors"),
    ("fast retransmits", "TcpExtTCPFastRetrans"),
    ("other TCP timeouts", "TcpExtTCPTimeouts"),
];

/// Starts of the names of counters.
const GROUPS: [&str; 8] = ["Ip", "Icmp", "Tcp", "Udp", "IpExt", "TcpExt", "MPTcpExt", "Sctp"];

/// Reads a line such as `TcpOutSegs                      6120442            0.0`.
fn counter(line: &str) -> Option<(&str, u64)> {
    let mut words = line.split_whitespace();
    let (name, value) = (words.next()?, words.next()?);
    let is_name = GROUPS.iter().any(|group| name.starts_with(group))
        && name.bytes().all(|b| b.is_ascii_alphanumeric());
    let is_rate = words.next().is_none_or(|rate| rate.parse::<f64>().is_ok());
    (is_name && is_rate && words.next().is_none()).then_some((name, value.parse().ok()?))
}

fn read_nstat(section: &Section<'_>) -> Result<Found, String> {
    // With -a, nstat counts since the host started. Without `sleep` in the command it is unknown when the count
    // began.
    let is_all = |command: &str| {
        command.split_whitespace().any(|word| word.starts_with('-') && word.contains('a'))
    };
    let grew = section.command.is_some_and(|command| !is_all(command) && command.contains("sleep"));
    let take = |line: &str| counter(line).map(|(name, value)| (name.to_owned(), value));
    found(section, "nstat", grew, take, |line| line.starts_with('#'))
}

fn read_netstat(section: &Section<'_>) -> Result<Found, String> {
    let take = |line: &str| {
        let line = line.trim();
        // A counter without a sentence is printed with the kernel's name. All of these belong to the group TcpExt.
        if let Some((name, value)) = line.split_once(": ") {
            let is_name =
                name.starts_with("TCP") && name.bytes().all(|b| b.is_ascii_alphanumeric());
            return is_name.then_some((format!("TcpExt{name}"), value.parse().ok()?));
        }
        let (value, words) = line.split_once(' ')?;
        Some((lookup(&SENTENCES, words)?.to_owned(), value.parse().ok()?))
    };
    let is_other = |line: &str| line.starts_with(' ') || line.ends_with(':');
    found(section, "netstat", false, take, is_other)
}

/// The counters in a section. A line that is neither a counter nor skipped ends it.
fn found(
    section: &Section<'_>,
    tool: &str,
    grew: bool,
    take: impl Fn(&str) -> Option<(String, u64)>,
    is_other: impl Fn(&str) -> bool,
) -> Result<Found, String> {
    let (mut values, mut used) = (Vec::new(), 0);
    for Line { text, end, .. } in section.lines() {
        let line = text.trim_end();
        match take(line) {
            Some(value) if values.len() < MOST => values.push(value),
            None if line.is_empty() => continue,
            None if !is_other(line) || run(line).is_some() => break,
            _ => {}
        }
        used = end;
    }
    if values.is_empty() {
        return Err("it has no counter that is read".to_owned());
    }
    let found = Found::of(tool, used, Notes::default());
    Ok(found.with("", section.line, Measured::Counters(Counters { values, grew })))
}

#[cfg(test)]
mod tests {
    use linerate_record::reported::{Counters, Measured};

    use crate::summary::sample;

    fn counters(text: &str) -> Counters {
        match crate::sample::part(text).results.remove(0).measured {
            Measured::Counters(counters) => counters,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn counters_have_their_names() {
        let text = "$ nstat -n; sleep 5; nstat\n#kernel\nTcpOutSegs                      6120            0.0\nTcpRetransSegs  22  0.0\n";
        let found = counters(text);
        assert_eq!(
            (found.value("TcpOutSegs"), found.value("TcpRetransSegs")),
            (Some(6120), Some(22))
        );
        assert!(found.grew);
        assert!(!counters("$ nstat -az\n#kernel\nTcpOutSegs 1 0.0\n").grew);
    }

    #[test]
    fn real_outputs_have_their_counters() {
        let nstat = counters(&sample("nstat/6.1.0.txt"));
        assert_eq!(
            (nstat.value("TcpOutSegs"), nstat.value("TcpRetransSegs")),
            (Some(60_358), None)
        );
        let netstat = counters(&sample("netstat/2.10.txt"));
        let value = |name| netstat.value(name);
        assert_eq!(
            (value("TcpOutSegs"), value("TcpRetransSegs")),
            (Some(206_974_141), Some(355_869))
        );
        assert_eq!(
            (value("TcpExtTCPDSACKRecv"), value("UdpInErrors")),
            (Some(302_391), Some(418_242))
        );
    }

    #[test]
    fn sentences_of_netstat_are_counters() {
        let text = "$ netstat -s\nTcp:\n    3 active connection openings\n    900 segments sent out\n    9 segments retransmitted\nTcpExt:\n    7 DSACKs received\n";
        let found = counters(text);
        let value = |name| found.value(name);
        assert_eq!(
            (value("TcpOutSegs"), value("TcpRetransSegs"), value("TcpExtTCPDSACKRecv")),
            (Some(900), Some(9), Some(7))
        );
        assert!(!found.grew);
    }
}
