//! Documents against the schemas that are published for them.

use serde_json::Value;

/// What a schema refuses of a document.
pub(crate) fn errors(schema: &str, document: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(schema).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let errors = schema.iter_errors(document);
    errors.map(|e| e.to_string()).collect()
}

#[track_caller]
pub(crate) fn fits(schema: &str, document: &Value) {
    assert_eq!(errors(schema, document), [""; 0], "{document}");
}
