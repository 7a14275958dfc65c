//! Names of counters: which parts are numbers of queues, and which words suggest trouble.

use std::collections::BTreeMap;

use super::Counter;

/// Text that may precede the number of a queue, counted from the start of a counter's name.
//= Linux, the get_strings of drivers/net: `rx-0.packets`, `rx_queue_0_drops`, `rx0_dropped`, `queue_0_tx_cnt`, `txq0: tx_stops`
//= `rvec_0_tx_busy`, `cpu0_rx_packets`, `q0_rx_dropped`, `ch0_events`, `TC0 Queue[0] InErrors`, `rxq#0_errors`
const BEFORE: [&str; 22] = [
    "rx",
    "tx",
    "rx-",
    "tx-",
    "rx_",
    "tx_",
    "rx_queue_",
    "tx_queue_",
    "queue_",
    "rxq",
    "txq",
    "rxq_",
    "txq_",
    "rxq#",
    "txq#",
    "rvec_",
    "cpu",
    "q",
    "ch",
    "ptp_tx",
    "qos_tx",
    "TC",
];

/// Words in the names of counters of packets that were lost or had to wait.
const BAD: [&str; 24] = [
    "drop",
    "discard",
    "err",
    "miss",
    "crc",
    "fifo",
    "out_of_buf",
    "no_buf",
    "nobuf",
    "pause",
    "xoff",
    "timeout",
    "overrun",
    "overflow",
    "underrun",
    "fail",
    "full",
    "oob",
    "exceed",
    "no_mem",
    "nomem",
    "no_space",
    "no_desc",
    "trunc",
];

/// Whether a counter's name suggests packets that were lost or had to wait, even if its meaning is unknown.
pub fn sounds_bad(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    BAD.iter().any(|word| name.contains(word))
}

/// The counters of a port, with counters of single queues added up under one name such as `rx_queue_*_drops`. The sum
/// takes the place of the first queue's counter.
pub fn grouped(counters: Vec<Counter>) -> Vec<Counter> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut all: Vec<Counter> = Vec::new();
    for counter in counters {
        let name = starred(&counter.name);
        let at = *places.entry(name.clone()).or_insert(all.len());
        match all.get_mut(at) {
            Some(sum) => sum.value = sum.value.saturating_add(counter.value),
            None => all.push(Counter { name, value: counter.value }),
        }
    }
    all
}

/// A counter's name with `*` in place of each number of a queue.
pub(super) fn starred(name: &str) -> String {
    let name = name.trim();
    let mut made = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(at);
        made.push_str(before);
        let digits = from.len() - from.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, after) = from.split_at(digits);
        made.push_str(if is_queue(&made, after) { "*" } else { number });
        rest = after;
    }
    made + rest
}

/// Whether a number between the texts `before` and `after` is the number of a queue: `[3]`, a number at the start (`0:
/// rcv_pkts`, `0_0: xmit_pkts`), or a number after a word for queues.
fn is_queue(before: &str, after: &str) -> bool {
    match before {
        "" => {
            after.starts_with(": ")
                || after.starts_with(" [")
                || after.starts_with('_') && after.contains(": ")
        }
        "*_" => after.starts_with(": "),
        _ if before.ends_with('[') => after.starts_with(']'),
        _ => BEFORE.contains(&before),
    }
}

/// Whether a name matches a pattern in which `*` matches any number.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(rest) = name.strip_prefix(head) else {
        return false;
    };
    let after = match rest.strip_prefix('*') {
        Some(after) => after,
        None => rest.trim_start_matches(|c: char| c.is_ascii_digit()),
    };
    after.len() < rest.len() && fits(tail, after)
}
