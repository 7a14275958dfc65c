//! Outputs of other programs in a record.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::reported::{Note, Outcome, Tool};
use linerate_plan::path::Side;

/// Outputs of other programs about one path, and what the user claimed about them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Imported {
    /// Title of the import; empty if the user gave none.
    pub title: String,
    /// Claims about the results, as typed.
    pub claims: Vec<String>,
    /// The ports that carry the path, the near one and the far one, if the user named them.
    pub ports: [Option<String>; 2],
    /// The outputs, in the order in which they were given.
    pub files: Vec<Import>,
}

/// An output of another program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Import {
    /// The name of the file, without its folder.
    pub name: String,
    /// The host that facts in the output are about. Results call it the client, or the disk's host.
    pub side: Side,
    /// The part of the output that the record keeps.
    pub kept: Kept,
}

/// The part of an output that a record keeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// All bytes of the output. Results are read from them again each time.
    Bytes(Blob),
    /// The results as the program reported them, if the output is too long to be kept.
    Rows {
        /// The program and format of the output, in words.
        label: String,
        /// The program that reported the results.
        tool: Tool,
        /// The results that the program reported.
        results: Vec<Outcome>,
        /// Notes about the results.
        notes: Vec<Note>,
    },
}

/// Bytes, which a record stores as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob(pub Vec<u8>);

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Blob;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Blob, E> {
                Ok(Blob(bytes.to_vec()))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Blob, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = seq.next_element()? {
                    bytes.push(byte);
                }
                Ok(Blob(bytes))
            }
        }
        from.deserialize_bytes(Visitor)
    }
}
