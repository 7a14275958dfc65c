//! Signs: what the readings of a load show, before any cause is judged.
//!
//! A sign is a fact about the model: a standing queue, loss that explains the goodput, a thread without slack.
//! Causes and trials both use signs; a sign knows neither.

pub(crate) mod bbr;
pub(crate) mod crowd;
pub(crate) mod dropped;
pub(crate) mod lossy;
pub(crate) mod own_loss;
pub(crate) mod queue;
pub(crate) mod relay;
pub(crate) mod round_trips;
pub(crate) mod threads;
pub(crate) mod underlay;

/// Minimum share of bytes retransmitted, or of datagrams lost, at which the path gives congestion control a reason to
/// slow down.
pub(crate) const LOSSY: f64 = 0.0005;

/// Share of the datagrams that must be lost before the sender's own limit no longer matters: a faster sender would
/// lose what it gains, or repairing the loss would gain more. A reader that waits for a CPU on a busy host loses a
/// smaller share, and is not the limit.
pub(crate) const OVERRUN: f64 = 0.05;

/// The least ratio of goodput that is predicted for the removal of a limit. It is more than no change, however close
/// the next limit is.
pub(crate) const GAIN: f64 = 1.05;

/// A share in per cent, for sentences.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if (0.0005..0.05).contains(&value) {
        format!("{value:.3} %")
    } else if !(0.05..10.0).contains(&value) || value.fract() == 0.0 {
        format!("{value:.0} %")
    } else {
        format!("{value:.1} %")
    }
}
