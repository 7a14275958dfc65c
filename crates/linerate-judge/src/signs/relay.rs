//! Something between the hosts that ends connections and makes others: a proxy, a tunnel of ssh, a box that
//! speeds long paths up. What the sender's kernel counts is then of the first connection alone.

use crate::model::{Load, Model};
use linerate_units::{Bytes, Nanos};

/// An answer of the far end takes at least `TIMES` times as long as an acknowledgement, and longer by at
/// least `LONGER`: waking a thread takes well under that.
const TIMES: f64 = 2.0;
const LONGER: Nanos = Nanos(2_000_000);

/// Payload of an answer of the idle path. A window that does not hold it makes two round trips of one answer. A receiver that
/// has little room closes its window instead: something on the path rewrote such a one.
//= RFC 9293, section 3.8.6.2.2: the receiver avoids silly windows
const ANSWER: Bytes = Bytes(64);

/// Whether the sender sees a window that no receiver offers by itself.
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
