//! Reads the plain CBOR that linerate writes: definite lengths, no tags. Records and messages of peers are encoded
//! so.
//!
//! Texts and byte strings are borrowed from the input. A length is refused if fewer bytes are left than so many items
//! need, so memory grows only with the bytes received. Nesting is bounded. The crate `ciborium` writes CBOR.
//= RFC 8949, sections 3 and 4

use std::fmt;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IgnoredAny, Visitor};
use serde::forward_to_deserialize_any;

/// Deepest nesting of lists and maps.
const DEPTH_MAX: usize = 64;

/// The major types of CBOR.
mod major {
    pub(super) const UNSIGNED: u8 = 0;
    pub(super) const NEGATIVE: u8 = 1;
    pub(super) const BYTES: u8 = 2;
    pub(super) const TEXT: u8 = 3;
    pub(super) const LIST: u8 = 4;
    pub(super) const MAP: u8 = 5;
    pub(super) const SIMPLE: u8 = 7;
}

/// Values of the major type [`major::SIMPLE`]; the last three announce a float.
mod simple {
    pub(super) const FALSE: u8 = 20;
    pub(super) const TRUE: u8 = 21;
    pub(super) const NULL: u8 = 22;
    pub(super) const UNDEFINED: u8 = 23;
    pub(super) const HALF: u8 = 25;
    pub(super) const SINGLE: u8 = 26;
    pub(super) const DOUBLE: u8 = 27;
}

/// Why bytes are not the requested value, as a lowercase sentence fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Error(Box<str>);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Self(why.to_string().into())
    }
}

fn refuse<T>(why: &str) -> Result<T, Error> {
    Err(Error(why.into()))
}

/// Reads the first item of `bytes`; also returns the bytes behind it.
pub(crate) fn read<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<(T, &'de [u8]), Error> {
    let mut reader = Reader { rest: bytes, depth: 0 };
    let item = T::deserialize(&mut reader)?;
    Ok((item, reader.rest))
}

struct Reader<'de> {
    rest: &'de [u8],
    /// Number of lists and maps that are open at this place.
    depth: usize,
}

/// The head of an item: its major type, and a number.
struct Head {
    major: u8,
    /// The low five bits of the first byte.
    info: u8,
    /// The number that the five bits are or announce: a value, a length, or the bits of a float.
    value: u64,
}

impl<'de> Reader<'de> {
    #[inline]
    fn head(&mut self) -> Result<Head, Error> {
        let Some((&first, rest)) = self.rest.split_first() else {
            return refuse("it ends too early");
        };
        self.rest = rest;
        let (major, info) = (first >> 5, first & 31);
        let value = match info {
            0..=23 => u64::from(info),
            _ => self.announced(info)?,
        };
        Ok(Head { major, info, value })
    }

    /// The number in the bytes after the first byte of an item; `info` says how many bytes it has.
    fn announced(&mut self, info: u8) -> Result<u64, Error> {
        Ok(match info {
            24 => u64::from(u8::from_be_bytes(self.number()?)),
            25 => u64::from(u16::from_be_bytes(self.number()?)),
            26 => u64::from(u32::from_be_bytes(self.number()?)),
            27 => u64::from_be_bytes(self.number()?),
            _ => return refuse("a length is not definite"),
        })
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let Some((number, rest)) = self.rest.split_first_chunk() else {
            return refuse("it ends too early");
        };
        self.rest = rest;
        Ok(*number)
    }

    /// Refuses a claimed number of items if the remaining bytes cannot hold that many items of `each` bytes.
    fn length(&self, claimed: u64, each: usize) -> Result<usize, Error> {
        match usize::try_from(claimed) {
            Ok(length) if length <= self.rest.len() / each => Ok(length),
            _ => refuse("a length exceeds the rest of the data"),
        }
    }

