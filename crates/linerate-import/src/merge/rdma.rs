//! Joins facts of RDMA devices.

use linerate_facts::infiniband::{
    Gid, Guid, IbDevice, IbPort, IbRate, Infiniband, Ipoib, LinkState,
};

use super::gaps;
use super::join::{Joiner, keyed};
use super::port::counters;

pub(super) fn infiniband(joiner: &mut Joiner, into: &mut Infiniband, from: Infiniband) {
    keyed(&mut into.devices, from.devices, place, |into, from| {
        device(joiner, into, from);
    });
    into.devices.sort_by(|a, b| a.name.cmp(&b.name));
    keyed(
        &mut into.interfaces,
        from.interfaces,
        |i| i.name.clone(),
        |into, from| interface(joiner, into, from),
    );
    into.interfaces.sort_by(|a, b| a.name.cmp(&b.name));
    keyed(&mut into.claims, from.claims, |claim| claim.pci.clone(), |into, from| *into = from);
    into.managed = from.managed.or(into.managed.take());
    into.opened = from.opened.or(into.opened.take());
    gaps(&mut into.gaps, from.gaps);
}

/// The key of a device: its name, or, if no output shows the name, its LID and GUID.
fn place(device: &IbDevice) -> (String, Option<u64>, Option<u64>) {
    if !device.name.is_empty() {
        return (device.name.clone(), None, None);
    }
    let lid = device.ports.first().and_then(|port| port.lid);
    (String::new(), lid, device.node_guid.map(|guid| guid.0))
}

fn interface(joiner: &mut Joiner, into: &mut Ipoib, from: Ipoib) {
    joiner.about(&into.name);
    joiner.text("slot", &mut into.pci, from.pci);
    joiner.text("mode", &mut into.mode, from.mode);
    joiner.option("port", &mut into.port, from.port);
    joiner.option("connected mode", &mut into.connectable, from.connectable);
    into.addresses = from.addresses.or(into.addresses.take());
    into.guid = from.guid.or(into.guid);
}

fn device(joiner: &mut Joiner, into: &mut IbDevice, from: IbDevice) {
    let name = into.name.clone();
    joiner.about(&name);
    joiner.text("model", &mut into.model, from.model);
    joiner.text("firmware", &mut into.firmware, from.firmware);
    joiner.text("board", &mut into.board, from.board);
    joiner.text("slot", &mut into.pci, from.pci);
    joiner.option("node", &mut into.node, from.node);
    joiner.option("GUID", &mut into.node_guid, from.node_guid);
    into.virtual_of = from.virtual_of.or(into.virtual_of.take());
    into.software |= from.software;
    keyed(
        &mut into.ports,
        from.ports,
        |port| port.number,
        |into, from| {
            joiner.about(&format!("{name} port {}", into.number));
            port(joiner, into, from);
        },
    );
    into.ports.sort_by_key(|port| port.number);
}

fn port(joiner: &mut Joiner, into: &mut IbPort, from: IbPort) {
    let is_down = from.state == Some(LinkState::Down);
    joiner.shown("state", &mut into.state, from.state, |state| state.name().to_owned());
    joiner.shown("state of the wire", &mut into.physical, from.physical, |state| {
        state.name().to_owned()
    });
    joiner.shown("layer", &mut into.layer, from.layer, |layer| layer.name().to_owned());
    joiner.option("LID", &mut into.lid, from.lid);
    joiner.option("LID of the manager", &mut into.sm_lid, from.sm_lid);
    rate(joiner, &mut into.rate, from.rate);
    if is_down {
        into.rate = None;
    }
    keyed(&mut into.gids, from.gids, |gid| gid.index, gid);
    joiner.option("MTU", &mut into.mtu, from.mtu);
    joiner.option("largest MTU", &mut into.mtu_max, from.mtu_max);
    into.manages = from.manages.or(into.manages);
    // The first reading is kept to show how the counters grew.
    let is_second =
        into.before.is_empty() && !into.counters.is_empty() && !from.counters.is_empty();
    if is_second {
        into.before.clone_from(&into.counters);
    }
    counters(&mut into.counters, from.counters);
}

/// Joins rates. A rate whose width and speed are unknown does not replace an equal one.
fn rate(joiner: &mut Joiner, into: &mut Option<IbRate>, from: Option<IbRate>) {
    let is_vaguer = |from: &IbRate, into: &IbRate| from.width == 0 && from.rate == into.rate;
    let (Some(first), Some(later)) = (&*into, &from) else {
        *into = from.or(into.take());
        return;
    };
    if is_vaguer(later, first) {
        return;
    }
    if is_vaguer(first, later) {
        *into = from;
        return;
    }
    joiner.shown("rate", into, from, IbRate::to_string);
}

/// Joins GIDs. One of which only the lower half is known does not replace a complete one.
fn gid(into: &mut Gid, from: Gid) {
    let is_half = from.gid.starts_with("0000:0000:0000:0000:");
    let is_same = Guid::of_gid(&into.gid) == Guid::of_gid(&from.gid);
    if !(is_half && is_same) {
        *into = from;
    }
}
