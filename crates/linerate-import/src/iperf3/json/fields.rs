//! Reads the objects of a document piece by piece, without a tree of all of it.
//!
//! A document of many streams is long, and only sums of it are kept. Unknown fields are passed over, fields of
//! an unexpected type count as missing, and of two fields with one name the later one counts.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Most characters of a text that is kept.
const LONGEST: usize = 300;

/// Something that the fields of an object fill.
pub(super) trait Fill {
    /// Names of the fields that count.
    const NAMES: &'static [&'static str];

    /// Takes the value of the field with this place in `NAMES`.
    fn take<'de, A: MapAccess<'de>>(&mut self, name: usize, map: &mut A) -> Result<(), A::Error>;
}

/// Fills a value from an object. Anything else leaves it as it is.
pub(super) struct Object<'a, T>(pub(super) &'a mut T);

impl<'de, T: Fill> DeserializeSeed<'de> for Object<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// The methods of a visitor for values that it passes over.
macro_rules! pass_over {
    ($value:expr, $($name:ident: $type:ty),+) => {
        $(fn $name<E>(self, _: $type) -> Result<Self::Value, E> { Ok($value) })+
        fn visit_unit<E>(self) -> Result<Self::Value, E> { Ok($value) }
    };
}

/// The method of a visitor that passes over an array.
macro_rules! pass_over_array {
    ($value:expr) => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
            while array.next_element::<IgnoredAny>()?.is_some() {}
            Ok($value)
        }
    };
}

/// The method of a visitor that passes over an object.
macro_rules! pass_over_object {
    ($value:expr) => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok($value)
        }
    };
}

impl<'de, T: Fill> Visitor<'de> for Object<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key_seed(Name(T::NAMES))? {
            match name {
                Some(name) => self.0.take(name, &mut map)?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    pass_over!((), visit_bool: bool, visit_u64: u64, visit_i64: i64, visit_f64: f64, visit_str: &str);
    pass_over_array!(());
}

/// The place of a field's name in a table.
struct Name(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|known| *known == name))
    }
}

/// A value that objects of an array are made of, one after the other.
pub(super) trait Collect {
    /// Takes the next element of an array.
    fn element<'de, A: SeqAccess<'de>>(&mut self, array: &mut A) -> Result<Option<()>, A::Error>;
}

/// Gives the elements of an array to a value.
pub(super) struct Array<'a, T>(pub(super) &'a mut T);

impl<'de, T: Collect> DeserializeSeed<'de> for Array<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Collect> Visitor<'de> for Array<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        while self.0.element(&mut array)?.is_some() {}
        Ok(())
    }

    pass_over!((), visit_bool: bool, visit_u64: u64, visit_i64: i64, visit_f64: f64, visit_str: &str);
    pass_over_object!(());
}

/// A number; `NaN` for anything else. A switch is 0 or 1.
pub(super) struct Number;

impl<'de> DeserializeSeed<'de> for Number {
    type Value = f64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<f64, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Number {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, on: bool) -> Result<f64, E> {
        Ok(f64::from(u8::from(on)))
    }

    fn visit_u64<E>(self, n: u64) -> Result<f64, E> {
        Ok(n as f64)
    }

    fn visit_i64<E>(self, n: i64) -> Result<f64, E> {
        Ok(n as f64)
    }

    fn visit_f64<E>(self, n: f64) -> Result<f64, E> {
        Ok(n)
    }

    pass_over!(f64::NAN, visit_str: &str);
    pass_over_array!(f64::NAN);
    pass_over_object!(f64::NAN);
}

/// A text; `None` for anything else, and if it is empty.
pub(super) struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        let kept = text.chars().take(LONGEST).filter(|c| !c.is_control());
        let kept: String = kept.collect();
        let kept = kept.trim();
        Ok((!kept.is_empty()).then(|| kept.to_owned()))
    }

    pass_over!(None, visit_bool: bool, visit_u64: u64, visit_i64: i64, visit_f64: f64);
    pass_over_array!(None);
    pass_over_object!(None);
}
