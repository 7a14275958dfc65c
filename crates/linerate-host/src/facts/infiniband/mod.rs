//! Facts of RDMA devices, read from sysfs alone: no library is needed. If one file of a device cannot be read, the
//! device is reported anyway.

use std::io;

use linerate_facts::infiniband::{
    Gid, IbDevice, IbPort, Infiniband, Layer, LinkState, PhysicalState, is_manager,
};
use linerate_facts::nic::Counter;
use linerate_facts::parse::{Malformed, infiniband, sysctl, sysfs};

use super::{Reader, SYS};
use crate::{Machine, gap, read};

mod attached;
mod function;
mod in_use;

pub(super) use attached::claims;
pub(crate) use function::SOFTWARE;
pub use in_use::rdma_end;

const CLASS: &str = "/sys/class/infiniband";
/// Reason of the gap for the largest width and speed of a port.
const ALLOWED: &str = "sysfs does not show the width and speed that a port and its peer support";

/// Reads all RDMA devices. For a fact that cannot be read there is a gap such as `facts.infiniband.rate`.
pub fn infiniband(machine: &dyn Machine) -> Infiniband {
    let mut reader = Reader { machine, gaps: Vec::new() };
    let names = reader.ib_names();
    let mut devices: Vec<_> = names.iter().filter_map(|name| reader.ib_device(name)).collect();
    reader.number_functions(&mut devices);
    let mut ports = devices.iter().flat_map(|device: &IbDevice| &device.ports);
    if ports.any(|port| port.layer == Some(Layer::InfiniBand)) {
        reader.gaps.push(gap("facts.infiniband.allowed", ALLOWED, "sudo iblinkinfo"));
    }
    Infiniband {
        managed: reader.users_of("infiniband_mad"),
        opened: reader.users_of("infiniband_verbs"),
        interfaces: reader.interfaces(),
        claims: Vec::new(),
        devices,
        gaps: reader.gaps,
    }
}

