//! Whether the ports behind a link need more than it carries.

use super::super::Finding;
use super::super::carrier::excess;
use crate::Inventory;
use crate::advice::Advice;
use crate::carrier::{Carrier, Need};
use crate::crossing::{self, Crossing};
use crate::finding::Stands;
use crate::pci::{Link, Payload};

/// Oddities of links, by whether the ports behind may need more.
#[derive(Default)]
pub(in crate::odd) struct Links {
    /// Oddities of links that may be the limit.
    pub may_bind: Vec<Finding>,
    /// Oddities of links that the ports behind them do not fill, as far as is known.
    pub suffice: Vec<Finding>,
}

/// Whether the traffic over a link may fill it at this speed and width.
pub(super) enum Room {
    /// The traffic may fill the link. If ports are faster than the link as it runs: a text about them, and
    /// their names.
    May(Option<(String, Vec<String>)>),
    /// The traffic cannot fill the link, or that is unknown: whether it does harm, why it matters, and what the link is
    /// enough for.
    Enough(Stands, &'static str, String),
}

const FAST_ENOUGH: &str =
    "the link is fast enough for these ports; a faster port behind it might need more";

impl Room {
    /// `None` if nothing is behind the link.
    pub(super) fn of(
        inventory: &Inventory,
        carriers: &[Carrier<'_>],
        link: &Crossing<'_>,
        at: Link,
    ) -> Option<Self> {
        let slot = link.slot.address;
        let need = Need::behind(inventory, slot)?;
        // The ports exceed the link as it runs, not as it could run.
        let excess = || excess(carriers, slot).filter(|_| at == link.now);
        Some(Self::for_need(&need, link.device.payload, at, excess))
    }

    /// The room for a need; `excess` is a text about ports that are faster, and their names.
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
    /// Adds the oddity of a link; `fix` is what to do where the link suffices.
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
