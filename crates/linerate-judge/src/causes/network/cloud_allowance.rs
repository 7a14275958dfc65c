//! A cloud queues or drops the traffic that exceeds the allowance of a machine.

use crate::causes::port_at;
use crate::causes::predict::one_rate;
use crate::causes::prelude::*;
use crate::model::Allowance;
use linerate_facts::nic::counted;
use linerate_record::Host;

/// Minimum share of the port's packets above an allowance at which the allowance limits the path. A burst of
/// some milliseconds exceeds it by less.
const EXCEEDED: f64 = 0.001;

pub(crate) static CAUSE: Cause = Cause {
    id: "cloud-allowance",
    name: "the cloud's allowance of this machine is used up",
    needs: &[Feature::Stack],
    stage: Stage::Net,
    explains: &["path-rate", "flow-rate-cap", "path-loss"],
    decided_by: &[],
    page: include_str!("../pages/cloud-allowance.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let Some((most, share)) = most(load) else {
        return Err(uncounted(model, load));
    };
    if share < EXCEEDED {
        return Err(clear(format!(
            "{} of the packets were over an allowance ({})",
            percent(share),
            most.counter
        )));
    }
    let evidence = vec![format!(
        "the {} host counted {:.0} packets over its allowance in a second, {} of those it \
             moved: {}",
        most.side.name(),
        most.per_sec,
        percent(share),
        most.counter
    )];
    Ok(Finding::at(Place::Path, share.min(1.0), evidence).enough(true))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        // More flows carry more if the allowance is for each flow, but not if it is for the machine.
        Factor::MoreStreams => None,
        _ => one_rate(model, trial),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let load = model.direction(direction).map(|d| &d.base);
    let most = load.and_then(most);
    most.map(|(most, _)| Advice::new(format!(
            "use a larger type of machine for {}, or send at a steady pace below its allowance (--pacing)",
            most.side.name()
        )))
    .into_iter()
    .collect()
}

/// The allowance that was exceeded most, and the share of packets above it.
fn most(load: &Load) -> Option<(&Allowance, f64)> {
    let all = load.allowances.iter();
    let shares = all.filter_map(|a| Some((a, a.per_sec / a.of.filter(|n| *n > 0.0)?)));
    shares.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The result if no allowance was counted. It is unknown only if the driver should count allowances.
fn uncounted(model: &Model, load: &Load) -> NoFinding {
    let ours = |host: &&Host| {
        let route = host.facts.route.iter();
        let mut ports = route.flat_map(|r| &r.ports);
        ports.any(|nic| counted::counts_allowances(&nic.driver))
    };
    match model.hosts.iter().find(ours) {
        Some(host) if load.allowances.is_empty() => NoFinding::Unknown(vec![Gap {
            what: format!("allowances of the {} host", host.side.name()),
            why: "the driver's counters were not read".to_owned(),
            hint: format!("ethtool -S {} | grep allowance", port_at(host)),
        }]),
        _ => clear("no port on the path counts allowances of a cloud"),
    }
}
