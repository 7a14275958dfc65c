use std::fs;
use std::path::Path;

use super::*;
use crate::Live;

const INFINIBAND: &str = "InfiniBand";
const ETHERNET: &str = "Ethernet";
const UP: &str = "5: LinkUp";
const POLLING: &str = "2: Polling";

/// A folder with the files of a host.
struct Host(tempfile::TempDir);

impl Host {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(self, path: &str, text: &str) -> Self {
        let path = self.0.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
        self
    }

    fn port(self, device: &str, port: u32, layer: &str, physical: &str) -> Self {
        let folder = format!("{DEVICES}/{device}/ports/{port}");
        self.file(&format!("{folder}/link_layer"), layer)
            .file(&format!("{folder}/phys_state"), physical)
    }

    fn umad(self, number: u32, device: &str, port: &str) -> Self {
        let folder = format!("{MAD_DEVICES}/umad{number}");
        self.file(&format!("{MAD_DEVICES}/abi_version"), "5")
            .file(&format!("{folder}/ibdev"), device)
            .file(&format!("{folder}/port"), port)
    }

    fn choose(&self, wanted: Option<&str>) -> Result<Choice, UmadError> {
        let wanted = wanted.map(|wanted| wanted.parse::<Wanted>().unwrap());
        let machine = Live::under(Path::new(self.0.path())).unwrap();
        choose(&machine, wanted.as_ref())
    }

    /// Returns the chosen port and its user MAD device, or the error and its hint.
    fn chosen(&self, wanted: Option<&str>) -> String {
        match self.choose(wanted) {
            Ok(choice) => format!("{} by {}", choice.name, choice.umad),
            Err(error) => format!("{error} | {}", error.hint()),
        }
    }
}

/// Two cards with two ports each. The cable is in port 2 of the first one and in port 1 of the second one.
fn two_cards() -> Host {
    Host::new()
        .port("mlx5_0", 1, INFINIBAND, POLLING)
        .port("mlx5_0", 2, INFINIBAND, UP)
        .port("mlx5_1", 1, INFINIBAND, UP)
        .port("mlx5_1", 2, ETHERNET, UP)
        // The kernel numbers user MAD devices in the order in which they appear, not in the order of the ports.
        .umad(0, "mlx5_1", "1")
        .umad(1, "mlx5_1", "2")
        .umad(2, "mlx5_0", "1")
        .umad(3, "mlx5_0", "2")
        .file(&format!("{MAD_DEVICES}/issm0/ibdev"), "mlx5_0")
        .file(&format!("{MAD_DEVICES}/issm0/port"), "2")
}

#[test]
fn the_first_infiniband_port_with_a_link_is_taken() {
    let host = two_cards();
    let choice = host.choose(None).unwrap();
    assert_eq!(choice.name.option(), "mlx5_0:2");
    assert_eq!(choice.umad, "umad3");
    // The Ethernet port is not among the other ports.
    let others: Vec<String> = choice.others.iter().map(Name::option).collect();
    assert_eq!(others, ["mlx5_0:1", "mlx5_1:1"]);
}

#[test]
fn without_any_link_the_first_infiniband_port_is_taken() {
    let host = Host::new()
        .port("mlx5_0", 1, ETHERNET, UP)
        .port("mlx5_1", 1, INFINIBAND, POLLING)
        .port("mlx5_1", 2, INFINIBAND, POLLING)
        .umad(0, "mlx5_0", "1")
        .umad(1, "mlx5_1", "1")
        .umad(2, "mlx5_1", "2");
    assert_eq!(host.chosen(None), "mlx5_1 port 1 by umad1");
}

#[test]
fn the_named_port_is_taken_with_or_without_a_link() {
    let host = two_cards();
    assert_eq!(host.chosen(Some("mlx5_0:1")), "mlx5_0 port 1 by umad2");
    assert_eq!(host.chosen(Some("mlx5_0")), "mlx5_0 port 2 by umad3");
    assert_eq!(host.chosen(Some("mlx5_1")), "mlx5_1 port 1 by umad0");
}

#[test]
fn a_port_that_does_not_exist_lists_those_that_do() {
    let host = two_cards();
    let list = "it has mlx5_0 port 1, mlx5_0 port 2, mlx5_1 port 1, mlx5_1 port 2";
    let hint = "linerate fabric --device mlx5_0:1";
    for (wanted, named) in [("mlx5_9", "mlx5_9"), ("mlx5_0:3", "mlx5_0 port 3")] {
        let want = format!("this host has no {named}; {list} | {hint}");
        assert_eq!(host.chosen(Some(wanted)), want);
    }
}

