//! Rules about the size of packets: of RDMA, and of sockets over InfiniBand.

use super::super::super::{Explained, facts};
use super::super::moved::{Moved, runs};
use super::super::transfers::transfers;
use super::super::{Remark, rate};
use super::payload;
use linerate_ceiling::fingerprint::{self as print, Kind};
use linerate_ceiling::{infiniband, roce};
use linerate_facts::finding::Stands;
use linerate_facts::infiniband::Layer;
use linerate_facts::nic::Nic;
use linerate_record::reported::Carrier;

/// Least ratio of the ceilings with the largest and the present MTU at which the larger one matters.
pub(in crate::rule) const GAIN: f64 = 1.02;
/// Share of the ceiling with the present packets from which the packets limit the rate.
const FULL: f64 = 0.97;

/// A port whose packets are smaller than the largest that it supports; sizes in bytes.
struct Small {
    name: String,
    now: u32,
    most: u32,
    layer: Layer,
    /// Data rate of the link in bits per second; `None` if unknown.
    link: Option<f64>,
}

impl Small {
    /// Ratio of the payload that a full link carries with the largest packets to that with the present ones.
    fn gain(&self) -> Option<f64> {
        Some(wire(self.layer, self.now)? / wire(self.layer, self.most)?)
    }

    /// Payload in bits per second that the full link carries with the present packets.
    fn ceiling(&self) -> Option<f64> {
        Some(self.link? / wire(self.layer, self.now)?)
    }
}

/// Bytes on the wire for each byte of payload, in full packets of this MTU.
pub(in crate::rule) fn wire(layer: Layer, mtu: u32) -> Option<f64> {
    let packet = match layer {
        Layer::InfiniBand => infiniband::rdma(&[mtu])?,
        Layer::Ethernet => {
            let around = roce::overhead(roce::Version::V2(linerate_ceiling::ethernet::Ip::V4), 0);
            return Some(1.0 + f64::from(around) / f64::from(mtu.max(1)));
        }
    };
    Some(packet.wire_per_byte.low())
}

/// The ports of both hosts whose packets are smaller than the largest that they support.
fn small<'a>(explained: &'a Explained<'_>) -> impl Iterator<Item = Small> + 'a {
    let ports = facts::ports_of(explained.material);
    let devices = explained.material.rdma_devices();
    devices.flat_map(move |(_, device)| {
        let of = |port: &linerate_facts::infiniband::IbPort| {
            let name = format!("{} port {}", device.name, port.number);
            let link = ports.iter().find(|known| known.name.starts_with(&name));
            Some(Small {
                now: port.mtu?,
                most: port.mtu_max.filter(|most| port.mtu.is_some_and(|now| now < *most))?,
                layer: port.layer?,
                link: link.map(|known| known.link.capacity().high() * 8.0),
                name,
            })
        };
        device.ports.iter().filter_map(of).collect::<Vec<_>>()
    })
}

/// Whether a run fills a link whose packets could be larger.
pub(in crate::rule) fn are_small(explained: &Explained<'_>, run: &Moved<'_>) -> bool {
    small(explained).any(|port| port.gain() >= Some(GAIN) && is_full(&port, run))
}

pub(in crate::rule) fn mtu(explained: &Explained<'_>) -> Vec<Remark> {
    let all = runs(explained);
    let best = all.iter().max_by(|a, b| a.each_way().total_cmp(&b.each_way()));
    small(explained).filter_map(|port| smaller(&port, best)).collect()
}

/// Whether the rate of a run fills the link of a port with its present packets.
fn is_full(port: &Small, run: &Moved<'_>) -> bool {
    let by_fact = port.ceiling().map(|ceiling| run.each_way() >= ceiling * FULL);
    // If the link is unknown, the rate may equal the ceiling of a standard link.
    let by_rate = || {
        let kind = match port.layer {
            Layer::InfiniBand => Kind::InfiniBand,
            Layer::Ethernet => Kind::Ethernet,
        };
        print::at(run.each_way(), print::Carrier::Verbs)
            .iter()
            .any(|at| at.kind == kind && payload(at) == Some(port.now))
    };
    by_fact.unwrap_or_else(by_rate)
}

fn smaller(port: &Small, best: Option<&Moved<'_>>) -> Option<Remark> {
    let gain = port.gain().filter(|gain| *gain >= GAIN)?;
    let what = format!(
        "{}: packets of {} B, and the port supports {} B: a full link carries {:.0} % more with them",
        port.name,
        port.now,
        port.most,
        (gain - 1.0) * 100.0
    );
    // If the best rate is far from full, the packets are not the limit.
    let answers = best.is_none_or(|run| is_full(port, run));
    let remark = Remark::new(if answers { Stands::Found } else { Stands::Doubt }, what);
    let remark = match port.layer {
        Layer::Ethernet => remark
            .because(
                "the packets of RoCE follow the MTU of Ethernet, at every switch and at both ends",
            )
            .next(
                "a larger MTU, at both ends and at the switches between",
                "sudo ip link set PORT mtu 9000",
            ),
        Layer::InfiniBand => remark.next(
            "the MTU is given by the subnet manager: `mtu=5` in its partitions.conf is 4096",
            "",
        ),
    };
    Some(if answers { remark.names(&["rdma-mtu"]) } else { remark })
}

/// Least ratio of the rate of verbs to that of sockets through one port at which the sockets limit.
const VERBS_MORE: f64 = 2.0;
/// Largest packet of datagram mode, in bytes.
//= torvalds/linux, Documentation/infiniband/ipoib.rst: the MTU of the link less 4 bytes
const DATAGRAM: u32 = 4_092;

/// Remark on sockets over InfiniBand that use the small packets of datagram mode, if verbs carry at least twice as
/// much.
pub(in crate::rule) fn datagrams(explained: &Explained<'_>) -> Option<Remark> {
    let verbs = runs(explained).iter().map(Moved::each_way).reduce(f64::max)?;
    let (source, result, one) = transfers(explained)
        .filter(|(_, _, one)| one.carrier == Carrier::Tcp && !one.both && one.requested.is_none())
        .max_by_key(|(_, _, one)| one.goodput)?;
    let sockets = one.goodput.0 as f64;
    let is_own = |nic: &Nic| nic.kind == "ipoib" && nic.mtu.is_some_and(|mtu| mtu <= DATAGRAM);
    let (_, small) = explained.material.nics().find(|(_, nic)| is_own(nic))?;
    if verbs < sockets * VERBS_MORE {
        return None;
    }
    let what = format!(
        "{} through sockets of {} in packets of {} bytes, and {} by verbs: each packet costs the processors, and the fabric is not the limit",
        rate(sockets),
        small.name,
        small.mtu.unwrap_or_default(),
        rate(verbs)
    );
    Some(
        Remark::new(Stands::Found, what)
            .names(&["sender-core", "receiver-core"])
            .rules_out(&["wire-full"])
            .of(one.direction)
            .shown_by(source, result)
            .because("connected mode carries packets of 65520 bytes, where the driver has it")
            .next("the mode, then the same on both hosts", "cat /sys/class/net/PORT/mode"),
    )
}
