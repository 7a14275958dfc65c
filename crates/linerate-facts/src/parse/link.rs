//! Parses `RTM_NEWLINK`: a network port with its statistics.

use std::borrow::Cow;

use super::netlink::{after, attributes, string, u16_at, u32_at, u64_at};
use super::{Malformed, netlink, tunnel};
use crate::watch::LinkStats;

const WHAT: &str = "link message";
const NEW_LINK: u16 = 16;
/// Size of `struct ifinfomsg`, in bytes.
const FIXED: usize = 16;

/// Hardware type of the loopback port (`ARPHRD_LOOPBACK`).
pub const LOOPBACK: u16 = 772;

/// Hardware type of IP over InfiniBand (`ARPHRD_INFINIBAND`).
pub const INFINIBAND: u16 = 32;

/// Hardware type of Ethernet and of devices that behave like it (`ARPHRD_ETHER`).
//= include/uapi/linux/if_arp.h
pub const ETHERNET: u16 = 1;

/// A network port. Text that is unknown is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link<'a> {
    /// Index of the port in its network namespace.
    pub index: u32,
    /// Hardware type of the port (`ARPHRD_*`).
    pub hardware: u16,
    /// Whether the port is up and its lower layer has carrier.
    pub up: bool,
    /// Name of the port.
    pub name: Cow<'a, str>,
    /// Kind of a port that is made by software: `veth`, `bridge`, `tun` ...; empty for other ports.
    pub kind: Cow<'a, str>,
    /// Hardware address of the port.
    pub address: &'a [u8],
    /// Maximum transmission unit of the port, in bytes.
    pub mtu: Option<u32>,
    /// The largest MTU that the driver accepts; `None` if it reports no bound.
    pub mtu_max: Option<u32>,
    /// Index of the port below; for one half of a pair (`veth`), index of the other half.
    pub lower: Option<u32>,
    /// Whether the port with the index `lower` is in another network namespace.
    pub lower_elsewhere: bool,
    /// Index of the bond, bridge or team that the port is part of.
    pub master: Option<u32>,
    /// Queueing discipline at the port's root.
    pub qdisc: Cow<'a, str>,
    /// The attributes that only ports of this kind have, undecoded.
    pub(super) details: &'a [u8],
    /// Kind of the port that this one is a member of, and the attributes that only its members have, undecoded.
    slave: (Cow<'a, str>, &'a [u8]),
    /// Name of the device that the port belongs to (Linux 5.14 and later): `0000:03:00.0`, `virtio1`.
    pub device: Cow<'a, str>,
    /// Bus of the port's device: `pci`, `virtio`.
    pub bus: Cow<'a, str>,
    /// Number of times that the link went up or down.
    pub carrier_changes: Option<u32>,
    /// Counters of the port.
    pub stats: Option<LinkStats>,
}

/// The ports in a reply.
pub fn parse(reply: &[u8]) -> impl Iterator<Item = Result<Link<'_>, Malformed>> {
    netlink::messages(reply).filter_map(|message| match message {
        Ok(message) => (message.kind == NEW_LINK).then(|| link(message.body)),
        Err(error) => Some(Err(error)),
    })
}

/// Overwrites everything that [`parse`] does not read: addresses, keys, names that people gave. `address` changes the
/// bytes of hardware addresses and of tunnels' outer addresses.
pub fn mask(reply: &mut [u8], mut address: impl FnMut(&mut [u8])) {
    netlink::change_messages(reply, |kind, body| {
        let attributes = body.split_at_mut_checked(FIXED);
        let Some((_, attributes)) = attributes.filter(|_| kind == NEW_LINK) else {
            return;
        };
        netlink::change_attributes(attributes, |kind, value| match kind {
            1 => address(value),
            18 => mask_info(value, &mut address),
            3..=6 | 10 | 23 | 35 | 37 | 51 | 56 | 57 => {}
            _ => value.fill(0),
        });
    });
}

