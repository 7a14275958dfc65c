//! Packets are lost on the path at any rate, and congestion control mistakes the loss for a full path.

use crate::causes::network::bad_checksums;
use crate::causes::network::loss;
use crate::causes::port_of;
use crate::causes::prelude::*;
use crate::causes::tcp::congestion_control::use_bbr;
use crate::causes::tcp::sack_discarded;
use crate::causes::tcp::socket_memory;
use crate::model::Local;
use crate::signs::bbr;
use crate::signs::own_loss::own_loss;
use linerate_facts::advice::{Step, save_queue};
use linerate_units::shell::word;

pub(crate) static CAUSE: Cause = Cause {
    id: "path-loss",
    name: "packets are lost",
    needs: &[Feature::Stack],
    stage: Stage::Net,
    decided_by: &[Factor::Paced, Factor::OtherCongestion],
    page: include_str!("../pages/path-loss.md"),
    of_delivery: true,
    at_an_end: Some(Stage::Port),
    check,
    is_last: loss::is_last,
    predict: loss::predict,
    predict_loss: loss::predict_loss,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let found = loss::found(model, direction)?;
    let load = base(model, direction)?;
    let arrived =
        bad_checksums::of_segments(load).or_else(|| socket_memory::drops(load)).or_else(|| {
            let side = direction.receiver();
            socket_memory::holds(model, load, direction, side)
                .filter(|_| socket_memory::drops_some(load))
        });
    let other = arrived
        .map(|arrived| format!("they did arrive: {arrived}"))
        .or_else(|| sack_discarded::ignored(load));
    match other {
        Some(why) => Err(clear(why)),
        None => Ok(found),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let load = model.direction(direction).map(|d| &d.base);
    let datagrams = load.is_some_and(|load| load.has(Feature::Datagrams));
    let own = load.and_then(|load| own_loss(load, direction));
    let mut advice = vec![own.map_or_else(|| search(model), without_own_loss)];
    if !datagrams {
        advice.extend(tolerant(model, direction));
    }
    advice
}

/// Advice to look for the place of the loss, since it is unknown.
fn search(model: &Model) -> Advice {
    let count = |side: Side| {
        let port = word(port_of(model, side));
        Step::on(side, format!("ethtool -S {port} | grep -E 'err|drop|crc'"))
    };
    Advice::new(
        "find where packets are lost: counters of both ports and of each switch port between them, cables, optics",
    )
    .step(count(Side::Near))
    .step(count(Side::Far))
}

/// Advice to use BBR, which does not mistake loss for a full path.
fn tolerant(model: &Model, direction: Direction) -> Option<Advice> {
    let load = &model.direction(direction)?.base;
    let gain = bbr::gained(model, direction);
    use_bbr(model, load, direction.sender(), gain)
}

/// Advises the command that removes a queueing discipline that drops packets. Its parent was not read, and it may do
/// more than drop packets.
fn without_own_loss(own: &Local) -> Advice {
    let port = own.port();
    let (kind, id) = (own.kind().unwrap_or_default(), own.subject.split(' ').nth(2));
    let id = id.unwrap_or_default();
    let port = word(port);
    Advice::new(format!(
        "remove queue {id} ({kind}) of {port}, which loses packets; if it is not the root, change it with tc qdisc \
         change and all its parameters but the loss"
    ))
    .step(save_queue(own.side, &port))
    .set(own.side, format!("sudo tc qdisc del dev {port} root"))
    .undo(Step::by_hand("set the queue as qdisc-before.txt shows it"))
}
