//! What is known of a path, and which hardware these facts rule out.

use super::table::{Carrier, Kind, Part, Row, Variant};
use crate::{Link, pcie};

/// Largest PCIe payload that the rows of slots have, in bytes.
const LARGEST: u32 = pcie::USUAL_PAYLOADS[pcie::USUAL_PAYLOADS.len() - 1];

/// The kind of network or disk link that the bytes cross.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// An Ethernet network.
    Ethernet,
    /// An InfiniBand network.
    InfiniBand,
    /// A network, Ethernet or InfiniBand: which of the two is not known.
    Network,
    /// No network: a disk of this host.
    Disk,
}

impl Medium {
    const fn words(self) -> &'static str {
        match self {
            Self::Ethernet => "the network is Ethernet",
            Self::InfiniBand => "the network is InfiniBand",
            Self::Network => "the path is a network",
            Self::Disk => "the path is that of a disk",
        }
    }

    /// Whether a path over this medium can have hardware of this kind. Every host has slots, buses and memory.
    const fn has(self, kind: Kind) -> bool {
        match kind {
            Kind::Pcie | Kind::Pci | Kind::Memory => true,
            Kind::Ethernet | Kind::Cloud => matches!(self, Self::Ethernet | Self::Network),
            Kind::InfiniBand => matches!(self, Self::InfiniBand | Self::Network),
            Kind::Usb => !matches!(self, Self::InfiniBand),
            Kind::Sata | Kind::Sas | Kind::FibreChannel => matches!(self, Self::Disk),
        }
    }
}

/// Parts of one sort that are known to be on the path.
#[derive(Debug, Clone, PartialEq)]
pub struct Known<T> {
    /// The known parts.
    pub parts: Vec<T>,
    /// Whether the path has no other parts of this sort. A port does not show the links behind a switch, and the
    /// slot of one host does not show that of the other.
    pub all: bool,
}

impl<T> Known<T> {
    fn every(&self) -> Option<&[T]> {
        (self.all && !self.parts.is_empty()).then_some(&self.parts)
    }
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self { parts: Vec::new(), all: false }
    }
}

/// What other readings show of the path. A value that is unknown rules out nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// The kind of network or disk link that the bytes cross; `None` if it is not known.
    pub medium: Option<Medium>,
    /// Links of the network; those of the ports come first.
    pub links: Known<Link>,
    /// PCIe slots that the bytes cross, with their trained speed and width; not what card or slot support at most.
    pub slots: Known<pcie::Slot>,
    /// How a program moves the bytes through the network; `None` if it is not known.
    pub carrier: Option<Carrier>,
    /// Models of the cards, or names of their drivers.
    pub card: Option<String>,
    /// Whether `card` names the drivers of all ports of the path: then the path has no other drivers.
    pub all_drivers: bool,
}

impl Facts {
    /// The fact that rules out the hardware of a row, in words; `None` if no fact does.
    pub(super) fn against(&self, row: &Row) -> Option<String> {
        let medium = self.medium.filter(|medium| !medium.has(row.kind));
        let medium = medium.map(|medium| medium.words().to_owned());
        medium
            .or_else(|| self.against_part(row.part))
            .or_else(|| self.against_bus(row.kind))
            .or_else(|| self.against_carrier(row))
    }

    fn against_part(&self, part: Part) -> Option<String> {
        match part {
            Part::Link(link) => {
                let all = self.links.every()?;
                let names = all.iter().map(Link::to_string).collect();
                (!all.contains(&link)).then(|| only("link", names))
            }
            Part::Slot { generation, lanes } => {
                let all = self.slots.every()?;
                let is = |slot: &pcie::Slot| {
                    slot.generations.contains(&generation) && slot.lanes.contains(&lanes)
                };
                (!all.iter().any(is)).then(|| only("slot", all.iter().map(slot_words).collect()))
            }
            Part::Other => None,
        }
    }

    fn against_bus(&self, kind: Kind) -> Option<String> {
        let is_known = kind == Kind::Pci && self.slots.every().is_some();
        is_known.then(|| "the slots of the path are PCI Express".to_owned())
    }

    fn against_carrier(&self, row: &Row) -> Option<String> {
        let carrier = self.carrier?;
        let has_no_verbs = matches!(row.kind, Kind::Usb) && carrier == Carrier::Verbs;
        let none = row.variants.iter().all(|v| !self.allows(v));
        let words = match carrier {
            Carrier::Sockets => "the program uses sockets",
            Carrier::Verbs => "the program uses verbs",
        };
        (has_no_verbs || none).then(|| words.to_owned())
    }

    /// Whether the path can use hardware in the way of this variant.
    pub(super) fn allows(&self, variant: &Variant) -> bool {
        let carried = match (self.carrier, variant.carrier) {
            (Some(ours), Some(its)) => ours == its,
            _ => true,
        };
        // The table has no payload above its largest: such a slot counts as the largest one, and differs by less
        // than 2 %.
        let is = |own: &u32, payload| payload == (*own).min(LARGEST);
        let fits = match (self.slots.every(), variant.payload) {
            (Some(all), Some(payload)) => {
                all.iter().any(|slot| slot.payloads.iter().any(|own| is(own, payload)))
            }
            _ => true,
        };
        carried && fits
    }
}

