//! The congestion control that goes by the rate that arrives, not by loss.

use crate::model::{Load, Model};
use crate::plan::{Direction, Side};
use crate::trial::Factor;
use crate::verdict::Advice;

/// Whether a load is sent by it.
pub(super) fn sends(load: &Load) -> bool {
    load.made[0].congestion.starts_with("bbr")
}

/// How many times as much it carried, where it was tried.
pub(super) fn gained(model: &Model, direction: Direction) -> Option<f64> {
    let trial = model.tried(direction, Factor::OtherCongestion)?;
    let by_it = trial.plan.after.congestion.as_deref() == Some("bbr");
    trial.effect.filter(|_| by_it).map(|effect| effect.mid)
}

/// To use it, where the sender does not and may.
pub(super) fn advice(model: &Model, load: &Load, side: Side, gain: Option<f64>) -> Option<Advice> {
    let present = &load.made[0].congestion;
    let may = &model.host(side)?.facts.congestion_available;
    (!present.is_empty() && !sends(load) && may.iter().any(|name| name == "bbr")).then(|| Advice {
        action: format!(
            "on {}: sudo sysctl -w net.ipv4.tcp_congestion_control=bbr",
            side.name()
        ),
        undo: format!("sudo sysctl -w net.ipv4.tcp_congestion_control={present}"),
        gain,
    })
}
