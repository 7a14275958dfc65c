//! `linerate guide ib` on trees: each check with a machine that passes it and one that does not, in order. A tree
//! begins without a card and gets one part more at a time.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::fabric::Tree;
use super::schema::{refused, validator};

const CARD: &str = "0000:01:00.0";
const ROOT: &str = "0000:00:01.0";
const UP: &str = "5: LinkUp";
const GUID: &str = "0000:0000:0010:0002";
/// Ids of the checks, in the order of the guide.
const CHECKS: [&str; 8] = ["card", "driver", "cable", "manager", "lid", "ping", "ipoib", "rates"];

fn guide(args: &[&str]) -> Output {
    let home = TempDir::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.env_clear().env("HOME", home.path()).args(["guide", "ib"]).args(args);
    command.output().unwrap()
}

/// The exit code and the JSON document for a machine.
fn checked(root: &Path, more: &[&str]) -> (i32, Value) {
    let args = [&["--json", "--root", root.to_str().unwrap()], more].concat();
    let output = guide(&args);
    let reported = String::from_utf8_lossy(&output.stderr);
    assert_eq!(&*reported, "");
    let text = String::from_utf8(output.stdout).unwrap();
    let document = serde_json::from_str(&text).unwrap();
    assert_eq!(refused(&validator("guide"), &document), [""; 0]);
    (output.status.code().unwrap(), document)
}

/// The page, with its wrapped lines joined.
fn page(root: &Path) -> String {
    let output = guide(&["--root", root.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 80 || !line.starts_with(' ')));
    linerate_test::unwrapped(&text)
}

fn check<'a>(document: &'a Value, id: &str) -> &'a Value {
    &document["checks"][CHECKS.iter().position(|check| *check == id).unwrap()]
}

/// Asserts that a check fails, that no earlier one does, and that no later one is judged. Returns its words and its
/// remedy.
fn fails_at(tree: &Tree, id: &str) -> String {
    let (code, document) = checked(tree.path(), &[]);
    assert_eq!(code, 4, "{document:#}");
    assert_eq!(document["headline"]["stands"], "limit", "{document:#}");
    let at = CHECKS.iter().position(|check| *check == id).unwrap();
    for (i, name) in CHECKS.iter().enumerate() {
        let state = &check(&document, name)["stands"];
        match i {
            i if i < at => {
                assert!(["good", "unknown"].map(Value::from).contains(state), "{document:#}");
            }
            i if i == at => assert_eq!(*state, "found", "{document:#}"),
            _ => assert_eq!(*state, "not-judged", "{document:#}"),
        }
    }
    let check = check(&document, id);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let [what, why] = ["what", "why"].map(|key| text(&check[key]));
    format!("{what}: {why} | {}", text(&check["fix"]["do"]))
}

/// The configuration header of a PCI function; `buses` are given for a port.
fn header(vendor: u16, device: u16, class: [u8; 3], buses: Option<(u8, u8)>) -> Vec<u8> {
    let mut header = vec![0; 64];
    header[..2].copy_from_slice(&vendor.to_le_bytes());
    header[2..4].copy_from_slice(&device.to_le_bytes());
    header[9..12].copy_from_slice(&class);
    if let Some((secondary, last)) = buses {
        (header[0x0e], header[0x19], header[0x1a]) = (1, secondary, last);
    }
    header
}

/// Adds a root port and a card in it; the link between them has this many lanes of 8 GT/s.
fn card(tree: &Tree, device: u16, class: [u8; 3], driver: &str, lanes: u32) {
    let link = |width: &str| {
        [("current_link_speed", "8.0 GT/s PCIe"), ("max_link_speed", "8.0 GT/s PCIe")]
            .map(|(file, text)| (file.to_owned(), text.to_owned()))
            .into_iter()
            .chain(
                ["current_link_width", "max_link_width"]
                    .map(|file| (file.to_owned(), width.to_owned())),
            )
            .collect::<Vec<_>>()
    };
    for (address, driver, header) in [
        (ROOT, "pcieport", header(0x8086, 0x6f08, [0, 4, 6], Some((1, 1)))),
        (CARD, driver, header(0x15b3, device, class, None)),
    ] {
        let files = link(&lanes.to_string());
        let files: Vec<(&str, &str)> =
            files.iter().map(|(f, t)| (f.as_str(), t.as_str())).collect();
        tree.function(address, driver, &files);
        let folder = tree.path().join(format!("sys/devices/pci0000:00/{address}"));
        fs::write(folder.join("config"), header).unwrap();
    }
}

