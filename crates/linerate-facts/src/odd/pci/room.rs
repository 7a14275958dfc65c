//! Whether the ports behind a PCI Express link need more than the link carries.

use super::super::Finding;
use super::super::carrier::excess;
use crate::Inventory;
use crate::advice::Advice;
use crate::carrier::{Carrier, Need};
use crate::crossing::{self, Crossing};
use crate::finding::Stands;
use crate::pci::{Link, Payload};

/// Findings about links, sorted by whether the ports behind the link may need more.
#[derive(Default)]
pub(in crate::odd) struct Links {
    /// Findings about links that may be the limit.
    pub may_bind: Vec<Finding>,
    /// Findings about links that the ports behind them do not fill, as far as is known.
    pub suffice: Vec<Finding>,
}

/// Whether the traffic over a link may fill it, at a given speed and width.
pub(super) enum Room {
    /// The traffic may fill the link. If ports exceed the link as it runs: a text about these ports, and their names.
    May(Option<(String, Vec<String>)>),
    /// The traffic cannot fill the link, or that is unknown. The fields are: whether it does harm, why it matters, and
    /// what the link is enough for.
    Enough(Stands, &'static str, String),
}

const FAST_ENOUGH: &str =
    "the link is fast enough for these ports; a faster port behind it might need more";

impl Room {
    /// The room on the link `link`, if it runs at `at`; `None` if no device is behind the link.
    pub(super) fn of(
        inventory: &Inventory,
        carriers: &[Carrier<'_>],
        link: &Crossing<'_>,
        at: Link,
    ) -> Option<Self> {
        let slot = link.slot.address;
        let need = Need::behind(inventory, slot)?;
        // The ports were compared with the link as it runs, not as it could run.
        let excess = || excess(carriers, slot).filter(|_| at == link.now);
        Some(Self::for_need(&need, link.device.payload, at, excess))
    }

    /// The room for a need. `excess` gives a text about the ports that exceed the link, and their names.
    pub(super) fn for_need(
        need: &Need,
        payload: Option<Payload>,
        at: Link,
        excess: impl Fn() -> Option<(String, Vec<String>)>,
    ) -> Self {
        let leaves = crossing::slot(at, payload).map(|slot| slot.leaves());
        let suffices = |frames: f64| leaves.is_some_and(|leaves| frames <= leaves.low());
        match *need {
            Need::Ports { rate, frames, all_known } if suffices(frames) => {
                match (all_known, rate.0) {
                    (false, 0) => Self::Enough(
                        Stands::Found,
                        "no port behind it reports a speed, so its effect is unknown",
                        "the needs of its ports are unknown".to_owned(),
                    ),
                    (true, _) => {
                        let enough = format!("enough for its ports ({rate})");
                        Self::Enough(Stands::Harmless, FAST_ENOUGH, enough)
                    }
                    (false, _) => Self::Enough(
                        Stands::Found,
                        FAST_ENOUGH,
                        format!("enough for its ports whose speed is known ({rate})"),
                    ),
                }
            }
            _ => Self::May(excess()),
        }
    }
}

impl Links {
    /// Adds the finding `odd` about a link. If the link suffices, its advice is replaced by `fix`.
    pub(super) fn add(&mut self, room: Room, odd: Finding, fix: Advice) {
        match room {
            Room::May(None) => self.may_bind.push(odd),
            Room::May(Some((excess, limits))) => {
                let what = format!("{}; {excess}", odd.what);
                self.may_bind.push(Finding { what, limits, ..odd });
            }
            Room::Enough(stands, why, enough) => self.suffice.push(Finding {
                stands,
                what: format!("{}: {enough}", odd.what),
                brief: format!("{}: {enough}", odd.brief),
                why: why.to_owned(),
                fix,
                ..odd
            }),
        }
    }
}
