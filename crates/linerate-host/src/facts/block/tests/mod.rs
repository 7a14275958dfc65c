use std::path::Path;

use linerate_facts::block::{Layer, Storage};
use linerate_units::Bytes;

use super::storage;
use crate::testing::tree;
use crate::{Capture, Live, Replay};

mod nvme;

fn of(root: &Path) -> Storage {
    let machine = Capture::new(Live::under(root).unwrap());
    let live = storage(&machine);
    assert_eq!(storage(&Replay::new(machine.captured())), live, "a replay");
    live
}

/// Files that are read in the queue folder of each device except partitions.
const QUEUE: [(&str, &str); 8] = [
    ("rotational", "0\n"),
    ("nr_requests", "256\n"),
    ("max_sectors_kb", "512\n"),
    ("max_hw_sectors_kb", "1024\n"),
    ("read_ahead_kb", "128\n"),
    ("logical_block_size", "512\n"),
    ("physical_block_size", "4096\n"),
    ("scheduler", "none [mq-deadline] kyber\n"),
];

/// Reads a tree of devices of 1 MiB, each with its own files, and with these other files and mounts.
fn host(devices: &[(&str, &[(&str, &str)])], others: &[(&str, &str)], mounts: &str) -> Storage {
    let mut files: Vec<(String, String)> = Vec::new();
    for (at, (name, own)) in devices.iter().enumerate() {
        let folder = format!("sys/class/block/{name}");
        files.push((format!("{folder}/size"), "2048\n".to_owned()));
        files.push((format!("{folder}/dev"), format!("8:{at}\n")));
        let queue = QUEUE.iter().map(|(file, text)| (format!("{folder}/queue/{file}"), *text));
        files.extend(queue.map(|(path, text)| (path, text.to_owned())));
        let own = own.iter().map(|(file, text)| (format!("{folder}/{file}"), (*text).to_owned()));
        files.extend(own);
    }
    files.extend(others.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())));
    files.push(("proc/self/mountinfo".to_owned(), mounts.to_owned()));
    let files: Vec<_> = files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
    of(tree(&files).path())
}

fn whats(storage: &Storage) -> Vec<&str> {
    storage.gaps.iter().map(|g| g.what.as_str()).collect()
}

const ROOT: &str = "27 1 8:0 / / rw - ext4 /dev/x rw\n";

/// A logical volume on an encrypted device on a RAID of two disks, and a loop device whose file is on that volume.
fn layered() -> Storage {
    let devices: [(&str, &[(&str, &str)]); 6] = [
        ("dm-0", &[("slaves/dm-1/x", "x"), ("dm/uuid", "LVM-abc\n"), ("dm/name", "vg-home\n")]),
        ("dm-1", &[("slaves/md0/x", "x"), ("dm/uuid", "CRYPT-LUKS2-x\n"), ("dm/name", "c\n")]),
        ("md0", &[("slaves/sda/x", "x"), ("slaves/sdb/x", "x")]),
        ("sda", &[("device/queue_depth", "32\n"), ("device/model", "DISK \n")]),
        ("sdb", &[]),
        ("loop0", &[("loop/backing_file", "/home/image\n")]),
    ];
    let mounts = "27 1 0:40 / / rw - btrfs /dev/sda rw\n\
        28 27 0:41 / /home rw - btrfs /dev/mapper/vg-home rw\n\
        29 27 0:3 / /proc rw - proc proc rw\n\
        30 27 0:42 / /far rw - nfs4 srv:/x rw,vers=4.2,addr=192.0.2.1,proto=rdma,nconnect=4\n";
    host(&devices, &[], mounts)
}

#[test]
fn layers_are_walked_down_to_the_disks() {
    use Layer::{Crypt, Disk, Loop, Raid, Volume};
    let storage = layered();
    assert_eq!(whats(&storage), ["facts.block.transport"]);
    assert!(storage.gaps[0].why.contains("sda, sdb is attached"), "{}", storage.gaps[0].why);
    let layers: Vec<_> = storage.devices.iter().map(|d| d.layer).collect();
    assert_eq!(layers, [Volume, Crypt, Loop, Raid, Disk, Disk]);
    let leaves =
        |name: &str| storage.leaves(name).iter().map(|d| d.name.clone()).collect::<Vec<_>>();
    assert_eq!(leaves("dm-0"), ["sda", "sdb"]);
    assert_eq!(leaves("loop0"), ["sda", "sdb"]);
    let kinds: Vec<_> =
        storage.filesystems.iter().map(|f| (f.point.as_str(), f.device.as_str())).collect();
    assert_eq!(kinds, [("/", "sda"), ("/home", "dm-0"), ("/far", "")]);
    assert_eq!(storage.filesystems[2].options, ["vers=4.2", "proto=rdma", "nconnect=4"]);
}