const INFINIBAND: [u8; 3] = [0, 7, 2];
const ETHERNET: [u8; 3] = [0, 0, 2];

fn users(tree: &Tree, device: &str) {
    tree.put("sys/class/infiniband_mad/umad0/ibdev", device);
    tree.put("sys/class/infiniband_verbs/uverbs0/ibdev", device);
}

/// A tree with a card whose port has this link state, wire state and LID of the manager.
fn port(of: [&str; 3]) -> Tree {
    let tree = Tree::new(&[]);
    card(&tree, 0x1003, INFINIBAND, "mlx4_core", 8);
    let [state, physical, manager] = of;
    tree.port("mlx4_0", CARD, 1, [state, physical, manager, GUID]);
    tree.put(&format!("sys/devices/pci0000:00/{CARD}/infiniband/mlx4_0/board_id"), "MT_1090120019");
    users(&tree, "mlx4_0");
    tree
}

fn lid(tree: &Tree, lid: &str) {
    tree.put(&format!("sys/devices/pci0000:00/{CARD}/infiniband/mlx4_0/ports/1/lid"), lid);
}

fn interface(tree: &Tree, mode: &str, flags: &str) {
    let folder = "sys/class/net/ib0";
    let hardware = format!("{flags}:00:02:08:{}", ["fe"; 16].join(":"));
    for (file, text) in [
        ("type", "32"),
        ("ifindex", "7"),
        ("dev_id", "0x0"),
        ("mtu", if mode == "connected" { "65520" } else { "2044" }),
        ("mode", mode),
        ("carrier", "1"),
        ("address", &hardware),
        ("device", &format!("->../../../devices/pci0000:00/{CARD}")),
    ] {
        tree.put(&format!("{folder}/{file}"), text);
    }
}

#[test]
fn a_card_is_seen_or_not() {
    let nothing = Tree::new(&[]);
    let (code, document) = checked(nothing.path(), &[]);
    assert_eq!((code, &check(&document, "card")["stands"]), (3, &json!("unknown")));
    assert_eq!(document["port"], Value::Null);

    let other = Tree::new(&[]);
    card(&other, 0x1015, ETHERNET, "mlx5_core", 8);
    let what = fails_at(&other, "card");
    assert!(what.contains("ConnectX-4 Lx has Ethernet ports only"), "{what}");

    let without = Tree::new(&[]);
    without.function(ROOT, "pcieport", &[]);
    let folder = without.path().join(format!("sys/devices/pci0000:00/{ROOT}"));
    fs::write(folder.join("config"), header(0x8086, 1, [0, 4, 6], Some((1, 1)))).unwrap();
    let soft = "sys/class/infiniband/rxe0";
    without.put(&format!("{soft}/node_desc"), "rxe");
    without.put(&format!("{soft}/ports/1/link_layer"), "Ethernet");
    let what = fails_at(&without, "card");
    assert!(what.contains("rxe0 is made by software"), "{what}");
    assert!(what.contains("lspci -nn"), "{what}");
}

