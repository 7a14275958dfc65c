//! Combinations of values that make a case impossible, although each value alone is possible.

use super::{Case, CaseError, Protocol, Storage};
use linerate_ceiling::Link;
use linerate_ceiling::infiniband::MTUS;

/// Smallest Ethernet MTU that is accepted: every host must accept packets of this size.
//= RFC 791, section 3.1
const SMALLEST_MTU: u32 = 576;

/// Most outputs, claims, sweeps or published figures that a case may have.
const MOST: usize = 100;
/// Most `set` entries of one output or published figure, in which its path differs from the case.
const MOST_SET: usize = 32;

/// Refuses values of a case that contradict each other.
pub(super) fn check(case: &Case) -> Result<(), CaseError> {
    let links = [&case.near, &case.far].map(|h| h.port.link);
    let links = || links.into_iter().flatten();
    let any_infiniband = links().any(Link::is_infiniband);
    if any_infiniband && !links().all(Link::is_infiniband) {
        return refuse("one port is InfiniBand and the other Ethernet: nothing joins them");
    }
    if any_infiniband && matches!(case.protocol, Protocol::RoceV1 | Protocol::RoceV2) {
        return refuse("RoCE is RDMA over Ethernet, and the ports are InfiniBand: say `rdma`");
    }
    if any_infiniband && (case.net.vlans.is_some() || case.net.tunnel.is_some()) {
        return refuse("`net.vlans` and `net.tunnel` belong to Ethernet");
    }
    mtus(case, any_infiniband)?;
    storage(&case.storage)?;
    outputs(case)?;
    figures(case)
}

fn outputs(case: &Case) -> Result<(), CaseError> {
    for (what, number) in [
        ("output", case.output.len()),
        ("claim", case.claim.len()),
        ("sweep", case.sweep.len()),
        ("published", case.published.len()),
    ] {
        if number > MOST {
            return refuse(format!("{number} tables `[[{what}]]` are too many; allowed: {MOST}"));
        }
    }
    let sets = case.output.iter().map(|output| &output.set);
    let mut sets = sets.chain(case.published.iter().map(|figure| &figure.set));
    if let Some(set) = sets.find(|set| set.len() > MOST_SET) {
        return refuse(format!(
            "{} differences of one `set` are too many; allowed: {MOST_SET}",
            set.len()
        ));
    }
    let empty = case.output.iter().find(|output| output.text.trim().is_empty());
    empty.map_or(Ok(()), |output| refuse(format!("the output `{}` has no text", output.name)))
}

fn refuse<T>(why: impl Into<String>) -> Result<T, CaseError> {
    Err(CaseError(why.into()))
}

fn mtus(case: &Case, infiniband: bool) -> Result<(), CaseError> {
    for (side, host) in [("near", &case.near), ("far", &case.far)] {
        let port = &host.port;
        if port.ip_mtu.is_some() && !infiniband {
            return refuse(format!("`{side}.port.ip-mtu` belongs to InfiniBand; say `mtu`"));
        }
        if port.ip_mtu.is_some_and(|mtu| mtu < SMALLEST_MTU) {
            return refuse(format!("`{side}.port.ip-mtu` is below {SMALLEST_MTU}"));
        }
        let Some(mtu) = port.mtu else { continue };
        if infiniband && !MTUS.contains(&mtu) {
            let there = MTUS.map(|m| m.to_string()).join(", ");
            return refuse(format!("`{side}.port.mtu` is {mtu}; InfiniBand packets hold {there}"));
        }
        if !infiniband && mtu < SMALLEST_MTU {
            return refuse(format!("`{side}.port.mtu` is below {SMALLEST_MTU}"));
        }
    }
    Ok(())
}

fn storage(storage: &Storage) -> Result<(), CaseError> {
    if storage.depth.is_some() != storage.latency.is_some() {
        return refuse("`storage.depth` and `storage.latency` say something only together");
    }
    let counted = storage.depth.or(storage.operations).is_some();
    if counted && storage.operation.is_none_or(|size| size.0 == 0) {
        return refuse(
            "operations are counted, but `storage.operation`, the payload of one, is missing",
        );
    }
    Ok(())
}

fn figures(case: &Case) -> Result<(), CaseError> {
    for p in &case.published {
        let given =
            [p.goodput.is_some(), p.packets.is_some(), p.cycles.is_some(), p.round_trip.is_some()];
        if given.iter().filter(|g| **g).count() != 1 {
            return refuse(format!(
                "published `{}` needs one of `goodput`, `packets`, `cycles` and `round-trip`",
                p.what
            ));
        }
    }
    Ok(())
}
