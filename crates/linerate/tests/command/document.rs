//! A document of `linerate host --json`.

use serde_json::Value;

use crate::schema::fits;

/// Reads a document, which must obey its schema.
pub(crate) fn document(text: &str) -> Value {
    let document: Value = serde_json::from_str(text).unwrap();
    fits("host", &document);
    document
}