/// Overwrites, as [`mask`] does, what is not read within the attribute `IFLA_LINKINFO`.
fn mask_info(value: &mut [u8], address: &mut impl FnMut(&mut [u8])) {
    let named = |which| info(value, which).map_or(String::new(), |(kind, _)| kind.into_owned());
    let kind = named([INFO_KIND, INFO_DATA]);
    let is_member = named([SLAVE_KIND, SLAVE_DATA]) == "bond";
    let read = match kind.as_str() {
        "bond" => vec![1, 2, 14],
        "vlan" => vec![1],
        kind => tunnel::read(kind),
    };
    let ends = tunnel::addresses(&kind);
    netlink::change_attributes(value, |number, value| match number {
        INFO_KIND | SLAVE_KIND => {}
        SLAVE_DATA if is_member => netlink::change_attributes(value, |number, value| {
            if number != SLAVE_AGGREGATOR {
                value.fill(0);
            }
        }),
        INFO_DATA => netlink::change_attributes(value, |number, value| {
            if kind == "bond" && number == BOND_AD_INFO {
                mask_aggregation(value, address);
            } else if ends.contains(&number) {
                address(value);
            } else if !read.contains(&number) {
                value.fill(0);
            }
        }),
        _ => value.fill(0),
    });
}

/// Overwrites, as [`mask`] does, what is not read within the attribute `IFLA_BOND_AD_INFO`.
fn mask_aggregation(value: &mut [u8], address: &mut impl FnMut(&mut [u8])) {
    netlink::change_attributes(value, |number, value| match number {
        AD_PARTNER => address(value),
        AD_AGGREGATOR => {}
        _ => value.fill(0),
    });
}

fn link(body: &[u8]) -> Result<Link<'_>, Malformed> {
    // The flags IFF_UP and IFF_LOWER_UP together.
    const CARRIER: u32 = 1 | 1 << 16;
    let mut link = Link {
        hardware: u16_at(body, 2, WHAT)?,
        index: u32_at(body, 4, WHAT)?,
        up: u32_at(body, 8, WHAT)? & CARRIER == CARRIER,
        ..Link::default()
    };
    for attribute in attributes(after(body, FIXED, WHAT)?) {
        let (kind, value) = attribute?;
        // The numbers are attributes IFLA_* of linux/if_link.h.
        match kind {
            1 => link.address = value,
            3 => link.name = string(value),
            4 => link.mtu = Some(u32_at(value, 0, "link MTU")?),
            5 => link.lower = Some(u32_at(value, 0, WHAT)?).filter(|&index| index > 0),
            6 => link.qdisc = string(value),
            10 => link.master = Some(u32_at(value, 0, WHAT)?),
            18 => {
                (link.kind, link.details) = info(value, [INFO_KIND, INFO_DATA])?;
                link.slave = info(value, [SLAVE_KIND, SLAVE_DATA])?;
            }
            23 => link.stats = Some(stats(value)?),
            35 => link.carrier_changes = Some(u32_at(value, 0, "carrier changes")?),
            37 => link.lower_elsewhere = true,
            51 => link.mtu_max = Some(u32_at(value, 0, WHAT)?).filter(|&mtu| mtu > 0),
            56 => link.device = string(value),
            57 => link.bus = string(value),
            _ => {}
        }
    }
    Ok(link)
}

/// Attributes within `IFLA_LINKINFO`.
//= include/uapi/linux/if_link.h, IFLA_INFO_KIND, IFLA_INFO_DATA, IFLA_INFO_SLAVE_KIND, IFLA_INFO_SLAVE_DATA
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const SLAVE_KIND: u16 = 4;
const SLAVE_DATA: u16 = 5;
/// Attributes of bonds, and of the members of bonds.
//= include/uapi/linux/if_link.h, IFLA_BOND_AD_INFO, IFLA_BOND_AD_INFO_AGGREGATOR, IFLA_BOND_AD_INFO_PARTNER_MAC,
//= IFLA_BOND_SLAVE_AD_AGGREGATOR_ID
const BOND_AD_INFO: u16 = 23;
const AD_AGGREGATOR: u16 = 1;
const AD_PARTNER: u16 = 5;
const SLAVE_AGGREGATOR: u16 = 6;

