//! Reads the outputs of `perfquery` and `ibqueryerrors`: counters of InfiniBand ports.

use linerate_facts::infiniband::{Guid, IbPort};
use linerate_facts::nic::Counter;

use super::{Devices, MOST};
use crate::facts::lines::{Reading, is_prompt};
use crate::format::{Format, Found, Section};
use crate::reading::{Line, decimal, hexadecimal, lookup, option, small};

pub(crate) static PERFQUERY: Format = Format {
    id: "perfquery",
    label: "perfquery",
    versions: "infiniband-diags 1.5 to rdma-core 60, plain and with -x",
    evidence: "run here: perfquery of rdma-core 44.0, on networks that ibsim 0.10 simulates",
    unknown: "Whether an error is new: one reading has what was counted since the counters were last cleared. Two outputs of \
              one port show it.",
    starts: |at| is_perfquery(at.line),
    read: read_perfquery,
    ..Format::FACTS
};

pub(crate) static IBQUERYERRORS: Format = Format {
    id: "ibqueryerrors",
    label: "ibqueryerrors",
    versions: "infiniband-diags 1.5 to rdma-core 60",
    evidence: "run here: ibqueryerrors of rdma-core 44.0, on networks that ibsim 0.10 simulates; published: \
        https://github.com/openucx/ucx/issues/9590 (with sizes in brackets)",
    unknown: "Whether an error is new, as with perfquery; packets, beside which an error is many or few; ports below its \
              thresholds.",
    starts: |at| at.line.starts_with(NODE) && (at.line.contains('"') || at.line.contains(" 0x")),
    read: read_ibqueryerrors,
    ..Format::FACTS
};

const PERFQUERY_HEADS: [&str; 2] = ["# Port counters: Lid ", "# Port extended counters: Lid "];
const NODE: &str = "Errors for ";

fn is_perfquery(line: &str) -> bool {
    PERFQUERY_HEADS.iter().any(|head| line.starts_with(head))
}

/// Names of counters in perfquery and ibqueryerrors, each with the kernel's name.
//= rdma-core, libibmad/fields.c; torvalds/linux, Documentation/ABI/stable/sysfs-class-infiniband
const NAMES: [(&str, &str); 19] = [
    ("SymbolErrorCounter", "symbol_error"),
    ("LinkErrorRecoveryCounter", "link_error_recovery"),
    ("LinkDownedCounter", "link_downed"),
    ("PortRcvErrors", "port_rcv_errors"),
    ("PortRcvRemotePhysicalErrors", "port_rcv_remote_physical_errors"),
    ("PortRcvSwitchRelayErrors", "port_rcv_switch_relay_errors"),
    ("PortXmitDiscards", "port_xmit_discards"),
    ("PortXmitConstraintErrors", "port_xmit_constraint_errors"),
    ("PortRcvConstraintErrors", "port_rcv_constraint_errors"),
    ("LocalLinkIntegrityErrors", "local_link_integrity_errors"),
    ("ExcessiveBufferOverrunErrors", "excessive_buffer_overrun_errors"),
    ("VL15Dropped", "VL15_dropped"),
    ("PortXmitData", "port_xmit_data"),
    ("PortRcvData", "port_rcv_data"),
    ("PortXmitPkts", "port_xmit_packets"),
    ("PortRcvPkts", "port_rcv_packets"),
    ("PortXmitWait", "port_xmit_wait"),
    ("PortUnicastXmitPkts", "unicast_xmit_packets"),
    ("PortUnicastRcvPkts", "unicast_rcv_packets"),
];

/// Keys of lines of perfquery that are not counters of the port, or are not used.
const PASSED: [&str; 7] = [
    "PortSelect",
    "CounterSelect",
    "CounterSelect2",
    "QP1Dropped",
    "PortMulticastXmitPkts",
    "PortMulticastRcvPkts",
    "PortMalformedPktErrors",
];

