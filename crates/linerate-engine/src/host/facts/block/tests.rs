use std::path::Path;

use linerate_core::facts::block::{Layer, Path as Way, Storage};
use linerate_core::facts::{Inventory, odd};
use linerate_core::units::Bytes;

use super::storage;
use crate::host::testing::tree;
use crate::host::{Capture, Live, Replay};

fn of(root: &Path) -> Storage {
    let machine = Capture::new(Live::under(root).unwrap());
    let live = storage(&machine);
    assert_eq!(storage(&Replay::new(machine.captured())), live, "a replay");
    live
}

/// What is asked of all but partitions.
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

/// A tree of devices of 1 MiB, each with these files, and of these mounts.
fn host(devices: &[(&str, &[(&str, &str)])], others: &[(&str, &str)], mounts: &str) -> Storage {
    let mut files: Vec<(String, String)> = Vec::new();
    for (at, (name, own)) in devices.iter().enumerate() {
        let folder = format!("sys/class/block/{name}");
        files.push((format!("{folder}/size"), "2048\n".to_owned()));
        files.push((format!("{folder}/dev"), format!("8:{at}\n")));
        let queue = QUEUE
            .iter()
            .map(|(file, text)| (format!("{folder}/queue/{file}"), *text));
        files.extend(queue.map(|(path, text)| (path, text.to_owned())));
        let own = own
            .iter()
            .map(|(file, text)| (format!("{folder}/{file}"), (*text).to_owned()));
        files.extend(own);
    }
    files.extend(
        others
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned())),
    );
    files.push(("proc/self/mountinfo".to_owned(), mounts.to_owned()));
    let files: Vec<_> = files
        .iter()
        .map(|(p, t)| (p.as_str(), t.as_str()))
        .collect();
    of(tree(&files).path())
}

fn whats(storage: &Storage) -> Vec<&str> {
    storage.gaps.iter().map(|g| g.what.as_str()).collect()
}

const ROOT: &str = "27 1 8:0 / / rw - ext4 /dev/x rw\n";

