//! Rules about TCP settings that are switched off or too small, and about a full table of connections.

use super::Finding;
use crate::Inventory;
use crate::advice::Advice;

/// Settings that are on by default, each with what is missing if it is off, and why that matters.
const SWITCHES: [(&str, &str, &str); 3] = [
    (
        "net.ipv4.tcp_window_scaling",
        "window scaling is off: no window is larger than 64 KiB",
        "a connection carries 64 KiB in each round trip at most: 52 Mb/s at 10 ms",
    ),
    (
        "net.ipv4.tcp_sack",
        "selective acknowledgements (SACK) are off",
        "after a loss the sender does not know what arrived: it sends it again, or waits for a timeout",
    ),
    (
        "net.ipv4.tcp_moderate_rcvbuf",
        "receive buffers do not grow by themselves",
        "a connection keeps the default buffer, which is too small for a path with delay",
    ),
];

/// Settings of TCP buffers, each with the largest size that the kernel itself sets if there is enough memory, and why
/// it matters.
//= torvalds/linux, net/ipv4/tcp.c, tcp_init: the limit is memory / 128, at most 6 MiB to receive and 4 MiB to send
const BUFFERS: [(&str, u64, &str); 2] = [
    ("net.ipv4.tcp_rmem", 6 << 20, "the window of the other end is never larger than this buffer"),
    ("net.ipv4.tcp_wmem", 4 << 20, "no more than this buffer is in flight"),
];
const OF_MEMORY: u64 = 128;

/// The value of a setting of the machine, as the kernel prints it.
fn setting<'a>(inventory: &'a Inventory, name: &str) -> Option<&'a str> {
    let found = inventory.tunables.iter().find(|t| t.name == name);
    found.map(|tunable| tunable.value.as_str())
}

fn set(name: &str, value: &str) -> String {
    format!("sudo sysctl -w {name}={value}")
}

/// Settings that are on by default and that somebody switched off.
pub(super) fn switched_off(inventory: &Inventory) -> Vec<Finding> {
    let odd = |&(name, what, why): &(&str, &str, &'static str)| {
        (setting(inventory, name)? == "0").then(|| {
            Finding::new("tcp-setting", name, what).why(why).fix(
                Advice::new(
                    "switch it on, unless something on the path, such as a firewall, needs it \
                     off; it counts for new connections",
                )
                .set(None, set(name, "1"))
                .undo_on(None, set(name, "0")),
            )
        })
    };
    SWITCHES.iter().filter_map(odd).collect()
}

/// TCP buffers whose largest size is less than half of what the kernel itself would set.
pub(super) fn small_buffers(inventory: &Inventory) -> Vec<Finding> {
    let memory = inventory.memory.total.map(|total| total.0 / OF_MEMORY);
    let odd = |&(name, most, why): &(&str, u64, &'static str)| {
        let own = memory.map_or(most, |memory| most.min(memory));
        let value = setting(inventory, name)?;
        let numbers: Option<Vec<u64>> = value.split(' ').map(|n| n.parse().ok()).collect();
        let [least, default, now] = numbers?[..] else {
            return None;
        };
        let what =
            format!("buffers grow to {now} bytes at most; the kernel sets {own} on such a machine");
        let fix = "let them grow, unless memory must be saved; it counts for new connections";
        let fix = Advice::new(fix)
            .set(None, set(name, &format!("'{least} {default} {own}'")))
            .undo_on(None, set(name, &format!("'{value}'")));
        (now < own / 2).then(|| Finding::new("tcp-setting", name, what).why(why).fix(fix))
    };
    BUFFERS.iter().filter_map(odd).collect()
}

