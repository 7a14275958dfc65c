//! The keys that every JSON document begins with.

use std::borrow::Cow;

use linerate_explain::Headline;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// The first keys of every document.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Head<'a> {
    /// Version of this document's format; raised when a key changes its meaning or is removed.
    format: Format<1>,
    /// Version of the linerate that measured, or that judged results of other programs.
    linerate: &'a str,
    /// The headline: the answer to read first. Null if there is nothing that could be judged.
    headline: Option<Headline>,
}

impl<'a> Head<'a> {
    /// The first keys of a document about what this version of linerate measured or judged.
    pub(crate) fn new(headline: Option<Headline>) -> Self {
        Self { format: Format, linerate: env!("CARGO_PKG_VERSION"), headline }
    }

    /// Replaces the version by that of another linerate, which made the measurement.
    pub(crate) fn by(self, linerate: &'a str) -> Self {
        Self { linerate, ..self }
    }
}

/// The version of a document's format, a constant of the document's type.
pub(crate) struct Format<const N: u32>;

impl<const N: u32> Serialize for Format<N> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u32(N)
    }
}

impl<const N: u32> JsonSchema for Format<N> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Format".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": N })
    }
}