#[test]
fn a_driver_has_the_card_or_a_module_claims_it() {
    let tree = Tree::new(&[("proc/sys/kernel/osrelease", "6.1.0")]);
    card(&tree, 0x1003, INFINIBAND, "", 8);
    let what = fails_at(&tree, "driver");
    assert!(
        what.contains("no driver has this card (ConnectX-3); which module claims it is unknown"),
        "{what}"
    );
    assert!(what.contains("lspci -k -s 0000:01:00.0"), "{what}");

    let modalias = format!("sys/devices/pci0000:00/{CARD}/modalias");
    tree.put(&modalias, "pci:v000015B3d00001003sv000015B3sd00000055bc02sc07i00");
    let aliases = "lib/modules/6.1.0/modules.alias";
    let alias = "alias pci:v000015B3d00001003sv*sd*bc*sc*i* ";
    tree.put(aliases, &format!("{alias}mlx4_core"));
    let what = fails_at(&tree, "driver");
    assert!(
        what.contains("; mlx4_core claims it") && what.contains("| sudo modprobe mlx4_core"),
        "{what}"
    );
    tree.put(aliases, &format!("{alias}mlx4_core\n{alias}mlx4_old"));
    let what = fails_at(&tree, "driver");
    assert!(what.contains("several modules claim it: mlx4_core, mlx4_old"), "{what}");
    tree.put(aliases, "alias pci:v00008086d*sv*sd*bc*sc*i* ixgbe");
    let what = fails_at(&tree, "driver");
    assert!(what.contains("no module of this kernel claims it"), "{what}");
}

#[test]
fn a_driver_without_an_rdma_device_needs_its_module() {
    for (driver, help) in [
        ("mlx4_core", "sudo modprobe mlx4_ib"),
        ("mlx5_core", "sudo modprobe mlx5_ib"),
        ("mthca", "dmesg"),
        ("vfio-pci", "run the checks in that virtual machine"),
    ] {
        let tree = Tree::new(&[]);
        card(&tree, 0x1003, INFINIBAND, driver, 8);
        let what = fails_at(&tree, "driver");
        assert!(what.contains(help), "{what}");
    }
}

#[test]
fn programs_need_modules_too() {
    let tree = port(["4: ACTIVE", UP, "0x1"]);
    fs::remove_dir_all(tree.path().join("sys/class/infiniband_mad")).unwrap();
    let what = fails_at(&tree, "driver");
    assert!(what.contains("sudo modprobe ib_umad"), "{what}");
    users(&tree, "mlx4_0");
    fs::remove_dir_all(tree.path().join("sys/class/infiniband_verbs")).unwrap();
    let what = fails_at(&tree, "driver");
    assert!(what.contains("sudo modprobe ib_uverbs"), "{what}");
}

#[test]
fn ports_that_are_ethernet_are_switched_where_the_board_is_known() {
    let tree = port(["4: ACTIVE", UP, "0x0"]);
    let own = format!("sys/devices/pci0000:00/{CARD}/infiniband/mlx4_0");
    tree.put(&format!("{own}/ports/1/link_layer"), "Ethernet");
    let what = fails_at(&tree, "driver");
    assert!(
        what.contains("echo ib | sudo tee /sys/bus/pci/devices/0000:01:00.0/mlx4_port1"),
        "{what}"
    );
    tree.put(&format!("{own}/board_id"), "ISL0000000000");
    let what = fails_at(&tree, "driver");
    assert!(what.contains("mstconfig -d 0000:01:00.0 query"), "{what}");
}

#[test]
fn a_cable_a_manager_and_an_address_come_one_after_the_other() {
    let what = fails_at(&port(["1: DOWN", "2: Polling", "0x0"]), "cable");
    assert!(what.contains("Polling"), "{what}");
    let what = fails_at(&port(["1: DOWN", "3: Disabled", "0x0"]), "cable");
    assert!(what.contains("ibportstate"), "{what}");
    let what = fails_at(&port(["2: INIT", UP, "0x0"]), "manager");
    assert!(what.contains("systemctl start opensm"), "{what}");
    let what = fails_at(&port(["4: ACTIVE", UP, "0x1"]), "lid");
    assert!(what.contains("LID 0 is no address"), "{what}");

    let tree = port(["4: ACTIVE", UP, "0x1"]);
    lid(&tree, "0x3");
    let what = fails_at(&tree, "ipoib");
    assert!(what.contains("sudo modprobe ib_ipoib"), "{what}");
    let page = page(tree.path());
    assert!(page.contains("Ping by LID unknown"), "{page}");
    assert!(page.contains("Rates waits for the checks above"), "{page}");
}

