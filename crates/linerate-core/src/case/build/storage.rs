//! Storage at the far end.

use super::{Builder, input};
use crate::ceiling::{Bounds, Cost, storage};
use crate::path::{Place, Stage};

impl Builder<'_> {
    /// The device, which serves both directions, and how deep it is kept busy.
    pub(super) fn storage(&mut self) {
        let there = &self.case.storage;
        let place = (Stage::Device, Place::Far);
        let per_operation = Cost {
            per_operation: Bounds::exact(1.0),
            ..Cost::default()
        };
        let size = there.operation.map(|s| s.to_string()).unwrap_or_default();
        if let Some(rate) = there.rate {
            let index = self.add("device", place, Bounds::exact(rate.0 as f64 / 8.0));
            self.note(index, vec![input("storage.rate", Some(rate), "")]);
            self.ask_both(index, Cost::bytes(Bounds::exact(1.0)), &rate.to_string());
        }
        if let Some(operations) = there.operations {
            let index = self.add("operations", place, Bounds::exact(f64::from(operations)));
            self.note(
                index,
                vec![input("storage.operations", Some(operations), "")],
            );
            self.ask_both(index, per_operation, &format!("{operations}/s x {size}"));
        }
        if let (Some(depth), Some(latency)) = (there.depth, there.latency) {
            let capacity = storage::operations(depth, latency.secs());
            let index = self.add("queue depth", (Stage::App, Place::Near), capacity);
            let inputs = vec![
                input("storage.depth", Some(depth), ""),
                input("storage.latency", Some(latency), ""),
            ];
            self.note(index, inputs);
            let words = format!("{depth} operations of {size} in {latency} each");
            self.ask_both(index, per_operation, &words);
        }
    }
}
