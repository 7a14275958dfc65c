//! Checks the findings of `linerate host` on trees of `/proc` and `/sys` of machines whose ports are held back, and on
//! near misses.

use std::fmt::Write;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use super::host::{json, printed};

/// A tree of files with what `linerate host` reads about cards, ports and interrupts.
struct Tree {
    root: TempDir,
    cpus: usize,
    interrupts: String,
}

impl Tree {
    fn new(cpus: usize) -> Self {
        let tree = Self { root: TempDir::new().unwrap(), cpus, interrupts: String::new() };
        let cpu = |n| format!("processor : {n}\nmodel name : A\n");
        tree.file("proc/cpuinfo", (0..cpus).map(cpu).collect::<String>());
        tree.file("sys/devices/system/cpu/online", format!("0-{}\n", cpus - 1));
        tree.file("sys/bus/pci/devices/none", "");
        tree
    }

    fn at(&self, path: &str) -> PathBuf {
        let path = self.root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn file(&self, path: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.at(path), text).unwrap();
    }

    /// Adds a PCI function of class 0xCCSS00 with the speed in GT/s and the lanes of its link; a bridge if `buses` are
    /// behind it. Returns its folder.
    fn pci(
        &self,
        path: &str,
        class: u32,
        buses: Option<[u8; 2]>,
        now: (&str, u8),
        max: (&str, u8),
    ) -> String {
        let folder = format!("sys/devices/pci0000:00/{path}");
        let address = path.rsplit('/').next().unwrap();
        let mut space = [0u8; 64];
        space[..4].copy_from_slice(&[0x22, 0x10, 1, 0]);
        space[9..12].copy_from_slice(&class.to_le_bytes()[..3]);
        if let Some([first, last]) = buses {
            (space[0x0e], space[0x19], space[0x1a]) = (1, first, last);
        }
        self.file(&format!("{folder}/config"), space);
        self.file(&format!("{folder}/uevent"), format!("PCI_SLOT_NAME={address}\n"));
        for (which, (speed, lanes)) in [("current", now), ("max", max)] {
            self.file(&format!("{folder}/{which}_link_speed"), format!("{speed} GT/s PCIe\n"));
            self.file(&format!("{folder}/{which}_link_width"), format!("{lanes}\n"));
        }
        let target = format!("../../../devices/pci0000:00/{path}");
        symlink(target, self.at(&format!("sys/bus/pci/devices/{address}"))).unwrap();
        folder
    }

    /// Adds a slot whose link is `now`, and a card in it that supports `best`. Returns the card's folder.
    fn card(&self, bus: u8, now: (&str, u8), best: (&str, u8)) -> String {
        let root = format!("0000:00:{bus:02x}.0");
        self.pci(&root, 0x06_0400, Some([bus, bus]), now, now);
        self.pci(&format!("{root}/0000:{bus:02x}:00.0"), 0x02_0000, None, now, best)
    }

    /// Adds a network port to the device in a folder; `mbps` is -1 if the port has no speed.
    fn port(&self, name: &str, index: u32, device: &str, mbps: i64) {
        let folder = format!("{device}/net/{name}");
        let up = mbps > 0;
        for (file, text) in [
            ("ifindex", index.to_string()),
            ("type", "1".to_owned()),
            ("mtu", "1500".to_owned()),
            ("carrier", u8::from(up).to_string()),
            ("operstate", if up { "up" } else { "down" }.to_owned()),
            ("speed", mbps.to_string()),
            ("queues/rx-0/rps_cpus", "0".to_owned()),
            ("queues/rx-1/rps_cpus", "0".to_owned()),
        ] {
            self.file(&format!("{folder}/{file}"), format!("{text}\n"));
        }
        let own = device.rsplit('/').next().unwrap();
        symlink(format!("../../../{own}"), self.at(&format!("{folder}/device"))).unwrap();
        let target = format!("../../{}", folder.trim_start_matches("sys/"));
        symlink(target, self.at(&format!("sys/class/net/{name}"))).unwrap();
    }

