//! NVMe disks with one path and with several paths, as old and new kernels show them.

use linerate_facts::block::{Path, Storage};
use linerate_facts::{Inventory, odd};

use super::{QUEUE, ROOT, host, of, tree, whats};

const SUBSYSTEM: &str = "sys/devices/virtual/nvme-subsystem/nvme-subsys3";
const CONTROLLERS: &str = "sys/devices/virtual/nvme-fabrics/ctl";
/// Paths to the namespaces of the subsystem: controller, namespace, and ANA state. One namespace has a single path.
const WAYS: [(u32, u32, &str); 5] = [
    (3, 1, "optimized"),
    (10, 1, "non-optimized"),
    (3, 2, "optimized"),
    (10, 2, "optimized"),
    (10, 3, "optimized"),
];

/// Paths and contents of files in a tree. A content that begins with `->` makes a symbolic link.
type Files = Vec<(String, String)>;

/// Makes a block device in `folder`, and the link to it from the class of block devices.
fn device(folder: &str, above: &str, own: &[(&str, &str)]) -> Files {
    let name = folder.rsplit('/').next().unwrap();
    let place = folder.trim_start_matches("sys/");
    let mut files = vec![
        (format!("{folder}/size"), "2048\n".to_owned()),
        (format!("{folder}/device"), format!("->../../{above}")),
        (format!("sys/class/block/{name}"), format!("->../../{place}")),
    ];
    let own = own.iter().map(|(file, text)| (*file, *text));
    files.extend(own.map(|(file, text)| (format!("{folder}/{file}"), format!("{text}\n"))));
    files
}

fn controller(number: u32) -> Files {
    let folder = format!("{CONTROLLERS}/nvme{number}");
    let place = folder.trim_start_matches("sys/");
    let file = |file: &str, text: String| (format!("{folder}/{file}"), format!("{text}\n"));
    vec![
        file("uevent", format!("DEVNAME=nvme{number}")),
        file("transport", "tcp".to_owned()),
        file("address", format!("traddr=192.0.2.{number},trsvcid=4420")),
        file("state", "live".to_owned()),
        (format!("sys/class/nvme/nvme{number}"), format!("->../../{place}")),
        (format!("{SUBSYSTEM}/nvme{number}"), format!("->../../nvme-fabrics/ctl/nvme{number}")),
    ]
}

/// Three namespaces of a subsystem, reached by two TCP controllers. Linux 6.12 shows whether a device is hidden, and
/// shows no number of requests for these disks.
fn fabric(has_hidden: bool, has_requests: bool) -> Storage {
    let mut files: Files = [controller(3), controller(10)].concat();
    files.push((format!("{SUBSYSTEM}/iopolicy"), "numa\n".to_owned()));
    files.push(("proc/self/mountinfo".to_owned(), ROOT.to_owned()));
    for number in 1..=3 {
        let folder = format!("{SUBSYSTEM}/nvme3n{number}");
        files.extend(device(&folder, "nvme-subsys3", &[("hidden", "0")]));
        let of_requests = |file: &str| ["nr_requests", "scheduler"].contains(&file);
        let queue = QUEUE.iter().filter(|(file, _)| has_requests || !of_requests(file));
        files.extend(
            queue.map(|(file, text)| (format!("{folder}/queue/{file}"), (*text).to_owned())),
        );
    }
    for (of, number, ana) in WAYS {
        let folder = format!("{CONTROLLERS}/nvme{of}/nvme3c{of}n{number}");
        let own = [("hidden", "1"), ("ana_state", ana)];
        files.extend(device(&folder, &format!("nvme{of}"), &own));
    }
    files.retain(|(path, _)| has_hidden || !path.ends_with("/hidden"));
    let files: Vec<_> = files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
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
            let way = |p: &Path| (p.device.clone(), p.name.clone(), p.ana_state.clone());
            paths.map(way).collect::<Vec<_>>()
        };
        let own = |way: &str, controller: &str, ana: &str| {
            (way.to_owned(), controller.to_owned(), ana.to_owned())
        };
        assert_eq!(
            ways(0),
            [own("nvme3c3n1", "nvme3", "optimized"), own("nvme3c10n1", "nvme10", "non-optimized")]
        );
        assert_eq!(ways(1).len(), 2);
        // A controller of the subsystem may lack some of its namespaces.
        assert_eq!(ways(2), [own("nvme3c10n3", "nvme10", "optimized")]);
        let first = &storage.devices[0].paths[0];
        assert_eq!(
            (first.transport.as_str(), first.address.as_str(), first.state.as_str()),
            ("tcp", "traddr=192.0.2.3,trsvcid=4420", "live")
        );
        let disk = &storage.devices[0];
        assert_eq!((disk.transport.as_str(), disk.policy.as_str()), ("tcp", "numa"));
        assert_eq!(disk.queue.requests, has_requests.then_some(256));
        let machine = Inventory { storage, ..Inventory::default() };
        let reported: Vec<_> = odd::find(&machine).into_iter().map(|o| o.subject).collect();
        assert_eq!(reported, ["nvme3n2"], "one way each of the others is used anyway");
    }
}

