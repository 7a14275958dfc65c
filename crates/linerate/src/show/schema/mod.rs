//! The published schemas: made from the types of the documents, and kept in `schema/`.

mod generated;
mod kept;

use serde_json::Value;

#[path = "../../../tests/command/schema.rs"]
mod shared;

pub(crate) use shared::fits;
use shared::{refused, validator};

fn errors(schema: &str, document: &Value) -> Vec<String> {
    refused(&validator(schema), document)
}

/// A schema refuses `good` with another value at any of `wrong`, and with a key that it does not know in
/// the object at `closed`.
#[track_caller]
pub(crate) fn refuses<const N: usize>(
    schema: &str,
    good: &Value,
    wrong: [(&str, Value); N],
    closed: &str,
) {
    for (path, value) in wrong {
        let mut bad = good.clone();
        *bad.pointer_mut(path).unwrap() = value;
        assert_ne!(errors(schema, &bad), [""; 0], "{path}");
    }
    let mut bad = good.clone();
    bad.pointer_mut(closed).unwrap()["surprise"] = Value::from(1);
    assert_ne!(errors(schema, &bad), [""; 0]);
}

/// A schema refuses `good` without any of the keys of the object at `at`.
#[track_caller]
pub(crate) fn needs_all(schema: &str, good: &Value, at: &str) {
    for key in good.pointer(at).unwrap().as_object().unwrap().keys() {
        let mut bad = good.clone();
        let object = bad.pointer_mut(at).unwrap().as_object_mut().unwrap();
        object.remove(key);
        assert_ne!(errors(schema, &bad), [""; 0], "without {key}");
    }
}
