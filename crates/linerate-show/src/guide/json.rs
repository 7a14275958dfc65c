//! The checks for programs. The schema is made from `Output`.

use linerate_fabric::guide::Guide;
use linerate_facts::finding::Finding;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::json::{Format, text};

/// Version of the document; raised when a key changes its meaning or is removed.
pub const FORMAT: u32 = 1;

/// The published schema of the document.
pub const SCHEMA: &str = include_str!("../../schema/guide.schema.json");

/// One JSON document. Unknown values are null.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate guide ib")]
pub(crate) struct Output<'a> {
    /// Version of this document.
    format: Format<FORMAT>,
    /// Version of linerate that judged.
    linerate: &'static str,
    /// Whether all checks are ok.
    ok: bool,
    /// Port that the checks from the cable on are about. Null if the host has no InfiniBand port.
    port: Option<&'a str>,
    /// The other InfiniBand ports of the host.
    other_ports: &'a [String],
    /// What the checks found, in order: each needs those before it. The subject is the name of the check: `Card`, `Driver`,
    /// `Cable`, `Manager`, `LID`, `Ping by LID`, `IPoIB`, `Rates`. It is `good`, `found` (something is wrong), `unknown` or
    /// `not-judged`.
    checks: &'a [Finding],
}

/// The checks as one JSON document, with a line feed at its end.
pub fn json(guide: &Guide) -> serde_json::Result<String> {
    text(&Output {
        format: Format,
        linerate: env!("CARGO_PKG_VERSION"),
        ok: guide.is_well(),
        port: guide.port.as_deref(),
        other_ports: &guide.others,
        checks: &guide.checks,
    })
}
