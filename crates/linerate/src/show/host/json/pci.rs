//! PCI devices and their links.

use linerate_core::facts::crossing::shows_tunnel;
use linerate_core::facts::pci::{Device, Link, Payload, PortKind};
use serde::Serialize;

use super::known;

#[derive(Serialize)]
pub(super) struct DeviceOut<'a> {
    address: String,
    parent: Option<String>,
    vendor_id: u16,
    device_id: u16,
    class: u32,
    function: &'a str,
    port: Option<&'a str>,
    names: &'a [String],
    driver: Option<&'a str>,
    link: Option<LinkOut>,
    link_max: Option<LinkOut>,
    tunnel: bool,
    payload_bytes: Option<u32>,
    payload_max_bytes: Option<u32>,
    read_request_bytes: Option<u32>,
    node: Option<u32>,
    iommu_group: Option<u32>,
    #[serde(rename = "virtual")]
    is_virtual: bool,
}

#[derive(Serialize)]
struct LinkOut {
    transfers_per_sec: Option<u64>,
    lanes: Option<u8>,
    rate_bps: Option<u64>,
}

pub(super) fn devices(all: &[Device]) -> Vec<DeviceOut<'_>> {
    all.iter().map(|own| device(all, own)).collect()
}

fn device<'a>(all: &[Device], device: &'a Device) -> DeviceOut<'a> {
    let tunnel = shows_tunnel(all, device);
    let link = |link: Link| LinkOut {
        transfers_per_sec: link.speed.map(|s| s.0),
        lanes: link.width,
        rate_bps: link.rate().filter(|_| !tunnel).map(|r| r.0),
    };
    let payload = |field: fn(&Payload) -> u32| device.payload.as_ref().map(field);
    DeviceOut {
        address: device.address.to_string(),
        parent: device.parent.map(|p| p.to_string()),
        vendor_id: device.vendor,
        device_id: device.device,
        class: device.class,
        function: device.function(),
        port: device.kind.map(PortKind::name),
        names: &device.names,
        driver: known(&device.driver),
        link: device.now.map(link),
        link_max: device.max.map(link),
        tunnel,
        payload_bytes: payload(|p| p.now),
        payload_max_bytes: payload(|p| p.max),
        read_request_bytes: payload(|p| p.read_request),
        node: device.node,
        iommu_group: device.iommu_group,
        is_virtual: device.is_virtual,
    }
}
