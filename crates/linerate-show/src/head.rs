//! What every document begins with.

use linerate_explain::Headline;
use schemars::JsonSchema;
use serde::Serialize;

use crate::json::Format;

/// The first keys of every document.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Head<'a> {
    /// Version of this document; raised when a key changes its meaning or is removed.
    format: Format<1>,
    /// Version of linerate that measured, or judged what others measured.
    linerate: &'a str,
    /// The answer to read first. Null if the document has nothing that could be judged.
    headline: Option<Headline>,
}

impl<'a> Head<'a> {
    /// The head of a document that this version makes.
    pub(crate) fn new(headline: Option<Headline>) -> Self {
        Self { format: Format, linerate: env!("CARGO_PKG_VERSION"), headline }
    }

    /// The same, of what another version measured.
    pub(crate) fn by(self, linerate: &'a str) -> Self {
        Self { linerate, ..self }
    }
}