/// The reason in words: `the path has no slot but gen2 x4`.
fn only(what: &str, mut names: Vec<String>) -> String {
    names.dedup();
    format!("the path has no {what} but {}", names.join(" and "))
}

/// Generations and widths of a slot in words: `gen2 x4`, or `gen2 or gen3 x8`.
pub(super) fn slot_words(slot: &pcie::Slot) -> String {
    let list = |prefix: &str, values: &[u32]| {
        let words: Vec<String> = values.iter().map(|v| format!("{prefix}{v}")).collect();
        words.join(" or ")
    };
    let (generations, lanes) = (list("gen", &slot.generations), list("x", &slot.lanes));
    format!("{generations} {lanes}")
}

#[cfg(test)]
mod tests {
    use super::super::table::{link, rows};
    use super::*;
    use crate::infiniband::Speed;
    use linerate_units::Rate;

    fn slot(generation: u32, lanes: u32) -> pcie::Slot {
        pcie::Slot {
            generations: vec![generation],
            lanes: vec![lanes],
            payloads: vec![256],
            requests: vec![512],
        }
    }

    fn against(facts: &Facts, name: &str) -> Option<String> {
        let rows = rows();
        facts.against(rows.iter().find(|row| row.name == name).unwrap())
    }

    const FDR: Link = Link::InfiniBand { width: 4, speed: Speed::Fdr };

    #[test]
    fn what_is_unknown_rules_out_nothing() {
        let part = Facts {
            links: Known { parts: vec![FDR], all: false },
            slots: Known { parts: vec![slot(2, 8)], all: false },
            ..Facts::default()
        };
        let no_parts = Facts { links: Known { all: true, ..Known::default() }, ..Facts::default() };
        for facts in [Facts::default(), part, no_parts] {
            for row in rows() {
                assert_eq!(facts.against(&row), None, "{row:?}");
                assert!(row.variants.iter().all(|v| facts.allows(v)));
            }
        }
    }

    #[test]
    fn each_medium_has_its_parts() {
        let of = |medium| Facts { medium: Some(medium), ..Facts::default() };
        let (ethernet, infiniband, disk) =
            (of(Medium::Ethernet), of(Medium::InfiniBand), of(Medium::Disk));
        for (name, by) in [
            ("Ethernet 10 Gb/s", [false, true, true]),
            ("cloud limit of 5 Gb/s for one flow", [false, true, true]),
            ("InfiniBand FDR 1x", [true, false, true]),
            ("USB 5 Gb/s", [false, true, false]),
            ("SATA 3 (6 Gb/s)", [true, true, false]),
            ("PCIe gen2 x4", [false; 3]),
        ] {
            let found = [&ethernet, &infiniband, &disk].map(|f| against(f, name).is_some());
            assert_eq!(found, by, "{name}");
        }
        let words = against(&ethernet, "InfiniBand FDR 1x");
        assert_eq!(words.as_deref(), Some("the network is Ethernet"));
    }

    #[test]
    fn all_links_and_all_slots_rule_out_the_others() {
        let facts = Facts {
            links: Known { parts: vec![FDR, FDR], all: true },
            slots: Known { parts: vec![slot(2, 8), slot(3, 8)], all: true },
            ..Facts::default()
        };
        assert_eq!(facts.against(&link(FDR)), None);
        assert_eq!(against(&facts, "PCIe gen2 x8"), None);
        for (name, words) in [
            ("InfiniBand FDR 1x", "the path has no link but 4x FDR"),
            ("Ethernet 10 Gb/s", "the path has no link but 4x FDR"),
            ("PCIe gen2 x4", "the path has no slot but gen2 x8 and gen3 x8"),
            ("bus pcix-64/133, both directions together", "the slots of the path are PCI Express"),
        ] {
            assert_eq!(against(&facts, name).as_deref(), Some(words));
        }
        let slots = rows().into_iter().filter(|row| row.name == "PCIe gen2 x8");
        let left: Vec<_> = slots.flat_map(|row| row.variants).filter(|v| facts.allows(v)).collect();
        assert_eq!(left.len(), 2, "one payload: {left:?}");
    }

    #[test]
    fn sockets_and_verbs_leave_what_they_can_use() {
        let of = |carrier| Facts { carrier: Some(carrier), ..Facts::default() };
        let (sockets, verbs) = (of(Carrier::Sockets), of(Carrier::Verbs));
        let port = link(Link::Ethernet(Rate(10_000_000_000)));
        let left = |facts: &Facts| port.variants.iter().filter(|v| facts.allows(v)).count();
        assert_eq!((left(&sockets), left(&verbs)), (8, 2));
        let cloud = "cloud limit of 5 Gb/s for one flow";
        assert_eq!(against(&sockets, cloud), None);
        let words = Some("the program uses verbs".to_owned());
        assert_eq!(against(&verbs, cloud), words);
        assert_eq!(against(&verbs, "USB 5 Gb/s"), words);
        assert_eq!(against(&verbs, "PCIe gen2 x4"), None);
    }
}
