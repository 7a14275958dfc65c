//! Tests that observe invented connections, and real ones.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use linerate_facts::metric::{TCP_BYTES_ACKED, TCP_BYTES_RECEIVED};
use rustix::io::Errno;

use super::*;
use crate::testing::{Fake, attr, msg};
use crate::{Capture, Live, Replay};

const SECOND: u64 = 1_000_000_000;

/// Makes the message about a connection from port `port` to 10.0.0.2:22, with the bytes that were acknowledged and that
/// wait.
fn result_of(port: u16, acked: u64, queued: u32) -> Vec<u8> {
    let mut body = vec![0; 72];
    body[0] = 2;
    body[4..6].copy_from_slice(&port.to_be_bytes());
    body[6..8].copy_from_slice(&22u16.to_be_bytes());
    body[8..12].copy_from_slice(&[10, 0, 0, 1]);
    body[24..28].copy_from_slice(&[10, 0, 0, 2]);
    body[44..48].copy_from_slice(&u32::from(port).to_ne_bytes());
    body[60..64].copy_from_slice(&queued.to_ne_bytes());
    body[68..72].copy_from_slice(&u32::from(port).to_ne_bytes());
    let mut info = vec![0; 248];
    info[120..128].copy_from_slice(&acked.to_ne_bytes());
    msg(20, &[body, attr(2, &info), attr(7, &[0; 36])].concat())
}

fn id(port: u16) -> ConnectionId {
    ConnectionId {
        local: format!("10.0.0.1:{port}").parse().unwrap(),
        remote: "10.0.0.2:22".parse().unwrap(),
        bound: 0,
        cookie: u64::from(port),
    }
}

/// A machine that lists these connections in the first and in the second round.
fn machine(first: &[Vec<u8>], second: &[Vec<u8>]) -> Fake {
    let (first, second) = (first.concat(), second.concat());
    Fake::default()
        .reply(Query::ConnectionsV4, &[&first, &second])
        .reply(Query::ConnectionsV6, &[b"", b""])
}

/// Observes connections for two rounds, one second apart, and one sample after another second.
fn look(fake: Fake, wanted: Wanted) -> Seen {
    let mut flows = Flows::new(Arc::new(Replay::new(fake.0)), wanted, 2);
    flows.round(0).unwrap();
    flows.round(SECOND).unwrap();
    flows.sample(2 * SECOND);
    flows.finish()
}

fn ports(seen: &Seen) -> Vec<u16> {
    seen.flows.iter().map(|f| f.local.port()).collect()
}

#[test]
fn the_busiest_are_watched_and_idle_ones_are_not() {
    // 50 kb/s is idle, and 200 kb/s is busy.
    let first = [result_of(1, 0, 0), result_of(2, 0, 0), result_of(3, 0, 0), result_of(4, 0, 0)];
    let second = [
        result_of(1, 6_250, 0),
        result_of(2, 25_000, 0),
        result_of(3, 12_500, 0),
        result_of(4, 50_000, 0),
    ];
    let both = |port, rate: u64| [result_of(port, 0, 0), result_of(port, rate, 0)];
    let mut fake = machine(&first, &second);
    for (port, rate) in [(2, 25_000), (3, 12_500), (4, 50_000)] {
        let [a, b] = both(port, rate);
        fake = fake.reply(Query::Connection(id(port)), &[&a, &b]);
    }
    let seen = look(fake, Wanted::All);
    assert_eq!(seen.connections, 4);
    assert_eq!(ports(&seen), [4, 2], "two were asked for");
}

#[test]
fn what_waits_and_does_not_move_is_a_symptom() {
    let first = [result_of(1, 5, 1000), result_of(2, 5, 0)];
    let fake = machine(&first, &first);
    let stuck = result_of(1, 5, 1000);
    let fake = fake.reply(Query::Connection(id(1)), &[&stuck, &stuck]);
    assert_eq!(ports(&look(fake, Wanted::All)), [1]);
}

