//! Shows the ports of RDMA devices that a load uses, and what its completions prove, as text and as JSON.

use linerate_facts::rdma::RdmaEnd;
use linerate_plan::path::{Direction, Side};
use linerate_plan::transport::rdma::{Addressing, Operation};
use linerate_plan::transport::{self, Feature, Options};
use linerate_record::Record;
use schemars::JsonSchema;
use serde::Serialize;

use super::json::exact;
use super::{Document, Tone};

/// Words for an RDMA device that is made by software.
const SOFTWARE: &str =
    "made by software: the CPUs of its host do its work, and its nominal rate says nothing";

/// The RDMA ports that the loads of a record use, near first; empty for other transports, and for records of older
/// versions.
pub(super) fn ends(record: &Record) -> Vec<(Side, RdmaEnd)> {
    let mut sets = record.sets.iter();
    let set = sets.find(|set| set.ends.iter().any(|end| end.rdma.is_some()));
    let ends = set.map_or(&[][..], |set| &set.ends);
    let sides = [Side::Near, Side::Far].into_iter().zip(ends);
    sides.filter_map(|(side, end)| Some((side, end.rdma.as_deref()?.clone()))).collect()
}

/// Name and addressing of a port: `rxe0 port 1, RoCE v2, GID 1 (10.9.0.1), packets of 1024 B`.
pub(super) fn port(end: &RdmaEnd) -> String {
    let mut parts = vec![end.name(), end.addressing.name().to_owned()];
    match (end.gid_index, end.gid) {
        (Some(index), Some(gid)) => {
            let gid = end.address().map_or(gid.to_string(), |ip| ip.to_string());
            parts.push(format!("GID {index} ({gid})"));
        }
        (Some(index), None) => parts.push(format!("GID {index}")),
        (None, _) => parts.push(format!("LID {}", end.lid)),
    }
    let room = end.mtu_possible();
    let of = if room > end.mtu { format!(" ({room} B possible)") } else { String::new() };
    parts.push(format!("packets of {} B{of}", end.mtu));
    parts.join(", ")
}

/// Limits of the queue pairs: `inline to 220 B, depth 128, reads at once 16 out and 16 in, polling`.
fn sizes(end: &RdmaEnd) -> String {
    let waits = if end.polls { "polling" } else { "events" };
    format!(
        "inline to {} B, depth {}, reads at once: {} out, {} in, {waits}",
        end.inline, end.depth, end.reads_out, end.reads_in
    )
}

/// The rate of a port's link, or that there is no link; `None` if unknown.
fn link(end: &RdmaEnd) -> Option<String> {
    if end.software {
        return Some(SOFTWARE.to_owned());
    }
    let netdev = end.netdev.as_ref().map(|netdev| netdev.name.as_str());
    let on = netdev.map_or(String::new(), |name| format!(" on {name}"));
    end.link().map(|link| format!("{link}{on}"))
}

/// All that is shown of a port.
pub(crate) fn whole(end: &RdmaEnd) -> String {
    let parts = [Some(port(end)), Some(sizes(end)), link(end)];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Writes the RDMA ports of both ends.
pub(super) fn lines(doc: &mut Document, ends: &[(Side, RdmaEnd)]) {
    for (side, end) in ends {
        let label = format!("{} RDMA", side.name());
        doc.entry(&label, &[(Tone::Plain, &whole(end))], 2);
    }
}

/// Who counted the load of a direction, and what a completion proves; `None` for other transports, and for sends,
/// which the receiver counts as usual.
pub(super) fn proof(engine: &str, options: &Options, direction: Direction) -> Option<String> {
    let op = one_sided(engine, options)?;
    let side = match op {
        Operation::Read => direction.receiver(),
        _ => direction.sender(),
    };
    Some(format!("by the {} end, on its clock; {}", side.name(), proves(op)))
}

/// Which end timed a round trip, and what its completion proves; `None` for other transports and for sends.
pub(super) fn proof_of_time(engine: &str, options: &Options) -> Option<String> {
    let op = one_sided(engine, options)?;
    let what = if op == Operation::Write {
        "the far program saw the message in its memory, and answered with a write that this program saw".to_owned()
    } else {
        format!("one operation is a whole round trip; {}", proves(op))
    };
    Some(format!("by this end, on its clock; {what}"))
}

fn one_sided(engine: &str, options: &Options) -> Option<Operation> {
    let op = Operation::of(options);
    (transport::of(engine).has(Feature::Verbs) && op.is_one_sided()).then_some(op)
}

fn proves(op: Operation) -> &'static str {
    match op {
        Operation::Read => {
            "a completion proves that the payload is in the memory of that end; the program at the other end takes no part"
        }
        Operation::Atomic => {
            "a completion proves that the other end's device has carried out the operation; the program there takes no part"
        }
        _ => {
            "a completion proves that the other end's device has acknowledged the payload; the program there takes no part"
        }
    }
}

