//! The ports of RDMA devices that a load uses, for causes that judge links and slots.

use crate::causes::prelude::*;
use linerate_facts::crossing::is_made_up;
use linerate_facts::rdma::RdmaEnd;
use linerate_units::Rate;
use linerate_units::shell::word;

/// Goodput in bits per second that any link carries: the slowest moves 2 Gb/s, and headers use less than half.
//= PCI Express Base Specification 1.0: one lane of 2.5 GT/s with 8b/10b
pub(crate) const ANY: f64 = 1e9;

/// Why a device made by software has no ceiling.
const SOFTWARE: &str =
    "is made by software: the CPUs of its host do its work, and its nominal rate is no ceiling";

/// Whether a load is carried by requests to RDMA devices.
pub(crate) fn carries(load: &Load) -> bool {
    load.has(Feature::Verbs)
}

/// The RDMA port of each end; `None` if it is unknown.
pub(crate) fn ends(load: &Load, direction: Direction) -> [(Side, Option<&RdmaEnd>); 2] {
    [Side::Near, Side::Far].map(|side| (side, load.rdma(direction, side)))
}

/// Whether the RDMA device of an end is made by software.
pub(crate) fn is_software(load: &Load, direction: Direction) -> bool {
    let mut ends = ends(load, direction).into_iter();
    ends.any(|(_, end)| end.is_some_and(|end| end.software))
}

/// The RDMA devices that are made by software and have no link, in words.
pub(crate) fn without_wire(load: &Load, direction: Direction) -> String {
    let soft = |(side, end): (Side, Option<&RdmaEnd>)| {
        let end = end.filter(|end| end.software)?;
        Some(format!("{} {} {SOFTWARE}", side.name(), end.device))
    };
    let all: Vec<String> = ends(load, direction).into_iter().filter_map(soft).collect();
    if all.is_empty() {
        "no port gives it a ceiling: its operations carry hardly any payload, or more arrived than the nominal rate allows"
            .to_owned()
    } else {
        all.join("; ")
    }
}

/// The gaps for links of RDMA ports that were not read.
pub(crate) fn unread_links(load: &Load, direction: Direction) -> Vec<Gap> {
    let gap = |(side, end): (Side, Option<&RdmaEnd>)| match end {
        None => Some(unknown_port(side)),
        Some(end) if end.software || end.link().is_some() => None,
        Some(end) => Some(Gap {
            what: format!("the speed of {} {}", side.name(), end.name()),
            why: "without it the capacity of the wire is unknown".to_owned(),
            hint: format!(
                "cat /sys/class/infiniband/{}/ports/{}/rate",
                word(&end.device),
                end.port
            ),
        }),
    };
    ends(load, direction).into_iter().filter_map(gap).collect()
}

/// The gap for a slot that was not read, if the slot may limit the load.
pub(crate) fn unread_slot(load: &Load, direction: Direction) -> Option<Gap> {
    if load.goodput.mean < ANY {
        return None;
    }
    let gap = |(side, end): (Side, Option<&RdmaEnd>)| match end {
        None => Some(unknown_port(side)),
        Some(end) if end.software || is_read(end) => None,
        Some(end) => Some(Gap {
            what: format!("the slot of {} {}", side.name(), end.device),
            why: "its link was not read: its capacity is unknown".to_owned(),
            hint: "lspci -vv".to_owned(),
        }),
    };
    ends(load, direction).into_iter().find_map(gap)
}

/// Whether the rates of all links between a device and the processor are known, or there are no such links.
fn is_read(end: &RdmaEnd) -> bool {
    let links = end.crossings();
    let all = !links.is_empty() && links.iter().all(|link| link.rate().is_some());
    let port = end.link().map(|link| link.capacity().low() * 8.0);
    all || is_made_up(&links, Rate(port.unwrap_or(0.0) as u64))
}

fn unknown_port(side: Side) -> Gap {
    Gap {
        what: format!("the RDMA port of {}", side.name()),
        why: "the record does not say which one it was".to_owned(),
        hint: "run a version of linerate at that end which reports it".to_owned(),
    }
}
