//! Outputs of other programs in a record.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::reported::{Note, Outcome, Tool};
use linerate_plan::path::Side;

/// Outputs of other programs about one path, and what the user said of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Imported {
    /// Title of the whole; empty if it has none.
    pub title: String,
    /// Claims about the results, as typed.
    pub claims: Vec<String>,
    /// The ports that carry the path, near and far, if the user named them.
    pub ports: [Option<String>; 2],
    /// The outputs, in the order in which they were given.
    pub files: Vec<Import>,
}

/// An output of another program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Import {
    /// The name of the file, without its folder.
    pub name: String,
    /// The host that its facts are about, and that its results name the client or the disk's host.
    pub side: Side,
    /// What is kept of it.
    pub kept: Kept,
}

/// What is kept of an output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// Its bytes. Results are read from them again each time.
    Bytes(Blob),
    /// Its results as the program reported them, of an output that is too long to be kept.
    Rows {
        /// The form of the output, in words.
        label: String,
        /// The program that reported them.
        tool: Tool,
        /// The results.
        results: Vec<Outcome>,
        /// Notes about them.
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