    /// Adds a USB network adapter of `mbps` behind a hub. `hub` and `own` are the USB speeds of the hub and the
    /// adapter, in Mb/s.
    fn adapter(&self, hub: u32, own: u32, mbps: i64) {
        let hubs = "sys/devices/pci0000:00/0000:00:14.0/usb6/6-1";
        let device = format!("{hubs}/6-1.2");
        self.file(&format!("{hubs}/speed"), format!("{hub}\n"));
        self.file(&format!("{device}/speed"), format!("{own}\n"));
        let alias = "DRIVER=r8152\nMODALIAS=usb:v0BDAp8157d3000\n";
        self.file(&format!("{device}/6-1.2:1.0/uevent"), alias);
        let target = format!("../../../{}", hubs.trim_start_matches("sys/"));
        symlink(target, self.at("sys/bus/usb/devices/6-1")).unwrap();
        self.port("eth1", 2, &format!("{device}/6-1.2:1.0"), mbps);
    }

    /// Adds an interrupt that any CPU may serve and that CPU `by` serves.
    fn interrupt(&mut self, number: u32, name: &str, by: usize) {
        let folder = format!("proc/irq/{number}");
        self.file(&format!("{folder}/effective_affinity_list"), format!("{by}\n"));
        self.file(&format!("{folder}/smp_affinity_list"), format!("0-{}\n", self.cpus - 1));
        self.file(&format!("{folder}/node"), "-1\n");
        write!(self.interrupts, "{number}:").unwrap();
        for cpu in 0..self.cpus {
            write!(self.interrupts, " {}", if cpu == by { 9 } else { 0 }).unwrap();
        }
        writeln!(self.interrupts, " IR-PCI-MSI {number}-edge {name}").unwrap();
        let cpus: Vec<String> = (0..self.cpus).map(|cpu| format!("CPU{cpu}")).collect();
        let cpus = cpus.join(" ");
        self.file("proc/interrupts", format!("{cpus}\n{}", self.interrupts));
    }

    fn document(&self) -> Value {
        json(self.root.path())
    }

    /// Ids of the oddities, in the order of the page.
    fn odd(&self) -> Vec<String> {
        let document = self.document();
        let odd = document["findings"].as_array().unwrap().iter();
        odd.map(|odd| odd["id"].as_str().unwrap().to_owned()).collect()
    }

    fn page(&self) -> String {
        printed(&["--root", self.root.path().to_str().unwrap()])
    }
}

#[test]
fn a_port_that_its_link_caps_comes_first_and_a_slot_that_suffices_last() {
    let tree = Tree::new(4);
    let capped = tree.card(1, ("32.0", 4), ("32.0", 4));
    tree.port("eth0", 2, &capped, 200_000);
    let enough = tree.card(2, ("16.0", 1), ("16.0", 4));
    tree.port("eth1", 3, &enough, 10_000);
    let source = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    tree.file(source, "hpet\n");
    assert_eq!(tree.odd(), ["port-carrier", "clock-source", "pcie-slot"]);
    let page = tree.page();
    let words = linerate_test::unwrapped(&page);
    assert!(
        words.starts_with(
            "3 oddities, read and not measured; 1 (!) limits eth0 ! 0000:01:00.0 eth0: PCIe leaves "
        ),
        "{page}"
    );
    let details = "0000:01:00.0 eth0: the PCIe link between the card and port 0000:00:01.0 runs at 32 GT/s x4 (126 Gb/s)";
    assert!(words.contains(details), "{page}");
    assert!(words.contains("enough for its ports (10 Gb/s)"), "{page}");
    // A port that is down has no speed, and its best speed is unknown.
    let down = Tree::new(4);
    let card = down.card(1, ("32.0", 4), ("32.0", 4));
    down.port("eth0", 2, &card, -1);
    assert_eq!(down.odd(), [""; 0]);
}

