//! `linerate host` on trees with InfiniBand ports, disks with several paths, and processes in control groups.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::host::{json as shown, printed};

/// A tree of files; a text that starts with `->` makes a symbolic link.
pub(crate) struct Tree(TempDir);

impl Tree {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self(TempDir::new().unwrap());
        fs::create_dir_all(tree.0.path().join("sys/class")).unwrap();
        for (path, text) in files {
            tree.put(path, text);
        }
        tree
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn put(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text.strip_prefix("->") {
            Some(_) if path.symlink_metadata().is_ok() => {}
            Some(target) => symlink(target, path).unwrap(),
            None => fs::write(path, format!("{text}\n")).unwrap(),
        }
    }

    /// Adds a PCI function; `parts` are files in its folder, with their texts.
    pub(crate) fn function(&self, address: &str, driver: &str, parts: &[(&str, &str)]) {
        let folder = format!("sys/devices/pci0000:00/{address}");
        self.put(&format!("{folder}/uevent"), &format!("DRIVER={driver}\nPCI_SLOT_NAME={address}"));
        for (file, text) in parts {
            self.put(&format!("{folder}/{file}"), text);
        }
        let target = format!("->../../../devices/pci0000:00/{address}");
        self.put(&format!("sys/bus/pci/devices/{address}"), &target);
    }

    /// Adds a port of an RDMA device on a PCI function; `of` is the state of the link, that of the wire, the LID of the
    /// manager, and the lower half of the GID.
    pub(crate) fn port(&self, name: &str, address: &str, number: u32, of: [&str; 4]) {
        let [state, physical, manager, guid] = of;
        let own = format!("sys/devices/pci0000:00/{address}/infiniband/{name}");
        for (file, text) in [
            ("state", state),
            ("phys_state", physical),
            ("sm_lid", manager),
            ("lid", "0x0"),
            ("rate", "40 Gb/sec (4X QDR)"),
            ("link_layer", "InfiniBand"),
            ("gids/0", &format!("fe80:0000:0000:0000:{guid}")),
        ] {
            self.put(&format!("{own}/ports/{number}/{file}"), text);
        }
        let class = self.0.path().join("sys/class/infiniband").join(name);
        if class.symlink_metadata().is_err() {
            self.put(&format!("{own}/node_guid"), guid);
            self.put(&format!("{own}/device"), &format!("->../../../{address}"));
            let target = format!("->../../devices/pci0000:00/{address}/infiniband/{name}");
            self.put(&format!("sys/class/infiniband/{name}"), &target);
        }
    }

    fn json(&self) -> Value {
        shown(self.0.path())
    }

    /// The page, with its wrapped lines joined.
    fn page(&self) -> String {
        let page = printed(&["--root", self.0.path().to_str().unwrap()]);
        linerate_test::unwrapped(&page)
    }
}

/// The oddity with this id; there must be exactly one.
fn odd<'a>(document: &'a Value, id: &str) -> &'a Value {
    let all = document["findings"].as_array().unwrap();
    let mut found = all.iter().filter(|odd| odd["id"] == id);
    let odd = found.next().unwrap();
    assert_eq!(found.next(), None);
    odd
}

const UP: &str = "5: LinkUp";
const NONE: &str = "0000:0000:0000:0000";

#[test]
fn a_virtual_function_without_a_guid_on_a_network_with_a_manager() {
    let tree = Tree::new(&[]);
    tree.function("0000:01:00.0", "mlx5_core", &[("virtfn3", "->../0000:01:00.4")]);
    tree.function("0000:01:00.4", "mlx5_core", &[("physfn", "->../0000:01:00.0")]);
    let guid = "0002:c903:004c:5e31";
    tree.port("mlx5_0", "0000:01:00.0", 1, ["4: ACTIVE", UP, "0x4", guid]);
    tree.port("mlx5_7", "0000:01:00.4", 1, ["2: INIT", UP, "0x4", NONE]);
    let document = tree.json();
    let reported = odd(&document, "unserved-port");
    assert_eq!(reported["subject"], "mlx5_7 port 1");
    let what = reported["what"].as_str().unwrap();
    assert!(what.contains("no GUID") && what.contains("LID 4"), "{what}");
    let fix = reported["fix"]["do"].as_str().unwrap();
    let command = "vf 3 node_guid $guid port_guid $guid";
    assert!(fix.contains(command), "{fix}");
    let page = tree.page();
    assert!(!page.contains("opensm"), "{page}");
    assert!(page.contains("no port GUID, no node GUID"), "{page}");
    assert!(page.contains("port GUID 0x0002c903004c5e31"), "{page}");
    let own = &document["rdma"][1];
    assert_eq!(own["virtual_of"], json!({"pci": "0000:01:00.0", "number": 3}));
    assert_eq!(own["node_guid"], "0x0000000000000000");
}

