//! A rule about packets that the wire damaged: counters of a port that grew beside a transfer that lost as many.

use super::super::{Explained, side_name};
use super::connections::MATTERS;
use super::course::{Of, transfers, way};
use super::fabric::ports::hosts;
use super::{Remark, Stands};
use crate::facts::nic::counted::{self, Meaning};
use crate::facts::nic::{Counter, Nic};
use crate::path::Side;
use crate::reported::Transfer;

/// Damaged packets for each one that was sent again, where they are the same ones. Other traffic between both readings has
/// some as well, and of some frames neither end knows that they were lost.
const SAME: std::ops::RangeInclusive<f64> = 0.5..=3.0;

/// Words of the names by which drivers count damaged frames.
const WORDS: [&str; 4] = ["crc", "fcs", "symbol", "align"];

/// Whether a counter is of received frames that the wire damaged; by its name where the driver is not known.
fn is_damage(nic: &Nic, counter: &Counter) -> bool {
    if let Some(meaning) = counted::meaning(&nic.driver, &counter.name) {
        return meaning == Meaning::Damaged;
    }
    let name = counter.name.to_ascii_lowercase();
    nic.driver.is_empty()
        && name.contains("err")
        && !name.contains("tx")
        && WORDS.iter().any(|word| name.contains(word))
}

/// The counter of damage that has grown most between two readings of a port, and by how much.
fn grown(nic: &Nic) -> Option<(&Counter, u64)> {
    let own = nic
        .counters
        .iter()
        .filter(|counter| is_damage(nic, counter));
    let more = own.filter_map(|counter| {
        let before = nic
            .before
            .counters
            .iter()
            .find(|old| old.name == counter.name)?;
        Some((
            counter,
            counter
                .value
                .checked_sub(before.value)
                .filter(|more| *more > 0)?,
        ))
    });
    more.max_by_key(|(_, more)| *more)
}

pub(super) fn damaged(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let of = |(side, host): (Side, &_)| {
        let host: &crate::facts::Inventory = host;
        let nics = host.network.nics.iter();
        let remarks = nics.filter_map(|nic| remark(explained, (side, nic), id));
        remarks.collect::<Vec<_>>()
    };
    hosts(explained).into_iter().flat_map(of).collect()
}

fn remark(
    explained: &Explained<'_>,
    (side, nic): (Side, &Nic),
    id: &'static str,
) -> Option<Remark> {
    let (counter, more) = grown(nic)?;
    let losing = |(_, _, one): &Of<'_>| one.direction.receiver() == side && lost(one).is_some();
    let of = transfers(explained)
        .filter(losing)
        .max_by_key(|(_, _, one)| lost(one));
    let (source, result, one) = of?;
    let lost = lost(one)?;
    let what = format!(
        "{}: the link damages packets on the way into {} of the {}: {} grew by {more} between two readings, and {lost} \
         packets were lost",
        way(one.direction),
        nic.name,
        side_name(side),
        counter.name
    );
    let remark = Remark::new(id, Stands::Finding, what)
        .because("the port discards a frame with a wrong checksum: a cable, an optic, a connector, or the port at the other end of the link")
        .of(one.direction)
        .at(side)
        .shown_by(source, result)
        .next("what the optic receives, if it has one; then another cable", "sudo ethtool -m PORT");
    Some(if SAME.contains(&(more as f64 / lost as f64)) {
        remark.names(&["path-loss"])
    } else {
        remark.names(&["path-loss", "path-rate"])
    })
}

/// The packets that a transfer lost, if they slow it down.
fn lost(one: &Transfer) -> Option<u64> {
    one.repeated()
        .or(one.lost())
        .filter(|share| *share >= MATTERS)?;
    let lost = one
        .retransmits
        .or(one.datagrams.map(|counts| counts.lost))?;
    Some(lost).filter(|lost| *lost > 0)
}
