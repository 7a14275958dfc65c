//! Tests of which stranger is dropped if there is no free place.

use std::io::Read;
use std::sync::Arc;

use super::*;

const ANYONE: Bounds<'static> =
    Bounds { allow: &[], all: 9, each_address: 9, time: Duration::from_secs(60) };

/// A doorman that admits nobody.
struct Deaf;

impl Doorman for Deaf {
    type Received = ();
    const LATE: Refusal = "late";
    const CROWDED: Refusal = "crowded";
    fn hear(&self, _: &mut Stranger<()>) -> Result<bool, Refusal> {
        Ok(false)
    }
    fn admit(&self, _: Stranger<()>) -> Result<(), Refusal> {
        Ok(())
    }
}

/// Makes connections from these addresses, one after the other; returns the clients' ends.
fn arrive(from: &[&str], bounds: Bounds<'_>) -> Vec<TcpStream> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let stop = Stop::new().unwrap();
    let lines = Lines::new(&(Arc::new(|_: &str| ()) as _), "");
    let listeners = [listener];
    let mut strangers = Strangers::new(&listeners, &stop, bounds, &lines, Deaf);
    let mut ends = Vec::new();
    for from in from {
        ends.push(TcpStream::connect(address).unwrap());
        let (stream, _) = listeners[0].accept().unwrap();
        strangers.arrive(stream, from.parse().unwrap());
    }
    let gone = strangers.tally.sent_away + strangers.tally.not_allowed;
    assert_eq!(strangers.inside.len() + gone as usize, from.len());
    // Strangers that were not dropped get a last byte, which distinguishes them from dropped ones.
    for stranger in strangers.inside {
        io::Write::write_all(&mut &stranger.stream, b"!").unwrap();
    }
    ends
}

/// Returns for each of these addresses whether its connection was not dropped.
fn stayed(from: &[&str], all: usize, each_address: usize) -> Vec<bool> {
    let bounds = Bounds { all, each_address, ..ANYONE };
    words(arrive(from, bounds))
}

fn words(ends: Vec<TcpStream>) -> Vec<bool> {
    let word = |mut end: TcpStream| end.read(&mut [0; 1]).unwrap() == 1;
    ends.into_iter().map(word).collect()
}

#[test]
fn a_crowd_crowds_out_itself() {
    let from = ["10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.2", "10.0.0.2"];
    assert_eq!(stayed(&from, 9, 3), [true, false, true, true, true]);
    assert_eq!(stayed(&from, 9, 4), [true; 5]);
    // All addresses of one IPv6 /64 count as one address.
    let from = ["fe80::1", "fe80::ffff:1:2:3", "fe80:0:0:1::1"];
    assert_eq!(stayed(&from, 9, 1), [false, true, true]);
}

#[test]
fn where_all_places_are_taken_the_largest_crowd_gives_one() {
    let from = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.3", "10.0.0.4"];
    assert_eq!(stayed(&from, 4, 3), [true, true, false, true, true]);
    assert_eq!(stayed(&from, 5, 3), [true; 5]);
    // If no address has more strangers than another, the oldest stranger is dropped.
    let from = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
    assert_eq!(stayed(&from, 2, 2), [false, true, true]);
}

#[test]
fn only_those_come_in_whose_network_is_allowed() {
    let allow = ["10.1.0.0/16", "fe80::/64"].map(|text| text.parse().unwrap());
    let bounds = Bounds { allow: &allow, ..ANYONE };
    let from = ["10.1.0.0", "10.1.255.255", "10.0.255.255", "10.2.0.0"];
    assert_eq!(words(arrive(&from, bounds)), [true, true, false, false]);
    let from = ["fe80::1", "fe80:0:0:1::", "0.0.0.0"];
    assert_eq!(words(arrive(&from, bounds)), [true, false, false]);
    assert_eq!(words(arrive(&from, ANYONE)), [true; 3]);
}

#[test]
fn a_network_of_addresses_is_one_group() {
    let group = |text: &str| group(text.parse().unwrap());
    assert_eq!(group("fe80::1"), group("fe80::ffff:1:2:3"));
    assert_ne!(group("fe80:0:0:1::1"), group("fe80::1"));
    assert_ne!(group("10.0.0.1"), group("10.0.0.2"));
}