#[test]
fn a_connection_that_ends_is_kept_as_far_as_it_went() {
    let (first, second) = ([result_of(1, 0, 0)], [result_of(1, 1_000_000, 0)]);
    let mut fake = machine(&first, &second);
    let gone = Query::Connection(id(1));
    let mut other = Fake::default().refusing(gone, Errno::NOENT);
    let rows = [result_of(1, 1_000_000, 0), result_of(1, 2_000_000, 0)];
    fake = fake.reply(gone, &[&rows[0], &rows[1]]);
    let refused = other.0.queries.remove(0).1;
    fake.0.queries.last_mut().unwrap().1.extend(refused);
    let mut flows = Flows::new(Arc::new(Replay::new(fake.0)), Wanted::All, 2);
    flows.round(0).unwrap();
    flows.round(SECOND).unwrap();
    flows.sample(2 * SECOND);
    flows.sample(3 * SECOND);
    let seen = flows.finish();
    let [flow] = &seen.flows[..] else { panic!("{seen:?}") };
    assert!(flow.ended);
    assert_eq!(flow.readings.tables[0].at.len(), 2);
    assert_eq!(flow.readings.gaps.iter().filter(|g| g.what == "tcp").count(), 0);
    // A connection that ended before it was read twice is not reported.
    let fake = machine(&first, &second).refusing(gone, Errno::STALE);
    assert_eq!(ports(&look(fake, Wanted::All)), [0_u16; 0]);
}

#[test]
fn a_filter_takes_an_end_with_its_address_and_port() {
    let (first, second) = ([result_of(1, 0, 0)], [result_of(1, 1_000_000, 0)]);
    let end = |ip: &str, port| Wanted::End { addresses: vec![ip.parse().unwrap()], port };
    for (wanted, count) in [
        (end("10.0.0.2", None), 1),
        (end("10.0.0.2", Some(22)), 1),
        (end("10.0.0.1", Some(1)), 1),
        (end("10.0.0.1", Some(22)), 0),
        (end("10.0.0.3", None), 0),
        (Wanted::Process("curl".to_owned()), 0),
    ] {
        let seen = look(machine(&first, &second), wanted.clone());
        assert_eq!(seen.connections, count, "{wanted:?}");
    }
}

#[test]
fn what_cannot_be_understood_is_a_gap_and_a_refusal_an_error() {
    let cut = result_of(1, 0, 0)[..60].to_vec();
    let old = msg(20, &[result_of(1, 0, 0)[16..88].to_vec(), attr(2, &[1; 104])].concat());
    for (reply, why) in [(cut, "cut short"), (old, "does not count")] {
        let round = [reply];
        let seen = look(machine(&round, &round), Wanted::All);
        let [gap] = &seen.gaps[..] else { panic!("{seen:?}") };
        assert!(gap.why.contains(why), "{gap:?}");
    }
    let refused = Fake::default().refusing(Query::ConnectionsV4, Errno::NOENT);
    let mut flows = Flows::new(Arc::new(Replay::new(refused.0)), Wanted::All, 2);
    let error = flows.round(0).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::NOENT));
    let without = machine(&[], &[]).refusing(Query::ConnectionsV6, Errno::PERM);
    let mut flows = Flows::new(Arc::new(Replay::new(without.0)), Wanted::All, 2);
    flows.round(0).unwrap();
    assert_eq!(flows.finish().gaps[0].what, "connections of IPv6");
}

/// Observes a real transfer over loopback.
fn real(machine: Arc<dyn Machine>, port: u16, pause: impl Fn()) -> Seen {
    let wanted = Wanted::End { addresses: Vec::new(), port: Some(port) };
    let mut flows = Flows::new(machine, wanted, 2);
    flows.round(0).unwrap();
    pause();
    flows.round(SECOND).unwrap();
    pause();
    flows.sample(2 * SECOND);
    flows.round(2 * SECOND).unwrap();
    flows.finish()
}

#[test]
fn a_transfer_is_seen_at_both_ends_with_its_process_and_replays_the_same() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut sender = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let end = sender.try_clone().unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    let reading =
        thread::spawn(move || while receiver.read(&mut [0; 8192]).is_ok_and(|n| n > 0) {});
    let writing = thread::spawn(move || while sender.write_all(&[0; 8192]).is_ok() {});
    let machine = Arc::new(Capture::new(Live::new()));
    let seen = real(machine.clone(), port, || {
        thread::sleep(Duration::from_millis(100));
    });
    assert_eq!(seen.flows.len(), 2, "{seen:?}");
    for flow in &seen.flows {
        let own = std::process::id();
        assert!(flow.owners.iter().any(|o| o.pid == own), "{:?}", flow.owners);
        let sends = flow.remote.port() == port;
        let counter = if sends { TCP_BYTES_ACKED } else { TCP_BYTES_RECEIVED };
        let rows = flow.readings.tables[0].column(counter).unwrap();
        assert!(rows.last() > rows.first(), "{rows:?}");
    }
    let replayed = real(Arc::new(Replay::new(machine.captured())), port, || {});
    assert_eq!(replayed, seen);
    end.shutdown(Shutdown::Both).unwrap();
    writing.join().unwrap();
    reading.join().unwrap();
}