/// A card of 10 Gb/s in a box behind a switch at the end of a Thunderbolt cable. The cable's link shows one lane of 2.5
/// GT/s.
fn box_on_a_cable(removable: bool, attached: &[&str]) -> Tree {
    let tree = Tree::new(4);
    let slow = ("2.5", 1);
    let root = "0000:00:01.1";
    tree.pci(root, 0x06_0400, Some([3, 9]), slow, slow);
    let upper = format!("{root}/0000:03:00.0");
    let folder = tree.pci(&upper, 0x06_0400, Some([4, 9]), slow, ("2.5", 4));
    let lower = format!("{upper}/0000:04:01.0");
    tree.pci(&lower, 0x06_0400, Some([6, 6]), ("8.0", 4), ("8.0", 4));
    let card = tree.pci(&format!("{lower}/0000:06:00.0"), 0x02_0000, None, ("8.0", 4), ("8.0", 4));
    tree.port("eth0", 2, &card, 10_000);
    if removable {
        tree.file(&format!("{folder}/removable"), "removable\n");
    }
    for name in attached {
        tree.file(&format!("sys/bus/thunderbolt/devices/{name}/generation"), "3\n");
    }
    tree
}

#[test]
fn what_a_cable_carries_is_unknown_and_a_slot_that_can_be_pulled_out_has_figures() {
    let host = ["domain0", "0-0", "0-0:1.1", "usb4_port1"];
    let cable = box_on_a_cable(true, &[&host[..], &["0-1"]].concat());
    assert_eq!(cable.odd(), [""; 0]);
    let document = cable.document();
    let gaps = document["unknown"].as_array().unwrap();
    let gap = gaps.iter().find(|gap| gap["what"] == "facts.pci.cable");
    assert!(gap.unwrap()["why"].as_str().unwrap().contains("0000:03:00.0"));
    let devices = document["pci"].as_array().unwrap();
    let end = devices.iter().find(|d| d["address"] == "0000:03:00.0").unwrap();
    assert_eq!((&end["tunnel"], &end["link"]["rate_bps"]), (&true.into(), &Value::Null));
    // The root port is the host's end of the cable; the card has a link of its own inside the box.
    let shown = |address: &str| {
        let device = devices.iter().find(|d| d["address"] == address).unwrap();
        (device["tunnel"].clone(), device["link"]["rate_bps"].clone())
    };
    assert_eq!(shown("0000:00:01.1"), (true.into(), Value::Null));
    assert_eq!(shown("0000:06:00.0").0, Value::from(false));
    let page = cable.page();
    let line = |address: &str| {
        let mut lines = page.lines().map(str::trim_start);
        let line = lines.find(|line| line.starts_with(address));
        line.unwrap_or_default().to_owned()
    };
    for address in ["0000:00:01.1", "0000:03:00.0"] {
        let line = line(address);
        assert!(line.ends_with("on a Thunderbolt or USB4 cable"), "{page}");
        assert!(!line.contains("GT/s"), "{line}");
    }
    assert!(line("0000:06:00.0").contains("8 GT/s x4"), "{page}");

    for (removable, attached) in [(true, &host[..]), (true, &[]), (false, &["0-1"])] {
        let slot = box_on_a_cable(removable, attached);
        assert_eq!(slot.odd(), ["pcie-slot"], "{removable} {attached:?}");
        let page = slot.page();
        assert!(!page.contains("on a Thunderbolt"), "{page}");
        let gaps = slot.document()["unknown"].to_string();
        assert!(!gaps.contains("cable"), "{gaps}");
    }
}

#[test]
fn an_adapter_on_slow_usb_is_capped_at_the_slowest_wire() {
    let first = |hub: u32, own: u32, mbps: i64| {
        let tree = Tree::new(4);
        tree.adapter(hub, own, mbps);
        let document = tree.document();
        let odd = document["findings"].as_array().unwrap();
        odd.first().map(|odd| odd["what"].as_str().unwrap().to_owned())
    };
    let slow = first(480, 480, 5_000).unwrap();
    assert!(slow.contains("signals 480 Mb/s, which leaves 426 Mb/s"), "{slow}");
    let hub = first(5_000, 10_000, 10_000).unwrap();
    assert!(hub.contains("hub 6-1 that it hangs on signals 5 Gb/s, which leaves 4 Gb/s"), "{hub}");
    assert_eq!(first(5_000, 5_000, 2_500), None);
    assert_eq!(first(10_000, 10_000, 5_000), None);
    assert_eq!(first(480, 480, 100), None);
    assert_eq!(first(480, 480, -1), None);
    let tree = Tree::new(4);
    tree.adapter(5_000, 10_000, 2_500);
    let port = &tree.document()["ports"][0];
    assert_eq!(port["usb_bps"], 10_000_000_000u64);
    assert_eq!(port["usb_hubs"][0]["name"], "6-1");
    assert_eq!(port["usb_hubs"][0]["usb_bps"], 5_000_000_000u64);
    let page = tree.page();
    assert!(page.contains("(the hub 6-1 at"), "{page}");
}

