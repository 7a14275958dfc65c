//! The report of `linerate host` on a machine whose hardware is known.
//!
//! QEMU cannot make a card that is better than its slot. So the links of cards are planted, by files that are mounted
//! over those of sysfs. The slots and the nodes are those of the guest.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use super::document::document;
use super::guest::Guest;

/// Gaps that a guest may have: it shows no clock frequencies, and older kernels lack some readings.
const GAPS: [&str; 3] = ["facts.cpu.governor", "facts.tunables", "facts.nic.pollers"];

fn device<'a>(document: &'a Value, address: &str) -> &'a Value {
    let devices = document["pci"].as_array().unwrap();
    devices.iter().find(|d| d["address"] == address).unwrap()
}

fn named<'a>(document: &'a Value, part: &str, name: &str) -> &'a Value {
    let all = document[part].as_array().unwrap();
    all.iter().find(|d| d["name"] == name).unwrap()
}

fn texts(document: &Value, part: &str, key: &str) -> Vec<String> {
    let all = document[part].as_array().unwrap().iter();
    all.map(|o| o[key].as_str().unwrap().to_owned()).collect()
}

fn odd(document: &Value) -> Vec<String> {
    texts(document, "findings", "id")
}

/// Checks that there are no gaps but those of every guest.
fn whole(document: &Value) {
    for gap in texts(document, "unknown", "what") {
        assert!(GAPS.contains(&gap.as_str()), "{}", document["unknown"]);
    }
}

/// The speed and the lanes of a link, as in the document; `giga` is in GT/s.
fn link(giga: f64, lanes: u64) -> (Value, Value) {
    (json!((giga * 1e9) as u64), json!(lanes))
}

fn link_of(device: &Value, which: &str) -> (Value, Value) {
    let link = &device[which];
    (link["transfers_per_sec"].clone(), link["lanes"].clone())
}

pub(crate) fn facts(guest: &mut Guest) {
    let got = guest.host("");
    assert_eq!(odd(&got), [""; 0], "{}", got["findings"]);
    whole(&got);

    let machine = &got["machine"];
    assert_eq!(machine["name"], "vm");
    assert_eq!((&machine["guest"], &machine["hypervisor"]), (&json!(true), &json!("QEMU")));
    assert_eq!(machine["container"], Value::Null);
    assert_eq!(machine["kernel"], guest.ask("uname -r").trim());
    assert_eq!(machine["clock_source"], "tsc");

    let cpus = &got["cpus"];
    assert_eq!((&cpus["packages"], &cpus["cores"]), (&json!(2), &json!(4)));
    assert_eq!(cpus["online"].as_array().unwrap().len(), 4);
    for (id, cpus, distances) in [(0, [0, 1], [10, 31]), (1, [2, 3], [31, 10])] {
        let node = &got["nodes"][id];
        assert_eq!((&node["node"], &node["cpus"]), (&json!(id), &json!(cpus)));
        assert_eq!(node["distances"], json!(distances));
        // The kernel reserves some memory for itself.
        let memory = node["memory_bytes"].as_u64().unwrap();
        assert!((600 << 20..=768 << 20).contains(&memory), "{memory}");
    }

    for (slot, node, best) in
        [(1, 0, link(8.0, 4)), (2, 1, link(16.0, 16)), (3, 1, link(5.0, 8)), (5, 0, link(8.0, 4))]
    {
        let address = guest.card(slot);
        let card = device(&got, &address);
        let port = device(&got, card["parent"].as_str().unwrap());
        assert_eq!(port["address"], guest.ask(&format!("port {slot}")).trim());
        assert_eq!((&port["port"], &card["port"]), (&json!("root port"), &json!("endpoint")));
        assert_eq!((&port["node"], &card["node"]), (&json!(node), &json!(node)));
        assert_eq!((link_of(port, "link_max"), link_of(port, "link")), (best, link(2.5, 1)));
        assert_eq!(link_of(card, "link_max"), link(2.5, 1));
        assert_eq!(card["payload_bytes"], 128);
    }
    // An empty slot is a root port without a device below it.
    let ports = got["pci"].as_array().unwrap().iter();
    let empty: Vec<_> = ports
        .filter(|d| d["port"] == "root port" && link_of(d, "link_max") == link(2.5, 1))
        .collect();
    assert_eq!(empty.len(), 1);
    let address = &empty[0]["address"];
    assert!(!got["pci"].as_array().unwrap().iter().any(|d| d["parent"] == *address));
}

