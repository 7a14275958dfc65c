//! A document of `linerate host --json`.

use linerate::show::host::SCHEMA;
use serde_json::Value;

/// Reads a document, which must obey its schema.
pub(crate) fn document(text: &str) -> Value {
    let document: Value = serde_json::from_str(text).unwrap();
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<_> = schema
        .iter_errors(&document)
        .map(|e| e.to_string())
        .collect();
    assert_eq!(errors, [""; 0]);
    document
}