impl Reader<'_> {
    /// Lists the RDMA devices. If only this class is missing in /sys, there are none, and there is no gap.
    fn ib_names(&mut self) -> Vec<String> {
        let names = self.machine.list(CLASS);
        names.unwrap_or_else(|error| {
            let none =
                error.kind() == io::ErrorKind::NotFound && self.machine.list("/sys/class").is_ok();
            if !none {
                self.miss("infiniband", CLASS, &error, SYS);
            }
            Vec::new()
        })
    }

    fn ib_device(&mut self, name: &str) -> Option<IbDevice> {
        let folder = format!("{CLASS}/{name}");
        let ports = self.machine.list(&format!("{folder}/ports"));
        let ports = ports
            .map_err(|error| self.miss("infiniband", &format!("{folder}/ports"), &error, "ibstat"))
            .ok()?;
        let mut numbers: Vec<u32> = ports.iter().filter_map(|port| port.parse().ok()).collect();
        numbers.sort_unstable();
        let pci = self.pci_above(&format!("{folder}/device"));
        Some(IbDevice {
            name: name.to_owned(),
            model: self.optional_line(&format!("{folder}/hca_type")),
            firmware: self.optional_line(&format!("{folder}/fw_ver")),
            board: self.optional_line(&format!("{folder}/board_id")),
            kind: infiniband::node_type(&self.optional_line(&format!("{folder}/node_type"))),
            node: self.node_of(&pci),
            node_guid: read(self.machine, &format!("{folder}/node_guid"), infiniband::guid).ok(),
            virtual_of: self.virtual_of(&pci),
            software: self.is_soft_device(&folder),
            pci,
            ports: numbers.into_iter().map(|number| self.ib_port(&folder, number)).collect(),
        })
    }

    fn ib_port(&mut self, device: &str, number: u32) -> IbPort {
        let folder = format!("{device}/ports/{number}");
        let layer = self.ib("layer", &folder, "link_layer", |text| Ok(sysctl::line(text)));
        IbPort {
            number,
            state: self.ib("state", &folder, "state", infiniband::state).and_then(LinkState::of),
            physical: self
                .ib("physical", &folder, "phys_state", infiniband::state)
                .and_then(PhysicalState::of),
            rate: self.ib("rate", &folder, "rate", infiniband::rate),
            layer: match layer.as_deref() {
                Some("InfiniBand") => Some(Layer::InfiniBand),
                Some("Ethernet") => Some(Layer::Ethernet),
                _ => None,
            },
            lid: self.ib("lid", &folder, "lid", sysfs::hexadecimal_or_decimal),
            sm_lid: self.ib("sm_lid", &folder, "sm_lid", sysfs::hexadecimal_or_decimal),
            gids: self.gids(&folder),
            counters: self.ib_counters(&folder),
            before: Vec::new(),
            mtu: None,
            mtu_max: None,
            manages: self.manages(&folder),
        }
    }

    /// Returns whether a subnet manager is bound to a port. The mask exists only if the kernel can manage an InfiniBand
    /// network.
    fn manages(&self, folder: &str) -> Option<bool> {
        let mask = read(self.machine, &format!("{folder}/cap_mask"), sysfs::hexadecimal_or_decimal);
        mask.ok().map(is_manager)
    }

    fn ib<T>(
        &mut self,
        fact: &str,
        folder: &str,
        file: &str,
        decode: impl FnOnce(&[u8]) -> Result<T, Malformed>,
    ) -> Option<T> {
        let path = format!("{folder}/{file}");
        self.get(&format!("infiniband.{fact}"), &path, "ibstat", decode)
    }

    /// Returns the GIDs in use. For an unused GID, its attributes cannot be read.
    fn gids(&mut self, folder: &str) -> Vec<Gid> {
        let path = format!("{folder}/gids");
        let names = self.machine.list(&path);
        let names = names
            .map_err(|error| self.miss("infiniband.gids", &path, &error, "ibv_devinfo -v"))
            .unwrap_or_default();
        let mut indices: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
        indices.sort_unstable();
        let gids = indices.into_iter().filter_map(|index| {
            let gid = self.optional_line(&format!("{path}/{index}"));
            let used = gid.bytes().any(|b| b != b'0' && b != b':');
            used.then(|| Gid {
                index,
                gid,
                kind: self.optional_line(&format!("{folder}/gid_attrs/types/{index}")),
                netdev: self.optional_line(&format!("{folder}/gid_attrs/ndevs/{index}")),
            })
        });
        gids.collect()
    }

    /// Returns the counters. If the hardware lacks a counter, its file contains words instead of a number and is
    /// skipped.
    fn ib_counters(&self, folder: &str) -> Vec<Counter> {
        let mut counters = Vec::new();
        for (kind, prefix) in [("counters", ""), ("hw_counters", "hw.")] {
            let names = self.machine.list(&format!("{folder}/{kind}")).unwrap_or_default();
            for name in names.iter().filter(|name| *name != "lifespan") {
                let value = read(self.machine, &format!("{folder}/{kind}/{name}"), sysctl::number);
                counters.extend(
                    value.ok().map(|value| Counter { name: format!("{prefix}{name}"), value }),
                );
            }
        }
        counters
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use linerate_facts::infiniband::{
        Guid, Infiniband, Layer, LinkState, PhysicalState, VirtualOf,
    };
    use linerate_facts::{Inventory, odd};
    use linerate_units::Rate;

    use super::infiniband;
    use crate::testing::tree;
    use crate::{Capture, Live, Replay};

    fn of(root: &Path) -> Infiniband {
        let machine = Capture::new(Live::under(root).unwrap());
        let live = infiniband(&machine);
        assert_eq!(infiniband(&Replay::new(machine.captured())), live, "a replay");
        live
    }

    const DEVICE: &str = "/sys/devices/pci0000:00/0000:03:00.0/infiniband/mlx5_0";

    /// Files of a port with these link values; a subnet manager serves it.
    fn port(state: &str, physical: &str, rate: &str, layer: &str) -> Vec<(String, String)> {
        managed(state, physical, rate, layer, "0x1")
    }

    fn managed(
        state: &str,
        physical: &str,
        rate: &str,
        layer: &str,
        manager: &str,
    ) -> Vec<(String, String)> {
        let file =
            |name: &str, text: &str| (format!("{DEVICE}/ports/1/{name}"), format!("{text}\n"));
        vec![
            file("state", state),
            file("phys_state", physical),
            file("rate", rate),
            file("link_layer", layer),
            file("lid", "0x3"),
            file("sm_lid", manager),
            (format!("{DEVICE}/node_guid"), "0002:c903:0001:0200\n".to_owned()),
            file("gids/0", "fe80:0000:0000:0000:0002:c903:0001:0203"),
            file("gids/1", "0000:0000:0000:0000:0000:0000:0000:0000"),
            file("gid_attrs/types/0", "IB/RoCE v1"),
            file("counters/symbol_error", "7"),
            file("counters/port_xmit_wait", "N/A (no PMA)"),
            file("hw_counters/out_of_sequence", "2"),
            file("hw_counters/lifespan", "10"),
            (format!("{DEVICE}/hca_type"), "MT4115\n".to_owned()),
            (format!("{DEVICE}/fw_ver"), "12.28.2006\n".to_owned()),
            (format!("{DEVICE}/board_id"), "MT_2180110032\n".to_owned()),
            (format!("{DEVICE}/device"), "->../../../0000:03:00.0".to_owned()),
            (
                "/sys/devices/pci0000:00/0000:03:00.0/uevent".to_owned(),
                "DRIVER=mlx5_core\nPCI_SLOT_NAME=0000:03:00.0\n".to_owned(),
            ),
            ("/sys/bus/pci/devices/0000:03:00.0/numa_node".to_owned(), "1\n".to_owned()),
            ("/sys/class/infiniband/mlx5_0".to_owned(), format!("->../../..{DEVICE}")),
        ]
    }

    fn plant(files: &[(String, String)]) -> tempfile::TempDir {
        let files: Vec<_> = files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
        tree(&files)
    }

    #[test]
    fn a_port_is_described_whole() {
        let root = plant(&port("4: ACTIVE", "5: LinkUp", "56 Gb/sec (4X FDR)", "InfiniBand"));
        let got = of(root.path());
        let whats: Vec<_> = got.gaps.iter().map(|g| g.what.as_str()).collect();
        assert_eq!(whats, ["facts.infiniband.allowed"]);
        let [device] = &got.devices[..] else { panic!("{:?}", got.devices) };
        assert_eq!((device.name.as_str(), device.model.as_str()), ("mlx5_0", "MT4115"));
        assert_eq!((device.pci.as_str(), device.node), ("0000:03:00.0", Some(1)));
        assert_eq!(
            (device.firmware.as_str(), device.board.as_str()),
            ("12.28.2006", "MT_2180110032")
        );
        let port = &device.ports[0];
        assert_eq!(port.state, Some(LinkState::Active));
        assert_eq!(port.physical, Some(PhysicalState::LinkUp));
        assert_eq!(
            (port.lid, port.sm_lid, port.layer),
            (Some(3), Some(1), Some(Layer::InfiniBand))
        );
        let rate = port.rate.as_ref().unwrap();
        assert_eq!((rate.rate, rate.width, rate.speed.as_str()), (Rate(56_000_000_000), 4, "FDR"));
        assert_eq!((port.gids.len(), port.gids[0].kind.as_str()), (1, "IB/RoCE v1"));
        assert_eq!(device.node_guid, Some(Guid(0x0002_c903_0001_0200)));
        assert_eq!(port.guid(), Some(Guid(0x0002_c903_0001_0203)));
        assert_eq!((&device.virtual_of, device.software), (&None, false));
        let counters: Vec<_> = port.counters.iter().map(|c| (c.name.as_str(), c.value)).collect();
        assert_eq!(counters, [("symbol_error", 7), ("hw.out_of_sequence", 2)]);
    }

    #[test]
    fn the_mask_says_whether_a_manager_is_bound_to_a_port() {
        // Masks seen with ibsim, on the host of the subnet manager and on another host.
        for (mask, manages) in
            [(Some("0x0050c04a"), Some(true)), (Some("0x0050c048"), Some(false)), (None, None)]
        {
            let mut files = port("4: ACTIVE", "5: LinkUp", "40 Gb/sec (4X QDR)", "InfiniBand");
            let path = format!("{DEVICE}/ports/1/cap_mask");
            files.extend(mask.map(|mask| (path, format!("{mask}\n"))));
            let root = plant(&files);
            assert_eq!(of(root.path()).devices[0].ports[0].manages, manages, "{mask:?}");
        }
    }

    #[test]
    fn what_the_states_mean() {
        for (state, physical, layer, want) in [
            ("4: ACTIVE", "5: LinkUp", "InfiniBand", None),
            ("2: INIT", "5: LinkUp", "InfiniBand", Some("no subnet manager")),
            ("2: INIT", "5: LinkUp", "Ethernet", None),
            ("1: DOWN", "2: Polling", "InfiniBand", Some("no cable")),
            ("1: DOWN", "3: Disabled", "InfiniBand", Some("switched it off")),
            // An Ethernet port shows these values whenever it has no carrier.
            ("1: DOWN", "3: Disabled", "Ethernet", None),
            ("1: DOWN", "4: PortConfigurationTraining", "InfiniBand", Some("cable")),
            ("1: DOWN", "5: LinkUp", "InfiniBand", Some("disabled the link")),
            ("1: DOWN", "5: LinkUp", "Ethernet", Some("network port is down")),
        ] {
            let mut files = managed(state, physical, "56 Gb/sec (4X FDR)", layer, "0x0");
            files.retain(|(path, _)| !path.ends_with("symbol_error"));
            let machine =
                Inventory { infiniband: of(plant(&files).path()), ..Inventory::default() };
            let whys: Vec<_> = odd::find(&machine).into_iter().map(|o| o.why).collect();
            assert_eq!(whys.len(), usize::from(want.is_some()), "{state} {physical}: {whys:?}");
            assert!(want.is_none_or(|want| whys[0].contains(want)), "{state} {physical}: {whys:?}");
        }
    }

    #[test]
    fn a_virtual_function_has_the_number_that_its_card_gives_it() {
        let bus = "/sys/bus/pci/devices";
        let own = |more: &[(&str, &str)]| {
            let mut files = port("4: ACTIVE", "5: LinkUp", "56 Gb/sec (4X FDR)", "InfiniBand");
            let more =
                more.iter().map(|(path, text)| (format!("{bus}/{path}"), (*text).to_owned()));
            files.extend(more);
            of(plant(&files).path()).devices[0].virtual_of.clone()
        };
        let card = ("0000:03:00.0/physfn/uevent", "PCI_SLOT_NAME=0000:04:00.0\n");
        let first = ("0000:04:00.0/virtfn0/uevent", "PCI_SLOT_NAME=0000:03:00.1\n");
        let tenth = ("0000:04:00.0/virtfn10/uevent", "PCI_SLOT_NAME=0000:03:00.0\n");
        let want = |number| Some(VirtualOf { pci: "0000:04:00.0".to_owned(), number });
        assert_eq!(own(&[]), None);
        assert_eq!(own(&[card, first, tenth]), want(Some(10)));
        assert_eq!(own(&[card, first]), want(None));
        assert_eq!(own(&[card]), want(None));
    }

    #[test]
    fn software_devices_are_told_from_hardware() {
        let of = |files: &[(&str, &str)]| {
            let folder = "/sys/class/infiniband/x";
            let mut files: Vec<_> = files
                .iter()
                .map(|(name, text)| (format!("{folder}/{name}"), (*text).to_owned()))
                .collect();
            files.push((format!("{folder}/ports/1/state"), "4: ACTIVE\n".to_owned()));
            of(plant(&files).path()).devices[0].software
        };
        let place = ("device/uevent", "PCI_SLOT_NAME=0000:03:00.0\n");
        // Newer kernels: software devices have no `device` link.
        assert!(of(&[("node_desc", "rxe\n"), ("parent", "eth0\n")]));
        assert!(of(&[("node_desc", "Software iWARP stack\n")]));
        assert!(of(&[("node_desc", "renamed\n")]));
        // Older kernels: software devices have the `device` link of their network port.
        assert!(of(&[place, ("parent", "eth0\n")]));
        assert!(of(&[place, ("node_desc", "Software iWARP stack\n")]));
        for card in [place, ("hca_type", "MT4115\n"), ("board_id", "MT_1\n")] {
            assert!(!of(&[card, ("node_desc", "host mlx5_0\n")]), "{card:?}");
        }
    }

    #[test]
    fn one_file_that_fails_costs_one_fact() {
        let mut files = port("4: ACTIVE", "5: LinkUp", "", "Ethernet");
        files.retain(|(path, _)| !path.ends_with("sm_lid"));
        files.push((format!("{DEVICE}/ports/1/sm_lid"), "->sm_lid".to_owned()));
        let got = of(plant(&files).path());
        let whats: Vec<_> = got.gaps.iter().map(|g| g.what.as_str()).collect();
        assert_eq!(whats, ["facts.infiniband.rate", "facts.infiniband.sm_lid"]);
        let port = &got.devices[0].ports[0];
        assert_eq!((port.rate.is_none(), port.sm_lid, port.lid), (true, None, Some(3)));
    }

    #[test]
    fn a_machine_without_such_devices_has_no_gap_and_one_without_sys_has() {
        let without = of(tree(&[("/sys/class/net/lo/ifindex", "1\n")]).path());
        assert_eq!((without.devices.len(), without.gaps.len()), (0, 0));
        let nothing = of(tree(&[]).path());
        assert_eq!((nothing.devices.len(), nothing.gaps.len()), (0, 1));
    }

    #[test]
    fn a_device_that_goes_away_is_a_gap() {
        let gone = of(tree(&[("/sys/class/infiniband/mlx5_0", "->../../none")]).path());
        assert_eq!((gone.devices.len(), gone.gaps.len()), (0, 1));
    }
}
