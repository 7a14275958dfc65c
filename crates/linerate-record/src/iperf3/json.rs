//! JSON after its length, and fields of JSON: versions of iperf3 write the same field in different ways.

use serde_json::{Map, Value};

use super::Malformed;

/// Largest size of JSON in bytes: the results of 128 streams use a third of it.
pub const JSON_MAX: usize = 64 * 1024;

/// Largest number up to which a double holds every integer. iperf3 reads numbers as doubles.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Puts the length of the JSON, in four bytes, before it.
pub fn frame(json: &[u8]) -> Vec<u8> {
    let length = u32::try_from(json.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), json].concat()
}

/// Number of JSON bytes that follow the length in `bytes`.
pub fn length(bytes: [u8; 4]) -> Result<usize, Malformed> {
    let length = u32::from_be_bytes(bytes);
    match usize::try_from(length) {
        Ok(n) if n <= JSON_MAX => Ok(n),
        _ => Err(Malformed::Long(length)),
    }
}

/// Reads the fields of a JSON object.
pub(super) fn object(bytes: &[u8]) -> Result<Map<String, Value>, Malformed> {
    if bytes.len() > JSON_MAX {
        return Err(Malformed::Long(bytes.len() as u32));
    }
    // Some versions include the zero byte after the text.
    let text = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    match serde_json::from_slice(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Malformed::NotJson("not an object".to_owned())),
        Err(error) => Err(Malformed::NotJson(error.to_string())),
    }
}

/// A field with a whole number that is not negative; zero if there is no such field.
pub(super) fn count(fields: &Map<String, Value>, name: &'static str) -> Result<u64, Malformed> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(0),
        Some(value) => whole(value).ok_or(Malformed::Field(name)),
    }
}

/// A whole number that is not negative. Some versions write large ones with a decimal point.
pub(super) fn whole(value: &Value) -> Option<u64> {
    let number = value.as_f64()?;
    let exact = value.as_u64().filter(|n| *n as f64 <= WHOLE_MAX);
    exact.or_else(|| (0.0..=WHOLE_MAX).contains(&number).then_some(number as u64))
}

/// A field that is on or off; off if there is no such field. Some versions write it as a number.
pub(super) fn switch(fields: &Map<String, Value>, name: &'static str) -> Result<bool, Malformed> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(on)) => Ok(*on),
        Some(value) => whole(value).map(|n| n != 0).ok_or(Malformed::Field(name)),
    }
}

/// A field with a short text of printable characters; `None` if there is no such field.
pub(super) fn word(
    fields: &Map<String, Value>,
    name: &'static str,
) -> Result<Option<String>, Malformed> {
    /// Most bytes of the text: no name in the kernel is longer.
    const LONGEST: usize = 64;
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text))
            if text.len() <= LONGEST && text.bytes().all(|b| b.is_ascii_graphic()) =>
        {
            Ok(Some(text.clone()).filter(|text| !text.is_empty()))
        }
        Some(_) => Err(Malformed::Field(name)),
    }
}

/// A field with a finite number; `None` if there is no such field.
pub(super) fn number(fields: &Map<String, Value>, name: &str) -> Option<f64> {
    fields.get(name)?.as_f64().filter(|n| n.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_taken_up_to_the_bound_and_not_beyond() {
        let of = |n: u32| length(n.to_be_bytes());
        assert_eq!(of(JSON_MAX as u32), Ok(JSON_MAX));
        assert_eq!(of(JSON_MAX as u32 + 1), Err(Malformed::Long(JSON_MAX as u32 + 1)));
        assert!(of(u32::MAX).is_err());
        assert_eq!(frame(b"{}"), [0, 0, 0, 2, b'{', b'}']);
    }

    #[test]
    fn numbers_are_whole_positive_and_within_what_a_double_holds() {
        let of = |text: &str| whole(&serde_json::from_str(text).unwrap());
        assert_eq!(of("9007199254740992"), Some(1 << 53));
        assert_eq!(of("1.25e9"), Some(1_250_000_000));
        for text in ["-1", "1e60", "9007199254740994", "\"4\"", "null", "true"] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["", "[]", "{", "4", "{}x"] {
            assert!(object(text.as_bytes()).is_err(), "{text}");
        }
        assert!(object(b"{}\0").is_ok());
        let deep = "[".repeat(10_000);
        assert!(object(deep.as_bytes()).is_err());
    }
}
