//! The results of `fabric ping` and `fabric route` as JSON. The schemas are made from `PingOutput` and `RouteOutput`.

use linerate_fabric::network::{End, PortAt};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::json::text;
use super::{Pinged, Way};
use crate::head::Head;

/// One JSON document. Keys contain the units.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate fabric ping")]
pub(crate) struct PingOutput<'a> {
    #[serde(flatten)]
    head: Head<'static>,
    /// Name of the port, in words.
    to: &'a str,
    /// LID of the port `to`.
    lid: u16,
    /// Number of requests that were sent.
    sent: u32,
    /// Round trip of each request that was answered, in the order of the requests.
    trips_ns: Vec<u64>,
}

/// The round trips as one JSON document.
pub fn pinged_json(of: &Pinged) -> serde_json::Result<String> {
    text(&PingOutput {
        head: Head::new(None),
        to: &of.name,
        lid: of.lid,
        sent: of.sent,
        trips_ns: of.trips.iter().map(|trip| trip.0).collect(),
    })
}

/// One JSON document. Keys contain the units. Unknown values are null.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate fabric route")]
pub(crate) struct RouteOutput {
    #[serde(flatten)]
    head: Head<'static>,
    /// The port where the route begins.
    from: PlaceOut,
    /// The port that the route should lead to.
    to: PlaceOut,
    /// LID of the port `to`.
    lid: u16,
    /// How the route ends.
    end: EndOut,
    /// The port or node where the route ends, in words.
    ends_at: String,
    /// Links of the route, in order.
    links: Vec<LinkOut>,
    /// The path that the subnet manager gives. Null if unknown.
    path: Option<PathOut>,
}

/// A port, by its node and number.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "NamedPort")]
struct PlaceOut {
    /// Name of the port, in words.
    name: String,
    /// GUID of the port's node.
    node_guid: String,
    /// Number of the port. Port 0 of a switch is the switch itself.
    port: u8,
}

/// How a route ends.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum EndOut {
    /// The route ends at the port that has the LID.
    Arrives,
    /// The route comes back to a switch that it passed before.
    Loop,
    /// The route ends at a switch whose table has no entry for the LID.
    NoEntry,
    /// The route ends at a port without an active link.
    LinkDown,
    /// The route ends at a port that does not have the LID.
    Elsewhere,
    /// The route ends where a forwarding table was not read.
    Unknown,
}

/// A link of a route.
#[derive(Serialize, JsonSchema)]
struct LinkOut {
    /// The port through which packets leave.
    from: PlaceOut,
    /// The port at which packets arrive. Null if unknown.
    to: Option<PlaceOut>,
    /// Data rate of the link. Null if unknown.
    rate_bps: Option<u64>,
}

/// A path as the subnet manager gives it.
#[derive(Serialize, JsonSchema)]
struct PathOut {
    /// MTU: the largest payload of a packet. Null if unknown.
    mtu_bytes: Option<u32>,
    /// Rate of the signal on the wire. Null if unknown.
    signal_bps: Option<u64>,
    /// Service level that packets must carry.
    service_level: u8,
    /// Partition key (P_Key) of the path, in hexadecimal.
    partition_key: String,
}

/// The route as one JSON document.
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