#[test]
fn the_ways_of_a_card_with_two_ports_have_their_places() {
    let controller = |name: &str, address: &str| {
        [("transport", "pcie\n"), ("address", address), ("state", "live\n")]
            .map(|(file, text)| (format!("sys/class/nvme/{name}/{file}"), text.to_owned()))
    };
    let others =
        [controller("nvme0", "0000:01:00.0\n"), controller("nvme1", "0000:02:00.0\n")].concat();
    let others: Vec<_> = others.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
    let hidden: &[(&str, &str)] = &[("hidden", "1\n"), ("ana_state", "optimized\n")];
    let devices: [(&str, &[(&str, &str)]); 4] = [
        ("nvme0n1", &[("hidden", "0\n"), ("device/iopolicy", "round-robin\n")]),
        ("nvme0c0n1", hidden),
        ("nvme0c1n1", hidden),
        // The kernel does not hide this device.
        ("nvme2c2n1", &[("hidden", "0\n")]),
    ];
    let storage = host(&devices, &others, ROOT);
    let [disk, other] = &storage.devices[..] else { panic!("{:?}", storage.devices) };
    assert_eq!((disk.name.as_str(), other.name.as_str()), ("nvme0n1", "nvme2c2n1"));
    let places: Vec<_> = disk.paths.iter().map(|p| p.address.as_str()).collect();
    assert_eq!(places, ["0000:01:00.0", "0000:02:00.0"]);
    assert_eq!((disk.pci.as_str(), disk.transport.as_str()), ("0000:01:00.0", "pcie"));
}

#[test]
fn a_disk_with_one_way_hangs_on_the_controller_that_it_names() {
    let disk: [(&str, &[(&str, &str)]); 1] =
        [("nvme0n1", &[("hidden", "0\n"), ("device/uevent", "DEVNAME=nvme4\n")])];
    let others =
        [("sys/class/nvme/nvme0/transport", "tcp\n"), ("sys/class/nvme/nvme4/transport", "rdma\n")];
    let storage = host(&disk, &others, ROOT);
    let disk = &storage.devices[0];
    assert_eq!((disk.paths.len(), disk.paths[0].name.as_str()), (1, "nvme4"));
    assert_eq!((disk.transport.as_str(), disk.paths[0].device.as_str()), ("rdma", ""));
}

#[test]
fn a_number_of_requests_that_cannot_be_read_is_a_gap() {
    let disk: [(&str, &[(&str, &str)]); 1] = [("sda", &[("device/scsi_device/3:0:0:0/x", "x")])];
    let ahci = [("sys/class/scsi_host/host3/proc_name", "ahci\n")];
    assert_eq!(whats(&host(&disk, &ahci, ROOT)), [""; 0]);
    let bad: [(&str, &[(&str, &str)]); 1] =
        [("sda", &[("device/scsi_device/3:0:0:0/x", "x"), ("queue/nr_requests", "many\n")])];
    assert_eq!(whats(&host(&bad, &ahci, ROOT)), ["facts.block.queue"]);
}
