//! A device or program between the hosts that ends connections and opens new ones: a proxy, an ssh tunnel, a WAN
//! accelerator. The sender's kernel then counts only the first of these connections.

use crate::model::{Load, Model};
use linerate_units::{Bytes, Nanos};

/// A relay is assumed if an answer of the far end takes at least `TIMES` times as long as an acknowledgement, and at
/// least `LONGER` more: waking a thread takes well under that.
const TIMES: f64 = 2.0;
const LONGER: Nanos = Nanos(2_000_000);

/// Payload of an answer on the idle path. With a smaller window one answer takes two round trips. A receiver that has
/// little room closes its window instead, so something on the path rewrote such a small window.
//= RFC 9293, section 3.8.6.2.2: the receiver avoids silly windows
const ANSWER: Bytes = Bytes(64);

/// Whether the sender sees a window smaller than any that a receiver offers by itself.
pub(crate) fn is_silly(load: &Load) -> bool {
    let window = load.tcp.window;
    window.is_some_and(|window| window > Bytes(0) && window < ANSWER)
}

/// A sentence that something other than the far end acknowledges the data: the shortest acknowledgement took
/// far less time than the shortest answer.
pub(crate) fn relayed(model: &Model, load: &Load) -> Option<String> {
    let answer = model.idle.as_ref()?.least;
    let acknowledged = load.tcp.min_rtt?;
    if is_silly(load) {
        return None;
    }
    let sooner = answer.0 as f64 > acknowledged.0 as f64 * TIMES
        && answer.0 > acknowledged.0.saturating_add(LONGER.0);
    sooner.then(|| {
        format!(
            "something on the path acknowledges for the far end: after {acknowledged}, but an answer \
             of the far end takes {answer}. The window belongs to a proxy, a tunnel or the like"
        )
    })
}
