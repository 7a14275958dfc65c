//! Tests of changes of the far host's settings: they are made only if its user allowed them, within bounds, and are
//! undone however the session ends.

use linerate_plan::SetPlan;
use linerate_plan::change::{HostChange, Setting};
use linerate_plan::path::{Direction, Side};

use super::place::{NEW, OLD, Place, larger};
use super::sessions::{go_on, step, stream};
use super::*;
use crate::link::{Link, LinkError};

/// Returns a set that requests a change of a host setting.
fn changed(id: u32, change: HostChange) -> SetPlan {
    let mut plan = stream(id, Direction::Forward, 1);
    plan.knobs.host = Some(change);
    plan
}

fn connected(server: &Harness) -> Client {
    server.connect_with(server.key.as_ref()).unwrap()
}

fn refused<T: std::fmt::Debug>(result: Result<T, LinkError>) -> (String, String) {
    match result {
        Err(LinkError::Refused { what, hint }) => (what, hint),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_setting_is_another_one_exactly_while_its_set_is_used() {
    let place = Place::new();
    let server = Harness::changeable(place.ledger());
    let mut client = Client::connect(&ClientOptions {
        changes: Some(place.ledger()),
        ..server.options(server.key.as_ref())
    })
    .unwrap();
    let far = &client.hosts().unwrap()[1].facts;
    assert!(far.may_change(Setting::TcpRmem) && !far.may_change(Setting::TcpWmem));
    client.prepare(&stream(0, Direction::Forward, 1)).unwrap();
    assert_eq!(place.value(), OLD);
    client.prepare(&changed(1, larger())).unwrap();
    assert_eq!(place.value(), NEW);
    server.logged("an experiment sets tcp-rmem to 2097152");
    for (set, value) in [(0, OLD), (1, NEW), (1, NEW), (0, OLD), (1, NEW)] {
        let step = client.step(&step(&[set], 20), &mut go_on).unwrap();
        assert_eq!(step.trouble, None);
        assert_eq!(place.value(), value, "after a step of set {set}");
    }
    client.release(1).unwrap();
    assert_eq!(place.value(), OLD);
    client.prepare(&changed(2, larger())).unwrap();
    drop(client);
    assert!(eventually(|| place.value() == OLD && place.journals().is_empty()));
}

#[test]
fn a_run_that_was_not_asked_to_finds_nothing_to_change() {
    let place = Place::new();
    let server = Harness::changeable(place.ledger());
    let hosts = connected(&server).hosts().unwrap();
    assert!(hosts.iter().all(|host| host.facts.changeable.is_empty()));
}

#[test]
fn without_leave_nothing_is_changed() {
    let server = Harness::keyed();
    let mut client = connected(&server);
    assert!(client.hosts().unwrap()[1].facts.changeable.is_empty());
    let (what, hint) = refused(client.prepare(&changed(0, larger())));
    assert!(what.contains("may not be changed"), "{what}");
    assert!(hint.contains("--allow-changes"), "{hint}");
    client.prepare(&stream(0, Direction::Forward, 1)).unwrap();
    // A change on the near host is refused too, because its user did not allow changes either.
    let side = Side::Near;
    refused(client.prepare(&changed(1, HostChange { side, ..larger() })));
    client.step(&step(&[0], 20), &mut go_on).unwrap();
}

#[test]
fn what_is_out_of_bounds_is_refused_and_the_session_goes_on() {
    let place = Place::new();
    let server = Harness::changeable(place.ledger());
    let mut client = connected(&server);
    for value in [0, 4095, (1 << 30) + 1, u64::MAX] {
        let (what, _) = refused(client.prepare(&changed(0, HostChange { value, ..larger() })));
        assert!(what.contains("tcp-rmem"), "{what}");
    }
    let setting = Setting::SendOffloads;
    refused(client.prepare(&changed(0, HostChange { setting, value: 2, ..larger() })));
    assert_eq!(place.value(), OLD);
    client.prepare(&stream(0, Direction::Forward, 1)).unwrap();
}

#[test]
fn a_server_that_is_stopped_sets_it_back() {
    let place = Place::new();
    let server = Harness::changeable(place.ledger());
    let mut client = connected(&server);
    client.prepare(&changed(0, larger())).unwrap();
    assert_eq!(place.value(), NEW);
    server.stop.request();
    assert!(eventually(|| server.server.sessions() == 0));
    assert_eq!(place.value(), OLD);
}