/// A volume on encryption on a RAID of two disks, with a file in it that is a device.
fn layered() -> Storage {
    let devices: [(&str, &[(&str, &str)]); 6] = [
        (
            "dm-0",
            &[
                ("slaves/dm-1/x", "x"),
                ("dm/uuid", "LVM-abc\n"),
                ("dm/name", "vg-home\n"),
            ],
        ),
        (
            "dm-1",
            &[
                ("slaves/md0/x", "x"),
                ("dm/uuid", "CRYPT-LUKS2-x\n"),
                ("dm/name", "c\n"),
            ],
        ),
        ("md0", &[("slaves/sda/x", "x"), ("slaves/sdb/x", "x")]),
        (
            "sda",
            &[("device/queue_depth", "32\n"), ("device/model", "DISK \n")],
        ),
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
    assert!(
        storage.gaps[0].why.contains("sda, sdb is reached"),
        "{}",
        storage.gaps[0].why
    );
    let layers: Vec<_> = storage.devices.iter().map(|d| d.layer).collect();
    assert_eq!(layers, [Volume, Crypt, Loop, Raid, Disk, Disk]);
    let leaves = |name: &str| {
        storage
            .leaves(name)
            .iter()
            .map(|d| d.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(leaves("dm-0"), ["sda", "sdb"]);
    assert_eq!(leaves("loop0"), ["sda", "sdb"]);
    let kinds: Vec<_> = storage
        .filesystems
        .iter()
        .map(|f| (f.point.as_str(), f.device.as_str()))
        .collect();
    assert_eq!(kinds, [("/", "sda"), ("/home", "dm-0"), ("/far", "")]);
    assert_eq!(
        storage.filesystems[2].options,
        ["vers=4.2", "proto=rdma", "nconnect=4"]
    );
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
        (
            "sda",
            &[
                ("device/state", "running\n"),
                ("device/queue_depth", "64\n"),
            ],
        ),
        ("sdb", &[("device/state", "offline\n")]),
    ];
    let storage = host(&devices, &[], ROOT);
    let ways = &storage.device("dm-0").unwrap().paths;
    let states: Vec<_> = ways
        .iter()
        .map(|p| (p.name.as_str(), p.is_live()))
        .collect();
    assert_eq!(states, [("sda", Some(true)), ("sdb", Some(false))]);
    assert_eq!(ways[0].depth, Some(64));
    assert!(whats(&storage).contains(&"facts.block.policy"));
}

#[test]
fn a_disk_has_its_size_and_the_limits_of_its_queue() {
    let storage = layered();
    let sda = storage.device("sda").unwrap();
    assert_eq!(
        (sda.size, sda.model.as_str()),
        (Some(Bytes(1 << 20)), "DISK")
    );
    assert_eq!((sda.queue.depth, sda.queue.requests), (Some(32), Some(256)));
    assert_eq!(
        (sda.queue.scheduler.as_str(), sda.queue.rotational),
        ("mq-deadline", Some(false))
    );
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
        (
            "sys/class/scsi_host/host3/proc_name",
            "iscsi_iser\n",
            "iser",
        ),
        (
            "sys/class/scsi_host/host3/local_ib_device",
            "mlx5_0\n",
            "srp",
        ),
        ("sys/class/fc_host/host3/port_state", "Online\n", "fc"),
        ("sys/class/sas_host/host3/x", "x\n", "sas"),
        ("sys/class/scsi_host/host4/proc_name", "ahci\n", ""),
    ] {
        let disk: [(&str, &[(&str, &str)]); 1] =
            [("sda", &[("device/scsi_device/3:0:0:0/x", "x")])];
        let storage = host(&disk, &[(file, text)], ROOT);
        assert_eq!(storage.devices[0].transport, want, "{file} {text}");
        assert_eq!(
            whats(&storage).len(),
            usize::from(want.is_empty()),
            "{file} {text}"
        );
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
        [
            ("transport", transport),
            ("address", address),
            ("numa_node", node),
            ("state", "live\n"),
        ]
        .map(|(file, text)| (format!("sys/class/nvme/{name}/{file}"), text.to_owned()))
    };
    let others = [
        controller("nvme0", "rdma\n", "traddr=192.0.2.1,trsvcid=4420\n", "-1\n"),
        controller("nvme1", "rdma\n", "traddr=192.0.2.2,trsvcid=4420\n", "1\n"),
        controller("nvme2", "pcie\n", "0000:01:00.0\n", "0\n"),
    ]
    .concat();
    let others: Vec<_> = others
        .iter()
        .map(|(p, t)| (p.as_str(), t.as_str()))
        .collect();
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
    let [fabric, local] = &storage.devices[..] else {
        panic!("{:?}", storage.devices)
    };
    assert_eq!(
        (fabric.transport.as_str(), fabric.policy.as_str()),
        ("rdma", "numa")
    );
    let paths: Vec<_> = fabric
        .paths
        .iter()
        .map(|p| (p.name.as_str(), p.node))
        .collect();
    assert_eq!(paths, [("nvme0", None), ("nvme1", Some(1))]);
    assert_eq!(
        (local.transport.as_str(), local.pci.as_str()),
        ("pcie", "0000:01:00.0")
    );
    assert_eq!(
        (local.paths.len(), local.paths[0].state.as_str()),
        (1, "live")
    );
}

#[test]
fn an_nvme_disk_whose_controller_is_not_shown_still_has_its_place() {
    let storage = of(tree(&[
        (
            "sys/devices/0000:00:02.0/uevent",
            "PCI_SLOT_NAME=0000:00:02.0\n",
        ),
        ("sys/devices/0000:00:02.0/block/nvme0n1/size", "8\n"),
        (
            "sys/devices/0000:00:02.0/block/nvme0n1/device",
            "->../../../gone",
        ),
        (
            "sys/class/block/nvme0n1",
            "->../../devices/0000:00:02.0/block/nvme0n1",
        ),
        ("proc/self/mountinfo", ROOT),
    ])
    .path());
    let disk = &storage.devices[0];
    assert_eq!((disk.pci.as_str(), disk.paths.len()), ("0000:00:02.0", 0));
    // What hangs on a function of the bus itself is reached by no fabric.
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
            (
                "sys/bus/pci/devices/0000:01:00.0",
                "->../../../devices/0000:01:00.0",
            ),
            (
                "sys/class/block/sda",
                "->../../devices/0000:01:00.0/block/sda",
            ),
            ("proc/self/mountinfo", ROOT),
        ])
        .path());
        assert_eq!(storage.devices[0].transport, want, "{driver} {class}");
        let told = whats(&storage).contains(&"facts.block.transport");
        assert_eq!(told, want != "ata", "{driver} {class}");
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
    assert_eq!(
        whats(&storage),
        ["facts.block.queue", "facts.block.transport"]
    );
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