    #[inline]
    fn bytes(&mut self, claimed: u64) -> Result<&'de [u8], Error> {
        let (bytes, rest) = self.rest.split_at(self.length(claimed, 1)?);
        self.rest = rest;
        Ok(bytes)
    }

    fn text(&mut self, claimed: u64) -> Result<&'de str, Error> {
        let text = str::from_utf8(self.bytes(claimed)?);
        text.or_else(|_| refuse("a text is not UTF-8"))
    }

    /// Reads the name of a field or of a variant. A name that is not UTF-8 counts as unknown.
    #[inline]
    fn name(&mut self) -> Result<&'de [u8], Error> {
        let Head { major, value, .. } = self.head()?;
        if major != major::TEXT {
            return refuse("a name is not a text");
        }
        self.bytes(value)
    }

    /// Reads the items of a list or a map with `take`, which must read all `length` of them.
    fn items<T>(
        &mut self,
        length: usize,
        take: impl FnOnce(&mut Items<'_, 'de>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.depth == DEPTH_MAX {
            return refuse("lists and maps are nested too deeply");
        }
        self.depth += 1;
        let mut items = Items { reader: self, left: length };
        let taken = take(&mut items)?;
        let left = items.left;
        self.depth -= 1;
        if left > 0 {
            return refuse("a list has more items than are known");
        }
        Ok(taken)
    }

    /// Skips the next item. Each item uses at least one byte, so this ends.
    fn skip(&mut self) -> Result<(), Error> {
        let mut left = 1_usize;
        while left > 0 {
            left -= 1;
            let Head { major, value, .. } = self.head()?;
            match major {
                major::BYTES | major::TEXT => {
                    self.bytes(value)?;
                }
                major::LIST => left = left.saturating_add(self.length(value, 1)?),
                major::MAP => left = left.saturating_add(2 * self.length(value, 2)?),
                major::UNSIGNED | major::NEGATIVE | major::SIMPLE => {}
                _ => return refuse("an item has a tag"),
            }
        }
        Ok(())
    }
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Head { major, info, value } = self.head()?;
        match major {
            major::UNSIGNED => visitor.visit_u64(value),
            // The number in the record is -1 - `value`.
            major::NEGATIVE => match i64::try_from(value) {
                Ok(value) => visitor.visit_i64(!value),
                Err(_) => refuse("a number is too small"),
            },
            major::BYTES => visitor.visit_borrowed_bytes(self.bytes(value)?),
            major::TEXT => visitor.visit_borrowed_str(self.text(value)?),
            major::LIST => {
                let length = self.length(value, 1)?;
                self.items(length, |items| visitor.visit_seq(items))
            }
            major::MAP => {
                let length = self.length(value, 2)?;
                self.items(length, |items| visitor.visit_map(items))
            }
            major::SIMPLE => match info {
                simple::FALSE => visitor.visit_bool(false),
                simple::TRUE => visitor.visit_bool(true),
                simple::NULL | simple::UNDEFINED => visitor.visit_unit(),
                simple::HALF => visitor.visit_f64(half(value as u16)),
                simple::SINGLE => visitor.visit_f64(f64::from(f32::from_bits(value as u32))),
                simple::DOUBLE => visitor.visit_f64(f64::from_bits(value)),
                _ => refuse("a simple value is not known"),
            },
            _ => refuse("an item has a tag"),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        const NULL: u8 = major::SIMPLE << 5 | simple::NULL;
        const UNDEFINED: u8 = major::SIMPLE << 5 | simple::UNDEFINED;
        match self.rest {
            [NULL | UNDEFINED, rest @ ..] => {
                self.rest = rest;
                visitor.visit_none()
            }
            _ => visitor.visit_some(self),
        }
    }

    /// A text names a variant without content. A map of one entry has the name of a variant and its content.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.rest.first().is_some_and(|first| first >> 5 == major::TEXT) {
            return visitor.visit_enum(Plain(self));
        }
        match self.head()? {
            Head { major: major::MAP, value: 1, .. } => {
                self.items(1, |items| visitor.visit_enum(items))
            }
            _ => refuse("a variant is neither a text nor a map of one entry"),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_bytes(self.name()?)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.skip()?;
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct
    }
}

/// The items of a list, or the entries of a map, that are not read yet.
struct Items<'a, 'de> {
    reader: &'a mut Reader<'de>,
    left: usize,
}

impl Items<'_, '_> {
    /// Whether there is another item; if so, it is consumed.
    fn advance(&mut self) -> bool {
        let more = self.left > 0;
        self.left -= usize::from(more);
        more
    }
}

impl<'de> de::SeqAccess<'de> for &mut Items<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        if self.advance() { seed.deserialize(&mut *self.reader).map(Some) } else { Ok(None) }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> de::MapAccess<'de> for &mut Items<'_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        if self.advance() { seed.deserialize(&mut *self.reader).map(Some) } else { Ok(None) }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(&mut *self.reader)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> de::EnumAccess<'de> for &mut Items<'_, 'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        self.advance();
        let variant = seed.deserialize(&mut *self.reader)?;
        Ok((variant, self))
    }
}

