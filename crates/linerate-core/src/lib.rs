//! The pure part of linerate.
//!
//! This crate owns what a run *means*: the plan, the record and its frames, the messages between
//! peers, the statistics, the model that is derived from a record, the causes that explain it and
//! the verdict. It does no I/O, has no clock and starts no thread: the same record gives the same
//! answer, always. Whatever decodes bytes from outside lives here, and is fuzzed.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod advice;
pub mod application;
pub mod case;
pub mod causes;
mod cbor;
pub mod ceiling;
pub mod change;
pub mod diff;
pub mod explain;
pub mod fabric;
pub mod factor;
pub mod facts;
pub mod figure;
pub mod guide;
pub mod iperf3;
pub mod metric;
pub mod model;
pub mod parse;
pub mod path;
pub mod placement;
pub mod plan;
pub mod record;
pub mod reported;
pub mod search;
pub mod shell;
mod signs;
pub mod stats;
pub mod sweep;
pub mod transport;
pub mod trial;
pub mod units;
pub mod verdict;
pub mod wire;