#[test]
fn of_two_ports_with_a_cable_the_one_that_fails_first_is_shown() {
    let tree = port(["4: ACTIVE", UP, "0x1"]);
    lid(&tree, "0x1");
    tree.port("mlx4_0", CARD, 2, ["2: INIT", UP, "0x0", "0000:0000:0010:0003"]);
    tree.port("mlx4_0", CARD, 3, ["1: DOWN", "2: Polling", "0x0", "0000:0000:0010:0004"]);
    let what = fails_at(&tree, "manager");
    assert!(what.contains("opensm -B -g 0x0000000000100003"), "{what}");
    let (_, document) = checked(tree.path(), &[]);
    assert_eq!(document["port"], "mlx4_0 port 2");
    assert_eq!(document["other_ports"], json!(["mlx4_0 port 1", "mlx4_0 port 3"]));
}

#[test]
fn addresses_are_unknown_in_a_tree_and_the_rates_are_judged_all_the_same() {
    let tree = port(["4: ACTIVE", UP, "0x1"]);
    lid(&tree, "0x3");
    interface(&tree, "datagram", "80");
    let (code, document) = checked(tree.path(), &[]);
    assert_eq!(code, 3, "{document:#}");
    let ipoib = check(&document, "ipoib");
    assert_eq!(ipoib["stands"], "unknown");
    assert_eq!(ipoib["fix"]["steps"][0]["command"], "ip -br address show dev ib0");
    let rates = check(&document, "rates");
    assert_eq!(rates["stands"], "good", "{document:#}");
    let what = rates["what"].as_str().unwrap();
    assert!(what.contains("4x QDR (40 Gb/s), 32 Gb/s of data"), "{what}");
}

#[test]
fn a_slot_carries_the_data_of_the_port_or_not() {
    // QDR carries 32 Gb/s of data; four lanes of 8 GT/s carry 31.5 Gb/s.
    let tree = port(["4: ACTIVE", UP, "0x1"]);
    lid(&tree, "0x3");
    interface(&tree, "datagram", "80");
    card(&tree, 0x1003, INFINIBAND, "mlx4_core", 4);
    let what = fails_at(&tree, "rates");
    assert!(what.contains("its slot carries 31.5 Gb/s"), "{what}");
}

/// The page for a port with this GUID and state, with the captured network in the file `walk`.
fn page_with(walk: &str, guid: &str, of: [&str; 3], lid_of: &str) -> (Option<i32>, String) {
    let tree = Tree::new(&[]);
    card(&tree, 0x1003, INFINIBAND, "mlx4_core", 8);
    let [state, physical, manager] = of;
    tree.port("mlx4_0", CARD, 1, [state, physical, manager, guid]);
    users(&tree, "mlx4_0");
    lid(&tree, lid_of);
    interface(&tree, "datagram", "80");
    let network = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/walks/{walk}.txt"));
    let output =
        guide(&["--root", tree.path().to_str().unwrap(), "--network", network.to_str().unwrap()]);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), text)
}

#[test]
fn goldens_of_both_ends_of_a_manager_on_the_wrong_port() {
    let waits = ["2: INIT", UP, "0x0"];
    let (code, page) = page_with("trap-victim", "0000:0000:0010:0006", waits, "0x0");
    assert_eq!(code, Some(4), "{page}");
    insta::assert_snapshot!("guide-victim", page);
    let served = ["4: ACTIVE", UP, "0x1"];
    let (code, page) = page_with("trap-served", "0000:0000:0010:0004", served, "0x2");
    assert_eq!(code, Some(3), "{page}");
    insta::assert_snapshot!("guide-served", page);
}
