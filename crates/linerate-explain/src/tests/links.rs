//! Tests of the rules about hardware, links and hosts.

use super::*;
use linerate_facts::finding::{Finding, Stands};
use linerate_facts::infiniband::{IbDevice, IbPort, IbRate, Layer, LinkState, PhysicalState};
use linerate_facts::nic::{Duplex, Nic};

#[test]
fn a_line_code_that_is_taken_off_twice_is_doubted() {
    let says = |slot: (u32, u32), claim: &str| {
        let all = beside(hardware(23.0, 27.0, slot.0, slot.1), &[(1, 26.4)], &[claim]);
        find(&all, "coded-twice").map(|remark| remark.finding.what.clone())
    };
    let words = says((2, 8), "ceiling=3.2GB/s").unwrap();
    assert!(
        words.contains("0.8 of 32 Gb/s (4.00 GB/s), which its 8 lanes carry after 8b/10b"),
        "{words}"
    );
    for (slot, claim) in [
        ((2, 8), "ceiling=4GB/s"),
        ((2, 8), "ceiling=3GB/s"),
        ((2, 4), "ceiling=3.2GB/s"),
        ((3, 4), "ceiling=3.88GB/s"),
        ((2, 8), "goodput>=3.2GB/s"),
    ] {
        assert_eq!(says(slot, claim), None, "{slot:?} {claim}");
    }
}

#[test]
fn the_best_rate_stands_beside_the_ceiling_of_the_hardware() {
    let says = |best: f64| {
        let all = beside(hardware(9.4, 9.5, 3, 8), &[(1, best)], &[]);
        find(&all, "hardware").unwrap().finding.what.clone()
    };
    for (best, part) in [
        (9.3, "is reached: 9.3 Gb/s"),
        (9.0, "is reached within 10 %"),
        (8.3, "is not the limit: the best is 8.3 Gb/s"),
        (11.0, "more than the hardware as described carries"),
    ] {
        assert!(says(best).contains(part), "{best}: {}", says(best));
    }
    let wide = beside(hardware(5.0, 9.5, 3, 8), &[(1, 7.0)], &[]);
    assert!(find(&wide, "hardware").unwrap().finding.what.contains("may be the limit"));
    let nothing = beside(Hardware::default(), &[(1, 7.0)], &[]);
    assert_eq!(find(&nothing, "hardware"), None);
}

/// Ids of the remarks on a transfer, beside these facts of the client's host.
fn beside_facts(near: Inventory) -> Vec<&'static str> {
    explain_beside(near).into_iter().map(|found| found.id).collect()
}

fn explain_beside(near: Inventory) -> Vec<Finding> {
    let material = Material {
        sources: vec![source(Side::Near, vec![tcp(1, 0.09)])],
        near,
        ..Material::default()
    };
    explain(&material).remarks.into_iter().map(|remark| remark.finding).collect()
}

#[test]
fn a_slow_port_is_named_beside_results_and_a_port_that_is_not_set_up_is_not() {
    let nic = |duplex| {
        let mut nic = Nic { name: "eth0".to_owned(), up: true, ..Nic::default() };
        nic.link.duplex = Some(duplex);
        let mut inventory = Inventory::default();
        inventory.network.nics.push(nic);
        inventory
    };
    assert!(beside_facts(nic(Duplex::Half)).contains(&"duplex"));
    assert!(!beside_facts(nic(Duplex::Full)).contains(&"duplex"));
    // A port that waits for a subnet manager cannot have carried the results.
    let mut waiting = Inventory::default();
    waiting.infiniband.devices.push(IbDevice {
        name: "mlx4_0".to_owned(),
        ports: vec![IbPort {
            number: 1,
            state: Some(LinkState::Initializing),
            physical: Some(PhysicalState::LinkUp),
            layer: Some(Layer::InfiniBand),
            ..IbPort::default()
        }],
        ..IbDevice::default()
    });
    let odd = odd::find(&waiting);
    assert_eq!(odd[0].id, "unserved-port");
    let reported = explain_beside(waiting).into_iter().find(|found| found.id == "unserved-port");
    assert_eq!(reported.unwrap().stands, Stands::Doubt);
}

#[test]
fn a_transfer_by_verbs_is_held_against_the_link_of_the_facts() {
    let ids = |gigabits: f64| {
        let rate = Rate((gigabits * 1e9) as u64);
        let one = Transfer::new(Carrier::Rdma, Direction::Forward, rate, Counted::Receiver);
        let mut near = Inventory::default();
        near.infiniband.devices.push(IbDevice {
            ports: vec![IbPort {
                rate: Some(IbRate { rate: Rate(100_000_000_000), width: 0, speed: String::new() }),
                ..IbPort::default()
            }],
            ..IbDevice::default()
        });
        let material = Material {
            sources: vec![source(Side::Near, vec![Measured::Transfer(Box::new(one))])],
            near,
            ..Material::default()
        };
        let remarks = explain(&material).remarks.into_iter();
        remarks.map(|remark| remark.finding.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(47.1), ["link-unused"]);
    assert_eq!(ids(98.4), ["at-a-ceiling"]);
    assert_eq!(ids(92.0), [""; 0], "neither full nor far from it");
}