/// Two namespaces of a subsystem behind two controllers by TCP, and a third that one of them has; as Linux 6.12 shows
/// them, or an older one.
fn fabric(has_hidden: bool, has_requests: bool) -> Storage {
    let mut files: Vec<(String, String)> = Vec::new();
    let mut put = |path: String, text: &str| files.push((path, format!("{text}\n")));
    let (systems, fabrics) = (
        "sys/devices/virtual/nvme-subsystem",
        "sys/devices/virtual/nvme-fabrics/ctl",
    );
    put(format!("{systems}/nvme-subsys3/iopolicy"), "numa");
    put(format!("{systems}/nvme-subsys3/model"), "Linux");
    let mut disk = |folder: String, name: &str, hidden: &str, is_way: bool| {
        put(format!("{folder}/size"), "2048");
        if has_hidden {
            put(format!("{folder}/hidden"), hidden);
        }
        for (file, text) in QUEUE {
            let of_requests = ["nr_requests", "scheduler"].contains(&file);
            if is_way || has_requests || !of_requests {
                put(format!("{folder}/queue/{file}"), text.trim_end());
            }
        }
        let above = format!(
            "->../../devices/{}",
            folder.trim_start_matches("sys/devices/")
        );
        put(format!("sys/class/block/{name}"), &above);
    };
    for number in 1..=3 {
        let name = format!("nvme3n{number}");
        disk(format!("{systems}/nvme-subsys3/{name}"), &name, "0", false);
    }
    for (controller, number) in [(3, 1), (10, 1), (3, 2), (10, 2), (10, 3)] {
        let name = format!("nvme3c{controller}n{number}");
        disk(
            format!("{fabrics}/nvme{controller}/{name}"),
            &name,
            "1",
            true,
        );
    }
    for (folder, number) in [("nvme3", 3), ("nvme10", 10)] {
        let folder = format!("{fabrics}/{folder}");
        for (file, text) in [
            ("uevent", format!("DEVNAME=nvme{number}")),
            ("transport", "tcp".to_owned()),
            ("address", format!("traddr=192.0.2.{number},trsvcid=4420")),
            ("state", "live".to_owned()),
            ("queue_count", "3".to_owned()),
        ] {
            put(format!("{folder}/{file}"), &text);
        }
        put(
            format!("sys/class/nvme/nvme{number}"),
            &format!("->../../devices/virtual/nvme-fabrics/ctl/nvme{number}"),
        );
        put(
            format!("{systems}/nvme-subsys3/nvme{number}"),
            &format!("->../../nvme-fabrics/ctl/nvme{number}"),
        );
    }
    for number in 1..=3 {
        put(
            format!("{systems}/nvme-subsys3/nvme3n{number}/device"),
            "->../../nvme-subsys3",
        );
    }
    for (controller, number, ana) in [
        (3, 1, "optimized"),
        (10, 1, "non-optimized"),
        (3, 2, "optimized"),
        (10, 2, "optimized"),
        (10, 3, "optimized"),
    ] {
        let folder = format!("{fabrics}/nvme{controller}/nvme3c{controller}n{number}");
        put(format!("{folder}/ana_state"), ana);
        put(
            format!("{folder}/device"),
            &format!("->../../nvme{controller}"),
        );
    }
    put("proc/self/mountinfo".to_owned(), ROOT.trim_end());
    let files: Vec<_> = files
        .iter()
        .map(|(p, t)| {
            (
                p.as_str(),
                if t.starts_with("->") { t.trim_end() } else { t },
            )
        })
        .collect();
    of(tree(&files).path())
}

