//! Checks documents against their published schemas. Tests of other crates include this file.

use jsonschema::{ValidationError, Validator};
use linerate_show::schemas::schema;
use serde_json::Value;

/// The validator of the schema that is published as `name`.
pub(crate) fn validator(name: &str) -> Validator {
    let schema = schema(name).unwrap();
    jsonschema::validator_for(&serde_json::from_str(schema.text).unwrap()).unwrap()
}

/// The errors that a schema finds in a document.
pub(crate) fn refused(schema: &Validator, document: &Value) -> Vec<String> {
    let errors = schema.iter_errors(document);
    let error = |e: ValidationError<'_>| format!("{}: {e}", e.instance_path());
    errors.map(error).collect()
}

/// Panics if a document does not fit its schema.
#[track_caller]
pub(crate) fn fits(schema: &str, document: &Value) {
    assert_eq!(refused(&validator(schema), document), [""; 0], "{document}");
}
