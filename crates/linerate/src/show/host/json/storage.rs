//! Disks, what is made of them, and file systems.

use linerate_core::facts::block::{BlockDevice, FileSystem, Layer, Path, Storage};
use serde::Serialize;

use super::{exact, known};

#[derive(Serialize)]
pub(super) struct DiskOut<'a> {
    name: &'a str,
    model: Option<&'a str>,
    size_bytes: Option<u64>,
    transport: Option<&'a str>,
    scheduler: Option<&'a str>,
    requests: Option<u64>,
    depth: Option<u64>,
    largest_request_bytes: Option<u64>,
    largest_hardware_request_bytes: Option<u64>,
    read_ahead_bytes: Option<u64>,
    logical_block_bytes: Option<u64>,
    physical_block_bytes: Option<u64>,
    write_cache: Option<&'a str>,
    rotational: Option<bool>,
    ways: usize,
    paths: Vec<PathOut<'a>>,
    policy: Option<&'a str>,
    pci: Option<&'a str>,
    node: Option<u32>,
}

#[derive(Serialize)]
struct PathOut<'a> {
    name: &'a str,
    transport: Option<&'a str>,
    address: Option<&'a str>,
    state: Option<&'a str>,
    ana_state: Option<&'a str>,
    device: Option<&'a str>,
    queues: Option<u64>,
    depth: Option<u64>,
    node: Option<u32>,
}

#[derive(Serialize)]
pub(super) struct VolumeOut<'a> {
    name: &'a str,
    layer: Layer,
    label: Option<&'a str>,
    size_bytes: Option<u64>,
    below: &'a [String],
    disks: Vec<&'a str>,
    paths: Vec<PathOut<'a>>,
}

#[derive(Serialize)]
pub(super) struct FileSystemOut<'a> {
    point: &'a str,
    kind: &'a str,
    device: Option<&'a str>,
    disks: Vec<&'a str>,
    options: &'a [String],
}

pub(super) fn disk(disk: &BlockDevice) -> DiskOut<'_> {
    let queue = &disk.queue;
    DiskOut {
        name: &disk.name,
        model: known(&disk.model),
        size_bytes: disk.size.map(|s| exact(s.0)),
        transport: known(&disk.transport),
        scheduler: known(&queue.scheduler),
        requests: queue.requests.map(exact),
        depth: queue.depth.map(exact),
        largest_request_bytes: queue.largest.map(|l| exact(l.0)),
        largest_hardware_request_bytes: queue.largest_hardware.map(|l| exact(l.0)),
        read_ahead_bytes: queue.read_ahead.map(|l| exact(l.0)),
        logical_block_bytes: queue.logical_block.map(|l| exact(l.0)),
        physical_block_bytes: queue.physical_block.map(|l| exact(l.0)),
        write_cache: known(&queue.write_cache),
        rotational: queue.rotational,
        ways: disk.paths.len(),
        paths: disk.paths.iter().map(path).collect(),
        policy: known(&disk.policy),
        pci: known(&disk.pci),
        node: disk.node,
    }
}

fn path(path: &Path) -> PathOut<'_> {
    PathOut {
        name: &path.name,
        transport: known(&path.transport),
        address: known(&path.address),
        state: known(&path.state),
        ana_state: known(&path.ana_state),
        device: known(&path.device),
        queues: path.queues.map(exact),
        depth: path.depth.map(exact),
        node: path.node,
    }
}

/// What is made of disks, or of files and memory.
pub(super) fn volumes(storage: &Storage) -> Vec<VolumeOut<'_>> {
    let volumes = storage.devices.iter().filter(|d| d.layer != Layer::Disk);
    volumes.map(|device| volume(storage, device)).collect()
}

fn volume<'a>(storage: &'a Storage, device: &'a BlockDevice) -> VolumeOut<'a> {
    VolumeOut {
        name: &device.name,
        layer: device.layer,
        label: known(&device.label),
        size_bytes: device.size.map(|s| exact(s.0)),
        below: &device.below,
        disks: disks(storage, &device.name),
        paths: device.paths.iter().map(path).collect(),
    }
}

pub(super) fn filesystems(storage: &Storage) -> Vec<FileSystemOut<'_>> {
    let all = storage.filesystems.iter();
    all.map(|filesystem| self::filesystem(storage, filesystem))
        .collect()
}

fn filesystem<'a>(storage: &'a Storage, filesystem: &'a FileSystem) -> FileSystemOut<'a> {
    FileSystemOut {
        point: &filesystem.point,
        kind: &filesystem.kind,
        device: known(&filesystem.device),
        disks: disks(storage, &filesystem.device),
        options: &filesystem.options,
    }
}

/// The disks below a device; none for what lies elsewhere or in memory.
fn disks<'a>(storage: &'a Storage, device: &str) -> Vec<&'a str> {
    let leaves = storage.leaves(device).into_iter();
    let disks = leaves.filter(|leaf| leaf.layer == Layer::Disk);
    disks.map(|disk| disk.name.as_str()).collect()
}
