//! Token buckets in front of ports.

use linerate_plan::path::{Direction, Side};
use linerate_units::{Bytes, Rate};

use super::Undo;
use crate::agent::network::{Network, Spot};
use crate::error::LabError;
use crate::fault::{Depth, FaultDirection};

/// The parameters of a token bucket, in bytes and bytes per second.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    rate: u64,
    burst: u32,
    limit: u32,
}

/// Size of one group of segments as TCP sends it, in bytes; a smaller bucket has to split it.
const ONE_GROUP: u64 = 64 * 1024;

impl Bucket {
    /// Makes a bucket for a rate in bytes per second. The bounds of faults keep its sizes within 32 bits.
    fn of(rate: u64, burst: u64, limit: u64) -> Self {
        let size = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        Self { rate, burst: size(burst.max(ONE_GROUP)), limit: size(limit) }
    }
}

/// Returns the bucket of a rate limit in the network.
pub(super) fn bucket(rate: Rate, depth: Depth) -> Bucket {
    let bytes = rate.0 / 8;
    let limit = match depth {
        Depth::Shallow => (bytes / 200).max(2 * ONE_GROUP),
        Depth::Deep => (bytes / 10).max(8 * ONE_GROUP),
    };
    // A kernel whose timer ticks every 4 ms must be able to send the payload of that time at once.
    Bucket::of(bytes, bytes / 250, limit)
}

/// Makes a bucket with room for `room` bytes and a burst of 1 ms.
pub(super) fn small(rate: Rate, room: Bytes) -> Bucket {
    let bytes = rate.0 / 8;
    Bucket::of(bytes, bytes / 1000, room.0)
}

/// Ports that get a bucket, and the hosts that they are in.
pub(super) type Ports = Vec<(Spot, &'static str)>;

/// Returns the router's ports that send in the given directions.
pub(super) fn router_ports(directions: FaultDirection) -> Ports {
    let port = |direction: &Direction| match direction {
        Direction::Forward => (Spot::Router, "far"),
        Direction::Reverse => (Spot::Router, "near"),
    };
    directions.each().iter().map(port).collect()
}

/// Returns the port of a host.
pub(super) fn host_port(side: Side) -> Ports {
    vec![(Spot::of(side.into()), "eth0")]
}

/// Puts the bucket in front of all ports or, if that fails for one, of none.
pub(super) fn limit_rate(
    network: &mut Network,
    bucket: &Bucket,
    ports: Ports,
) -> Result<Undo, LabError> {
    for (done, (spot, port)) in ports.iter().enumerate() {
        let netlink = &mut network.place(*spot).netlink;
        let added = netlink.add_token_bucket(port, bucket.rate, bucket.burst, bucket.limit);
        if let Err(e) = added {
            // The first error is the one to report.
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