/// A port with interrupts of these names, all on CPU 0 or, if `spread`, each on its own CPU.
fn with_interrupts(names: &[String], mbps: i64, spread: bool) -> Tree {
    let mut tree = Tree::new(16);
    let card = tree.card(1, ("16.0", 16), ("16.0", 16));
    tree.port("eth0", 2, &card, mbps);
    for (at, name) in names.iter().enumerate() {
        tree.interrupt(27 + at as u32, name, if spread { at } else { 0 });
    }
    tree
}

#[test]
fn queues_that_one_cpu_serves_are_odd_whatever_the_driver_calls_them() {
    let mut drivers: Vec<(String, Vec<String>)> = Vec::new();
    for name in [
        "eth0-TxRx-N",
        "i40e-eth0-TxRx-N",
        "mlx5_compN@pci:0000:01:00.0",
        "mlx4-N@pci:0000:01:00.0",
        "eth0-Tx-Rx-N",
        "hns3-0000:01:00.0-TxRx-N",
        "eth0-fp-N",
    ] {
        let interrupts = (0..8).map(|n| name.replace('N', &n.to_string()));
        drivers.push((name.to_owned(), interrupts.collect()));
    }
    for (name, interrupts) in &drivers {
        assert_eq!(with_interrupts(interrupts, 25_000, false).odd(), ["irq-crowded"], "{name}");
        assert_eq!(with_interrupts(interrupts, 25_000, true).odd(), [""; 0], "{name}");
        assert_eq!(with_interrupts(interrupts, 1_000, false).odd(), [""; 0], "{name}");
    }
    let interrupts = &drivers[0].1;
    let tree = with_interrupts(interrupts, 25_000, false);
    let page = tree.page();
    let line = "\nfor pair in 27:0 28:1 29:2 30:3 31:4 32:5 33:6 34:7; do echo ${pair#*:} | sudo tee \
                /proc/irq/${pair%:*}/smp_affinity_list; done\n";
    assert!(page.contains(line), "{page}");
    tree.file("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/net/eth0/threaded", "1\n");
    assert_eq!(tree.odd(), [""; 0], "threads poll");
    let tree = with_interrupts(interrupts, 25_000, false);
    let queue = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/net/eth0/queues/rx-0/rps_cpus";
    tree.file(queue, "ff\n");
    assert_eq!(tree.odd(), [""; 0], "RPS hands packets on");
}

#[test]
fn a_page_that_explains_has_details_of_all_that_is_odd() {
    let names: Vec<String> = (0..16).map(|n| format!("eth0-TxRx-{n}")).collect();
    let tree = with_interrupts(&names, 10_000, false);
    let source = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    tree.file(source, "hpet\n");
    let root = tree.root.path().to_str().unwrap();
    let shown = |page: &str| page.lines().filter(|line| line.starts_with("Fix")).count();
    let first = printed(&["--root", root]);
    assert!(first.contains("linerate host --explain"), "{first}");
    let all = printed(&["--root", root, "--explain"]);
    assert_eq!((shown(&first), shown(&all)), (1, 2), "{first}{all}");
    assert!(!all.contains("--explain"), "{all}");
    let fix = tree.document()["findings"][0]["fix"]["do"].as_str().unwrap().to_owned();
    assert_eq!(fix.lines().count(), 1, "{fix}");
}
