//! Packets that a queueing discipline of the sender's own port drops on purpose: at any rate, as on a bad line, but
//! at a known place.

use super::dropped::{MOST, most_of, segments, sent};
use super::percent;
use crate::model::{Load, Local, LocalEvent};
use linerate_plan::path::Direction;

/// The queueing discipline that causes most of the losses of a direction; `None` if there is none.
pub(crate) fn own_loss(load: &Load, direction: Direction) -> Option<&Local> {
    let (all, lost) = sent(load)?;
    let own = load
        .local
        .iter()
        .filter(|local| local.what == LocalEvent::Meant && local.side == direction.sender());
    let most = own.max_by(|a, b| a.per_sec.total_cmp(&b.per_sec))?;
    let may_be_all = most.per_sec * most_of(load) >= lost * MOST;
    let meant = most.meant.is_some_and(|share| share * all >= lost * MOST);
    (may_be_all && (meant || segments(load, most) >= lost * MOST)).then_some(most)
}

/// What a queueing discipline dropped on purpose, and what it is set to drop, in words.
pub(crate) fn words(own: &Local) -> String {
    let meant = own.meant.map(percent).unwrap_or_default();
    format!("{}, {:.0} in a second: it is set to lose {meant}", own.words(), own.per_sec)
}
