//! Rules about ports of RDMA devices that carry nothing, or less than they could.

use self::function::Function;
use super::Finding;
use crate::Inventory;
use crate::advice::{Advice, Effect, Step, save};
use crate::infiniband::{IbDevice, IbPort, Layer, LinkState, PhysicalState};
use linerate_units::shell::word;

pub mod driver;
mod function;
pub mod ipoib;
pub mod manager;
mod roce;

pub(super) use driver::missing as no_driver;
pub(super) use ipoib::small_packets;
pub(super) use manager::not_set_up;
pub(super) use roce::lossy;

/// Names of error counters of a port that should not grow.
const FAULTS: [&str; 5] = [
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "local_link_integrity_errors",
];

/// What is odd, why it matters, and the remedy.
type Odd = (String, &'static str, Advice);

/// All ports, each with the RDMA device that it belongs to.
fn all(inventory: &Inventory) -> impl Iterator<Item = (&IbDevice, &IbPort)> {
    let devices = inventory.infiniband.devices.iter();
    devices.flat_map(|device| device.ports.iter().map(move |port| (device, port)))
}

/// The oddities that `odd` finds in ports, checked one by one.
fn ports(
    inventory: &Inventory,
    id: &'static str,
    odd: impl Fn(&IbDevice, &IbPort) -> Option<Odd>,
) -> Vec<Finding> {
    let each = all(inventory).filter_map(|(device, port)| {
        let (what, why, fix) = odd(device, port)?;
        let brief = what.split_once(". ").map_or("", |(first, _)| first).to_owned();
        let subject = format!("{} port {}", device.called(), port.number);
        Some(Finding::new(id, subject, what).brief(brief).why(why).fix(fix))
    });
    each.collect()
}

/// Whether a port speaks InfiniBand or Omni-Path.
fn is_infiniband(port: &IbPort) -> bool {
    port.layer == Some(Layer::InfiniBand)
}

/// Marks findings as keeping their port from its full rate.
fn limiting(odd: Vec<Finding>) -> Vec<Finding> {
    odd.into_iter().map(Finding::limiting_itself).collect()
}

/// The step that shows what both ends of a port's link support.
fn compare(inventory: &Inventory, device: &IbDevice, port: &IbPort) -> Step {
    let about = "what both ends support";
    if port.layer == Some(Layer::Ethernet) {
        return of_netdev(inventory, device, port, |name| format!("ethtool {name}")).about(about);
    }
    Step::on(None, format!("sudo iblinkinfo {}", at(device, port))).about(about)
}

/// The options that identify a port for the InfiniBand tools.
fn at(device: &IbDevice, port: &IbPort) -> String {
    format!("-C {} -P {}", word(&device.name), port.number)
}

/// The step that switches a port on or off. Without the device's name and the port's number the command would act on
/// the first port of the first device.
fn switch(device: &IbDevice, port: &IbPort, to: &str) -> Step {
    let at = at(device, port);
    Step::set(None, format!("sudo ibportstate {at} -D 0 {} {to}", port.number))
}

/// A step with a command for the network port of an RDMA port. If the network port is unknown, the command runs for
/// each network port of the card.
fn of_netdev(
    inventory: &Inventory,
    device: &IbDevice,
    port: &IbPort,
    command: impl Fn(&str) -> String,
) -> Step {
    match netdev(inventory, device, port) {
        Some(name) => Step::on(None, command(&word(name))),
        None => Step::on(
            None,
            format!(
                "for port in $(ls /sys/class/infiniband/{}/device/net); do {}; done",
                word(&device.name),
                command("$port")
            ),
        ),
    }
}

/// The network port of an RDMA port: the one that owns its addresses, or the only one on the same card.
fn netdev<'a>(inventory: &'a Inventory, device: &IbDevice, port: &'a IbPort) -> Option<&'a str> {
    let mut owners = port.gids.iter().map(|gid| gid.netdev.as_str());
    let owner = owners.find(|name| !name.is_empty());
    let nics = inventory.network.nics.iter();
    let of_card = nics.filter(|nic| !device.pci.is_empty() && nic.pci == device.pci);
    let of_card: Vec<&str> = of_card.map(|nic| nic.name.as_str()).collect();
    match (owner, &of_card[..]) {
        (Some(owner), _) => Some(owner),
        (None, [only]) => Some(only),
        (None, _) => None,
    }
}

/// Ports whose wire does not work.
pub(super) fn no_link(inventory: &Inventory) -> Vec<Finding> {
    ports(inventory, "ib-no-link", |device, port| {
        let (what, why, fix) = match port.physical? {
            PhysicalState::Polling => (
                "Polling: the port looks for another end and finds none",
                "no cable, or the other end is dead or switched off",
                Advice::new("seat the cable at both ends; see that the other host or switch is on"),
            ),
            // On Ethernet, any port without a carrier is reported like this, even a port that is not in use.
            //= Linux drivers/infiniband/hw/mlx5/main.c, mlx5_query_port_roce; bnxt_re/ib_verbs.c, bnxt_re_query_port
            PhysicalState::Disabled if port.layer != Some(Layer::Ethernet) => (
                "Disabled: the port is switched off",
                "a person or a program switched it off here or at the switch",
                Advice::new("switch it on")
                    .step(switch(device, port, "enable"))
                    .undo(switch(device, port, "disable")),
            ),
            PhysicalState::Training | PhysicalState::ErrorRecovery => (
                "the two ends cannot agree on width and speed",
                "a cable that is bad, too long or not made for this speed",
                Advice::new("try another cable, then a lower speed at both ends"),
            ),
            _ => return None,
        };
        Some((what.to_owned(), why, fix))
    })
}

/// Ports whose logical link is down while their wire works.
pub(super) fn held_down(inventory: &Inventory) -> Vec<Finding> {
    limiting(ports(inventory, "ib-held-down", |device, port| {
        if (port.physical?, port.state?) != (PhysicalState::LinkUp, LinkState::Down) {
            return None;
        }
        let what = "Down although the wire works (LinkUp): the link is held down on this side";
        let is_card = matches!(Function::of(inventory, device), Function::Card);
        let (why, fix) = if port.layer == Some(Layer::Ethernet) {
            let set = |to: &str| {
                let command = |name: &str| format!("sudo ip link set {name} {to}");
                let step = of_netdev(inventory, device, port, command);
                Step { effect: Effect::Set, ..step }
            };
            let up = Advice::new("switch its network port on");
            ("its network port is down", up.step(set("up")).undo(set("down")))
        } else if !is_card {
            (
                "the host keeps the link of a virtual function down until its link state is set to auto",
                function::set(inventory, device, "state auto", "state disable"),
            )
        } else if function::is_omni_path(inventory, device) {
            let bounce = Advice::new("switch the port off and on again");
            (HELD, bounce.step(Step::act(None, "sudo opaportconfig bounce")))
        } else {
            let fix = Advice::new("switch it on; if it stays down, load the driver again");
            let fix = fix
                .step(switch(device, port, "enable"))
                .step(Step::on(None, "sudo dmesg | tail -n 50").about("what the driver reports"));
            (HELD, fix.undo(switch(device, port, "disable")))
        };
        Some((what.to_owned(), why, fix))
    }))
}

const HELD: &str =
    "an administrator or the driver disabled the link; no subnet manager can set up such a port";

/// InfiniBand links that run with only one lane, or at the lowest speed.
pub(super) fn narrow(inventory: &Inventory) -> Vec<Finding> {
    limiting(ports(inventory, "ib-slow-link", |device, port| {
        let rate = port.in_use().filter(|_| is_infiniband(port))?;
        let compare = compare(inventory, device, port);
        let runs = format!("({} {}X {})", rate.rate, rate.width, rate.speed);
        let (what, why, fix) = match (rate.width, rate.speed.as_str()) {
            (1, _) => (
                "one lane in use",
                "ports have four: with a lane that fails, the link falls back to one",
                Advice::new("seat or change the cable").step(compare),
            ),
            (_, "SDR") => (
                "the slowest speed of all",
                "a bad cable, an end that is limited, or a kernel that cannot name newer speeds",
                Advice::new("compare both ends").step(compare),
            ),
            _ => return None,
        };
        Some((format!("{what} {runs}"), why, fix))
    }))
}

/// Ports that are slower than another active port of a board with the same id.
pub(super) fn below_its_like(inventory: &Inventory) -> Vec<Finding> {
    limiting(ports(inventory, "ib-slow-link", |device, port| {
        let own = port.in_use()?;
        let alike = all(inventory)
            .filter(|(d, p)| {
                !d.board.is_empty() && d.board == device.board && p.layer == port.layer
            })
            .filter_map(|(d, p)| Some((d, p.number, p.in_use()?.rate)));
        let (best, number, rate) = alike.max_by_key(|(_, _, rate)| *rate)?;
        (rate > own.rate).then(|| {
            (
                format!("runs at {}, {} port {number} at {rate}", own.rate, best.name),
                "both are on boards of the same kind: a cable, a switch port or a setting limits this one",
                Advice::new("compare both ends of the cable").step(compare(inventory, device, port)),
            )
        })
    }))
}

/// InfiniBand ports whose wire counts errors.
pub(super) fn faults(inventory: &Inventory) -> Vec<Finding> {
    ports(inventory, "link-errors", |device, port| {
        let faults = port.counters.iter();
        let faults = faults.filter(|c| c.value > 0 && FAULTS.contains(&c.name.as_str()));
        let faults: Vec<String> = faults.map(|c| format!("{} {}", c.name, c.value)).collect();
        let fix = || {
            let advice = Advice::new(
                "see whether they still grow; if so, change the cable or the transceiver",
            );
            if port.layer == Some(Layer::Ethernet) {
                let count = |name: &str| format!("ethtool -S {name}");
                return advice.step(of_netdev(inventory, device, port, count));
            }
            let nameless = device.name.is_empty();
            let place = match (nameless, port.lid, device.node_guid) {
                (true, Some(lid), _) => format!("{lid} {}", port.number),
                (true, None, Some(guid)) => format!("-G {guid} {}", port.number),
                _ => at(device, port),
            };
            let query = format!("sudo perfquery {place}");
            let clear = format!("{query} -R");
            advice
                .step(save(&query, "counters-before.txt").about("save the present counters"))
                .step(Step::act(None, clear).about("clear them; the file keeps what they were"))
                .step(Step::on(None, query).about("after a while"))
        };
        (!faults.is_empty()).then(|| {
            (
                format!("errors since the counters were last cleared: {}", faults.join(", ")),
                "if they still grow, the cable or a transceiver is bad",
                fix(),
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;
    use crate::infiniband::IbRate;
    use crate::nic::Counter;
    use linerate_units::Rate;

    fn port(
        state: LinkState,
        physical: PhysicalState,
        width: u32,
        speed: &str,
        gbps: u64,
    ) -> IbPort {
        IbPort {
            number: 1,
            state: Some(state),
            physical: Some(physical),
            layer: Some(Layer::InfiniBand),
            rate: Some(IbRate { rate: Rate(gbps * 1_000_000_000), width, speed: speed.to_owned() }),
            ..IbPort::default()
        }
    }

    fn device(name: &str, board: &str, port: IbPort) -> IbDevice {
        IbDevice {
            name: name.to_owned(),
            board: board.to_owned(),
            ports: vec![port],
            ..IbDevice::default()
        }
    }

    fn whats(devices: &[IbDevice]) -> Vec<String> {
        let mut machine = Inventory::default();
        machine.infiniband.devices = devices.to_vec();
        let found = find(&machine).into_iter();
        found.map(|o| format!("{}: {}", o.subject, o.what)).collect()
    }

    fn healthy() -> IbPort {
        port(LinkState::Active, PhysicalState::LinkUp, 4, "FDR", 56)
    }

    fn one(port: IbPort) -> Vec<String> {
        whats(&[device("mlx5_0", "B", port)])
    }

    #[test]
    fn a_healthy_port_is_not_odd() {
        assert_eq!(one(healthy()), [""; 0]);
        assert_eq!(one(IbPort::default()), [""; 0]);
    }

    #[test]
    fn polling_is_no_other_end_and_initializing_no_subnet_manager() {
        let polling = one(port(LinkState::Down, PhysicalState::Polling, 4, "FDR", 56));
        assert!(polling.len() == 1 && polling[0].contains("Polling"), "{polling:?}");
        let lost = port(LinkState::Initializing, PhysicalState::LinkUp, 4, "FDR", 56);
        let got = one(lost.clone());
        assert!(got.len() == 1 && got[0].contains("Initializing"), "{got:?}");
        // RoCE has no subnet manager.
        let roce = IbPort { layer: Some(Layer::Ethernet), ..lost };
        assert_eq!(one(roce), [""; 0]);
    }

    #[test]
    fn a_port_of_ethernet_without_a_carrier_is_not_switched_off() {
        let disabled = port(LinkState::Down, PhysicalState::Disabled, 4, "FDR", 56);
        let got = one(disabled.clone());
        assert!(got.len() == 1 && got[0].contains("switched off"), "{got:?}");
        let roce = IbPort { layer: Some(Layer::Ethernet), ..disabled };
        assert_eq!(one(roce), [""; 0]);
    }

    #[test]
    fn commands_name_the_device_and_its_port() {
        let fix = |layer, change: fn(&mut IbPort)| {
            let mut port = healthy();
            (port.number, port.layer) = (2, Some(layer));
            port.gids = vec![crate::infiniband::Gid {
                index: 0,
                gid: String::new(),
                kind: String::new(),
                netdev: "eth3".to_owned(),
            }];
            change(&mut port);
            let mut machine = Inventory::default();
            machine.infiniband.devices =
                vec![device("mlx5_1", "B", port), device("mlx5_2", "B", healthy())];
            machine.infiniband.devices[1].ports[0].layer = Some(layer);
            let found = find(&machine).into_iter().map(|odd| odd.to_do());
            found.collect::<Vec<_>>()
        };
        let slower = |port: &mut IbPort| port.rate.as_mut().unwrap().rate = Rate(40_000_000_000);
        let lane = |port: &mut IbPort| port.rate.as_mut().unwrap().width = 1;
        let errors = |port: &mut IbPort| {
            port.counters = vec![Counter { name: "symbol_error".to_owned(), value: 1 }];
        };
        assert_eq!(
            fix(Layer::InfiniBand, slower),
            [
                "compare both ends of the cable: what both ends support: sudo iblinkinfo -C mlx5_1 -P 2"
            ]
        );
        assert_eq!(
            fix(Layer::Ethernet, slower),
            ["compare both ends of the cable: what both ends support: ethtool eth3"]
        );
        assert_eq!(
            fix(Layer::InfiniBand, lane),
            ["seat or change the cable: what both ends support: sudo iblinkinfo -C mlx5_1 -P 2"]
        );
        assert_eq!(
            fix(Layer::InfiniBand, errors),
            [
                "see whether they still grow; if so, change the cable or the transceiver: save the present \
                 counters: sudo perfquery -C mlx5_1 -P 2 | tee counters-before.txt; clear them; the file keeps what they \
                 were: sudo perfquery -C mlx5_1 -P 2 -R; after a while: sudo perfquery -C mlx5_1 -P 2"
            ]
        );
        assert_eq!(
            fix(Layer::Ethernet, errors),
            [
                "see whether they still grow; if so, change the cable or the transceiver: ethtool -S eth3"
            ]
        );
    }

    #[test]
    fn a_command_names_the_network_port_of_an_rdma_port() {
        use crate::infiniband::Gid;
        use crate::nic::Nic;

        let command = |owner: &str, nics: &[&str]| {
            let mut off = port(LinkState::Down, PhysicalState::LinkUp, 4, "FDR", 56);
            off.layer = Some(Layer::Ethernet);
            off.gids = vec![Gid {
                index: 0,
                gid: String::new(),
                kind: "RoCE v2".to_owned(),
                netdev: owner.to_owned(),
            }];
            let mut machine = Inventory::default();
            let pci = "0000:03:00.0".to_owned();
            let nic =
                |name: &&str| Nic { name: (*name).to_owned(), pci: pci.clone(), ..Nic::default() };
            machine.network.nics = nics.iter().map(nic).collect();
            machine.infiniband.devices =
                vec![IbDevice { pci: pci.clone(), ..device("mlx5_0", "B", off) }];
            find(&machine)[0].fix.steps[0].command.clone()
        };
        assert_eq!(command("eth3", &[]), "sudo ip link set eth3 up");
        assert_eq!(command("", &["eth4"]), "sudo ip link set eth4 up");
        // The card has two network ports, and nothing shows which one belongs to the RDMA port.
        assert_eq!(
            command("", &["eth4", "eth5"]),
            "for port in $(ls /sys/class/infiniband/mlx5_0/device/net); do sudo ip link set $port up; done"
        );
    }

    #[test]
    fn one_lane_or_the_slowest_speed_is_odd_on_infiniband_only() {
        let active =
            |width, speed, gbps| port(LinkState::Active, PhysicalState::LinkUp, width, speed, gbps);
        assert!(one(active(1, "FDR", 14))[0].contains("one lane"));
        assert!(one(active(4, "SDR", 10))[0].contains("slowest"));
        assert_eq!(one(active(2, "HDR", 100)), [""; 0]);
        let roce = IbPort { layer: Some(Layer::Ethernet), ..active(1, "EDR", 25) };
        assert_eq!(one(roce), [""; 0]);
    }

    #[test]
    fn a_port_below_another_on_a_board_of_the_same_kind_is_odd() {
        let slow = port(LinkState::Active, PhysicalState::LinkUp, 4, "QDR", 40);
        let pair = |board: &str| {
            whats(&[device("mlx5_0", board, healthy()), device("mlx5_1", "B", slow.clone())])
        };
        let got = pair("B");
        assert!(got.len() == 1 && got[0].starts_with("mlx5_1 port 1: runs at 40 Gb/s"), "{got:?}");
        assert_eq!(pair("C"), [""; 0]);
    }

    #[test]
    fn errors_are_told_with_their_numbers() {
        let mut bad = healthy();
        let counter = |name: &str, value| Counter { name: name.to_owned(), value };
        bad.counters = vec![counter("symbol_error", 0), counter("port_xmit_wait", 9)];
        assert_eq!(one(bad.clone()), [""; 0]);
        bad.counters.push(counter("link_downed", 1));
        assert!(one(bad)[0].ends_with("link_downed 1"));
    }
}