/// A table of tracked connections (conntrack) that is full, nearly full, or was full since boot.
pub(super) fn full_table(inventory: &Inventory) -> Vec<Finding> {
    /// Share of the table's entries in use from which a burst of connections may fill it.
    const FULL: f64 = 0.9;
    let Some(table) = inventory.conntrack.filter(|table| table.most > 0) else {
        return Vec::new();
    };
    let share = table.entries as f64 / table.most as f64;
    let evicted = table.evicted.filter(|n| *n > 0);
    if share < FULL && evicted.is_none() {
        return Vec::new();
    }
    let mut what = format!(
        "{} of {} entries of the table of connections are in use ({:.0} %)",
        table.entries,
        table.most,
        share * 100.0
    );
    what += &evicted
        .map_or(String::new(), |n| format!("; evicted since boot because it was full: {n}"));
    let dropped = table.dropped.filter(|n| *n > 0);
    what += &dropped.map_or(String::new(), |n| format!("; packets dropped: {n}"));
    let name = "net.netfilter.nf_conntrack_max";
    vec![
        Finding::new("conntrack-full", "nf_conntrack", what)
            .brief("the table of connections is full, or was")
            .why("packets of connections that find no entry are dropped: connections hang or fail")
            .fix(
                Advice::new(
                    "allow more entries, of about 320 bytes each, or exempt traffic that needs \
                     no state from connection tracking (notrack)",
                )
                .set(None, set(name, &table.most.saturating_mul(2).to_string()))
                .undo_on(None, set(name, &table.most.to_string())),
            ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;
    use crate::{Conntrack, Tunable};
    use linerate_units::Bytes;

    /// Findings about a machine with this much memory and these settings.
    fn result_of(gib: Option<u64>, settings: &[(&str, &str)]) -> Vec<(String, String)> {
        let tunables = settings.iter().map(|(name, value)| Tunable {
            name: format!("net.ipv4.{name}"),
            value: (*value).to_owned(),
        });
        let mut machine = Inventory { tunables: tunables.collect(), ..Inventory::default() };
        machine.memory.total = gib.map(|gib| Bytes(gib << 30));
        let found = find(&machine).into_iter();
        found.map(|odd| (odd.what.clone(), odd.to_do())).collect()
    }

    #[test]
    fn what_somebody_switched_off_is_odd() {
        for (name, _, _) in SWITCHES {
            let name = name.trim_start_matches("net.ipv4.");
            assert_eq!(result_of(None, &[(name, "1")]), [], "{name}");
            let [(_, fix)] = &result_of(None, &[(name, "0")])[..] else { panic!("{name}") };
            assert!(fix.contains("unless something on the path"), "{fix}");
            assert!(fix.contains("=1 (undo: "), "{fix}");
        }
        assert_eq!(result_of(None, &[("tcp_timestamps", "0")]), []);
    }

    #[test]
    fn buffers_below_half_of_what_the_kernel_sets_are_odd() {
        let rmem =
            |gib, most: u64| result_of(gib, &[("tcp_rmem", &format!("4096 131072 {most}"))]).len();
        for (gib, half) in [(None, 3 << 20), (Some(64), 3 << 20)] {
            assert_eq!((rmem(gib, half), rmem(gib, half - 1)), (0, 1), "{gib:?}");
        }
        let small = |most| {
            let mut machine = Inventory::default();
            machine.memory.total = Some(Bytes(256 << 20));
            machine.tunables = vec![Tunable {
                name: "net.ipv4.tcp_wmem".to_owned(),
                value: format!("4096 16384 {most}"),
            }];
            find(&machine).len()
        };
        assert_eq!((small(1 << 20), small((1 << 20) - 1)), (0, 1), "256 MiB of memory");
        let (what, fix) = &result_of(Some(64), &[("tcp_wmem", "4096 16384 65536")])[0];
        assert_eq!(
            what,
            "buffers grow to 65536 bytes at most; the kernel sets 4194304 on such a machine"
        );
        assert!(
            fix.contains("sudo sysctl -w net.ipv4.tcp_wmem='4096 16384 4194304' (undo: "),
            "{fix}"
        );
        assert!(fix.ends_with("sudo sysctl -w net.ipv4.tcp_wmem='4096 16384 65536')"), "{fix}");
        assert_eq!(result_of(Some(64), &[("tcp_wmem", "4096 16384")]), []);
    }

    #[test]
    fn a_table_of_connections_that_is_full_or_was_full_is_odd() {
        let result_of = |entries, most, evicted, dropped| {
            let machine = Inventory {
                conntrack: Some(Conntrack { entries, most, evicted, dropped }),
                ..Inventory::default()
            };
            find(&machine).into_iter().map(|odd| odd.what).collect::<Vec<_>>()
        };
        assert_eq!(result_of(899, 1000, Some(0), Some(7)), [""; 0], "other reasons to drop");
        assert_eq!(result_of(899, 1000, None, None), [""; 0]);
        assert_eq!(result_of(0, 0, None, None), [""; 0], "no limit");
        let nearly = &result_of(900, 1000, None, None)[0];
        assert_eq!(nearly, "900 of 1000 entries of the table of connections are in use (90 %)");
        let was = &result_of(5, 1000, Some(3), Some(7))[0];
        assert!(
            was.ends_with("(0 %); evicted since boot because it was full: 3; packets dropped: 7"),
            "{was}"
        );
    }
}
