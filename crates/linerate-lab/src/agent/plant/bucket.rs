//! Token buckets in front of ports.

use linerate_plan::path::{Direction, Side};
use linerate_units::{Bytes, Rate};

use super::Undo;
use crate::agent::network::{Network, Spot};
use crate::error::LabError;
use crate::fault::{Depth, FaultDirection};

/// The parameters of a token bucket: rate in bytes per second, burst and queue limit in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    rate: u64,
    burst: u32,
    limit: u32,
}

/// Largest group of segments that TCP sends at once, in bytes; a smaller bucket would have to split the group.
const ONE_GROUP: u64 = 64 * 1024;

impl Bucket {
    /// Makes a bucket; `rate` is in bytes per second. The bounds of faults keep burst and limit within 32 bits.
    fn of(rate: u64, burst: u64, limit: u64) -> Self {
        let size = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        Self { rate, burst: size(burst.max(ONE_GROUP)), limit: size(limit) }
    }
}

/// Returns the bucket that limits the network to `rate`, with a queue of `depth`.
pub(super) fn bucket(rate: Rate, depth: Depth) -> Bucket {
    let bytes = rate.0 / 8;
    let limit = match depth {
        Depth::Shallow => (bytes / 200).max(2 * ONE_GROUP),
        Depth::Deep => (bytes / 10).max(8 * ONE_GROUP),
    };
    // A kernel whose timer ticks every 4 ms must be able to send the payload of that time at once.
    Bucket::of(bytes, bytes / 250, limit)
}

/// Makes a bucket whose queue holds `room` bytes and whose burst is 1 ms at the rate.
pub(super) fn small(rate: Rate, room: Bytes) -> Bucket {
    let bytes = rate.0 / 8;
    Bucket::of(bytes, bytes / 1000, room.0)
}

/// Ports in front of which a bucket is put, each with its namespace.
pub(super) type Ports = Vec<(Spot, &'static str)>;

/// Returns the router's ports from which packets in these directions leave.
pub(super) fn router_ports(directions: FaultDirection) -> Ports {
    let port = |direction: &Direction| match direction {
        Direction::Forward => (Spot::Router, "far"),
        Direction::Reverse => (Spot::Router, "near"),
    };
    directions.each().iter().map(port).collect()
}

/// Returns the port of the host on this side.
pub(super) fn host_port(side: Side) -> Ports {
    vec![(Spot::of(side.into()), "eth0")]
}

/// Puts the bucket in front of all ports; if that fails for one port, no port keeps a bucket.
pub(super) fn limit_rate(
    network: &mut Network,
    bucket: &Bucket,
    ports: Ports,
) -> Result<Undo, LabError> {
    for (done, (spot, port)) in ports.iter().enumerate() {
        let netlink = &mut network.place(*spot).netlink;
        let added = netlink.add_token_bucket(port, bucket.rate, bucket.burst, bucket.limit);
        if let Err(e) = added {
            // A failure to remove queues is ignored: the first error is the one to report.
            let _ = remove_queues(network, &ports[..done]);
            let what = format!("cannot put a token bucket (tbf) in front of port {port}");
            return Err(LabError::step(what, &e));
        }
    }
    Ok(Undo::Queues(ports))
}

pub(super) fn remove_queues(
    network: &mut Network,
    ports: &[(Spot, &'static str)],
) -> Result<(), LabError> {
    for (spot, port) in ports {
        let removed = network.place(*spot).netlink.remove_queue(port);
        let what = || format!("cannot remove the queue of port {port}");
        removed.map_err(|e| LabError::step(what(), &e))?;
    }
    Ok(())
}
