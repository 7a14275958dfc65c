//! What is lost on the way, and what half the pace would make of it.

use super::LOSSY;
use super::queue::standing_queue;
use crate::model::{Load, Model};
use crate::record::TrialPlan;
use crate::stats::{EQUAL, Range, without_swing};
use crate::trial::Factor;

/// What half the pace leaves of the share sent again where a rate that is exceeded makes the loss.
const VANISHES: Range = Range {
    low: 0.0,
    high: 0.3,
};

/// The same where packets are lost at any rate: about as before. Few losses, or losses in rows, tell it
/// with a wide interval; above it is open, since nothing loses more at half the pace that should be parted
/// from this.
pub(super) const STAYS: Range = Range {
    low: 0.31,
    high: f64::MAX,
};

/// How much better another congestion control may fill such a rate: one loss-based stream fills at least
/// a quarter of it.
const FILLED_BY_OTHER: f64 = 4.0;

/// What more streams carry of a rate that drops what exceeds it: each halves its window at each loss,
/// and loses many packets at once, so that several may fill it better, or out of step a little worse.
const FILLED: Range = Range {
    low: 0.9,
    high: 1.5,
};

/// The share of bytes sent again, where it is enough to hold congestion control back; of datagrams lost.
pub(crate) fn sent_again(load: &Load) -> Option<f64> {
    let lost = load.datagrams.as_ref().map(|told| told.lost);
    lost.or(load.tcp.retransmitted)
        .filter(|share| *share > LOSSY)
}

/// The same, of what was lost indeed: not what came late.
pub(super) fn lost(load: &Load) -> Option<f64> {
    let late = late(load).map_or(0.0, Late::share);
    sent_again(load)
        .map(|again| again * (1.0 - late))
        .filter(|share| *share > LOSSY)
}

/// Segments that came late, for each segment that was sent again, from which they tell why.
const OVERTAKEN: f64 = 0.2;

/// How it is known that segments that were sent again had only come late.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Late {
    /// The receiver says of so many of them that they came twice.
    Told(f64),
    /// Packets overtook others so often for each of them; whether they came twice, nobody says.
    Overtook(f64),
}

impl Late {
    /// The share of what was sent again.
    pub(super) fn share(self) -> f64 {
        let (Self::Told(share) | Self::Overtook(share)) = self;
        share.min(1.0)
    }
}

/// What only came late, where it explains what was sent again. The receiver knows best: packets overtake on
/// many a path without anything being sent again for it, and one that comes after it was sent again is not
/// counted as overtaken.
pub(super) fn late(load: &Load) -> Option<Late> {
    let again = load.tcp.repeated.filter(|again| *again > 0.0)?;
    let of = |events: f64| events / again;
    let late = load.tcp.needless.map(|n| Late::Told(of(n)));
    late.or_else(|| load.tcp.reordered.map(|n| Late::Overtook(of(n))))
        .filter(|late| late.share() >= OVERTAKEN)
}

/// Standard deviation of the goodput of each sample, as a share of their mean, beyond which the mean tells
/// little of what the next second will bring.
const ERRATIC: f64 = 0.25;

/// Samples that tell how a goodput scatters.
const SAMPLES: usize = 8;

/// Whether a load carried now much, now little, or too little was seen of it: nothing follows from another
/// load that carried as much.
pub(super) fn erratic(load: &Load) -> bool {
    let ticks = without_swing(&load.ticks);
    let n = ticks.len() as f64;
    let mean = ticks.iter().sum::<f64>() / n;
    let variance = ticks.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / n;
    load.ticks.len() < SAMPLES || variance.sqrt() > ERRATIC * mean
}

/// Whether loss is the only sign of a rate that is exceeded: what comes too fast is dropped, not queued.
pub(super) fn only_dropped(model: &Model, load: &Load) -> bool {
    lost(load).is_some() && standing_queue(model, load).is_none()
}

/// What more streams make of one rate that all share: the same, unless it drops what exceeds it. Datagrams
/// fill any rate, and fill it no better where more of them are lost.
pub(super) fn filled(model: &Model, load: &Load) -> Range {
    if load.datagrams.is_some() {
        Range {
            high: EQUAL.high,
            ..FILLED
        }
    } else if only_dropped(model, load) {
        FILLED
    } else {
        EQUAL
    }
}

/// What a rate expects of another congestion control: it is filled no better, though maybe worse where
/// the queue is shallow.
pub(super) fn of_other_congestion(model: &Model, load: &Load) -> Range {
    Range {
        low: 0.3,
        high: if only_dropped(model, load) {
            FILLED_BY_OTHER
        } else {
            EQUAL.high
        },
    }
}

/// The share sent again that a rate predicts which drops what exceeds it. Where a queue stands,
/// packets may be lost at random too: nothing is predicted.
pub(super) fn of_a_rate(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let load = &model.direction(trial.direction)?.base;
    let paced = trial.factor() == Some(Factor::Paced);
    (paced && only_dropped(model, load)).then_some(VANISHES)
}
