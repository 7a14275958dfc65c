//! What a case tells about its path, to judge the sweeps in its file.

use super::{Case, Storage};
use linerate_ceiling::Link;
use linerate_ceiling::fingerprint::{Carrier, Facts, Known, Medium};

impl Case {
    /// The facts that rule out hardware which the path does not have. The slots of a case are left out: a slot may have
    /// trained to less than it can, and a sweep may find that. The list of links is not complete: switches may be
    /// joined by other links.
    pub fn facts(&self) -> Facts {
        let ports = [&self.near.port, &self.far.port];
        let links: Vec<Link> = ports.iter().filter_map(|port| port.link).collect();
        let cards = ports.map(|port| port.card.as_str()).join(" ");
        Facts {
            medium: self.medium(&links),
            links: Known { parts: links, all: false },
            carrier: Some(if self.protocol.copies() { Carrier::Sockets } else { Carrier::Verbs }),
            card: Some(cards).filter(|cards| !cards.trim().is_empty()),
            ..Facts::default()
        }
    }

    /// The kind of network; `None` if the case has storage. The links of both ends have the same medium: `check`
    /// refuses others.
    fn medium(&self, links: &[Link]) -> Option<Medium> {
        let medium =
            if links.first()?.is_infiniband() { Medium::InfiniBand } else { Medium::Ethernet };
        (self.storage == Storage::default()).then_some(medium)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(rest: &str) -> Facts {
        let text = format!("title = 'x'\nprotocol = 'rdma'\n{rest}");
        Case::read(&text, &[""; 0]).unwrap().facts()
    }

    fn ports(near: &str, far: &str) -> String {
        format!("near.port = {{ {near} }}\nfar.port = {{ {far} }}\n")
    }

    #[test]
    fn a_case_states_its_links_and_cards_and_not_its_slots() {
        let fdr = "link = '4x FDR', pcie = 'gen2x8', card = 'ConnectX-3'";
        let found = facts(&ports(fdr, fdr));
        assert_eq!(found.medium, Some(Medium::InfiniBand));
        assert_eq!((found.links.parts.len(), found.links.all), (2, false));
        assert_eq!(found.slots, Known::default());
        assert_eq!(found.carrier, Some(Carrier::Verbs));
        assert_eq!(found.card.as_deref(), Some("ConnectX-3 ConnectX-3"));
    }

    #[test]
    fn the_medium_is_known_where_a_port_and_no_disk_say_so() {
        let medium = |near: &str, far: &str, rest: &str| {
            facts(&format!("{}{rest}", ports(near, far))).medium
        };
        let (ib, ethernet) = ("link = '4x FDR'", "link = '10Gb/s'");
        assert_eq!(medium(ethernet, ethernet, ""), Some(Medium::Ethernet));
        assert_eq!(medium(ethernet, "", ""), Some(Medium::Ethernet));
        assert_eq!(medium("", "", ""), None);
        assert_eq!(medium(ib, ib, "storage.rate = '10Gb/s'\n"), None);
        assert_eq!(facts(&ports("", "")).card, None);
    }
}