/// The name and the details of a kind in `IFLA_LINKINFO`. `kind_of` and `details_of` are the attributes' numbers.
fn info(info: &[u8], [kind_of, details_of]: [u16; 2]) -> Result<(Cow<'_, str>, &[u8]), Malformed> {
    let (mut kind, mut details) = (Cow::Borrowed(""), &[][..]);
    for attribute in attributes(info) {
        match attribute? {
            (number, value) if number == kind_of => kind = string(value),
            (number, value) if number == details_of => details = value,
            _ => {}
        }
    }
    Ok((kind, details))
}

/// The used attributes that only bonds have (`IFLA_BOND_*`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BondDetails {
    /// Number of the bond's mode, 0 to 6.
    pub mode: Option<u8>,
    /// Number of the bond's hash policy, 0 to 5: which fields of a packet choose the member.
    pub hash: Option<u8>,
    /// Index of the only member in use; `None` if there is no such member.
    pub active: Option<u32>,
    /// Number of the LACP aggregator whose members carry the traffic.
    pub aggregator: Option<u16>,
    /// Hardware address of the LACP partner in this aggregator.
    pub partner: Option<[u8; 6]>,
}

impl Link<'_> {
    /// The attributes that only bonds have; `None` for ports of other kinds.
    pub fn bond(&self) -> Result<Option<BondDetails>, Malformed> {
        if self.kind != "bond" {
            return Ok(None);
        }
        let mut bond = BondDetails::default();
        for attribute in attributes(self.details) {
            match attribute? {
                (1, value) => bond.mode = value.first().copied(),
                (2, value) => bond.active = Some(u32_at(value, 0, WHAT)?),
                (14, value) => bond.hash = value.first().copied(),
                (BOND_AD_INFO, value) => {
                    (bond.aggregator, bond.partner) = aggregation(value)?;
                }
                _ => {}
            }
        }
        Ok(Some(bond))
    }

    /// Number of the LACP aggregator that a member of a bond is in; `None` for other ports.
    pub fn aggregator(&self) -> Result<Option<u16>, Malformed> {
        let (kind, details) = &self.slave;
        for attribute in attributes(details).filter(|_| kind == "bond") {
            if let (SLAVE_AGGREGATOR, value) = attribute? {
                return u16_at(value, 0, WHAT).map(Some);
            }
        }
        Ok(None)
    }

    /// VLAN tag of a VLAN port (`IFLA_VLAN_ID`); `None` for other kinds of ports.
    pub fn vlan(&self) -> Result<Option<u16>, Malformed> {
        if self.kind != "vlan" {
            return Ok(None);
        }
        for attribute in attributes(self.details) {
            if let (1, value) = attribute? {
                return u16_at(value, 0, WHAT).map(Some);
            }
        }
        Ok(None)
    }
}

/// The aggregator and the partner's hardware address in `IFLA_BOND_AD_INFO`.
fn aggregation(value: &[u8]) -> Result<(Option<u16>, Option<[u8; 6]>), Malformed> {
    let (mut aggregator, mut partner) = (None, None);
    for attribute in attributes(value) {
        match attribute? {
            (AD_AGGREGATOR, value) => aggregator = Some(u16_at(value, 0, WHAT)?),
            (AD_PARTNER, value) => partner = value.try_into().ok(),
            _ => {}
        }
    }
    Ok((aggregator, partner))
}

