//! Settings of a host: the maxima of its buffers, and the offloads of its port.

use std::net::UdpSocket;
use std::os::fd::AsFd;

use linerate_plan::path::Side;
use linerate_sys::ethtool::{self, Offload};
use linerate_units::Bytes;

use super::Undo;
use crate::agent::network::{Network, Spot};
use crate::error::LabError;

/// Lowers the maximum in the setting `name` of a host: `tcp_rmem` or `tcp_wmem`.
pub(super) fn limit_buffers(
    network: &Network,
    side: Side,
    name: &'static str,
    bytes: Bytes,
) -> Result<Undo, LabError> {
    let spot = Spot::of(side.into());
    let old = network.setting(spot, name)?;
    let mut values = old.split_whitespace().map(|v| v.parse().unwrap_or(bytes.0));
    let mut lowered = || values.next().unwrap_or(bytes.0).min(bytes.0);
    let (least, usual) = (lowered(), lowered());
    network.set(spot, name, &format!("{least} {usual} {}", bytes.0))?;
    Ok(Undo::Setting(spot, name, old.trim().to_owned()))
}

/// Switches off the offloads of a host's port; returns the undo, with those that were on.
pub(super) fn offloads_off(network: &Network, side: Side) -> Result<Undo, LabError> {
    let spot = Spot::of(side.into());
    let step = |e| LabError::step("cannot read the offloads of port eth0", &e);
    let socket = socket_in(network, spot)?;
    let mut were_on = Vec::new();
    for offload in Offload::ALL {
        if ethtool::offload(socket.as_fd(), "eth0", offload).map_err(step)? {
            were_on.push(offload);
        }
    }
    switch_offloads(network, spot, &were_on, false)?;
    Ok(Undo::Offloads(spot, were_on))
}

pub(super) fn switch_offloads(
    network: &Network,
    spot: Spot,
    offloads: &[Offload],
    on: bool,
) -> Result<(), LabError> {
    let socket = socket_in(network, spot)?;
    for offload in offloads {
        ethtool::set_offload(socket.as_fd(), "eth0", *offload, on)
            .map_err(|e| LabError::step(format!("cannot switch {offload:?} of eth0"), &e))?;
    }
    Ok(())
}

fn socket_in(network: &Network, spot: Spot) -> Result<UdpSocket, LabError> {
    network.enter(spot)?;
    UdpSocket::bind("0.0.0.0:0").map_err(|e| LabError::step("cannot open a socket", &e))
}
