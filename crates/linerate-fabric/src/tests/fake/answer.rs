//! Replies of the fake network. Their bytes are written with the offsets of libibmad, and not with the decoders under
//! test.
//= libibmad, fields.c

use super::{At, Fake, FakeNode, FakePort};
use linerate_fabric::mad::LEN;
use linerate_fabric::mad::node::NodeKind;

/// Byte offsets of 64-bit counters in PortCountersExtended, in the order of the table of counters.
const WIDE: [usize; 17] =
    [72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 8, 16, 24, 32, 168];

/// Bit offsets and lengths of counters in PortCounters, in the order of the table of counters.
const NARROW: [(usize, u32); 17] = [
    (32, 16),
    (48, 8),
    (56, 8),
    (64, 16),
    (80, 16),
    (96, 16),
    (112, 16),
    (128, 8),
    (136, 8),
    (152, 4),
    (156, 4),
    (176, 16),
    (192, 32),
    (224, 32),
    (256, 32),
    (288, 32),
    (320, 32),
];

impl Fake {
    /// Returns the node that a request from a port reaches, and the node's reply. `lid` is the LID to which the request
    /// is sent. `None` if the request or the reply cannot be delivered.
    pub fn answer(&self, from: At, lid: u16, mad: &[u8; LEN]) -> Option<(usize, [u8; LEN])> {
        let is_directed = mad[1] == 0x81;
        let at = if is_directed {
            let hops = usize::from(mad[7]);
            self.directed(from, mad.get(129..129 + hops)?)?
        } else {
            self.routed(from, lid)?
        };
        if self.nodes[at.0].mute.contains(&u16::from_be_bytes([mad[16], mad[17]])) {
            return None;
        }
        let mut reply = *mad;
        reply[3] = 0x81;
        let data = self.data(at, mad);
        let status: u16 = if data.is_some() { 0 } else { 0x000c };
        let direction = if is_directed { 0x8000 } else { 0 };
        reply[4..6].copy_from_slice(&(status | direction).to_be_bytes());
        if let Some(data) = data {
            reply[64..].copy_from_slice(&data);
        }
        Some((at.0, reply))
    }

    /// The port at the end of a directed route; `None` if a packet cannot follow the route.
    fn directed(&self, from: At, route: &[u8]) -> Option<At> {
        let mut at = from;
        for (hop, out) in route.iter().enumerate() {
            let node = &self.nodes[at.0];
            let may_leave = node.kind == NodeKind::Switch || hop == 0 && *out == from.1;
            let port = node.ports.get(out).filter(|_| may_leave)?;
            at = port.peer.filter(|_| port.states[1] == 5)?;
        }
        Some(at)
    }

    /// The port that a packet to a LID reaches; `None` if it does not arrive.
    fn routed(&self, from: At, lid: u16) -> Option<At> {
        let mut at = from;
        for _ in 0..64 {
            let node = &self.nodes[at.0];
            let is_switch = node.kind == NodeKind::Switch;
            let end = if is_switch { 0 } else { at.1 };
            if node.ports.get(&end).is_some_and(|port| port.lid == lid) {
                return Some((at.0, end));
            }
            let out = if is_switch {
                *node.forwarding.get(usize::from(lid))?
            } else if at == from {
                at.1
            } else {
                return None;
            };
            let port = node.ports.get(&out)?;
            at = port.peer.filter(|_| port.states == [4, 5])?;
        }
        None
    }

