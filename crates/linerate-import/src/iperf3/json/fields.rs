//! Reads the objects of a document one by one, without building a tree of the whole document.
//!
//! A document with many streams is long, and only sums of it are kept. Unknown fields are skipped, a field of an
//! unexpected type counts as missing, and of two fields with the same name the later one counts.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Most characters of a text that are kept.
const LONGEST: usize = 300;

/// A type that is filled from the fields of an object.
pub(super) trait Fill {
    /// Names of the fields that are read.
    const NAMES: &'static [&'static str];

    /// Reads the value of the field whose name is at this place in `NAMES`.
    fn take<'de, A: MapAccess<'de>>(&mut self, name: usize, map: &mut A) -> Result<(), A::Error>;
}

/// A type that is filled from the elements of an array, one after the other.
pub(super) trait Collect {
    /// Reads the next element of an array; `None` at its end.
    fn element<'de, A: SeqAccess<'de>>(&mut self, array: &mut A) -> Result<Option<()>, A::Error>;
}

/// What a JSON value of each kind is turned into. A kind without a method of its own is skipped.
pub(super) trait Kinds<'de>: Sized {
    type Value;
    /// The result for a value that is skipped.
    fn other(self) -> Self::Value;
    fn number(self, _: f64) -> Self::Value {
        self.other()
    }
    fn text(self, _: &str) -> Self::Value {
        self.other()
    }
    fn array<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        while array.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self.other())
    }
    fn object<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(self.other())
    }
}

/// Reads a value of any kind.
pub(super) struct Any<T>(T);

impl<'de, T: Kinds<'de>> DeserializeSeed<'de> for Any<T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Kinds<'de>> Visitor<'de> for Any<T> {
    type Value = T::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, on: bool) -> Result<T::Value, E> {
        Ok(self.0.number(f64::from(u8::from(on))))
    }

    fn visit_u64<E>(self, n: u64) -> Result<T::Value, E> {
        Ok(self.0.number(n as f64))
    }

    fn visit_i64<E>(self, n: i64) -> Result<T::Value, E> {
        Ok(self.0.number(n as f64))
    }

    fn visit_f64<E>(self, n: f64) -> Result<T::Value, E> {
        Ok(self.0.number(n))
    }

    fn visit_str<E>(self, text: &str) -> Result<T::Value, E> {
        Ok(self.0.text(text))
    }

    fn visit_unit<E>(self) -> Result<T::Value, E> {
        Ok(self.0.other())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, array: A) -> Result<T::Value, A::Error> {
        self.0.array(array)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T::Value, A::Error> {
        self.0.object(map)
    }
}

/// Fills `into` from an object. A value that is no object leaves it unchanged.
pub(super) fn object<T: Fill>(into: &mut T) -> Any<Object<'_, T>> {
    Any(Object(into))
}

pub(super) struct Object<'a, T>(&'a mut T);

impl<'de, T: Fill> Kinds<'de> for Object<'_, T> {
    type Value = ();

    fn other(self) {}

    fn object<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
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
}

/// Fills `into` from the elements of an array.
pub(super) fn array<T: Collect>(into: &mut T) -> Any<Array<'_, T>> {
    Any(Array(into))
}

pub(super) struct Array<'a, T>(&'a mut T);

impl<'de, T: Collect> Kinds<'de> for Array<'_, T> {
    type Value = ();

    fn other(self) {}

    fn array<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        while self.0.element(&mut array)?.is_some() {}
        Ok(())
    }
}

/// Reads a number; `NaN` for any other value. False is 0 and true is 1.
pub(super) const NUMBER: Any<Number> = Any(Number);

pub(super) struct Number;

impl Kinds<'_> for Number {
    type Value = f64;

    fn other(self) -> f64 {
        f64::NAN
    }

    fn number(self, n: f64) -> f64 {
        n
    }
}

/// Reads a text; `None` for any other value, and for an empty text.
pub(super) const TEXT: Any<Text> = Any(Text);

pub(super) struct Text;

impl Kinds<'_> for Text {
    type Value = Option<String>;

    fn other(self) -> Option<String> {
        None
    }

    fn text(self, text: &str) -> Option<String> {
        let kept = text.chars().take(LONGEST).filter(|c| !c.is_control());
        let kept: String = kept.collect();
        let kept = kept.trim();
        (!kept.is_empty()).then(|| kept.to_owned())
    }
}

/// Reads the name of a field; gives its place in a list of names.
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
