//! Packets that overtake each other: told from those that are lost, and where that costs nothing.

use super::loss::{first_limit, held_by_loss};
use super::*;

#[test]
fn packets_that_overtake_are_told_from_packets_that_are_lost() {
    // Of 100 segments sent again in a second.
    let at = |overtook: f64, by: &str| {
        let mut m = held_by_loss(1.9);
        let base = &mut m.directions[0].base;
        base.tcp.repeated = Some(100.0);
        base.tcp.reordered = Some(overtook);
        base.made[0].congestion = by.into();
        ["path-reordering", "path-loss"].map(|id| outcome(&m, id))
    };
    assert_eq!(at(19.0, "cubic"), ["clear", "suspect"]);
    assert_eq!(at(21.0, "cubic"), ["suspect", "suspect"]);
    assert_eq!(at(51.0, "cubic"), ["suspect", "suspect"]);
    // What is left of 1 % would leave 20 Mb/s, and 21.4: three times of what was carried.
    assert_eq!(at(88.0, "cubic"), ["suspect", "suspect"]);
    assert_eq!(at(89.0, "cubic"), ["suspect", "clear"]);
    assert_eq!(at(51.0, "bbr")[0], "clear", "it does not mind");
    // The receiver knows whether what was sent again had come; that packets overtook is nothing then.
    let told = |twice: f64, overtook: f64| {
        let mut m = held_by_loss(1.9);
        let tcp = &mut m.directions[0].base.tcp;
        tcp.repeated = Some(100.0);
        (tcp.needless, tcp.reordered) = (Some(twice), Some(overtook));
        ["path-reordering", "path-loss"].map(|id| outcome(&m, id))
    };
    assert_eq!(told(0.0, 133.0), ["clear", "suspect"]);
    assert_eq!(told(19.0, 133.0), ["clear", "suspect"]);
    assert_eq!(told(49.0, 0.0), ["clear", "suspect"], "more was lost");
    assert_eq!(told(51.0, 0.0), ["suspect", "suspect"]);
    assert_eq!(told(88.0, 0.0), ["suspect", "suspect"]);
    assert_eq!(told(89.0, 0.0), ["suspect", "clear"]);
    // A network that copies packets tells nothing by it.
    assert_eq!(told(149.0, 0.0), ["suspect", "clear"]);
    assert_eq!(told(151.0, 0.0), ["clear", "suspect"]);
    let mut m = held_by_loss(1.9);
    m.directions[0].base.tcp.reordered = None;
    assert_eq!(outcome(&m, "path-reordering"), "unknown");
    let base = &mut m.directions[0].base;
    (base.tcp.repeated, base.tcp.reordered) = (Some(100.0), Some(98.0));
    m.hosts[0].facts.congestion_available = ["cubic", "bbr"].map(str::to_owned).to_vec();
    tried(&mut m, "other-congestion", 4.5);
    let proved = Some(("path-reordering", Certainty::Proved));
    assert_eq!(first_limit(&m), proved);
}

#[test]
fn packets_that_overtake_cost_nothing_where_most_of_what_is_in_flight_stands_in_a_queue() {
    let at = |idle: Nanos, loaded: Nanos| {
        let mut m = held_by_loss(1.05);
        m.idle.as_mut().expect("timed").percentiles = vec![(50.0, idle)];
        let tcp = &mut m.directions[0].base.tcp;
        (tcp.min_rtt, tcp.rtt) = (Some(idle), Some(loaded));
        (tcp.repeated, tcp.needless) = (Some(100.0), Some(100.0));
        outcome(&m, "path-reordering")
    };
    let millis = Nanos::from_millis;
    assert_eq!(at(millis(20), millis(40)), "suspect");
    assert_eq!(at(millis(20), millis(41)), "clear");
    let micros = Nanos::from_micros;
    assert_eq!(at(millis(2), micros(6_900)), "suspect");
    assert_eq!(at(millis(2), micros(7_100)), "clear");
}