    /// The data of a reply; `None` if the node refuses the request.
    fn data(&self, at: At, mad: &[u8; LEN]) -> Option<[u8; LEN - 64]> {
        let node = &self.nodes[at.0];
        let attribute = u16::from_be_bytes([mad[16], mad[17]]);
        let modifier = u32::from_be_bytes([mad[20], mad[21], mad[22], mad[23]]);
        if node.refused.contains(&attribute) {
            return None;
        }
        let mut data = Bytes([0; LEN - 64]);
        let port = |number: u8| node.ports.get(&number);
        match (mad[1], attribute) {
            (0x04, 0x01) => {
                data.put(2, &(node.counting[0] as u16).to_be_bytes());
                data.put(4, &(node.counting[1] << 5).to_be_bytes());
            }
            (0x04, 0x12) => data.counters(port(mad[65])?),
            (0x04, 0x1d) => data.wide(port(mad[65])?),
            (_, 0x10) => data.put(0, node.name.as_bytes()),
            (_, 0x11) => data.node(node, at.1),
            (_, 0x12) if node.kind == NodeKind::Switch => {
                data.put(0, &0xc000_u16.to_be_bytes());
                data.put(6, &0x3fff_u16.to_be_bytes());
            }
            (_, 0x15) => data.port(port(modifier as u8)?, at.1),
            (_, 0x16) => {
                let keys = port(at.1)?.keys.chunks(32).nth(modifier as usize);
                for (n, key) in keys.unwrap_or_default().iter().enumerate() {
                    data.put(n * 2, &key.to_be_bytes());
                }
            }
            (_, 0x19) => {
                let blocks = node.forwarding.chunks(64);
                data.put(0, blocks.into_iter().nth(modifier as usize)?);
            }
            (_, 0x20) => data.manager(port(at.1)?)?,
            (_, 0xff90) => {
                let own = port(modifier as u8)?.own_speed;
                (data.0[11], data.0[7], data.0[15]) = (own[0], own[1], own[2]);
            }
            _ => return None,
        }
        Some(data.0)
    }
}

/// The data of a reply, which are written at offsets.
struct Bytes([u8; LEN - 64]);

impl Bytes {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        for (to, from) in self.0.iter_mut().skip(at).zip(bytes) {
            *to = *from;
        }
    }

    fn node(&mut self, node: &FakeNode, arrived: u8) {
        let count = node.ports.keys().filter(|port| **port > 0).count() as u8;
        let kind = match node.kind {
            NodeKind::Host => 1,
            NodeKind::Switch => 2,
            NodeKind::Router => 3,
            NodeKind::Other(other) => other,
        };
        self.put(0, &[1, 1, kind, node.claims[0].unwrap_or(count)]);
        self.put(4, &node.guid.to_be_bytes());
        self.put(12, &node.guid.to_be_bytes());
        let guid = node.ports.get(&arrived).map_or(0, |port| port.guid);
        self.put(20, &guid.to_be_bytes());
        self.put(28, &node.partitions.to_be_bytes());
        self.put(30, &node.device.to_be_bytes());
        self.put(36, &node.vendor.to_be_bytes());
        self.0[36] = node.claims[1].unwrap_or(arrived);
    }

    fn port(&mut self, port: &FakePort, arrived: u8) {
        self.put(8, &0xfe80_0000_0000_0000_u64.to_be_bytes());
        self.put(16, &port.lid.to_be_bytes());
        self.put(18, &port.manager_lid.to_be_bytes());
        self.put(20, &port.capabilities.to_be_bytes());
        self.put(28, &[arrived]);
        self.put(29, &port.width);
        let [speed, extended, extended2] = port.speed;
        self.0[32] = speed[1] << 4 | port.states[0];
        self.0[33] = port.states[1] << 4;
        self.0[34] = port.lid_mask;
        self.0[35] = speed[2] << 4 | speed[0];
        // The MTU is 4096 bytes, which is also the largest.
        (self.0[36], self.0[41]) = (0x50, 0x05);
        self.put(46, &port.violations.to_be_bytes());
        self.0[56] = extended2[2] << 5 | extended2[1] << 3 | extended2[0];
        self.0[62] = extended[2] << 4 | extended[1];
        self.0[63] = extended[0];
    }

    fn manager(&mut self, port: &FakePort) -> Option<()> {
        let (state, priority) = port.manager?;
        self.put(0, &port.guid.to_be_bytes());
        self.0[20] = priority << 4 | state;
        Some(())
    }

    fn counters(&mut self, port: &FakePort) {
        for ((bit, bits), value) in NARROW.into_iter().zip(port.counters) {
            let value = value.min((1 << bits) - 1);
            match bits {
                4 => self.0[bit / 8] |= (value << (4 - bit % 8)) as u8,
                8 => self.0[bit / 8] = value as u8,
                16 => self.put(bit / 8, &(value as u16).to_be_bytes()),
                _ => self.put(bit / 8, &(value as u32).to_be_bytes()),
            }
        }
    }

    fn wide(&mut self, port: &FakePort) {
        for (at, value) in WIDE.into_iter().zip(port.counters) {
            self.put(at, &value.to_be_bytes());
        }
    }
}