#[test]
fn hidden_devices_are_ways_to_a_disk_on_kernels_old_and_new() {
    for (has_hidden, has_requests) in [(true, false), (true, true), (false, true)] {
        let storage = fabric(has_hidden, has_requests);
        assert_eq!(whats(&storage), [""; 0], "{:?}", storage.gaps);
        let names: Vec<_> = storage.devices.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["nvme3n1", "nvme3n2", "nvme3n3"]);
        let ways = |disk: usize| {
            let paths = storage.devices[disk].paths.iter();
            let way = |p: &Way| (p.device.clone(), p.name.clone(), p.ana_state.clone());
            paths.map(way).collect::<Vec<_>>()
        };
        let own = |way: &str, controller: &str, ana: &str| {
            (way.to_owned(), controller.to_owned(), ana.to_owned())
        };
        assert_eq!(
            ways(0),
            [
                own("nvme3c3n1", "nvme3", "optimized"),
                own("nvme3c10n1", "nvme10", "non-optimized")
            ]
        );
        assert_eq!(ways(1).len(), 2);
        // A controller of the subsystem need not have each of its namespaces.
        assert_eq!(ways(2), [own("nvme3c10n3", "nvme10", "optimized")]);
        let first = &storage.devices[0].paths[0];
        assert_eq!(
            (
                first.transport.as_str(),
                first.address.as_str(),
                first.state.as_str()
            ),
            ("tcp", "traddr=192.0.2.3,trsvcid=4420", "live")
        );
        let disk = &storage.devices[0];
        assert_eq!(
            (disk.transport.as_str(), disk.policy.as_str()),
            ("tcp", "numa")
        );
        assert_eq!(disk.queue.requests, has_requests.then_some(256));
        let machine = Inventory {
            storage,
            ..Inventory::default()
        };
        let told: Vec<_> = odd::find(&machine).into_iter().map(|o| o.subject).collect();
        assert_eq!(
            told,
            ["nvme3n2"],
            "one way each of the others is used anyway"
        );
    }
}

#[test]
fn the_ways_of_a_card_with_two_ports_have_their_places() {
    let controller = |name: &str, address: &str| {
        [
            ("transport", "pcie\n"),
            ("address", address),
            ("state", "live\n"),
        ]
        .map(|(file, text)| (format!("sys/class/nvme/{name}/{file}"), text.to_owned()))
    };
    let others = [
        controller("nvme0", "0000:01:00.0\n"),
        controller("nvme1", "0000:02:00.0\n"),
    ]
    .concat();
    let others: Vec<_> = others
        .iter()
        .map(|(p, t)| (p.as_str(), t.as_str()))
        .collect();
    let hidden: &[(&str, &str)] = &[("hidden", "1\n"), ("ana_state", "optimized\n")];
    let devices: [(&str, &[(&str, &str)]); 4] = [
        (
            "nvme0n1",
            &[("hidden", "0\n"), ("device/iopolicy", "round-robin\n")],
        ),
        ("nvme0c0n1", hidden),
        ("nvme0c1n1", hidden),
        // Nothing says that this one is hidden.
        ("nvme2c2n1", &[("hidden", "0\n")]),
    ];
    let storage = host(&devices, &others, ROOT);
    let [disk, other] = &storage.devices[..] else {
        panic!("{:?}", storage.devices)
    };
    assert_eq!(
        (disk.name.as_str(), other.name.as_str()),
        ("nvme0n1", "nvme2c2n1")
    );
    let places: Vec<_> = disk.paths.iter().map(|p| p.address.as_str()).collect();
    assert_eq!(places, ["0000:01:00.0", "0000:02:00.0"]);
    assert_eq!(
        (disk.pci.as_str(), disk.transport.as_str()),
        ("0000:01:00.0", "pcie")
    );
}

#[test]
fn a_disk_with_one_way_hangs_on_the_controller_that_it_names() {
    let disk: [(&str, &[(&str, &str)]); 1] = [(
        "nvme0n1",
        &[("hidden", "0\n"), ("device/uevent", "DEVNAME=nvme4\n")],
    )];
    let others = [
        ("sys/class/nvme/nvme0/transport", "tcp\n"),
        ("sys/class/nvme/nvme4/transport", "rdma\n"),
    ];
    let storage = host(&disk, &others, ROOT);
    let disk = &storage.devices[0];
    assert_eq!(
        (disk.paths.len(), disk.paths[0].name.as_str()),
        (1, "nvme4")
    );
    assert_eq!(
        (disk.transport.as_str(), disk.paths[0].device.as_str()),
        ("rdma", "")
    );
}

#[test]
fn a_number_of_requests_that_cannot_be_read_is_a_gap() {
    let disk: [(&str, &[(&str, &str)]); 1] = [("sda", &[("device/scsi_device/3:0:0:0/x", "x")])];
    let ahci = [("sys/class/scsi_host/host3/proc_name", "ahci\n")];
    assert_eq!(whats(&host(&disk, &ahci, ROOT)), [""; 0]);
    let bad: [(&str, &[(&str, &str)]); 1] = [(
        "sda",
        &[
            ("device/scsi_device/3:0:0:0/x", "x"),
            ("queue/nr_requests", "many\n"),
        ],
    )];
    assert_eq!(whats(&host(&bad, &ahci, ROOT)), ["facts.block.queue"]);
}
