//! What is odd about ports, each with what it means and what to do.

use serde::{Deserialize, Serialize};

use super::{Duplex, Network, Nic};

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Concern {
    /// Where: `eth0`, `mlx5_0 port 1`.
    pub place: String,
    /// What is odd.
    pub what: String,
    /// Why it matters, or what it comes from.
    pub why: String,
    /// What to do.
    pub advice: String,
}

/// What, why, and what to do.
pub(in crate::facts) type Odd = (String, String, String);

pub(in crate::facts) fn odd(what: &str, why: &str, advice: &str) -> Odd {
    (what.to_owned(), why.to_owned(), advice.to_owned())
}

impl Concern {
    /// Those of one place.
    pub(in crate::facts) fn all(
        place: &str,
        odd: impl IntoIterator<Item = Option<Odd>>,
    ) -> impl Iterator<Item = Self> {
        let odd = odd.into_iter().flatten();
        odd.map(move |(what, why, advice)| Self {
            place: place.to_owned(),
            what,
            why,
            advice,
        })
    }
}

impl Nic {
    /// What is odd about the port.
    pub fn concerns(&self) -> Vec<Concern> {
        let odd = [
            self.no_link(),
            self.half_duplex(),
            self.below_common(),
            self.damaged(),
            self.refused(),
        ];
        Concern::all(&self.name, odd).collect()
    }

    fn no_link(&self) -> Option<Odd> {
        (!self.down.is_empty()).then(|| {
            odd(
                &format!("no link: {}", self.down),
                "the driver says so; nothing can leave by this port",
                &format!("ethtool {0}; ethtool -m {0}", self.name),
            )
        })
    }

    fn half_duplex(&self) -> Option<Odd> {
        (self.up && self.link.duplex == Some(Duplex::Half)).then(|| {
            odd(
                "half duplex: the two ends never talk at once",
                "one end negotiates and the other does not, or a hub is between",
                &format!("at both ends: sudo ethtool -s {} autoneg on", self.name),
            )
        })
    }

    /// A link below the fastest mode that both ends offer.
    fn below_common(&self) -> Option<Odd> {
        let (speed, common) = (self.link.speed?, self.link.fastest_common()?);
        (self.up && speed < common).then(|| {
            odd(
                &format!("runs at {speed}, both ends offer {common}"),
                "a cable with a bad pair or lane, or a speed that was set by hand",
                &format!(
                    "sudo ethtool -s {} autoneg on; then another cable",
                    self.name
                ),
            )
        })
    }

    /// Packets that the wire damaged.
    fn damaged(&self) -> Option<Odd> {
        let crc = self.errors.rx_crc.filter(|&n| n > 0);
        let fec = self
            .fec
            .as_ref()
            .and_then(|fec| fec.uncorrectable)
            .filter(|&n| n > 0);
        let what = match (crc, fec) {
            (None, None) => return None,
            (Some(crc), None) => format!("{crc} packets came with a bad checksum"),
            (_, Some(fec)) => format!("{fec} blocks could not be corrected"),
        };
        Some(odd(
            &format!("{what} since boot"),
            "if they still grow, the cable or a transceiver is bad",
            &format!("ethtool -S {0}; ethtool -m {0}", self.name),
        ))
    }

    /// Packets beyond what a cloud allows.
    fn refused(&self) -> Option<Odd> {
        let refused = self.counters.iter();
        let refused = refused.filter(|c| c.value > 0 && c.name.contains("allowance_exceeded"));
        let refused: Vec<_> = refused.map(|c| format!("{} {}", c.name, c.value)).collect();
        (!refused.is_empty()).then(|| {
            odd(
                &format!("over the allowance since boot: {}", refused.join(", ")),
                "the cloud queues or drops what is over the allowance of this type of machine",
                "a larger type of machine, or fewer bursts",
            )
        })
    }
}

