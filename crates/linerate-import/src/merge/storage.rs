//! Joins facts of disks and file systems.

use linerate_facts::block::{BlockDevice, FileSystem, Storage};

use super::gaps;
use super::join::{Joiner, keyed, later};

pub(super) fn storage(joiner: &mut Joiner, into: &mut Storage, from: Storage) {
    keyed(
        &mut into.devices,
        from.devices,
        |device| device.name.clone(),
        |into, from| device(joiner, into, from),
    );
    let same = |fs: &FileSystem| fs.point.clone();
    keyed(&mut into.filesystems, from.filesystems, same, |into, from| *into = from);
    gaps(&mut into.gaps, from.gaps);
}

fn device(joiner: &mut Joiner, into: &mut BlockDevice, from: BlockDevice) {
    joiner.about(&into.name);
    joiner.text("model", &mut into.model, from.model);
    joiner.text("label", &mut into.label, from.label);
    joiner.text("transport", &mut into.transport, from.transport);
    joiner.text("policy", &mut into.policy, from.policy);
    let turns = from.queue.rotational;
    joiner.option("whether it turns", &mut into.queue.rotational, turns);
    // Programs round the size differently, so a difference gets no note.
    into.size = into.size.or(from.size);
    later(&mut into.layer, from.layer);
    if !from.paths.is_empty() {
        (into.paths, into.below) = (from.paths, from.below);
    }
}