#[test]
fn the_ways_of_a_multipath_device_are_its_disks_with_their_state() {
    let devices: [(&str, &[(&str, &str)]); 3] = [
        (
            "dm-0",
            &[
                ("slaves/sda/x", "x"),
                ("slaves/sdb/x", "x"),
                ("dm/uuid", "mpath-3600\n"),
                ("dm/name", "mpatha\n"),
            ],
        ),
        ("sda", &[("device/state", "running\n"), ("device/queue_depth", "64\n")]),
        ("sdb", &[("device/state", "offline\n")]),
    ];
    let storage = host(&devices, &[], ROOT);
    let ways = &storage.device("dm-0").unwrap().paths;
    let states: Vec<_> = ways.iter().map(|p| (p.name.as_str(), p.is_live())).collect();
    assert_eq!(states, [("sda", Some(true)), ("sdb", Some(false))]);
    assert_eq!(ways[0].depth, Some(64));
    assert!(whats(&storage).contains(&"facts.block.policy"));
}

#[test]
fn a_disk_has_its_size_and_the_limits_of_its_queue() {
    let storage = layered();
    let sda = storage.device("sda").unwrap();
    assert_eq!((sda.size, sda.model.as_str()), (Some(Bytes(1 << 20)), "DISK"));
    assert_eq!((sda.queue.depth, sda.queue.requests), (Some(32), Some(256)));
    assert_eq!((sda.queue.scheduler.as_str(), sda.queue.rotational), ("mq-deadline", Some(false)));
    assert_eq!(sda.queue.largest, Some(Bytes(512 << 10)));
}

#[test]
fn a_partition_lies_on_the_disk_whose_folder_holds_its_own() {
    let storage = of(tree(&[
        ("sys/devices/ata1/sda/uevent", "DEVNAME=sda\n"),
        ("sys/devices/ata1/sda/sda1/size", "8\n"),
        ("sys/devices/ata1/sda/sda1/partition", "1\n"),
        ("sys/class/block/sda1", "->../../devices/ata1/sda/sda1"),
        ("proc/self/mountinfo", ROOT),
    ])
    .path());
    assert_eq!(
        (storage.devices[0].layer, &storage.devices[0].below[..]),
        (Layer::Partition, &["sda".to_owned()][..])
    );
}

#[test]
fn the_way_to_a_disk_is_told_by_its_host() {
    for (file, text, want) in [
        ("sys/class/scsi_host/host3/proc_name", "ahci\n", "ata"),
        ("sys/class/scsi_host/host3/proc_name", "iscsi_iser\n", "iser"),
        ("sys/class/scsi_host/host3/local_ib_device", "mlx5_0\n", "srp"),
        ("sys/class/fc_host/host3/port_state", "Online\n", "fc"),
        ("sys/class/sas_host/host3/x", "x\n", "sas"),
        ("sys/class/scsi_host/host4/proc_name", "ahci\n", ""),
    ] {
        let disk: [(&str, &[(&str, &str)]); 1] =
            [("sda", &[("device/scsi_device/3:0:0:0/x", "x")])];
        let storage = host(&disk, &[(file, text)], ROOT);
        assert_eq!(storage.devices[0].transport, want, "{file} {text}");
        assert_eq!(whats(&storage).len(), usize::from(want.is_empty()), "{file} {text}");
    }
    let guest: [(&str, &[(&str, &str)]); 1] =
        [("vda", &[("device/uevent", "DRIVER=virtio_blk\n")])];
    let storage = host(&guest, &[], ROOT);
    assert_eq!(storage.devices[0].transport, "virtio");
    assert_eq!(whats(&storage), ["facts.block.transport"]);
}

#[test]
fn an_nvme_disk_has_the_ways_of_its_subsystem_or_its_one_controller() {
    let controller = |name: &str, transport: &str, address: &str, node: &str| {
        [("transport", transport), ("address", address), ("numa_node", node), ("state", "live\n")]
            .map(|(file, text)| (format!("sys/class/nvme/{name}/{file}"), text.to_owned()))
    };
    let others = [
        controller("nvme0", "rdma\n", "traddr=192.0.2.1,trsvcid=4420\n", "-1\n"),
        controller("nvme1", "rdma\n", "traddr=192.0.2.2,trsvcid=4420\n", "1\n"),
        controller("nvme2", "pcie\n", "0000:01:00.0\n", "0\n"),
    ]
    .concat();
    let others: Vec<_> = others.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
    let devices: [(&str, &[(&str, &str)]); 2] = [
        (
            "nvme0n1",
            &[
                ("device/iopolicy", "numa\n"),
                ("device/nvme0/x", "x"),
                ("device/nvme1/x", "x"),
                ("device/nvme0n1/x", "x"),
            ],
        ),
        ("nvme2n1", &[("device/transport", "pcie\n")]),
    ];
    let storage = host(&devices, &others, ROOT);
    let [fabric, local] = &storage.devices[..] else { panic!("{:?}", storage.devices) };
    assert_eq!((fabric.transport.as_str(), fabric.policy.as_str()), ("rdma", "numa"));
    let paths: Vec<_> = fabric.paths.iter().map(|p| (p.name.as_str(), p.node)).collect();
    assert_eq!(paths, [("nvme0", None), ("nvme1", Some(1))]);
    assert_eq!((local.transport.as_str(), local.pci.as_str()), ("pcie", "0000:01:00.0"));
    assert_eq!((local.paths.len(), local.paths[0].state.as_str()), (1, "live"));
}

