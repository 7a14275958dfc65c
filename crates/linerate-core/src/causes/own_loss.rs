//! What a discipline of the sender's own port loses on purpose: loss at any rate, as of a bad line, whose place is known.

use super::dropped::{MOST, most_of, segments, sent};
use super::percent;
use crate::model::{Load, Local, LocalEvent};
use crate::plan::Direction;
use crate::verdict::Advice;

/// The discipline that loses most of what a direction loses, where one does.
pub(super) fn own_loss(load: &Load, direction: Direction) -> Option<&Local> {
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

/// What it did and is set to, in words.
pub(super) fn words(own: &Local) -> String {
    let meant = own.meant.map(percent).unwrap_or_default();
    format!(
        "{}, {:.0} in a second: it is set to lose {meant}",
        own.words(),
        own.per_sec
    )
}

/// The command that takes it away. What it hangs on was not read, and it may do more than lose packets.
pub(super) fn advice(own: &Local) -> Advice {
    let port = own.port();
    let (kind, id) = (
        own.kind().unwrap_or_default(),
        own.subject.split(' ').nth(2),
    );
    let id = id.unwrap_or_default();
    Advice {
        action: format!(
            "on {}: sudo tc qdisc del dev {port} root, where {kind} {id} is the root; where it hangs on another one, \
             sudo tc qdisc change dev {port} parent PARENT handle {id} {kind} with all that it is set to but its loss",
            own.side.name()
        ),
        undo: format!("as it was: note `tc -d qdisc show dev {port}` before"),
        gain: None,
    }
}