impl<'de> de::VariantAccess<'de> for &mut Items<'_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        IgnoredAny::deserialize(&mut *self.reader).map(drop)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(&mut *self.reader)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        Deserializer::deserialize_any(&mut *self.reader, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        Deserializer::deserialize_any(&mut *self.reader, visitor)
    }
}

/// Reads an enum variant that has no content.
struct Plain<'a, 'de>(&'a mut Reader<'de>);

impl<'de> de::EnumAccess<'de> for Plain<'_, 'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        let variant = seed.deserialize(&mut *self.0)?;
        Ok((variant, self))
    }
}

impl<'de> de::VariantAccess<'de> for Plain<'_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Error> {
        refuse("a variant lacks its content")
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Error> {
        refuse("a variant lacks its content")
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        refuse("a variant lacks its content")
    }
}

/// The value of a float of 16 bits.
//= RFC 8949, appendix D
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction > 0.0 => f64::NAN,
        31 => f64::INFINITY,
        _ => (fraction + 1024.0) * 2_f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::IpAddr;

    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};

    use super::*;

    /// A field of every type that records and messages contain.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    struct Shapes<'a> {
        text: String,
        #[serde(borrow)]
        borrowed: &'a str,
        signed: i64,
        unsigned: u64,
        float: f64,
        flag: bool,
        maybe: Option<u32>,
        pairs: Vec<(u64, u64)>,
        byte: [u8; 3],
        map: BTreeMap<String, i8>,
        address: Option<IpAddr>,
        outside: Outside,
        inside: Inside,
        wrapped: Wrapped,
    }

    impl Default for Shapes<'_> {
        fn default() -> Self {
            Self {
                text: String::new(),
                borrowed: "",
                signed: 0,
                unsigned: 0,
                float: 0.0,
                flag: false,
                maybe: None,
                pairs: Vec::new(),
                byte: [0; 3],
                map: BTreeMap::new(),
                address: None,
                outside: Outside::Plain,
                inside: Inside::Plain,
                wrapped: Wrapped(0),
            }
        }
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    enum Outside {
        Plain,
        One(u8),
        Two(i16, bool),
        Named { deep: Vec<Outside> },
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "how")]
    enum Inside {
        Plain,
        Named { value: Option<i64>, words: String },
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Wrapped(u64);

    /// A list whose items are lists, to any depth.
    #[derive(Debug, PartialEq, Deserialize)]
    struct Deep(Vec<Deep>);

    fn written<T: Serialize>(value: &T) -> Vec<u8> {
        let mut bytes = Vec::new();
        ciborium::into_writer(value, &mut bytes).expect("a plain value");
        bytes
    }

    fn whole<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, Error> {
        read(bytes).map(|(value, _)| value)
    }

    fn outside() -> impl Strategy<Value = Outside> {
        let leaf = prop_oneof![
            Just(Outside::Plain),
            any::<u8>().prop_map(Outside::One),
            any::<(i16, bool)>().prop_map(|(a, b)| Outside::Two(a, b)),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop::collection::vec(inner, 0..4).prop_map(|deep| Outside::Named { deep })
        })
    }

    fn inside() -> impl Strategy<Value = Inside> {
        prop_oneof![
            Just(Inside::Plain),
            any::<(Option<i64>, String)>()
                .prop_map(|(value, words)| Inside::Named { value, words }),
        ]
    }

    #[test]
    fn a_length_that_exceeds_what_is_left_is_refused() {
        // A byte string, a text, a list and a map, each with a length that is one too large, and with the largest
        // possible length.
        for plain in [0x40_u8, 0x60, 0x80, 0xa0] {
            let each = if plain == 0xa0 { 2 } else { 1 };
            let of = |length: u8, bytes: usize| [vec![plain | length], vec![0; bytes]].concat();
            assert!(whole::<IgnoredAny>(&of(3, 3 * each)).is_ok());
            assert!(whole::<IgnoredAny>(&of(3, 3 * each - 1)).is_err());
            let most = [&[plain | 0x1b][..], &[0xff; 8]].concat();
            assert!(whole::<IgnoredAny>(&most).is_err());
            assert!(whole::<Vec<u64>>(&most).is_err());
        }
    }

    #[test]
    fn nesting_is_bounded_on_both_sides() {
        let deep = |levels: usize| [vec![0x81; levels - 1], vec![0x80]].concat();
        assert!(whole::<Deep>(&deep(DEPTH_MAX)).is_ok());
        assert!(whole::<Deep>(&deep(DEPTH_MAX + 1)).is_err());
        // Items that are skipped use no stack.
        assert!(whole::<IgnoredAny>(&deep(100_000)).is_ok());
    }

    #[test]
    fn only_the_plain_kind_is_read() {
        // Indefinite list, text and map, tag, reserved length, break, simple values, nothing.
        for bytes in [
            &[0x9f, 0xff][..],
            &[0x7f, 0xff],
            &[0xbf, 0xff],
            &[0xc0, 0x00],
            &[0x1c],
            &[0xff],
            &[0xe0],
            &[0xf8, 0xff],
            &[],
        ] {
            assert!(whole::<ciborium::Value>(bytes).is_err(), "{bytes:?}");
        }
        assert!(whole::<IgnoredAny>(&[0xc0, 0x00]).is_err());
        // A number below the least one of 64 bits is refused.
        assert_eq!(whole(&[&[0x3b, 0x7f], &[0xff; 7][..]].concat()), Ok(i64::MIN));
        assert!(whole::<i64>(&[&[0x3b, 0x80][..], &[0; 7]].concat()).is_err());
    }

    #[test]
    fn a_list_must_be_as_long_as_what_it_is_read_into() {
        assert_eq!(whole(&[0x82, 1, 2]), Ok([1_u8, 2]));
        assert!(whole::<[u8; 2]>(&[0x81, 1]).is_err());
        assert!(whole::<[u8; 2]>(&[0x83, 1, 2, 3]).is_err());
    }

    #[test]
    fn what_follows_an_item_is_left() {
        assert_eq!(read::<u8>(&[7, 8, 9]), Ok((7, &[8, 9][..])));
    }

    #[test]
    fn every_half_float_is_read_as_it_is_meant() {
        for bits in 0..=u16::MAX {
            let bytes = [&[0xf9][..], &bits.to_be_bytes()].concat();
            let theirs: f64 = ciborium::from_reader(&bytes[..]).expect("a float");
            let ours: f64 = whole(&bytes).expect("a float");
            let same = ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan());
            assert!(same, "{bits:#x}: {ours} {theirs}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            (text, signed, unsigned, float, flag) in any::<(String, i64, u64, f64, bool)>(),
            (maybe, pairs, byte) in any::<(Option<u32>, Vec<(u64, u64)>, [u8; 3])>(),
            (map, address) in any::<(BTreeMap<String, i8>, Option<IpAddr>)>(),
            (outside, inside) in (outside(), inside()),
        ) {
            let shapes = Shapes {
                text: text.clone(), borrowed: &text, signed, unsigned, float, flag, maybe, pairs, byte, map,
                address, outside, inside, wrapped: Wrapped(unsigned),
            };
            let bytes = written(&shapes);
            prop_assert_eq!(read::<Shapes<'_>>(&bytes), Ok((shapes, &[][..])));
            // A reader that ignores the item skips all of its bytes.
            prop_assert_eq!(read::<IgnoredAny>(&bytes).map(|(_, rest)| rest.len()), Ok(0));
        }

        #[test]
        fn any_bytes_are_refused_or_read_as_the_writer_would_read_them(
            mut bytes in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            // Floats of 16 bits have their own test, and NaN has several encodings.
            bytes.retain(|byte| *byte != 0xf9);
            if let Ok(ours) = whole::<ciborium::Value>(&bytes) {
                let theirs: ciborium::Value = ciborium::from_reader(&bytes[..]).expect("as well");
                prop_assert_eq!(written(&ours), written(&theirs));
            }
            let _ = whole::<Shapes<'_>>(&bytes);
            let _ = whole::<Vec<Option<Outside>>>(&bytes);
            let _ = whole::<Inside>(&bytes);
        }

        #[test]
        fn a_value_with_a_byte_changed_is_survived(at: prop::sample::Index, byte: u8, text: String) {
            let mut bytes = written(&Shapes { borrowed: &text, ..Shapes::default() });
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = whole::<Shapes<'_>>(&bytes);
        }
    }
}
