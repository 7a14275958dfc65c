//! Derived figures: the numbers that sum up a measurement.
//!
//! A figure is one row of a table here and the function that derives it. Bounds (`--expect`), comparisons, repeated
//! runs and `figures` in JSON use these rows. Only headlines of views name goodput and round trips themselves. A
//! [`Summary`] holds the figures of one measurement; it is derived from a record, or read from a result of another
//! program.

mod derive;
mod spread;
mod summary;
mod unit;
mod value;

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

pub use derive::percentiles;
pub use spread::Spread;
pub use summary::{Entry, Summary};
pub use unit::Unit;
pub use value::{Evidence, Subject, Value};

use derive::Source;

/// Whether higher or lower values of a figure are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Higher values are better.
    Higher,
    /// Lower values are better.
    Lower,
}

/// How the values of several runs are merged into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// The median of the runs: one failed run does not change it much.
    Median,
    /// The events of all runs over all that could have been one: a rare event needs the counts of all runs.
    Pooled,
}

/// One row of the table of figures.
pub struct Figure {
    /// Name in bounds, such as `goodput`. It never changes.
    pub id: &'static str,
    /// Name in JSON, with its unit, such as `goodput_bps`. It never changes.
    pub key: &'static str,
    /// Name of the figure on screen.
    pub label: &'static str,
    /// Unit of the values.
    pub unit: Unit,
    /// Whether higher or lower values are better.
    pub better: Better,
    /// How the values of several runs are merged.
    pub merge: Merge,
    /// Whether the figure has a value for each of [`PERCENTILES`](crate::model::PERCENTILES).
    pub percentiles: bool,
    /// Whether the figure has a value for each end.
    pub ends: bool,
    /// Definition of the figure, as the user reads it.
    pub doc: &'static str,
    derive: fn(&Source<'_>) -> Vec<Entry>,
}

impl PartialEq for Figure {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl fmt::Debug for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

macro_rules! figures {
    ($(#[$about:meta])* $all:ident: $($ident:ident = $id:literal $key:literal $label:literal $unit:ident $better:ident $merge:ident $each:ident
       $derive:ident $doc:literal;)*) => {
        $(#[doc = $doc] pub static $ident: Figure = Figure {
            id: $id, key: $key, label: $label, unit: Unit::$unit, better: Better::$better, merge: Merge::$merge,
            percentiles: figures!(@percentiles $each), ends: figures!(@ends $each), doc: $doc,
            derive: derive::$derive,
        };)*
        $(#[$about])*
        pub static $all: &[&Figure] = &[$(&$ident),*];
    };
    (@percentiles percentiles) => { true };
    (@percentiles $each:ident) => { false };
    (@ends ends) => { true };
    (@ends $each:ident) => { false };
}

figures! {
    /// Every figure of a run, in the order in which views show them.
    ALL:
    GOODPUT = "goodput" "goodput_bps" "goodput" BitsPerSecond Higher Median single goodput
        "Payload that the receiving program received, in a second.";
    OPERATIONS = "operations" "operations_per_sec" "operations" PerSecond Higher Median single operations
        "Operations that were completed, in a second, of a load that keeps a number of them in flight.";
    MESSAGES = "messages" "messages_per_sec" "messages" PerSecond Higher Median single messages
        "Messages that the receiving program received, in a second: datagrams, or messages of a transport that counts them.";
    LATENCY = "latency" "round_trip_ns" "round trip" Nanos Lower Median percentiles round_trips
        "Round-trip times: on the idle path, or under the load of a direction.";
    RETRANSMITS = "retransmits" "retransmitted_share" "retransmitted" Share Lower Pooled single retransmits
        "Segments that the sender retransmitted, as a share of those it sent.";
    LOSS = "loss" "lost_share" "lost" Share Lower Pooled single loss
        "Datagrams that were sent and not received, as a share of those sent.";
    CPU = "cpu" "cpu_ns_per_byte" "CPU time" NanosPerByte Lower Median ends cpu
        "CPU time of the threads of one end for each byte of payload that they sent or received.";
}

figures! {
    /// Further figures, which only points of studies have. There are no bounds for them.
    OF_POINTS:
    LEAST = "least" "least_round_trip_ns" "least" Nanos Lower Median single none
        "Shortest round trip, to the nanosecond.";
    MEAN = "mean" "mean_round_trip_ns" "mean" Nanos Lower Median single none
        "Mean of all round trips, to the nanosecond.";
    DEVIATION = "deviation" "round_trip_deviation_ns" "std dev" Nanos Lower Median single none
        "Standard deviation of the round trips.";
    MOST = "most" "most_round_trip_ns" "most" Nanos Lower Median single none
        "Longest round trip, to the nanosecond.";
    DELAYED = "delayed" "delayed_ns" "delayed" Nanos Lower Median single none
        "Time that the typical round trip waited for an acknowledgement that the far end delayed.";
    COPIED = "copied" "copied_share" "copied" Share Lower Median single none
        "Sends without a copy that the kernel copied anyway, as a share of all of them.";
    CEILING = "ceiling" "ceiling_share" "of ceiling" Share Higher Median single none
        "Goodput as a share of the lowest known ceiling.";
}

/// The figure whose name in bounds is `id`.
pub fn figure(id: &str) -> Option<&'static Figure> {
    ALL.iter().copied().find(|figure| figure.id == id)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        for name in [|f: &Figure| f.id, |f: &Figure| f.key, |f: &Figure| f.label] {
            let all = || ALL.iter().chain(OF_POINTS);
            let names: HashSet<&str> = all().map(|figure| name(figure)).collect();
            assert_eq!(names.len(), all().count());
        }
        assert_eq!(figure("loss"), Some(&LOSS));
        assert_eq!(figure("godput"), None);
    }
}
