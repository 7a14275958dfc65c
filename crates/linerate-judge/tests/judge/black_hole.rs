//! Tests of paths on which nothing arrives, or only small packets.

use super::loss::{first_limit, held_by_loss};
use super::*;

#[test]
fn large_packets_that_vanish_are_told_from_a_path_that_is_slow() {
    let holed = || {
        let mut m = held_by_loss(1.0);
        m.directions[0].base.goodput.mean = 0.0;
        m.directions[0].base.ticks = vec![0.0; 30];
        m
    };
    assert_eq!(outcome(&holed(), "mtu-black-hole"), "enough");
    assert_eq!(first_limit(&holed()), Some(("mtu-black-hole", Certainty::Supported)));
    for (arrived, answer) in [(0, "enough"), (1, "suspect"), (3, "suspect"), (4, "clear")] {
        let mut m = holed();
        m.directions[0].base.ticks[..arrived].fill(1e6);
        assert_eq!(outcome(&m, "mtu-black-hole"), answer, "in {arrived} of 30 samples");
    }
    // The port drops one packet per second, which may be of another program.
    let mut m = holed();
    let tcp = &mut m.directions[0].base.tcp;
    (tcp.segments, tcp.repeated) = (Some(1.0), Some(1.0));
    m.directions[0].base.local = vec![linerate_judge::model::Local {
        side: Side::Far,
        what: linerate_judge::model::LocalEvent::Arrival,
        subject: "eth0".into(),
        count: 6.0,
        per_sec: 2.0,
        bytes: None,
        meant: None,
    }];
    assert_eq!(outcome(&m, "mtu-black-hole"), "enough");
    let mut m = holed();
    m.directions[0].base.tcp.retransmitted = Some(0.0);
    assert_eq!(outcome(&m, "mtu-black-hole"), "clear", "nothing was tried again");
    m.directions[0].base.tcp.retransmitted = None;
    assert_eq!(outcome(&m, "mtu-black-hole"), "unknown");
    let mut m = holed();
    m.idle = None;
    assert_eq!(outcome(&m, "mtu-black-hole"), "unknown");
    let mut m = holed();
    let next = next_trial(&m, Direction::Forward, 0).expect("something to try");
    assert_eq!((next.kind.as_str(), next.after.mss), ("smaller-mss", Some(536)));
    tried(&mut m, "smaller-mss", 900.0);
    assert_eq!(first_limit(&m), Some(("mtu-black-hole", Certainty::Proved)));
}

#[test]
fn no_setting_is_advised_that_the_sender_has() {
    let advised = |probes| {
        let mut m = held_by_loss(1.0);
        m.hosts[0].facts.probes_mtu = probes;
        let hole = cause("mtu-black-hole").expect("a cause");
        let until = hole.advice(&m, Direction::Forward).remove(1);
        (until.steps.len(), until.what)
    };
    assert_eq!(advised(Some(false)), advised(None));
    let (steps, what) = advised(Some(false));
    assert_eq!((steps, what.as_str()), (2, "let TCP find the size that passes"));
    let (steps, what) = advised(Some(true));
    assert!(steps == 0 && what.contains("silent for about 3 s"), "{what}");
}

#[test]
fn segments_are_halved_down_to_what_every_link_carries() {
    let mss = |mss| {
        let mut base = load();
        base.packets = Some(Packets { payload: Bytes(mss), ..FULL });
        let trial = kind("smaller-mss").expect("a known kind");
        propose(trial, &model(base), Direction::Forward, 0).map(|t| t.after.mss)
    };
    assert_eq!(mss(8948), Some(Some(4474)));
    assert_eq!(mss(1000), Some(Some(536)));
    assert_eq!(mss(536), None);
}

#[test]
fn where_nothing_arrives_no_buffer_is_blamed() {
    let full = |arrived: usize| {
        let mut m = model(load());
        let base = &mut m.directions[0].base;
        base.tcp.sndbuf_limited = Some(0.9);
        base.tcp.rwnd_limited = Some(0.9);
        base.ticks = vec![0.0; 30];
        base.ticks[..arrived].fill(1e6);
        ["send-buffer", "receive-window"].map(|id| outcome(&m, id))
    };
    assert_eq!(full(3), ["clear"; 2]);
    assert!(full(4).iter().all(|reported| *reported != "clear"), "{:?}", full(4));
}
