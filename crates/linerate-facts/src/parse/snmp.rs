//! Parses `/proc/net/snmp`, `/proc/net/netstat`, `/proc/net/snmp6`, `/proc/net/sockstat` and `/proc/net/protocols`: IP
//! counters of a network namespace.

use super::text;

/// The counter `name` in the group `group` (such as `Ip`) of /proc/net/snmp. Each group has a line of names and a line
/// of values. `None` if the counter is missing.
pub fn count(text: &[u8], group: &str, name: &str) -> Option<u64> {
    let lines = text::lines(text, "snmp").filter_map(Result::ok);
    let mut rows = lines.filter_map(|line| {
        let mut fields = text::fields(line);
        let named = fields.next()?.strip_suffix(b":")? == group.as_bytes();
        named.then_some(fields)
    });
    let (mut names, mut values) = (rows.next()?, rows.next()?);
    let at = names.position(|field| field == name.as_bytes())?;
    text::decimal(values.nth(at)?)
}

/// The counter `name` (such as `Ip6FragCreates`) in /proc/net/snmp6, which has a line for each counter.
pub fn count6(text: &[u8], name: &str) -> Option<u64> {
    text::lines(text, "snmp6").find_map(|line| {
        let mut fields = text::fields(line.ok()?);
        (fields.next()? == name.as_bytes()).then(|| text::decimal(fields.next()?))?
    })
}

/// The number after a word in a line of /proc/net/sockstat, such as after `mem` in `TCP: inuse 4 mem 7`.
pub fn pair(text: &[u8], line: &str, word: &str) -> Option<u64> {
    let mut lines = text::lines(text, "sockstat").filter_map(Result::ok);
    let mut fields = lines.find_map(|text| {
        let mut fields = text::fields(text);
        (fields.next()?.strip_suffix(b":")? == line.as_bytes()).then_some(fields)
    })?;
    fields.find(|field| *field == word.as_bytes())?;
    text::decimal(fields.next()?)
}

/// Whether the kernel is short of memory for all sockets of a protocol (`TCP`): the column `press` of
/// /proc/net/protocols.
pub fn is_pressed(text: &[u8], protocol: &str) -> Option<bool> {
    let mut rows = text::lines(text, "protocols").filter_map(Result::ok);
    let mut names = text::fields(rows.next()?);
    let at = names.position(|field| field == b"press")?;
    let is_named = |row: &&[u8]| text::fields(row).next() == Some(protocol.as_bytes());
    match text::fields(rows.find(is_named)?).nth(at)? {
        b"yes" => Some(true),
        b"no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{count, count6, is_pressed, pair};

    const SNMP: &[u8] =
        b"Ip: Forwarding ReasmReqds FragCreates\nIp: 1 4 10\nTcp: RtoMin MaxConn\nTcp: 200 -1\n";

    #[test]
    fn counts_are_found_by_their_names() {
        assert_eq!(count(SNMP, "Ip", "FragCreates"), Some(10));
        assert_eq!(count(SNMP, "Ip", "ReasmReqds"), Some(4));
        assert_eq!(count(SNMP, "Ip", "RtoMin"), None, "of another group");
        assert_eq!(count(SNMP, "Tcp", "MaxConn"), None, "below zero");
        assert_eq!(count(b"Ip: FragCreates\n", "Ip", "FragCreates"), None, "cut");
        let six = b"Ip6ReasmReqds   \t3\nIp6FragCreates \t7\n";
        assert_eq!(count6(six, "Ip6FragCreates"), Some(7));
        assert_eq!(count6(six, "Ip6"), None);
    }

    #[test]
    fn a_number_stands_behind_its_word() {
        let text = b"sockets: used 9\nTCP: inuse 1 mem 19\nUDP: inuse 0 mem 7\n";
        assert_eq!(pair(text, "TCP", "mem"), Some(19));
        assert_eq!(pair(text, "UDP", "mem"), Some(7));
        assert_eq!(pair(text, "TCP", "orphan"), None);
        assert_eq!(pair(b"TCP: mem\n", "TCP", "mem"), None, "cut");
    }

    #[test]
    fn the_pressure_of_a_protocol_is_in_its_row() {
        let table = |tcp: &str| {
            let names = "protocol  size sockets  memory press maxhdr";
            let rows = "TCPv6 2432 0 19 no 192\nRAW 1152 0 -1 NI 0";
            format!("{names}\n{rows}\nTCP 2304 1 19 {tcp}\n").into_bytes()
        };
        assert_eq!(is_pressed(&table("yes 192"), "TCP"), Some(true));
        assert_eq!(is_pressed(&table("no 192"), "TCP"), Some(false));
        assert_eq!(is_pressed(&table("no 192"), "RAW"), None, "not counted");
        assert_eq!(is_pressed(&table(""), "TCP"), None, "cut");
        assert_eq!(is_pressed(b"TCP 2304 1 19 yes 192\n", "TCP"), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = (count(&bytes, "Ip", "FragCreates"), count6(&bytes, "Ip6FragCreates"));
            let _ = is_pressed(&[b"protocol press\n", &bytes[..]].concat(), "TCP");
            let _ = (pair(&bytes, "TCP", "mem"), pair(&[b"TCP: mem ", &bytes[..]].concat(), "TCP", "mem"));
        }
    }
}
