//! Disks, devices made of them, and file systems.

use linerate_facts::block::{BlockDevice, FileSystem, Layer, Path, Storage};
use schemars::JsonSchema;
use serde::Serialize;

use super::{exact, known};

/// A disk.
#[derive(Serialize, JsonSchema)]
pub(super) struct DiskOut<'a> {
    /// Name: `nvme0n1`.
    name: &'a str,
    /// Model. Null if unknown.
    model: Option<&'a str>,
    /// Size. Null if unknown.
    size_bytes: Option<u64>,
    /// How it is reached: pcie, rdma, tcp, srp, iser, iscsi, fc, sas, usb, ata, virtio; raid for what a RAID controller
    /// shows, a disk or a volume of several. Null if unknown.
    transport: Option<&'a str>,
    /// Scheduler. Null if unknown.
    scheduler: Option<&'a str>,
    /// Requests that may wait in each hardware queue. Null if unknown.
    requests: Option<u64>,
    /// Commands that the device accepts at a time (SCSI). Null if unknown.
    depth: Option<u64>,
    /// Largest request; larger ones are split. Null if unknown.
    largest_request_bytes: Option<u64>,
    /// Largest request of the hardware. Null if unknown.
    largest_hardware_request_bytes: Option<u64>,
    /// Read-ahead. Null if unknown.
    read_ahead_bytes: Option<u64>,
    /// Logical block. Null if unknown.
    logical_block_bytes: Option<u64>,
    /// Physical block. Null if unknown.
    physical_block_bytes: Option<u64>,
    /// `write back` or `write through`. Null if unknown.
    write_cache: Option<&'a str>,
    /// Whether it rotates. In a virtual machine this may be wrong. Null if unknown.
    rotational: Option<bool>,
    /// Number of known paths to it, including dead ones.
    ways: usize,
    /// The known paths to it.
    paths: Vec<PathOut<'a>>,
    /// How it chooses among them. Null if unknown.
    policy: Option<&'a str>,
    /// PCI address of the device that it is or is attached to. Null if there is none.
    pci: Option<&'a str>,
    /// NUMA node. Null if unknown or meaningless.
    node: Option<u32>,
}

/// A path to a block device.
#[derive(Serialize, JsonSchema)]
struct PathOut<'a> {
    /// Controller or disk: `nvme0`, `sdb`.
    name: &'a str,
    /// How it is reached: pcie, rdma, tcp, fc, loop. Null if unknown.
    transport: Option<&'a str>,
    /// Address that it leads to. Null if unknown.
    address: Option<&'a str>,
    /// State; `live` or `running` if requests use this path. Null if unknown.
    state: Option<&'a str>,
    /// ANA state of an NVMe path: optimized, non-optimized, inaccessible, persistent-loss, change. Null if unknown.
    ana_state: Option<&'a str>,
    /// Hidden block device of an NVMe path. Null if there is none.
    device: Option<&'a str>,
    /// Queues. Null if unknown.
    queues: Option<u64>,
    /// Entries of each queue. Null if unknown.
    depth: Option<u64>,
    /// NUMA node. Null if unknown or meaningless.
    node: Option<u32>,
}

/// A block device that is made of disks, files or memory.
#[derive(Serialize, JsonSchema)]
pub(super) struct VolumeOut<'a> {
    /// Name: `dm-0`.
    name: &'a str,
    #[schemars(extend("not" = { "const": Layer::Disk }))]
    layer: Layer,
    /// Name in the device mapper. Null if there is none.
    label: Option<&'a str>,
    /// Size. Null if unknown.
    size_bytes: Option<u64>,
    /// Devices that it is made of.
    below: &'a [String],
    /// Disks at the bottom.
    disks: Vec<&'a str>,
    /// Paths to it (multipath).
    paths: Vec<PathOut<'a>>,
}

/// A mounted file system.
#[derive(Serialize, JsonSchema)]
pub(super) struct FileSystemOut<'a> {
    /// Mount point.
    point: &'a str,
    /// Kind: `ext4`, `nfs4`.
    kind: &'a str,
    /// Block device. Null for a file system on another host.
    device: Option<&'a str>,
    /// Disks at the bottom.
    disks: Vec<&'a str>,
    /// Options that matter for speed, of a file system on another host.
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

/// Block devices that are made of disks, or of files and memory.
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
    all.map(|filesystem| self::filesystem(storage, filesystem)).collect()
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

/// The disks below a device; none if they are elsewhere or in memory.
fn disks<'a>(storage: &'a Storage, device: &str) -> Vec<&'a str> {
    let leaves = storage.leaves(device).into_iter();
    let disks = leaves.filter(|leaf| leaf.layer == Layer::Disk);
    disks.map(|disk| disk.name.as_str()).collect()
}