/// Sets a counter of a port, and adds it if it is new.
fn count(port: &mut IbPort, name: &str, value: u64) {
    let has_room = port.counters.len() < MOST;
    match port.counters.iter_mut().find(|known| known.name == name) {
        Some(known) => known.value = value,
        None if has_room => port.counters.push(Counter { name: name.to_owned(), value }),
        None => {}
    }
}

/// The lines up to the next prompt. Lines of perfquery begin with `#`, as prompts of root do.
fn lines<'a>(section: &Section<'a>, is_own: fn(&str) -> bool) -> Reading<'a> {
    Reading::until(section, move |line| !is_own(line) && is_prompt(line))
}

fn read_perfquery(section: &Section<'_>) -> Result<Found, String> {
    let device = section.command.and_then(|command| option(command, &["-C", "--Ca"]));
    let take = |devices: &mut Devices<'_>, line| of_perfquery(devices, line, device.unwrap_or(""));
    Devices::new(lines(section, is_perfquery)).read("perfquery", take)
}

/// Reads a line such as `SymbolErrorCounter:..............4242`; `None` if it is not understood.
fn of_perfquery(devices: &mut Devices<'_>, line: Line<'_>, device: &str) -> Option<()> {
    let text = line.trimmed();
    let head = PERFQUERY_HEADS.iter().find_map(|head| text.strip_prefix(head));
    if let Some(rest) = head {
        let mut words = rest.split_whitespace();
        let lid = words.next().and_then(decimal);
        // The words are `port 1`, or `port: ALL` for the sum over all ports.
        let port = words.nth(1).and_then(small);
        devices.begin(device);
        devices.begin_port(port.unwrap_or(0));
        if let Some(port) = devices.port() {
            port.lid = lid;
        }
        return lid.map(|_| ());
    }
    let (name, value) = line.pair()?;
    let value = decimal(value.trim_start_matches('.'));
    match (lookup(&NAMES, name), value, devices.port()) {
        (Some(name), Some(value), Some(port)) => {
            count(port, name, value);
            Some(())
        }
        _ => PASSED.contains(&name).then_some(()),
    }
}

fn read_ibqueryerrors(section: &Section<'_>) -> Result<Found, String> {
    let is_own = |line: &str| line.starts_with(NODE) || line.starts_with("##");
    let take =
        |devices: &mut Devices<'_>, line: Line<'_>| of_ibqueryerrors(devices, line.trimmed());
    Devices::new(lines(section, is_own)).read("ibqueryerrors", take)
}

/// Reads a line such as `GUID 0x200000 port 5: [SymbolErrorCounter == 4242] [LinkDownedCounter == 7]`; `None` if it
/// is not understood.
fn of_ibqueryerrors(devices: &mut Devices<'_>, text: &str) -> Option<()> {
    let is_passed =
        ["##", "Link info:", "Suppressing:", NODE].iter().any(|known| text.starts_with(known));
    let Some(rest) = text.strip_prefix("GUID ").filter(|_| !is_passed) else {
        return is_passed.then_some(());
    };
    let (place, counters) = rest.split_once(':')?;
    let mut words = place.split_whitespace();
    let guid = hexadecimal(words.next()?)?;
    words.next().filter(|word| *word == "port")?;
    // The sum over all ports is left out, as each port also has a line.
    let Some(number) = words.next().and_then(small) else {
        return Some(());
    };
    if devices.device().is_none_or(|device| device.node_guid != Some(Guid(guid))) {
        devices.begin("");
    }
    if let Some(device) = devices.device() {
        device.node_guid = Some(Guid(guid));
    }
    devices.begin_port(number);
    let port = devices.port()?;
    for each in counters.split('[').skip(1) {
        let pair = each.split_once(" == ").map(|(name, value)| {
            let digits = value.split([' ', ']']).next().unwrap_or("");
            (lookup(&NAMES, name.trim()), decimal(digits))
        });
        if let Some((Some(name), Some(value))) = pair {
            count(port, name, value);
        }
    }
    Some(())
}
