//! What a schema must refuse. Tests of other crates include this file.

use serde_json::Value;

use super::fits::{refused, validator};

/// Checks that the schema refuses `good` with any one value replaced as in `wrong`, and with an unknown key in the
/// object at `closed`.
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
        assert_ne!(refused(&validator(schema), &bad), [""; 0], "{path}");
    }
    let mut bad = good.clone();
    bad.pointer_mut(closed).unwrap()["surprise"] = Value::from(1);
    assert_ne!(refused(&validator(schema), &bad), [""; 0]);
}