#[test]
fn an_omni_path_port_is_left_to_its_own_tools() {
    // udev may have renamed the device; then the driver shows that it is Omni-Path.
    for (device, driver) in [("hfi1_0", ""), ("opap3s0", "DRIVER=hfi1")] {
        let host = Host::new()
            .port(device, 1, INFINIBAND, UP)
            .umad(0, device, "1")
            .file(&format!("{DEVICES}/{device}/device/uevent"), driver);
        let said = host.chosen(None);
        assert!(said.contains("Omni-Path") && said.ends_with("| sudo opafabricinfo"), "{said}");
        // If the host also has an InfiniBand port, that port is chosen.
        let host = host
            .port("zz", 1, INFINIBAND, POLLING)
            .umad(1, "zz", "1")
            .file(&format!("{DEVICES}/zz/device/uevent"), "DRIVER=mlx5_core");
        assert_eq!(host.chosen(None), "zz port 1 by umad1");
    }
}

#[test]
fn an_ethernet_port_has_no_network_to_walk() {
    let said = |host: &Host, wanted| {
        let said = host.chosen(wanted);
        assert!(said.contains("(RoCE or iWARP)"), "{said}");
        assert!(said.contains("needs no subnet manager"), "{said}");
        said
    };
    // Whether the module is loaded does not matter: an iWARP card has no user MAD device at all.
    let host = Host::new().port("rxe0", 1, ETHERNET, UP);
    assert!(said(&host, None).starts_with("rxe0 port 1 is"));
    // Another card has an InfiniBand port, but the user named an Ethernet port.
    assert!(said(&two_cards(), Some("mlx5_1:2")).starts_with("mlx5_1 port 2 is"));
    // A port whose link layer cannot be read is assumed to be InfiniBand.
    let unknown = format!("{DEVICES}/mthca0/ports/1/state");
    let host = Host::new().file(&unknown, "4: ACTIVE").umad(0, "mthca0", "1");
    assert_eq!(host.chosen(None), "mthca0 port 1 by umad0");
}

#[test]
fn a_host_without_a_device_says_how_to_look_for_a_card() {
    // The module may be loaded on a host without a card.
    let modules = Host::new().file(&format!("{MAD_DEVICES}/abi_version"), "5");
    for host in [Host::new(), modules] {
        for wanted in [None, Some("mlx5_0")] {
            let said = host.chosen(wanted);
            assert!(said.starts_with("this host has no InfiniBand device | lspci -d ::0207"));
        }
    }
}

#[test]
fn a_module_that_is_not_loaded_is_named() {
    let host = Host::new().port("mlx5_0", 1, INFINIBAND, UP);
    let said = host.chosen(None);
    assert!(said.contains("the module ib_umad is not loaded"), "{said}");
    assert!(said.ends_with(" | sudo modprobe ib_umad"), "{said}");
    // With the module loaded, a user MAD device of another port does not serve this port.
    let host = host.umad(0, "mlx5_0", "2").umad(1, "mlx5_00", "1");
    let said = host.chosen(None);
    assert!(said.contains("no user MAD device for mlx5_0 port 1"), "{said}");
    assert!(!said.contains("modprobe"), "{said}");
    let host = host.umad(2, "mlx5_0", "1");
    assert_eq!(host.chosen(None), "mlx5_0 port 1 by umad2");
}

#[test]
fn another_version_of_the_interface_is_refused() {
    let host = Host::new()
        .port("mlx5_0", 1, INFINIBAND, UP)
        .umad(0, "mlx5_0", "1")
        .file(&format!("{MAD_DEVICES}/abi_version"), "6");
    assert!(host.chosen(None).contains("has version 6"));
}

#[test]
fn how_a_device_is_named() {
    let parse = |text: &str| text.parse::<Wanted>();
    assert_eq!(parse("mlx5_0").unwrap().to_string(), "mlx5_0");
    assert_eq!(parse("mlx5_0:2").unwrap().to_string(), "mlx5_0 port 2");
    // Port 0 is the management port of a switch itself.
    assert_eq!(parse("switch:0").unwrap().to_string(), "switch port 0");
    for wrong in ["", ":1", "mlx5_0:", "mlx5_0:x", "mlx5_0:1:2", "mlx5_0:-1"] {
        parse(wrong).unwrap_err();
    }
}