/// A port of an RDMA device that carries a load, and the limits of its queue pairs.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RdmaEnd")]
pub(crate) struct RdmaOut {
    side: Side,
    /// Name of the device.
    device: String,
    /// Number of the device's port.
    port: u32,
    addressing: Addressing,
    /// Index of the address in the port's table of GIDs. Null if packets carry LIDs only.
    gid_index: Option<u32>,
    /// The GID at `gid_index`, written as an IPv6 address. Null without an index.
    gid: Option<String>,
    /// Local identifier (LID) of the port. 0 on Ethernet.
    lid: u32,
    /// MTU of the connection: the largest payload of a packet.
    mtu_bytes: u32,
    /// Largest MTU that the port could have with another setting of its network.
    mtu_possible_bytes: u32,
    /// Largest payload that the device accepts inside a request.
    inline_bytes: u32,
    /// Number of requests that each queue pair keeps in flight.
    depth: u32,
    /// Reads and atomic operations that each queue pair keeps in flight.
    reads_out: u32,
    /// Reads and atomic operations of the other end that each queue pair handles at a time.
    reads_in: u32,
    /// Whether threads poll for completions, and so are busy at any load.
    polls: bool,
    /// Whether the device is made by software: the CPUs of its host do its work.
    software: bool,
    /// Data rate of the link. Null if unknown, and for a device made by software.
    link_bps: Option<u64>,
    /// Network port that belongs to the RDMA port. Null if there is none.
    netdev: Option<String>,
    /// NUMA node of the device. Null if unknown or meaningless.
    node: Option<u32>,
}

/// The RDMA ports as documents list them, near first.
pub(super) fn out(ends: &[(Side, RdmaEnd)]) -> Vec<RdmaOut> {
    ends.iter().map(|(side, end)| one(*side, end)).collect()
}

fn one(side: Side, end: &RdmaEnd) -> RdmaOut {
    let rate = |bytes: f64| (bytes * 8.0).round() as u64;
    RdmaOut {
        side,
        device: end.device.clone(),
        port: end.port,
        addressing: end.addressing,
        gid_index: end.gid_index,
        gid: end.gid.map(|gid| gid.to_string()),
        lid: end.lid,
        mtu_bytes: end.mtu,
        mtu_possible_bytes: end.mtu_possible(),
        inline_bytes: end.inline,
        depth: end.depth,
        reads_out: end.reads_out,
        reads_in: end.reads_in,
        polls: end.polls,
        software: end.software,
        link_bps: end.link().map(|link| exact(rate(link.capacity().low()))),
        netdev: end.netdev.as_ref().map(|netdev| netdev.name.clone()),
        node: end.node,
    }
}

#[cfg(test)]
mod tests {
    use linerate_facts::infiniband::{IbRate, Layer};
    use linerate_facts::rdma::Netdev;
    use linerate_plan::transport::Setting;
    use linerate_plan::transport::rdma::OPERATION;
    use linerate_units::Rate;

    use super::*;

    fn roce() -> RdmaEnd {
        RdmaEnd {
            device: "mlx5_0".to_owned(),
            port: 1,
            layer: Some(Layer::Ethernet),
            addressing: Addressing::RoceV2,
            gid_index: Some(3),
            gid: "::ffff:10.9.0.1".parse().ok(),
            mtu: 1024,
            mtu_own: 1024,
            mtu_most: 4096,
            inline: 220,
            depth: 128,
            reads_out: 16,
            reads_in: 16,
            polls: true,
            netdev: Some(Netdev {
                name: "eth0".to_owned(),
                speed: Some(Rate(100_000_000_000)),
                mtu: Some(1500),
            }),
            ..RdmaEnd::default()
        }
    }

    #[test]
    fn a_port_is_told_with_its_address_and_the_sizes_in_force() {
        assert_eq!(
            whole(&roce()),
            "mlx5_0 port 1, RoCE v2, GID 3 (10.9.0.1), packets of 1024 B (4096 B possible); inline to 220 B, depth 128, \
             reads at once: 16 out, 16 in, polling; 100 Gb/s on eth0"
        );
        let infiniband = RdmaEnd {
            layer: Some(Layer::InfiniBand),
            addressing: Addressing::Lid,
            gid_index: None,
            gid: None,
            lid: 7,
            mtu: 4096,
            rate: Some(IbRate { rate: Rate(100_000_000_000), width: 2, speed: "HDR".to_owned() }),
            netdev: None,
            ..roce()
        };
        let text = whole(&infiniband);
        assert!(text.starts_with("mlx5_0 port 1, InfiniBand, LID 7, packets of 4096 B;"), "{text}");
        assert!(text.ends_with("; 2x HDR"), "{text}");
    }

    #[test]
    fn the_rate_of_a_software_device_is_not_told() {
        let soft = RdmaEnd { software: true, ..roce() };
        let text = whole(&soft);
        assert!(text.ends_with(SOFTWARE) && !text.contains("Gb/s"), "{text}");
        assert_eq!(one(Side::Near, &soft).link_bps, None);
        assert_eq!(one(Side::Near, &roce()).link_bps, Some(100_000_000_000));
    }

    #[test]
    fn one_sided_operations_say_who_counted_and_what_that_proves() {
        let result_of = |op: &str, direction| {
            let mut options = Options::default();
            options.set(OPERATION.key, Setting::Word(op.to_owned()));
            proof("rdma", &options, direction)
        };
        assert_eq!(result_of("send", Direction::Forward), None);
        assert_eq!(proof("tcp", &Options::default(), Direction::Forward), None);
        for (op, direction, side, what) in [
            ("write", Direction::Forward, "near", "acknowledged"),
            ("write", Direction::Reverse, "far", "acknowledged"),
            ("read", Direction::Forward, "far", "in the memory"),
            ("read", Direction::Reverse, "near", "in the memory"),
            ("atomic", Direction::Forward, "near", "carried out"),
        ] {
            let text = result_of(op, direction).unwrap();
            let who = format!("by the {side} end, on its clock");
            assert!(text.starts_with(&who) && text.contains(what), "{text}");
        }
    }
}
