//! Rules about two readings of a host, each on both sides of its threshold.

use super::answers::answer;
use super::*;
use crate::facts::nic::{Counter, Nic};

fn with(nic: Nic) -> Inventory {
    let mut host = Inventory::default();
    host.network.nics = vec![Nic {
        name: "eth0".to_owned(),
        ..nic
    }];
    host
}

/// A counter of a port that grew from 1000.
fn counted(driver: &str, name: &str, more: u64) -> Inventory {
    let count = |value: u64| {
        vec![Counter {
            name: name.to_owned(),
            value,
        }]
    };
    let mut nic = Nic {
        driver: driver.to_owned(),
        counters: count(1_000 + more),
        ..Nic::default()
    };
    nic.before.counters = count(1_000);
    with(nic)
}

fn lossy(direction: Direction, retransmits: u64) -> Vec<Source> {
    near(vec![changed(1, 2.0, |one| {
        one.direction = direction;
        (one.seconds, one.retransmits) = (Some(10.0), Some(retransmits));
    })])
}

#[test]
fn damage_that_grew_as_a_transfer_lost_is_the_link() {
    let of = |host: Inventory, direction, lost| answer(lossy(direction, lost), host);
    let crc = |more| counted("", "rx_crc_errors", more);
    assert_eq!(of(crc(450), Direction::Reverse, 900), "path-loss");
    assert_eq!(of(crc(2_700), Direction::Reverse, 900), "path-loss");
    // More or fewer than were lost: other traffic, or another fault.
    assert_eq!(of(crc(449), Direction::Reverse, 900), "path-loss|path-rate");
    assert_eq!(
        of(crc(2_701), Direction::Reverse, 900),
        "path-loss|path-rate"
    );
    // The other direction, no growth, one reading, next to no loss.
    assert_eq!(of(crc(900), Direction::Forward, 900), "unknown");
    assert_eq!(of(crc(0), Direction::Reverse, 900), "unknown");
    let mut once = crc(900);
    once.network.nics[0].before.counters.clear();
    assert_eq!(of(once, Direction::Reverse, 900), "unknown");
    // 1e-5 of 1.7 million segments.
    assert_eq!(of(crc(18), Direction::Reverse, 18), "path-loss");
    assert_eq!(of(crc(17), Direction::Reverse, 17), "unknown");
    // Names of drivers, and those of nothing that the wire damaged.
    for name in ["rx_fcs_errors", "rx_symbol_err_phy", "align_errors"] {
        assert_eq!(
            of(counted("", name, 900), Direction::Reverse, 900),
            "path-loss",
            "{name}"
        );
    }
    for name in [
        "rx_missed_errors",
        "tx_crc_errors",
        "rx_csum_offload_errors",
        "rx_packets",
    ] {
        assert_eq!(
            of(counted("", name, 900), Direction::Reverse, 900),
            "unknown",
            "{name}"
        );
    }
}

#[test]
fn damage_is_of_the_direction_and_the_side_of_the_port() {
    let material = Material {
        sources: lossy(Direction::Forward, 900),
        far: counted("", "rx_crc_errors", 900),
        ..Material::default()
    };
    let headline = explain(&material).headline.unwrap();
    assert_eq!(headline.cause, Some("path-loss"));
    assert_eq!(
        (headline.direction, headline.side),
        (Some(Direction::Forward), Some(Side::Far))
    );
}