impl Network {
    /// What is odd about all ports.
    pub fn concerns(&self) -> Vec<Concern> {
        let each = self.nics.iter().flat_map(Nic::concerns);
        each.chain(self.nics.iter().filter_map(|nic| self.mtu_above(nic)))
            .collect()
    }

    /// A port that sends larger packets than one that it is made of.
    fn mtu_above(&self, nic: &Nic) -> Option<Concern> {
        let below = nic.stack.below.iter().filter_map(|&index| self.nic(index));
        let (least, mtu) = below
            .filter_map(|n| Some((n, n.mtu?)))
            .min_by_key(|(_, mtu)| *mtu)?;
        let own = nic.mtu?;
        let odd = (own > mtu).then(|| {
            odd(
                &format!("MTU {own} on {} with {mtu}", least.name),
                "packets that fit this port do not fit the one below it: they are lost",
                &format!("sudo ip link set {} mtu {mtu}", nic.name),
            )
        });
        Concern::all(&nic.name, [odd]).next()
    }
}

#[cfg(test)]
mod tests {
    use crate::facts::nic::{Counter, Duplex, Network, Nic, Stack};
    use crate::units::Rate;

    fn nic(index: u32, below: &[u32]) -> Nic {
        let stack = Stack {
            below: below.to_vec(),
            ..Stack::default()
        };
        Nic {
            index,
            stack,
            ..Nic::default()
        }
    }

    fn whats(nics: &[Nic]) -> Vec<String> {
        let network = Network {
            nics: nics.to_vec(),
            ..Network::default()
        };
        let concerns = network.concerns().into_iter();
        concerns
            .map(|c| format!("{}: {}", c.place, c.what))
            .collect()
    }

    #[test]
    fn half_duplex_and_a_speed_below_what_both_offer_are_odd() {
        let mut card = nic(2, &[]);
        card.up = true;
        card.link.duplex = Some(Duplex::Full);
        card.link.speed = Some(Rate(1_000_000_000));
        card.link.advertised = vec!["1000baseT/Full".to_owned(), "10000baseT/Full".to_owned()];
        card.link.peer = vec!["1000baseT/Full".to_owned()];
        assert_eq!(whats(&[card.clone()]), [""; 0]);
        card.link.duplex = Some(Duplex::Half);
        assert!(whats(&[card.clone()])[0].contains("half duplex"));
        card.link.duplex = None;
        card.link.peer.push("10000baseT/Full".to_owned());
        let got = whats(&[card.clone()]);
        assert!(
            got.len() == 1 && got[0].contains("1 Gb/s, both ends offer 10 Gb/s"),
            "{got:?}"
        );
        card.up = false;
        assert_eq!(whats(&[card.clone()]), [""; 0]);
        card.down = "no cable".to_owned();
        assert!(whats(&[card])[0].ends_with("no link: no cable"));
    }

    #[test]
    fn damaged_packets_and_exceeded_allowances_are_odd() {
        let mut card = nic(2, &[]);
        card.errors.rx_crc = Some(0);
        card.counters = vec![Counter {
            name: "bw_in_allowance_exceeded".to_owned(),
            value: 0,
        }];
        assert_eq!(whats(&[card.clone()]), [""; 0]);
        card.errors.rx_crc = Some(1);
        card.counters[0].value = 3;
        let got = whats(&[card]);
        assert!(
            got[0].contains("1 packets") && got[1].contains("bw_in_allowance_exceeded 3"),
            "{got:?}"
        );
    }

    #[test]
    fn a_port_must_not_send_more_than_what_it_is_made_of() {
        let (mut bond, mut member) = (nic(5, &[2]), nic(2, &[]));
        bond.mtu = Some(9000);
        member.mtu = Some(9000);
        assert_eq!(whats(&[bond.clone(), member.clone()]), [""; 0]);
        member.mtu = Some(8999);
        assert!(whats(&[bond.clone(), member])[0].contains("MTU 9000"));
        assert_eq!(whats(&[bond]), [""; 0], "below lies elsewhere");
    }
}
