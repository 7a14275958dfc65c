//! PCI devices and their links in the JSON document of a machine.

use std::borrow::Cow;

use linerate_facts::crossing::shows_tunnel;
use linerate_facts::pci::{Device, Iommu, Link, Payload, PortKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use super::super::super::json::one_of;
use super::known;

/// A PCI device.
#[derive(Serialize, JsonSchema)]
pub(super) struct DeviceOut<'a> {
    /// Address of the device: `0000:82:00.0`.
    address: String,
    /// Address of the bridge above the device. Null on a root bus.
    parent: Option<String>,
    /// Vendor id. 0 if unknown.
    vendor_id: u16,
    /// Device id. 0 if unknown.
    device_id: u16,
    /// Class code of the device.
    class: u32,
    /// The class of the device in words.
    function: &'a str,
    /// Kind of the PCI Express port. Null if the device is not PCI Express, or if unknown.
    port: Option<PortKindOut>,
    /// Names that the kernel gives the device: eth0, mlx5_0, nvme0.
    names: &'a [String],
    /// Driver of the device. Null if there is none, or if unknown.
    driver: Option<&'a str>,
    /// Speed and width at which the link runs. Null if unknown.
    link: Option<LinkOut>,
    /// Highest speed and width that this end of the link supports. Null if unknown.
    link_max: Option<LinkOut>,
    /// Whether the device is an end of a link through a Thunderbolt or USB4 cable: its speed and lanes are then
    /// only placeholders, and there is no rate.
    tunnel: bool,
    /// Largest payload of a packet that is set. Null if unknown.
    payload_bytes: Option<u32>,
    /// Largest payload that the device supports. Null if unknown.
    payload_max_bytes: Option<u32>,
    /// Largest read request that is set. Null if unknown.
    read_request_bytes: Option<u32>,
    /// NUMA node. Null if unknown or meaningless.
    node: Option<u32>,
    /// IOMMU group. Null if there is none, or if unknown.
    iommu_group: Option<u32>,
    /// How the IOMMU treats the memory accesses of a network card. Null if there is no IOMMU, or if unknown.
    iommu: Option<Iommu>,
    /// Whether the device is a virtual function of another device.
    #[serde(rename = "virtual")]
    is_virtual: bool,
}

/// Name of the kind of a PCI Express port, as documents write it. Records write another name.
#[derive(Serialize)]
struct PortKindOut(&'static str);

impl JsonSchema for PortKindOut {
    fn schema_name() -> Cow<'static, str> {
        "PortKind".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        one_of(PortKind::ALL.map(PortKind::name))
    }
}

/// Speed and width of a PCI Express link.
#[derive(Serialize, JsonSchema)]
struct LinkOut {
    /// Transfers per second of each lane. Null if unknown.
    transfers_per_sec: Option<u64>,
    /// Number of lanes. Null if unknown.
    lanes: Option<u8>,
    /// Bits per second after the line code; packet headers take a part of them. Null if unknown.
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
        port: device.kind.map(|kind| PortKindOut(kind.name())),
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
        iommu: device.iommu,
        is_virtual: device.is_virtual,
    }
}
