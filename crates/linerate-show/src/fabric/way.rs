//! Round trips and routes for programs. The schemas are made from `PingOutput` and `RouteOutput`.

use linerate_fabric::network::{End, PortAt};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::json::text;
use super::{Pinged, Way};
use crate::head::Head;

/// One JSON document. Units stand in the keys.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate fabric ping")]
pub(crate) struct PingOutput<'a> {
    #[serde(flatten)]
    head: Head<'static>,
    /// The port, in words.
    to: &'a str,
    /// LID of the port.
    lid: u16,
    /// Requests that were sent.
    sent: u32,
    /// Round trip of each request that was answered, in their order.
    trips_ns: Vec<u64>,
}

/// The document of round trips.
pub fn pinged_json(of: &Pinged) -> serde_json::Result<String> {
    text(&PingOutput {
        head: Head::new(None),
        to: &of.name,
        lid: of.lid,
        sent: of.sent,
        trips_ns: of.trips.iter().map(|trip| trip.0).collect(),
    })
}

/// One JSON document. Units stand in the keys. Unknown values are null.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate fabric route")]
pub(crate) struct RouteOutput {
    #[serde(flatten)]
    head: Head<'static>,
    /// Where the route begins.
    from: PlaceOut,
    /// The port that it is for.
    to: PlaceOut,
    /// LID of that port.
    lid: u16,
    /// How the route ends.
    end: EndOut,
    /// The port or node where it ends, in words.
    ends_at: String,
    /// Its links, in order.
    links: Vec<LinkOut>,
    /// The path that the subnet manager gives. Null if unknown.
    path: Option<PathOut>,
}

/// A port.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "NamedPort")]
struct PlaceOut {
    /// The port, in words.
    name: String,
    /// GUID of its node.
    node_guid: String,
    /// Number of the port. Port 0 of a switch is the switch itself.
    port: u8,
}

/// How a route ends.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum EndOut {
    /// At the port that has the LID.
    Arrives,
    /// At a switch that was passed before.
    Loop,
    /// At a switch whose table has no entry for the LID.
    NoEntry,
    /// At a port without an active link.
    LinkDown,
    /// At a port that does not have the LID.
    Elsewhere,
    /// Where a table was not read.
    Unknown,
}

/// A link of a route.
#[derive(Serialize, JsonSchema)]
struct LinkOut {
    /// The port that packets leave through.
    from: PlaceOut,
    /// The port that they arrive at. Null if unknown.
    to: Option<PlaceOut>,
    /// Data rate of the link. Null if unknown.
    rate_bps: Option<u64>,
}

/// A path that the subnet manager gives.
#[derive(Serialize, JsonSchema)]
struct PathOut {
    /// Largest payload of a packet. Null if unknown.
    mtu_bytes: Option<u32>,
    /// Rate of the bits on the wire. Null if unknown.
    signal_bps: Option<u64>,
    /// Service level.
    service_level: u8,
    /// Partition key, in hexadecimal.
    partition_key: String,
}

/// The document of a route.
pub fn routed_json(way: &Way<'_>) -> serde_json::Result<String> {
    let network = way.network;
    let place = |at: PortAt| PlaceOut {
        name: network.name(at),
        node_guid: network.nodes[at.node].info.guid.to_string(),
        port: at.port,
    };
    let itself = |node: usize| network.nodes[node].name();
    let (end, ends_at) = match way.route.end {
        End::Arrives(at) => (EndOut::Arrives, network.name(at)),
        End::Loop(node) => (EndOut::Loop, itself(node)),
        End::NoEntry(node) => (EndOut::NoEntry, itself(node)),
        End::LinkDown(at) => (EndOut::LinkDown, network.name(at)),
        End::Elsewhere(at) => (EndOut::Elsewhere, network.name(at)),
        End::Unknown(at) => (EndOut::Unknown, network.name(at)),
    };
    let links = way.route.hops.iter().map(|hop| {
        let port = network.port(*hop);
        LinkOut {
            from: place(*hop),
            to: port.and_then(|port| port.peer).map(place),
            rate_bps: port.and_then(|port| Some(port.lanes()?.rate().0)),
        }
    });
    let first = way.route.hops.first();
    let path = first.and_then(|from| network.path(*from, way.to));
    text(&RouteOutput {
        head: Head::new(None),
        from: place(way.from),
        to: place(way.to),
        lid: way.lid,
        end,
        ends_at,
        links: links.collect(),
        path: path.map(|path| PathOut {
            mtu_bytes: path.mtu,
            signal_bps: path.rate.map(|rate| rate.0),
            service_level: path.level,
            partition_key: format!("{:#06x}", path.key.0),
        }),
    })
}
