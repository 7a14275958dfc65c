//! Parses and checks a document of `linerate host --json`.

use serde_json::Value;

use crate::schema::fits;

/// Parses a document, which must match its schema.
pub(crate) fn document(text: &str) -> Value {
    let document: Value = serde_json::from_str(text).unwrap();
    fits("host", &document);
    document
}
