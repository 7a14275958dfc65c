//! Disks, devices built on them, and file systems in the JSON document of a machine.

use linerate_facts::block::{BlockDevice, FileSystem, Layer, Path, Storage};
use schemars::JsonSchema;
use serde::Serialize;

use super::{exact, known};

/// A disk.
#[derive(Serialize, JsonSchema)]
pub(super) struct DiskOut<'a> {
    /// Name of the disk: `nvme0n1`.
    name: &'a str,
    /// Model of the disk. Null if unknown.
    model: Option<&'a str>,
    /// Size of the disk. Null if unknown.
    size_bytes: Option<u64>,
    /// How the disk is attached: pcie, rdma, tcp, srp, iser, iscsi, fc, sas, usb, ata, virtio; raid for what a RAID
    /// controller shows: a disk, or a volume of several disks. Null if unknown.
    transport: Option<&'a str>,
    /// Scheduler of requests. Null if unknown.
    scheduler: Option<&'a str>,
    /// Number of requests that may wait in each hardware queue. Null if unknown.
    requests: Option<u64>,
    /// Number of commands that the device accepts at a time (SCSI). Null if unknown.
    depth: Option<u64>,
    /// Largest request that is set; larger ones are split. Null if unknown.
    largest_request_bytes: Option<u64>,
    /// Largest request that the hardware supports. Null if unknown.
    largest_hardware_request_bytes: Option<u64>,
    /// How much the kernel reads ahead. Null if unknown.
    read_ahead_bytes: Option<u64>,
    /// Size of a logical block. Null if unknown.
    logical_block_bytes: Option<u64>,
    /// Size of a physical block. Null if unknown.
    physical_block_bytes: Option<u64>,
    /// Mode of the write cache: `write back` or `write through`. Null if unknown.
    write_cache: Option<&'a str>,
    /// Whether the disk rotates. In a virtual machine this may be wrong. Null if unknown.
    rotational: Option<bool>,
    /// Number of known paths to the disk, including dead ones.
    ways: usize,
    /// The known paths to the disk.
    paths: Vec<PathOut<'a>>,
    /// How requests are distributed over the paths. Null if unknown.
    policy: Option<&'a str>,
    /// PCI address of the disk's device, or of the device that it is attached to. Null if there is none.
    pci: Option<&'a str>,
    /// NUMA node. Null if unknown or meaningless.
    node: Option<u32>,
}

/// A path to a block device.
#[derive(Serialize, JsonSchema)]
struct PathOut<'a> {
    /// Controller or disk that the path is: `nvme0`, `sdb`.
    name: &'a str,
    /// How the path is attached: pcie, rdma, tcp, fc, loop. Null if unknown.
    transport: Option<&'a str>,
    /// Address of the storage that the path leads to. Null if unknown.
    address: Option<&'a str>,
    /// State of the path; `live` or `running` if requests use it. Null if unknown.
    state: Option<&'a str>,
    /// ANA state of an NVMe path: optimized, non-optimized, inaccessible, persistent-loss, change. Null if unknown.
    ana_state: Option<&'a str>,
    /// Hidden block device of an NVMe path. Null if there is none.
    device: Option<&'a str>,
    /// Number of queues of the path. Null if unknown.
    queues: Option<u64>,
    /// Number of entries of each queue. Null if unknown.
    depth: Option<u64>,
    /// NUMA node. Null if unknown or meaningless.
    node: Option<u32>,
}

/// A block device that is built on disks, files or memory.
#[derive(Serialize, JsonSchema)]
pub(super) struct VolumeOut<'a> {
    /// Name of the device: `dm-0`.
    name: &'a str,
    #[schemars(extend("not" = { "const": Layer::Disk }))]
    layer: Layer,
    /// Name in the device mapper. Null if there is none.
    label: Option<&'a str>,
    /// Size of the device. Null if unknown.
    size_bytes: Option<u64>,
    /// Devices directly below that this device is built on.
    below: &'a [String],
    /// Disks at the bottom that this device is built on.
    disks: Vec<&'a str>,
    /// Paths to the device (multipath).
    paths: Vec<PathOut<'a>>,
}

/// A mounted file system.
#[derive(Serialize, JsonSchema)]
pub(super) struct FileSystemOut<'a> {
    /// Mount point of the file system.
    point: &'a str,
    /// Kind of the file system: `ext4`, `nfs4`.
    kind: &'a str,
    /// Block device. Null for a file system on another host.
    device: Option<&'a str>,
    /// Disks at the bottom that the file system is stored on.
    disks: Vec<&'a str>,
    /// Mount options that matter for speed. Empty for a local file system.
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

/// Block devices that are built on disks, files or memory.
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

/// Names of the disks below a device; empty if they are elsewhere or in memory.
fn disks<'a>(storage: &'a Storage, device: &str) -> Vec<&'a str> {
    let leaves = storage.leaves(device).into_iter();
    let disks = leaves.filter(|leaf| leaf.layer == Layer::Disk);
    disks.map(|disk| disk.name.as_str()).collect()
}