pub(crate) fn ports_and_disks(guest: &mut Guest) {
    // The names of ports depend on the order in which drivers were loaded.
    let script = "for slot in 2 3 5; do ls /sys/bus/pci/devices/$(card $slot)/net \
                  /sys/bus/pci/devices/$(card $slot)/virtio*/net 2>/dev/null || :; done";
    let listed = guest.ask(script);
    let names: Vec<&str> = listed.lines().filter(|l| l.starts_with("eth")).collect();
    let [wide, virt, narrow] = names[..] else {
        panic!("three ports: {listed}");
    };
    let got = guest.host(&format!(
        "ip link set {wide} up mtu 9000; ip link set {virt} up
         until [ \"$(cat /sys/class/net/{wide}/carrier)\" = 1 ]; do sleep 0.1; done"
    ));
    for (name, slot, driver, node) in
        [(wide, 2, "e1000e", 1), (virt, 3, "virtio_net", 1), (narrow, 5, "e1000e", 0)]
    {
        let port = named(&got, "ports", name);
        assert_eq!((&port["driver"], &port["node"]), (&json!(driver), &json!(node)));
        assert_eq!(port["pci"], guest.card(slot));
        assert_eq!(device(&got, &guest.card(slot))["names"], json!([name]));
    }
    let port = named(&got, "ports", wide);
    assert_eq!((&port["up"], &port["mtu_bytes"]), (&json!(true), &json!(9000)));
    assert_eq!((&port["speed_bps"], &port["duplex"]), (&json!(1_000_000_000), &json!("full")));
    assert_eq!(named(&got, "ports", narrow)["up"], false);
    let port = named(&got, "ports", virt);
    assert_eq!((&port["virtual"], &port["speed_bps"]), (&json!(true), &Value::Null));

    let disk = named(&got, "disks", "nvme0n1");
    assert_eq!((&disk["size_bytes"], &disk["node"]), (&json!(3u64 << 30), &json!(0)));
    assert_eq!((&disk["transport"], &disk["rotational"]), (&json!("pcie"), &json!(false)));
    assert_eq!(disk["pci"], guest.card(1));
    guest.ask(&format!("ip link set {wide} down mtu 1500; ip link set {virt} down"));
}

/// Plants a card of 8 GT/s x8 in slot 5, which has 8 GT/s x4, and such a card in slot 2, which has enough lanes.
const CARDS: &str = "
    link $(card 5) max 8.0 8; link $(card 5) current 8.0 4; link $(port 5) current 8.0 4
    link $(card 2) max 8.0 8; link $(card 2) current 8.0 8; link $(port 2) current 8.0 8\n";

pub(crate) fn narrow_slot(guest: &mut Guest) {
    let got = guest.host(CARDS);
    assert_eq!(odd(&got), ["pcie-slot"], "{}", got["findings"]);
    let reported = &got["findings"][0];
    let (subject, what) =
        (reported["subject"].as_str().unwrap(), reported["what"].as_str().unwrap());
    assert!(subject.starts_with(&guest.card(5)), "{subject}");
    assert!(what.contains("8 GT/s x8 (63 Gb/s)"), "{what}");
    assert!(what.contains("8 GT/s x4 (31.5 Gb/s)"), "{what}");
    whole(&got);
    let page = guest.ask(&format!("{CARDS}/run/linerate host"));
    let mut lines = page.lines();
    assert!(lines.next().unwrap().ends_with("1 oddity, read and not measured"), "{page}");
    let card = lines.nth(1).unwrap();
    assert!(card.starts_with(&guest.card(5)), "{page}");
}

pub(crate) fn slow_link(guest: &mut Guest) {
    for (speed, lanes) in [("8.0", 4), ("5.0", 8)] {
        let got = guest
            .host(&format!("link $(card 2) max 8.0 8; link $(card 2) current {speed} {lanes}"));
        assert_eq!(odd(&got), ["pcie-link"], "{}", got["findings"]);
        let subject = got["findings"][0]["subject"].as_str().unwrap();
        assert!(subject.starts_with(&guest.card(2)), "{subject}");
    }
}

pub(crate) fn unknown_node(guest: &mut Guest) {
    let got = guest.host("plant /sys/bus/pci/devices/$(card 1)/numa_node -1");
    assert_eq!(odd(&got), ["node-unknown"], "{}", got["findings"]);
    let subject = got["findings"][0]["subject"].as_str().unwrap();
    assert_eq!(subject, format!("{} NVMe nvme0", guest.card(1)));
    assert_eq!(device(&got, &guest.card(1))["node"], Value::Null);
}

pub(crate) fn remote_interrupts(guest: &mut Guest) {
    let port = guest.ask("ls /sys/bus/pci/devices/$(card 2)/net").trim().to_owned();
    // An interrupt moves to another CPU when it is next raised, so packets without a reply are sent.
    let served_by = |cpu: u32| {
        format!(
            "ip link set {port} up
             ip addr replace 10.9.8.1/24 dev {port}
             for irq in $(sed -n 's/^ *\\([0-9]*\\):.*{port}-[rt]x.*/\\1/p' /proc/interrupts); do
               echo {cpu} >/proc/irq/$irq/smp_affinity_list
               until [ \"$(cat /proc/irq/$irq/effective_affinity_list)\" = {cpu} ]; do
                 busybox arping -c 1 -w 1 -I {port} 10.9.8.2 >/dev/null || :
               done
             done\n"
        )
    };
    // The card and CPU 2 are on node 1; CPU 1 is on node 0.
    let near = guest.host(&served_by(2));
    assert_eq!(odd(&near), [""; 0], "{}", near["findings"]);
    let far = guest.host(&served_by(1));
    assert_eq!(odd(&far), ["irq-remote"], "{}", far["findings"]);
    assert_eq!(far["findings"][0]["subject"], port);
    guest.ask(&format!("{}ip addr flush dev {port}; ip link set {port} down", served_by(2)));
}

pub(crate) fn offline_cpu(guest: &mut Guest) {
    let got = guest.host("echo 0 >/sys/devices/system/cpu/cpu3/online");
    assert_eq!(got["cpus"]["offline"], json!([3]));
    assert_eq!(got["nodes"][1]["cpus"], json!([2]));
    assert!(odd(&got).contains(&"cpu-offline".to_owned()), "{}", got["findings"]);
    let got = guest.host("echo 1 >/sys/devices/system/cpu/cpu3/online");
    assert_eq!(got["cpus"]["offline"], json!([]));
    assert!(!odd(&got).contains(&"cpu-offline".to_owned()), "{}", got["findings"]);
}

pub(crate) fn nonsense(guest: &mut Guest) {
    // The kernel's own values for an unknown link are no gap and no oddity.
    let unknown = guest.host(
        "plant /sys/bus/pci/devices/$(card 2)/current_link_speed Unknown
         plant /sys/bus/pci/devices/$(card 2)/current_link_width 255",
    );
    assert_eq!(odd(&unknown), [""; 0], "{}", unknown["findings"]);
    for text in ["banana", "", "-8.0 GT/s PCIe", "99999999999999999999 GT/s"] {
        let got = guest.host(&format!(
            "plant /sys/bus/pci/devices/$(card 2)/max_link_speed '{text}'
             plant /sys/bus/pci/devices/$(card 5)/numa_node '{text}'"
        ));
        assert!(!odd(&got).iter().any(|id| id.starts_with("pcie")), "{text}: {}", got["findings"]);
        let card = device(&got, &guest.card(2));
        assert_eq!(card["link_max"]["transfers_per_sec"], Value::Null, "{text}");
        let gaps: BTreeSet<String> = texts(&got, "unknown", "what").into_iter().collect();
        for fact in ["facts.pci.link_speed", "facts.pci.node"] {
            assert!(gaps.contains(fact), "{text}: {gaps:?}");
        }
    }
}

/// Sets all fields whose names begin with `live_` to null.
fn without_live(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if name.starts_with("live_") {
                    value.take();
                }
                without_live(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_live),
        _ => {}
    }
}

/// The differences of two documents, in words: the whole documents would be too long to read.
fn unlike(a: &Value, b: &Value, at: &str) -> Vec<String> {
    let each = |names: Vec<String>| {
        let of = |value: &Value, name: &str| match value {
            Value::Array(items) => name.parse::<usize>().ok().and_then(|i| items.get(i).cloned()),
            value => value.get(name).cloned(),
        };
        let null = Value::Null;
        let deeper = |name: &String| {
            let (x, y) = (of(a, name), of(b, name));
            let (x, y) = (x.as_ref().unwrap_or(&null), y.as_ref().unwrap_or(&null));
            unlike(x, y, &format!("{at}.{name}"))
        };
        names.iter().flat_map(deeper).collect()
    };
    match (a, b) {
        _ if a == b => Vec::new(),
        (Value::Object(x), Value::Object(y)) => {
            let names: BTreeSet<&String> = x.keys().chain(y.keys()).collect();
            each(names.into_iter().cloned().collect())
        }
        (Value::Array(x), Value::Array(y)) => {
            each((0..x.len().max(y.len())).map(|i| i.to_string()).collect())
        }
        _ => vec![format!("{at}: {a} became {b}")],
    }
}

pub(crate) fn capture(guest: &mut Guest) {
    let live = guest.ask(&format!(
        "{CARDS}cd /out; /run/linerate host --json --capture open.json --unmasked
         /run/linerate host --capture masked.json >/dev/null"
    ));
    let here = |name: &str| {
        let file = guest.vm.shared().join(name);
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        let output = command.args(["host", "--json", "--root"]).arg(&file).output().unwrap();
        let reported = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{reported}");
        (std::fs::read_to_string(file).unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let ((open, reread), (masked, elsewhere)) = (here("open.json"), here("masked.json"));
    assert_eq!(reread, live);

    let (mut live, mut elsewhere) = (document(&live), document(&elsewhere));
    assert_eq!(odd(&elsewhere), ["pcie-slot"]);
    assert_eq!(elsewhere["machine"]["name"], "masked");
    live["machine"]["name"] = json!("masked");
    for system in live["filesystems"].as_array_mut().unwrap() {
        system["point"] = json!("/masked");
    }
    // Hardware addresses are masked, so they are not compared.
    for page in [&mut live, &mut elsewhere] {
        for port in page["ports"].as_array_mut().unwrap() {
            port["hardware_address"] = json!(null);
        }
    }
    without_live(&mut live);
    without_live(&mut elsewhere);
    let unlike = unlike(&live, &elsewhere, "");
    assert_eq!(unlike, [""; 0]);
    // Hardware address of a card's port, as the hexadecimal bytes of a netlink reply.
    let address = "525400000002";
    assert!(open.contains(address) && !masked.contains(address));
}

/// Makes an NVMe/TCP target in the guest itself, with the portals in $PORTS, and a controller for each.
const TARGET: &str = "
    modprobe -a nvmet nvmet-tcp nvme-tcp
    ip link set lo up
    mkdir /sys/kernel/config/nullb/target
    echo 1 >/sys/kernel/config/nullb/target/power
    target=/sys/kernel/config/nvmet
    mkdir $target/subsystems/lab
    echo 1 >$target/subsystems/lab/attr_allow_any_host
    for space in 1 2; do
      mkdir $target/subsystems/lab/namespaces/$space
      echo -n /dev/target >$target/subsystems/lab/namespaces/$space/device_path
      echo 1 >$target/subsystems/lab/namespaces/$space/enable
    done
    for port in $PORTS; do
      mkdir $target/ports/$port
      echo tcp >$target/ports/$port/addr_trtype
      echo ipv4 >$target/ports/$port/addr_adrfam
      echo 127.0.0.1 >$target/ports/$port/addr_traddr
      echo 442$port >$target/ports/$port/addr_trsvcid
      ln -s $target/subsystems/lab $target/ports/$port/subsystems/lab
      host=hostnqn=nqn.2014-08.org.nvmexpress:uuid:1b4e28ba-2fa1-11d2-883f-0016d3cca427
      host=$host,hostid=1b4e28ba-2fa1-11d2-883f-0016d3cca427
      echo transport=tcp,traddr=127.0.0.1,trsvcid=442$port,nqn=lab,$host >/dev/nvme-fabrics
    done
    until [ -b /dev/nvme1n2 ]; do sleep 0.1; done\n";

const NO_TARGET: &str = "
    target=/sys/kernel/config/nvmet
    for controller in /sys/class/nvme/*; do
      if grep -q tcp $controller/transport; then echo 1 >$controller/delete_controller; fi
    done
    rm $target/ports/*/subsystems/lab
    rmdir $target/ports/* $target/subsystems/lab/namespaces/* $target/subsystems/lab
    rmdir /sys/kernel/config/nullb/target
    rmmod nvmet_tcp nvmet nvme_tcp nvme_fabrics";

pub(crate) fn ways(guest: &mut Guest) {
    for ports in [1, 2] {
        let list: Vec<String> = (1..=ports).map(|port| port.to_string()).collect();
        let got = guest.host(&format!("PORTS='{}'\n{TARGET}", list.join(" ")));
        let names = texts(&got, "disks", "name");
        let of_target: Vec<_> = names.iter().filter(|name| name.starts_with("nvme1")).collect();
        assert_eq!(of_target, ["nvme1n1", "nvme1n2"], "{}", got["disks"]);
        for name in of_target {
            let disk = named(&got, "disks", name);
            assert_eq!((&disk["transport"], &disk["ways"]), (&json!("tcp"), &json!(ports)));
            let way = &disk["paths"][0];
            assert_eq!(
                (&way["name"], &way["state"], &way["ana_state"]),
                (&json!("nvme1"), &json!("live"), &json!("optimized"))
            );
            let address = way["address"].as_str().unwrap();
            assert!(address.contains("traddr=127.0.0.1,trsvcid=4421"), "{address}");
        }
        let gaps = texts(&got, "unknown", "why");
        assert!(!gaps.iter().any(|why| why.contains("nvme1")), "{gaps:?}");
        // Both disks have the same policy, so there is one finding.
        let idle = got["findings"].as_array().unwrap();
        let idle: Vec<_> = idle.iter().filter(|odd| odd["id"] == "disk-path-idle").collect();
        assert_eq!(idle.len(), ports - 1, "{}", got["findings"]);
        if let [idle] = idle[..] {
            let fix = idle["fix"]["do"].as_str().unwrap();
            let file = fix.split_whitespace().find(|word| word.starts_with("/sys/")).unwrap();
            assert_eq!(guest.ask(&format!("cat {file}")), "numa\n");
        }
        guest.ask(NO_TARGET);
    }
}

pub(crate) fn software_device(guest: &mut Guest) {
    let got = guest.host(
        "modprobe rdma_rxe
         ip link add near type veth peer name far
         ip link set near up; ip link set far up
         rdma link add rxe0 type rxe netdev near",
    );
    let device = named(&got, "rdma", "rxe0");
    assert_eq!(device["software"], true, "{device}");
    let port = &device["ports"][0];
    assert_eq!((&port["layer"], &port["rate_bps"]), (&json!("Ethernet"), &Value::Null));
    assert!(port["nominal_bps"].is_u64(), "{port}");
    assert!(!odd(&got).iter().any(|id| id.starts_with("ib-")), "{}", got["findings"]);
    guest.ask("rdma link del rxe0; ip link del near; rmmod rdma_rxe");
}
