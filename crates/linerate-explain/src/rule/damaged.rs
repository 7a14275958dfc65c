//! Rules about packets that the link damaged, or a port dropped: a counter of the port grew, and a transfer lost as
//! many.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::super::{Explained, side_name};
use super::Remark;
use super::connections::MATTERS;
use super::counters::FEWEST_LOST;
use super::fabric::ports;
use super::transfers::{Of, transfers, way};
use linerate_facts::finding::Stands;
use linerate_facts::nic::counted::{self, Meaning};
use linerate_facts::nic::{Counter, Nic};
use linerate_plan::path::Side;
use linerate_record::reported::Transfer;

/// Range of damaged packets over retransmitted ones within which both counts are of the same packets. Other traffic
/// adds to the first count, and some damaged frames are never missed by either end.
const SAME_PACKETS: RangeInclusive<f64> = 0.5..=3.0;

/// Range of dropped over lost packets where both counts are of the same packets and no other traffic was counted.
const SAME_COUNT: RangeInclusive<f64> = 0.98..=1.02;
/// Range of packets that the receiver's port dropped over those that were lost, where both counts are of the same
/// packets.
const DROPPED: RangeInclusive<f64> = 0.8..=1.5;

/// The port's counter with one of these meanings that grew most between two readings, and its growth.
fn grown<'a>(nic: &'a Nic, meanings: &[Meaning]) -> Option<(&'a Counter, u64)> {
    let before = nic.before.counters.iter();
    let before: BTreeMap<&str, u64> = before.map(|old| (&*old.name, old.value)).collect();
    let is_own = |counter: &&Counter| {
        let meaning = counted::likely(&nic.driver, &counter.name);
        meaning.is_some_and(|meaning| meanings.contains(&meaning))
    };
    let more = nic.counters.iter().filter(is_own).filter_map(|counter| {
        let before = before.get(&*counter.name)?;
        Some((counter, counter.value.checked_sub(*before)?))
    });
    more.filter(|(_, more)| *more > 0).max_by_key(|(_, more)| *more)
}

/// Remarks on packets that a port dropped because a buffer was full: about as many as a transfer lost.
pub(super) fn dropped(explained: &Explained<'_>) -> Vec<Remark> {
    let of = |side: Side, nic: &Nic| {
        let (counter, more) = grown(nic, &[Meaning::RingFull, Meaning::BufferFull])?;
        // Two equal counts are no coincidence, whichever host the counters belong to.
        let is_alike = |one: &Transfer, alike: &RangeInclusive<f64>| {
            lost(one).is_some_and(|lost| alike.contains(&(more as f64 / lost as f64)))
        };
        let into = losing(explained, side).filter(|(_, _, one)| is_alike(one, &DROPPED));
        let same = || transfers(explained).find(|(_, _, one)| is_alike(one, &SAME_COUNT));
        let (source, result, one) = into.or_else(same)?;
        let side = one.direction.receiver();
        let what = format!(
            "{}: {} of the {} dropped {more} packets for want of room, as many as were lost: {} grew by so much between two readings",
            way(one.direction),
            nic.name,
            side_name(side),
            counter.name
        );
        let remark = Remark::new(Stands::Found, what)
            .names(&["local-drops"])
            .rules_out(&["path-loss", "path-rate"])
            .of(one.direction)
            .at(side)
            .shown_by(source, result)
            .because("bursts fill the ring faster than the CPU that serves it empties it");
        Some(remark.next("a longer ring, if the port has one; then more queues", "ethtool -g PORT"))
    };
    let nics = explained.material.nics();
    nics.filter_map(|(side, nic)| of(side, nic)).collect()
}

/// Of the transfers that `side` received, the one that lost most packets.
fn losing<'a>(explained: &'a Explained<'_>, side: Side) -> Option<Of<'a>> {
    let into = |(_, _, one): &Of<'_>| one.direction.receiver() == side && lost(one).is_some();
    let losing = transfers(explained).filter(into);
    losing.max_by_key(|(_, _, one)| lost(one))
}

pub(super) fn damaged(explained: &Explained<'_>) -> Vec<Remark> {
    let nics = explained.material.nics();
    nics.filter_map(|nic| remark(explained, nic)).collect()
}

fn remark(explained: &Explained<'_>, (side, nic): (Side, &Nic)) -> Option<Remark> {
    let (counter, more) = grown(nic, &[Meaning::Damaged])?;
    let (source, result, one) = losing(explained, side)?;
    let lost = lost(one)?;
    let what = format!(
        "{}: the link damages packets on the way into {} of the {}: {} grew by {more} between two readings, and {lost} \
         packets were lost",
        way(one.direction),
        nic.name,
        side_name(side),
        counter.name
    );
    let remark = Remark::new(Stands::Found, what)
        .because("the port discards a frame with a wrong checksum: a cable, an optic, a connector, or the port at the other end of the link")
        .of(one.direction)
        .at(side)
        .shown_by(source, result)
        .next("what the optic receives, if it has one; then another cable", "sudo ethtool -m PORT");
    if ports::is_any_full(explained) {
        return Some(Remark { answer: None, ..remark });
    }
    Some(if SAME_PACKETS.contains(&(more as f64 / lost as f64)) {
        remark.names(&["path-loss"])
    } else {
        remark.names(&["path-loss", "path-rate"])
    })
}

/// Least share of lost datagrams that matters.
const LOSS_MATTERS: f64 = 1e-3;

/// The number of packets that a transfer lost, if the loss is large enough to matter.
fn lost(one: &Transfer) -> Option<u64> {
    one.repeated().or(one.lost()).filter(|share| *share >= MATTERS)?;
    let lost = one.retransmits.or(one.datagrams.map(|counts| counts.lost))?;
    // For datagrams, a smaller share of loss costs nothing.
    let matters = one.lost().is_none_or(|share| share >= LOSS_MATTERS);
    Some(lost).filter(|lost| *lost >= FEWEST_LOST && matters)
}
