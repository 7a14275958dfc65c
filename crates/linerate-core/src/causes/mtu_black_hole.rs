//! Large packets vanish on the way, and nobody tells the sender to make them smaller.

use super::own_loss::{self, own_loss};
use super::predict::bystander;
use super::{Answer, Cause, Finding, base, lacks, local_drops, percent};
use crate::facts::Gap;
use crate::model::Model;
use crate::plan::Direction;
use crate::record::TrialPlan;
use crate::stats::Range;
use crate::trial::Factor;
use crate::verdict::{Advice, Place, Stage};

/// Cause `mtu-black-hole`.
pub(super) struct MtuBlackHole;

/// Least gain of smaller packets: all against nothing.
const FLOWS: f64 = 10.0;

impl Cause for MtuBlackHole {
    fn id(&self) -> &'static str {
        "mtu-black-hole"
    }
    fn stage(&self) -> Stage {
        Stage::Net
    }
    fn check(&self, model: &Model, direction: Direction) -> Answer {
        let load = match base(model, direction) {
            Ok(load) => load,
            Err(answer) => return answer,
        };
        let Some(silent) = load.silent() else {
            return Answer::Clear("payload arrived".to_owned());
        };
        if let Some(own) = own_loss(load, direction) {
            let why = own_loss::words(own);
            return Answer::Clear(format!("the sender's own port loses it: {why}"));
        }
        // Beside a connection that stands still a drop a second may be of anything.
        let datagrams = load.datagrams.as_ref();
        if let Some(own) = datagrams.and_then(|_| local_drops::holds(model, load, direction)) {
            return Answer::Clear(format!(
                "the hosts themselves drop what does not arrive: {own}"
            ));
        }
        let Some(small) = model.idle.as_ref().filter(|idle| idle.samples > 0) else {
            return Answer::Unknown(vec![Gap {
                what: "round trips of the idle path".to_owned(),
                why: "without them nobody knows whether small packets pass".to_owned(),
                hint: String::new(),
            }]);
        };
        if load.datagrams.is_none() {
            let Some(again) = load.tcp.retransmitted else {
                return lacks(model, "tcp", direction.sender());
            };
            if again <= 0.0 {
                return Answer::Clear("nothing had to be sent again".to_owned());
            }
        }
        let timeouts = load.tcp.timeouts.map_or(String::new(), |n| {
            format!(", after {n:.0} timeouts of the sender")
        });
        Answer::Finding(Finding {
            side: Place::Path,
            share: silent,
            // A large packet that passes now and then is one that others are lost beside: only smaller ones tell.
            enough: !load.arrived() || flow(model, direction),
            reached: false,
            evidence: vec![
                format!(
                    "no payload arrived in {} of the samples{timeouts}",
                    percent(silent)
                ),
                format!("{} round trips of 64 bytes passed before", small.samples),
            ],
        })
    }
    fn predict(&self, model: &Model, trial: &TrialPlan) -> Option<Range> {
        match trial.factor()? {
            Factor::SmallerMss => Some(Range {
                low: FLOWS,
                high: f64::MAX,
            }),
            _ => bystander(model, trial),
        }
    }
    fn decided_by(&self) -> &'static [Factor] {
        &[Factor::SmallerMss]
    }
    fn advice(&self, model: &Model, direction: Direction) -> Vec<Advice> {
        let datagrams = model
            .direction(direction)
            .is_some_and(|d| d.base.datagrams.is_some());
        let sender = direction.sender().name();
        let find = "find what drops large packets: `tracepath PEER`, `ping -M do -s 1372 PEER`; let \
                    routers and firewalls pass ICMP \"fragmentation needed\" and \"packet too big\"";
        let find = Advice {
            action: find.to_owned(),
            undo: String::new(),
            gain: None,
        };
        let until = if datagrams {
            Advice {
                action: "until then let the program send smaller datagrams".to_owned(),
                undo: String::new(),
                gain: None,
            }
        } else {
            Advice {
                action: format!(
                    "until then, on the {sender} host: sudo sysctl -w net.ipv4.tcp_mtu_probing=1"
                ),
                undo: "sudo sysctl -w net.ipv4.tcp_mtu_probing=N, N being what `sysctl -n \
                       net.ipv4.tcp_mtu_probing` showed before"
                    .to_owned(),
                gain: None,
            }
        };
        vec![find, until]
    }
    fn page(&self) -> &'static str {
        include_str!("pages/mtu-black-hole.md")
    }
}

/// Whether smaller packets got through.
fn flow(model: &Model, direction: Direction) -> bool {
    let effect = model
        .tried(direction, Factor::SmallerMss)
        .and_then(|trial| trial.effect);
    effect.is_some_and(|effect| effect.low >= FLOWS)
}