#[test]
fn a_port_without_a_manager_beside_one_with_and_one_without_a_cable() {
    let tree = Tree::new(&[]);
    tree.function("0000:01:00.0", "mlx4_core", &[]);
    let port = |number, of| tree.port("mlx4_0", "0000:01:00.0", number, of);
    port(1, ["4: ACTIVE", UP, "0x1", "0002:c903:004c:5e31"]);
    port(2, ["2: INIT", UP, "0x0", "0002:c903:004c:5e32"]);
    port(3, ["1: DOWN", "2: Polling", "0x0", "0002:c903:004c:5e33"]);
    let document = tree.json();
    let fix = &odd(&document, "unserved-port")["fix"]["do"];
    let fix = fix.as_str().unwrap();
    assert!(fix.ends_with("sudo opensm -B -g 0x0002c903004c5e32"), "{fix}");
    let ports = &document["rdma"][0]["ports"];
    assert_eq!(
        (&ports[1]["guid"], &ports[1]["rate_bps"]),
        (&json!("0x0002c903004c5e32"), &json!(40_000_000_000u64))
    );
    assert_eq!(
        (&ports[2]["rate_bps"], &ports[2]["lanes"], &ports[2]["lane_speed"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    let page = tree.page();
    assert!(page.contains("mlx4_0 port 3: down (polling), no link, port GUID"), "{page}");
    // A port that has no manager, on a host without other ports.
    let alone = Tree::new(&[]);
    alone.function("0000:01:00.0", "mlx4_core", &[]);
    alone.port("mlx4_0", "0000:01:00.0", 1, ["2: INIT", UP, "0x0", "0002:c903:004c:5e31"]);
    let document = alone.json();
    let fix = &odd(&document, "unserved-port")["fix"]["do"];
    assert!(fix.as_str().unwrap().contains("sudo systemctl start opensm"), "{fix}");
}

#[test]
fn the_rate_of_a_software_device_is_nominal() {
    let port = "sys/class/infiniband/rxe0/ports/1";
    let tree = Tree::new(&[
        ("sys/class/infiniband/rxe0/parent", "eth0"),
        ("sys/class/infiniband/rxe0/node_desc", "rxe"),
        (&format!("{port}/state"), "4: ACTIVE"),
        (&format!("{port}/phys_state"), UP),
        (&format!("{port}/rate"), "2.5 Gb/sec (1X SDR)"),
        (&format!("{port}/link_layer"), "Ethernet"),
    ]);
    let document = tree.json();
    let own = &document["rdma"][0];
    assert_eq!(own["software"], true);
    let port = &own["ports"][0];
    assert_eq!((&port["rate_bps"], &port["nominal_bps"]), (&Value::Null, &json!(2_500_000_000u64)));
    assert_eq!(document["findings"], json!([]));
    let page = tree.page();
    assert!(page.contains("software device, nominal rate 2.5 Gb/s"), "{page}");
}

#[test]
fn a_board_is_told_by_its_id_and_an_unknown_one_has_no_claim() {
    let result_of = |id: &str| {
        let tree = Tree::new(&[]);
        tree.function("0000:01:00.0", "mlx4_core", &[]);
        let guid = "0002:c903:004c:5e31";
        tree.port("mlx4_0", "0000:01:00.0", 1, ["4: ACTIVE", UP, "0x1", guid]);
        let own = "sys/devices/pci0000:00/0000:01:00.0/infiniband/mlx4_0";
        tree.put(&format!("{own}/board_id"), id);
        tree.put(&format!("{own}/fw_ver"), "2.36.5150");
        (tree.json()["rdma"][0]["board_meaning"].clone(), tree.page())
    };
    let (board, page) = result_of("MT_1090120019");
    assert_eq!(
        (&board["part"], &board["newer_firmware"]),
        (&json!("MCX354A-FCBT"), &json!("2.42.5000"))
    );
    let words = "is MCX354A-FCBT (ConnectX-3): 2 ports, each InfiniBand up to FDR (56 Gb/s) or Ethernet 10 and 40 Gb/s";
    assert!(page.contains(words), "{page}");
    let (board, page) = result_of("MT_1090110018");
    assert_eq!(board["part"], "MCX354A-QCBT");
    assert!(page.contains("InfiniBand up to QDR (40 Gb/s) or Ethernet 10 Gb/s"), "{page}");
    let (board, page) = result_of("ISL1090110018");
    assert_eq!((&board["sold_by"], &board["newer_firmware"]), (&json!("Isilon"), &Value::Null));
    assert!(page.contains("sold by Isilon"), "{page}");
    let (board, page) = result_of("MT_1090110019");
    assert_eq!(board, Value::Null);
    assert!(page.contains("board MT_1090110019, not known to linerate"), "{page}");
    assert!(!page.contains("MCX354A"), "{page}");
}

/// A disk over NVMe/TCP with this many paths, as Linux 6.12 shows it.
fn fabric(ways: u32) -> Tree {
    let head = "sys/class/block/nvme0n1";
    let tree = Tree::new(&[
        (&format!("{head}/size"), "2048"),
        (&format!("{head}/hidden"), "0"),
        (&format!("{head}/device/iopolicy"), "numa"),
        (&format!("{head}/device/model"), "Linux"),
    ]);
    let files = [
        ("rotational", "0"),
        ("max_sectors_kb", "1280"),
        ("max_hw_sectors_kb", "32767"),
        ("read_ahead_kb", "128"),
        ("logical_block_size", "512"),
        ("physical_block_size", "512"),
    ];
    for (file, text) in files {
        tree.put(&format!("{head}/queue/{file}"), text);
    }
    for way in 0..ways {
        let (own, device) = (format!("sys/class/nvme/nvme{way}"), format!("nvme0c{way}n1"));
        tree.put(&format!("{own}/transport"), "tcp");
        tree.put(&format!("{own}/address"), &format!("traddr=192.0.2.{way},trsvcid=4420"));
        tree.put(&format!("{own}/state"), "live");
        tree.put(&format!("sys/class/block/{device}/size"), "2048");
        tree.put(&format!("sys/class/block/{device}/hidden"), "1");
        tree.put(&format!("sys/class/block/{device}/ana_state"), "optimized");
        tree.put(&format!("sys/class/block/{device}/device"), &format!("->../../nvme/nvme{way}"));
    }
    tree
}

#[test]
fn the_ways_to_a_disk_stand_below_it() {
    for ways in [1, 2] {
        let tree = fabric(ways);
        let document = tree.json();
        let disks = document["disks"].as_array().unwrap();
        assert_eq!((disks.len(), &disks[0]["name"]), (1, &json!("nvme0n1")));
        assert_eq!((&disks[0]["ways"], &disks[0]["transport"]), (&json!(ways), &json!("tcp")));
        let path = &disks[0]["paths"][0];
        assert_eq!(
            (&path["name"], &path["device"], &path["ana_state"]),
            (&json!("nvme0"), &json!("nvme0c0n1"), &json!("optimized"))
        );
        let unknown = document["unknown"].as_array().unwrap();
        let of_disks = |gap: &&Value| gap["what"].as_str().unwrap().starts_with("facts.block");
        assert_eq!(unknown.iter().find(of_disks), None);
        let page = tree.page();
        let way = "by nvme0: tcp, traddr=192.0.2.0,trsvcid=4420, live, optimized (nvme0c0n1)";
        assert!(page.contains(way), "{page}");
        let odd = document["findings"].as_array().unwrap();
        assert_eq!(odd.len(), usize::from(ways == 2), "{odd:?}");
    }
    let document = fabric(2).json();
    let fix = odd(&document, "disk-path-idle")["fix"]["do"].as_str().unwrap();
    assert!(fix.contains("/sys/class/nvme-subsystem/nvme-subsys0/iopolicy"), "{fix}");
}

#[test]
fn a_masked_capture_names_no_group_and_no_guid_and_shows_the_same() {
    let tree = Tree::new(&[
        ("proc/self/cgroup", "0::/user.slice/user-1017.slice/session-ann.scope"),
        ("proc/self/mountinfo", "1 1 0:2 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"),
        ("sys/fs/cgroup/user.slice/user-1017.slice/cpu.max", "150000 100000"),
        ("sys/fs/cgroup/user.slice/user-1017.slice/session-ann.scope/memory.max", "1048576"),
    ]);
    tree.function("0000:01:00.0", "mlx5_core", &[]);
    tree.port("mlx5_0", "0000:01:00.0", 1, ["2: INIT", UP, "0x0", NONE]);
    tree.port("mlx5_0", "0000:01:00.0", 2, ["4: ACTIVE", UP, "0x1", "0002:c903:004c:5e32"]);
    let file = tree.0.path().join("capture.json");
    let root = tree.0.path().to_str().unwrap();
    let live = printed(&["--root", root, "--capture", file.to_str().unwrap()]);
    let masked = fs::read_to_string(&file).unwrap();
    for name in ["1017", "session-ann"] {
        let bytes: Vec<String> = name.bytes().map(|b| b.to_string()).collect();
        assert!(!masked.contains(name) && !masked.contains(&bytes.join(",")), "{name}");
    }
    assert!(masked.contains("/sys/fs/cgroup/user.slice/user-masked-1.slice/cpu.max"));
    let second = printed(&["--root", file.to_str().unwrap()]);
    let without = |page: &str| {
        let known = page.split("Unknown").next().unwrap();
        known.replace("0x0002c903004c5e32", "0x0000000000000001")
    };
    assert_eq!(without(&second), without(&live));
    let document = shown(&file);
    assert_eq!(document["machine"]["cpu_quota"], 1.5);
    assert_eq!(document["machine"]["memory_limit_bytes"], 1 << 20);
    let what = odd(&document, "unserved-port")["what"].as_str().unwrap();
    assert!(what.contains("no GUID"), "{what}");
}
