//! Writes ended in the memory of the host, before the disk had their data.

use super::page_cache::{cached, predict};
use crate::causes::prelude::*;

pub(crate) static CAUSE: Cause = Cause {
    id: "disk-dirty",
    name: "writes ended in memory, before the disk had their data",
    needs: &[Feature::Disk],
    stage: Stage::Memory,
    decided_by: &[Factor::PastCache],
    page: include_str!("../pages/disk-dirty.md"),
    check: |model, direction| {
        if direction == Direction::Reverse {
            return Err(clear("nothing was written"));
        }
        cached(model, direction)
    },
    predict,
    advice: |_, _| {
        vec![Advice::new(
            "to measure the disk, write past the page cache: leave out --buffered, or let each write wait for the disk \
             with --sync",
        )]
    },
    ..Cause::BASE
};