#[test]
fn an_nvme_disk_whose_controller_is_not_shown_still_has_its_place() {
    let storage = of(tree(&[
        ("sys/devices/0000:00:02.0/uevent", "PCI_SLOT_NAME=0000:00:02.0\n"),
        ("sys/devices/0000:00:02.0/block/nvme0n1/size", "8\n"),
        ("sys/devices/0000:00:02.0/block/nvme0n1/device", "->../../../gone"),
        ("sys/class/block/nvme0n1", "->../../devices/0000:00:02.0/block/nvme0n1"),
        ("proc/self/mountinfo", ROOT),
    ])
    .path());
    let disk = &storage.devices[0];
    assert_eq!((disk.pci.as_str(), disk.paths.len()), ("0000:00:02.0", 0));
    // A disk at a PCI function itself is not reached through a fabric.
    assert_eq!(disk.transport, "pcie");
    assert_eq!(whats(&storage), ["facts.block.queue"]);
}

#[test]
fn a_disk_without_a_host_is_known_by_the_function_that_it_hangs_on() {
    for (driver, class, want) in [
        ("ahci", "0x010601", "ata"),
        ("ahci", "0x010400", "ata"),
        ("ata_piix", "0x01018f", "ata"),
        ("megaraid_sas", "0x010400", "raid"),
        ("mpt3sas", "0x010700", ""),
    ] {
        let uevent = format!("DRIVER={driver}\nPCI_SLOT_NAME=0000:01:00.0\n");
        let storage = of(tree(&[
            ("sys/devices/0000:01:00.0/uevent", uevent.as_str()),
            ("sys/devices/0000:01:00.0/class", class),
            ("sys/devices/0000:01:00.0/block/sda/size", "8\n"),
            ("sys/bus/pci/devices/0000:01:00.0", "->../../../devices/0000:01:00.0"),
            ("sys/class/block/sda", "->../../devices/0000:01:00.0/block/sda"),
            ("proc/self/mountinfo", ROOT),
        ])
        .path());
        assert_eq!(storage.devices[0].transport, want, "{driver} {class}");
        let reported = whats(&storage).contains(&"facts.block.transport");
        assert_eq!(reported, want != "ata", "{driver} {class}");
    }
}

#[test]
fn devices_that_hold_nothing_are_left_out_and_those_that_went_away_share_a_gap() {
    let storage = of(tree(&[
        ("sys/class/block/loop0/size", "0\n"),
        ("sys/class/block/sda", "->../../gone"),
        ("sys/class/block/sdb/size", "->size"),
        ("proc/self/mountinfo", "27 1 8:0 /"),
    ])
    .path());
    assert_eq!(storage.devices, []);
    assert_eq!(whats(&storage), ["facts.block.size", "facts.filesystems"]);
    let why = &storage.gaps[0].why;
    assert!(why.contains("sda, sdb:") && !why.contains("loop0"), "{why}");
}

#[test]
fn a_disk_without_the_limits_of_its_queue_has_one_gap() {
    let storage = of(tree(&[
        ("sys/class/block/sda/size", "8\n"),
        ("sys/class/block/ram0/size", "8\n"),
        ("proc/self/mountinfo", ROOT),
    ])
    .path());
    assert_eq!(storage.devices.len(), 2);
    assert_eq!(whats(&storage), ["facts.block.queue", "facts.block.transport"]);
}

#[test]
fn a_container_without_sys_has_one_gap_for_its_disks() {
    let storage = of(tree(&[("proc/self/mountinfo", ROOT)]).path());
    assert_eq!(whats(&storage), ["facts.block"]);
    assert_eq!(storage.filesystems.len(), 1);
}

#[test]
fn a_replay_of_this_machine_gives_the_same() {
    let machine = Capture::new(Live::new());
    let live = storage(&machine);
    assert_eq!(storage(&Replay::new(machine.captured())), live);
}