fn stats(value: &[u8]) -> Result<LinkStats, Malformed> {
    let counter = |index: usize| u64_at(value, index * 8, "link statistics");
    Ok(LinkStats {
        rx_packets: counter(0)?,
        tx_packets: counter(1)?,
        rx_bytes: counter(2)?,
        tx_bytes: counter(3)?,
        rx_errors: counter(4)?,
        tx_errors: counter(5)?,
        rx_dropped: counter(6)?,
        tx_dropped: counter(7)?,
        collisions: counter(9)?,
        rx_crc_errors: counter(12)?,
        rx_fifo_errors: counter(14)?,
        rx_missed: counter(15)?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Link, parse};
    use crate::parse::netlink::tests::{attr, msg};

    fn sample() -> Vec<u8> {
        let mut fixed = [0u8; 16];
        fixed[2..4].copy_from_slice(&1u16.to_ne_bytes());
        fixed[4..8].copy_from_slice(&7u32.to_ne_bytes());
        fixed[8..12].copy_from_slice(&0x1_0043u32.to_ne_bytes());
        let stats: Vec<u8> = (100u64..125).flat_map(u64::to_ne_bytes).collect();
        let body = [
            fixed.to_vec(),
            attr(3, b"veth0\0"),
            attr(1, &[2, 0, 0, 0, 0, 1]),
            attr(4, &1400u32.to_ne_bytes()),
            attr(18, &[attr(9, b"later"), attr(1, b"veth\0")].concat()),
            attr(23, &stats),
            attr(35, &2u32.to_ne_bytes()),
            attr(999, b"from a newer kernel"),
        ];
        [msg(16, &body.concat()), msg(3, &[0; 4])].concat()
    }

    #[test]
    fn a_link_parses_exactly() {
        let reply = sample();
        let links: Vec<Link> = parse(&reply).map(Result::unwrap).collect();
        let [link] = &links[..] else { panic!("{links:?}") };
        assert_eq!((link.index, link.hardware, link.up), (7, 1, true));
        assert_eq!((&*link.name, &*link.kind, link.mtu), ("veth0", "veth", Some(1400)));
        assert_eq!(link.carrier_changes, Some(2));
        let stats = link.stats.unwrap();
        assert_eq!((stats.rx_packets, stats.tx_bytes, stats.tx_dropped), (100, 103, 107));
        assert_eq!((stats.collisions, stats.rx_crc_errors), (109, 112));
        assert_eq!((stats.rx_fifo_errors, stats.rx_missed), (114, 115));
    }

    fn stacked(kind: &[u8], details: &[Vec<u8>]) -> Vec<u8> {
        let info = [attr(1, kind), attr(2, &details.concat())].concat();
        let body = [
            vec![0; 16],
            attr(5, &3u32.to_ne_bytes()),
            attr(6, b"mq\0"),
            attr(10, &9u32.to_ne_bytes()),
            attr(18, &info),
            attr(37, &0u32.to_ne_bytes()),
            attr(51, &9000u32.to_ne_bytes()),
        ];
        msg(16, &body.concat())
    }

    #[test]
    fn what_a_port_is_made_of_is_read() {
        let details = [attr(1, &[4]), attr(2, &3u32.to_ne_bytes()), attr(14, &[1])];
        let reply = stacked(b"bond\0", &details);
        let bond = parse(&reply).next().unwrap().unwrap();
        assert_eq!((bond.lower, bond.lower_elsewhere, bond.master), (Some(3), true, Some(9)));
        assert_eq!((&*bond.qdisc, bond.mtu_max), ("mq", Some(9000)));
        let got = bond.bond().unwrap().unwrap();
        assert_eq!((got.mode, got.hash, got.active), (Some(4), Some(1), Some(3)));
        assert_eq!(bond.vlan(), Ok(None));
        let reply = stacked(b"vlan\0", &[attr(1, &100u16.to_ne_bytes())]);
        let vlan = parse(&reply).next().unwrap().unwrap();
        assert_eq!((vlan.vlan(), vlan.bond()), (Ok(Some(100)), Ok(None)));
        let reply = stacked(b"vlan\0", &[attr(1, &[1])]);
        assert!(parse(&reply).next().unwrap().unwrap().vlan().is_err());
    }

    #[test]
    fn aggregators_of_a_bond_and_of_its_members_are_read_and_its_partner_is_masked() {
        let info = [attr(1, &7u16.to_ne_bytes()), attr(3, b"secret"), attr(5, b"secret")];
        let mut reply = stacked(b"bond\0", &[attr(23, &info.concat())]);
        let of_member = [attr(4, b"secret"), attr(6, &8u16.to_ne_bytes())].concat();
        let member = [attr(4, b"bond\0"), attr(5, &of_member)].concat();
        reply.extend(msg(16, &[vec![0; 16], attr(18, &member)].concat()));
        let read = |reply: &[u8]| {
            let links: Vec<Link<'_>> = parse(reply).map(Result::unwrap).collect();
            let bond = links[0].bond().unwrap().unwrap();
            let aggregators = [&links[0], &links[1]].map(|link| link.aggregator().unwrap());
            (bond.aggregator, bond.partner, aggregators)
        };
        let secret = Some(*b"secret");
        assert_eq!(read(&reply), (Some(7), secret, [None, Some(8)]));
        super::mask(&mut reply, |address| address.fill(9));
        assert_eq!(read(&reply), (Some(7), Some([9; 6]), [None, Some(8)]));
        assert!(!reply.windows(6).any(|w| w == b"secret"), "{reply:?}");
    }

    #[test]
    fn a_masked_reply_reads_the_same_but_for_its_address() {
        const SECRET: &[u8] = b"secret78";
        let details = [attr(2, &3u32.to_ne_bytes()), attr(5, SECRET), attr(1, &[4])];
        for kind in [&b"bond"[..], b"vxlan", b"gre"] {
            let mut reply = stacked(kind, &details);
            let more = [attr(2, SECRET), attr(20, SECRET), attr(22, &attr(1, SECRET))];
            reply.extend(msg(16, &[vec![0; 16], attr(1, b"secret"), more.concat()].concat()));
            let before = reply.clone();
            super::mask(&mut reply, |address| address.fill(9));
            assert!(!reply.windows(6).any(|w| w == b"secret"), "{reply:?}");
            let facts = |link: &Link<'_>| {
                let ends =
                    link.tunnel().map(|ends| ends.map(|e| (e.tunnel, e.link, e.remote.is_some())));
                let stack = (ends, link.vlan(), link.bond());
                (link.index, link.mtu_max, link.kind.to_string(), stack)
            };
            let read =
                |reply: &[u8]| parse(reply).map(|l| l.map(|l| facts(&l))).collect::<Vec<_>>();
            assert_eq!(read(&reply), read(&before));
            assert_eq!(parse(&reply).nth(1).unwrap().unwrap().address, [9; 6]);
        }
    }

    #[test]
    fn a_port_without_carrier_is_not_up() {
        let mut reply = sample();
        reply[16 + 8..16 + 12].copy_from_slice(&0x1003u32.to_ne_bytes());
        assert!(!parse(&reply).next().unwrap().unwrap().up);
    }

    #[test]
    fn a_cut_reply_gives_an_error_or_the_whole_link() {
        let reply = sample();
        let whole = parse(&reply).next().unwrap();
        for end in 1..reply.len() {
            let first = parse(&reply[..end]).next();
            assert!(matches!(first, Some(Err(_))) || first == Some(whole.clone()), "cut at {end}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_replies_are_masked_without_panic(bytes: Vec<u8>) {
            for mut reply in [bytes.clone(), msg(16, &bytes)] {
                super::mask(&mut reply, |address| address.fill(0));
            }
        }

        #[test]
        fn mutated_replies_never_panic(changes: Vec<(prop::sample::Index, u8)>, end: prop::sample::Index) {
            let mut reply = sample();
            for (at, byte) in changes {
                let at = at.index(reply.len());
                reply[at] = byte;
            }
            let end = end.index(reply.len() + 1);
            for link in parse(&reply[..end]).flatten() {
                let _ = (link.bond(), link.vlan(), link.tunnel());
            }
        }
    }
}
