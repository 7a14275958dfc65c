//! The links between the hosts, and what the network lets through.

use super::{Builder, input};
use crate::case::{Link, Protocol};
use crate::ceiling::ethernet::Ip;
use crate::ceiling::{Bounds, Cost, Input, ethernet, infiniband};
use crate::path::{Direction, Place, Stage};
use crate::units::Rate;

/// The capacity of a link in bytes per second.
pub(in crate::case) fn link_capacity(link: Link) -> Bounds {
    match link {
        Link::Ethernet(rate) => ethernet::capacity(rate.0 as f64),
        Link::InfiniBand { width, speed } => infiniband::capacity(speed, width),
    }
}

impl Builder<'_> {
    /// The links: one thing where both ports are alike, or one is not described; else one at each
    /// end.
    pub(super) fn wire(&mut self) {
        let (near, far) = (self.case.near.port.link, self.case.far.port.link);
        match (near, far) {
            (Some(near), Some(far)) if near != far => {
                self.links_of("near port", (Stage::Port, Place::Near), near);
                self.links_of("far port", (Stage::Port, Place::Far), far);
            }
            (Some(link), _) | (None, Some(link)) => {
                self.links_of("link", (Stage::Net, Place::Path), link);
            }
            (None, None) => {}
        }
    }

    fn links_of(&mut self, name: &str, place: (Stage, Place), link: Link) {
        let rate = match link {
            Link::Ethernet(rate) => rate.to_string(),
            Link::InfiniBand { width, speed } => {
                let lane = (speed.lane() / 1e5).round() / 1e4;
                let s = if width == 1 { "" } else { "s" };
                format!("{width} lane{s} x {lane} Gb/s")
            }
        };
        let each = if self.links > 1 {
            format!("{} links of ", self.links)
        } else {
            String::new()
        };
        let formula = format!("{each}{rate} x {}", self.packet.words);
        let cost = Cost::bytes(self.packet.wire_per_byte);
        for way in Direction::ALL {
            for number in 0..self.links {
                let index = self.add(name, place, link_capacity(link));
                self.note(index, self.wire_inputs(place.1, link));
                self.ask(way, number, index, cost, &formula);
            }
        }
    }

    fn wire_inputs(&self, place: Place, link: Link) -> Vec<Input> {
        let case = self.case;
        let mtus = [case.near.port.mtu, case.far.port.mtu];
        let infiniband = matches!(link, Link::InfiniBand { .. });
        let assumed = if infiniband {
            "256 to 4096"
        } else {
            "1500 to 9000"
        };
        let mut inputs = Vec::new();
        if place != Place::Far {
            inputs.push(input(
                "near.port.link",
                case.near.port.link,
                "as the far one",
            ));
        }
        if place != Place::Near {
            inputs.push(input(
                "far.port.link",
                case.far.port.link,
                "as the near one",
            ));
        }
        inputs.push(input("mtu", mtus.into_iter().flatten().min(), assumed));
        if case.protocol.copies() && infiniband {
            let mtus = [case.near.port.ip_mtu, case.far.port.ip_mtu];
            inputs.push(input(
                "ip-mtu",
                mtus.into_iter().flatten().min(),
                "2044 to 65520",
            ));
        }
        if case.protocol.copies() || (case.protocol != Protocol::RoceV1 && !infiniband) {
            let version = case.ip.map(|ip| if ip == Ip::V4 { 4 } else { 6 });
            inputs.push(input("ip", version, "4 or 6"));
        }
        if case.protocol == Protocol::Tcp {
            inputs.push(input("timestamps", case.timestamps, "true or false"));
        }
        if self.links > 1 {
            inputs.push(input("streams", case.streams, "1 or more"));
        }
        inputs
    }

    /// What the network lets through.
    pub(super) fn limits(&mut self) {
        let net = &self.case.net;
        let (limit, flow, packets) = (net.limit, net.flow_limit, net.packet_limit);
        for way in Direction::ALL {
            if let Some(rate) = limit {
                let index = self.limit("network limit", rate.0 as f64 / 8.0);
                self.note(index, vec![input("net.limit", Some(rate), "")]);
                let cost = self.limited_cost();
                self.ask_all(way, index, cost, &format!("{rate} in each direction"));
            }
            if let Some(rate) = flow {
                self.flow_limits(way, rate);
            }
            if let Some(number) = packets {
                let index = self.limit("packet limit", f64::from(number));
                self.note(index, vec![input("net.packet-limit", Some(number), "")]);
                let cost = Cost {
                    per_packet: Bounds::exact(1.0),
                    ..Cost::default()
                };
                self.ask_all(
                    way,
                    index,
                    cost,
                    &format!("{number} packets/s of full size"),
                );
            }
        }
    }

    fn limit(&mut self, name: &str, capacity: f64) -> usize {
        self.add(name, (Stage::Net, Place::Path), Bounds::exact(capacity))
    }

    /// Nobody says whether a limit counts headers: payload alone at the upper end, all of the wire
    /// at the lower.
    fn limited_cost(&self) -> Cost {
        Cost::bytes(Bounds::new(1.0, self.packet.wire_per_byte.high()))
    }

    fn flow_limits(&mut self, way: Direction, rate: Rate) {
        let words = match self.case.streams {
            Some(1) => format!("1 stream of {rate}"),
            Some(n) => format!("{n} streams of {rate} each"),
            None => format!("{rate} for each stream"),
        };
        for link in 0..self.links {
            let index = self.limit("flow limit", 0.0);
            let streams = self.path.flows[link as usize].streams;
            self.path.resources[index].capacity = streams.times(rate.0 as f64 / 8.0);
            let inputs = vec![
                input("net.flow-limit", Some(rate), ""),
                input("streams", self.case.streams, "1 or more"),
            ];
            self.note(index, inputs);
            let cost = self.limited_cost();
            self.ask(way, link, index, cost, &words);
        }
    }
}
