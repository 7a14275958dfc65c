//! The checks for programs. The schema is made from `Output`.

use linerate_explain::{Answered, Headline};
use linerate_fabric::guide::{Check, Guide, State};
use linerate_facts::advice::Advice;
use linerate_plan::path::Certainty;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::json::text;
use super::text::summary;
use crate::head::Head;

/// One JSON document. Unknown values are null.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate guide ib")]
pub(crate) struct Output<'a> {
    #[serde(flatten)]
    head: Head<'static>,
    /// Whether all checks are ok.
    ok: bool,
    /// Port that the checks from the cable on are about. Null if the host has no InfiniBand port.
    port: Option<&'a str>,
    /// The other InfiniBand ports of the host.
    other_ports: &'a [String],
    /// The checks, in order: each needs those before it.
    checks: Vec<CheckOut<'a>>,
}

/// A check.
#[derive(Serialize, JsonSchema)]
struct CheckOut<'a> {
    /// Stable id: `card`, `driver`, `cable`, `manager`, `lid`, `ping`, `ipoib`, `rates`.
    id: &'static str,
    state: StateOut,
    /// What was found, in words. Null if it was not judged.
    what: Option<&'a str>,
    /// What to do if it is wrong, how to know if it is unknown, what makes it faster if it is ok. Null if there is
    /// nothing to do.
    advice: Option<&'a Advice>,
}

/// How a check ended.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "GuideState")]
enum StateOut {
    /// All is well.
    Ok,
    /// Something is wrong.
    Wrong,
    /// It could not be judged.
    Unknown,
    /// A check before it is wrong.
    NotJudged,
}

/// The checks as one JSON document, with a line feed at its end.
pub fn json(guide: &Guide) -> serde_json::Result<String> {
    text(&Output {
        head: Head::new(Some(headline(guide))),
        ok: guide.is_well(),
        port: guide.port.as_deref(),
        other_ports: &guide.others,
        checks: guide.checks.iter().map(check).collect(),
    })
}

fn headline(guide: &Guide) -> Headline {
    let what = summary(guide);
    let wrong = guide.checks.iter().find_map(|check| match &check.state {
        State::Wrong(fix) => Some((check, fix)),
        _ => None,
    });
    match wrong {
        Some((check, fix)) => {
            let found = (check.id, Certainty::Proved);
            Headline::found(found, what, vec![check.what.clone()], fix)
        }
        None if guide.is_well() => Headline::said(Answered::Healthy, what),
        None => Headline::said(Answered::Unknown, what),
    }
}

fn check(check: &Check) -> CheckOut<'_> {
    let (state, advice) = match &check.state {
        State::Ok(better) => (StateOut::Ok, better.as_ref()),
        State::Wrong(fix) => (StateOut::Wrong, Some(fix)),
        State::Unknown(how) => (StateOut::Unknown, Some(how)),
        State::Waits => (StateOut::NotJudged, None),
    };
    CheckOut {
        id: check.id,
        state,
        what: Some(check.what.as_str()).filter(|what| !what.is_empty()),
        advice,
    }
}
