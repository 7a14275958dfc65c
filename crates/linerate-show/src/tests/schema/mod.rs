//! Tests of the published schemas, which are made from the types of the documents and stored in `schema/`.

mod fits;
mod generated;
mod refuses;

use serde_json::Value;

pub(crate) use fits::fits;
use fits::{refused, validator};
pub(crate) use generated::check;
pub(crate) use refuses::refuses;

fn errors(schema: &str, document: &Value) -> Vec<String> {
    refused(&validator(schema), document)
}

/// Checks that the schema refuses `good` without any one of the keys of the object at `at`.
#[track_caller]
pub(crate) fn needs_all(schema: &str, good: &Value, at: &str) {
    for key in good.pointer(at).unwrap().as_object().unwrap().keys() {
        let mut bad = good.clone();
        let object = bad.pointer_mut(at).unwrap().as_object_mut().unwrap();
        object.remove(key);
        assert_ne!(errors(schema, &bad), [""; 0], "without {key}");
    }
}
