//! The result of `linerate guide ib` as JSON. The schema is made from `Output`.

use linerate_explain::{Answered, Headline};
use linerate_fabric::guide::Guide;
use linerate_facts::finding::{Finding, Stands};
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
    /// Whether all checks passed.
    ok: bool,
    /// The port that is checked, from the check `Cable` on. Null if the host has no InfiniBand port.
    port: Option<&'a str>,
    /// The other InfiniBand ports of the host.
    other_ports: &'a [String],
    /// The findings of the checks, in order: each check needs those before it. The subject is the name of the
    /// check: `Card`, `Driver`, `Cable`, `Manager`, `LID`, `Ping by LID`, `IPoIB`, `Rates`. It is `good`, `found`
    /// (something is wrong), `unknown` or `not-judged`.
    checks: &'a [Finding],
}

/// The checks as one JSON document, with a line feed at its end.
pub fn json(guide: &Guide) -> serde_json::Result<String> {
    text(&Output {
        head: Head::new(Some(headline(guide))),
        ok: guide.is_well(),
        port: guide.port.as_deref(),
        other_ports: &guide.others,
        checks: &guide.checks,
    })
}

fn headline(guide: &Guide) -> Headline {
    let is_well = guide.is_well();
    let rest = || {
        Headline::said(if is_well { Answered::Healthy } else { Answered::Unknown }, summary(guide))
    };
    let wrong = guide.checks.iter().find(|check| check.stands == Stands::Found);
    wrong.map_or_else(rest, Headline::found)
}
