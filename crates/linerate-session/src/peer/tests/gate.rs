//! Tests of the gate with unauthenticated connections of every kind.

use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use linerate_record::wire::preamble::{
    HELLO_LEN, Hello, Kind, REPLY_LEN, Reply, VERSIONS, Versions,
};

use super::*;
use crate::peer::PORT;
use crate::peer::handshake::{MESSAGE_LEN, Preamble, status};

const HELLO: Hello = Hello { versions: Versions { low: 1, high: 1 }, kind: Kind::Control };

fn hint(result: Result<Client, PeerError>) -> (String, String) {
    let error = result.err().expect("no session");
    (error.to_string(), error.hint())
}

#[test]
fn a_wrong_key_is_refused_in_words() {
    let server = Harness::keyed();
    let (what, hint) = hint(server.connect_with(Some(&Key::generate())));
    assert!(what.contains("does not accept the key"), "{what}");
    let port = server.options(None).target.port;
    assert_eq!(hint, format!("linerate pair 127.0.0.1 --port {port}"));
    server.logged("wrong key");
    server.still_serves();
}

#[test]
fn no_key_is_refused_in_words() {
    let server = Harness::keyed();
    let (what, hint) = hint(server.connect_with(None));
    assert!(what.contains("requires a key"), "{what}");
    let port = server.options(None).target.port;
    assert_eq!(hint, format!("linerate pair 127.0.0.1 --port {port}"));
}

#[test]
fn the_usual_port_is_not_named_where_a_key_is_wanted() {
    let needs_key =
        PeerError::NeedsKey { address: ([10, 0, 0, 1], PORT).into(), host: "brook".to_owned() };
    assert_eq!(needs_key.hint(), "linerate pair brook");
}

#[test]
fn an_open_server_must_be_asked_for() {
    let server = Harness::start(None, Limits::default());
    let options = ClientOptions { open: false, ..server.options(None) };
    let (what, hint) = hint(Client::connect(&options));
    assert!(what.contains("is open"), "{what}");
    assert!(hint.contains("linerate pair 127.0.0.1") && hint.contains("--open"), "{hint}");
    assert!(server.connect_with(None).is_ok());
}

#[test]
fn an_open_server_is_not_taken_for_the_one_the_key_is_for() {
    let server = Harness::start(None, Limits::default());
    let (what, hint) = hint(server.connect_with(Some(&Key::generate())));
    assert!(what.contains("is open"), "{what}");
    assert!(hint.contains("--open"), "{hint}");
    let mut stream = server.dial();
    stream.write_all(&HELLO.encode()).unwrap();
    let mut reply = [0; REPLY_LEN];
    stream.read_exact(&mut reply).unwrap();
    assert!(String::from_utf8_lossy(&reply).contains("open to anyone"));
}

#[test]
fn the_public_key_of_open_servers_opens_no_other() {
    let server = Harness::keyed();
    let (what, _) = hint(server.connect_with(Some(&Key::open())));
    assert!(what.contains("does not accept the key"), "{what}");
}

#[test]
fn a_full_server_says_that_it_is_busy() {
    let limits = Limits { sessions: 1, ..Limits::default() };
    let server = Harness::start(Some(Key::generate()), limits);
    let key = server.key.as_ref();
    let first = crate::peer::client::verify(&target(server.address), None, key.unwrap());
    first.unwrap();
    assert!(eventually(|| server.server.sessions() == 0));
    let held = crate::peer::client::hold(&target(server.address), key.unwrap()).unwrap();
    let (what, hint) = hint(server.connect_with(key));
    assert!(what.contains("busy"), "{what}");
    assert!(!hint.is_empty());
    drop(held);
    assert!(eventually(|| server.server.sessions() == 0));
    server.still_serves();
}

#[test]
fn what_is_not_linerate_is_closed_without_an_answer() {
    let server = Harness::keyed();
    for bytes in [
        b"GET / HTTP/1.1\r\nHost: brook\r\n\r\n".to_vec(),
        b"SSH-2.0-OpenSSH_9.9\r\n padding padding".to_vec(),
        vec![0; HELLO_LEN],
        vec![0xFF; 10_000],
    ] {
        let mut stream = server.dial();
        // The server may close the connection before all bytes are written.
        let _ = stream.write_all(&bytes);
        assert!(ends(&stream, 0));
    }
    server.logged("does not speak the linerate protocol");
    server.still_serves();
}

#[test]
fn another_version_is_told_ours_and_closed() {
    let server = Harness::keyed();
    let mut stream = server.dial();
    let versions = Versions { low: 7, high: 9 };
    let hello = Hello { versions, ..HELLO };
    stream.write_all(&hello.encode()).unwrap();
    let mut reply = [0; REPLY_LEN];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(Reply::decode(&reply).unwrap().versions, VERSIONS);
    assert!(ends(&stream, 0));
    server.logged("other versions");
}

#[test]
fn who_says_nothing_is_dropped() {
    let server = Harness::hasty(Duration::from_millis(200));
    let silent: Vec<_> = (0..5).map(|_| server.dial()).collect();
    assert!(silent.iter().all(|s| ends(s, 0)));
    server.logged("did not prove itself in time");
    server.still_serves();
}

#[test]
fn the_budget_is_for_all_bytes_together() {
    let server = Harness::hasty(Duration::from_millis(300));
    let mut stream = server.dial();
    let mut sent = 0;
    // If a byte every now and then were enough, the connection would last many times its time limit.
    for byte in HELLO.encode() {
        if stream.write_all(&[byte]).is_err() {
            break;
        }
        sent += 1;
        thread::sleep(Duration::from_millis(50));
    }
    assert!(sent < HELLO_LEN, "all bytes were taken");
    server.still_serves();
}

#[test]
fn half_a_handshake_is_dropped() {
    let server = Harness::hasty(Duration::from_millis(200));
    let mut stream = server.dial();
    stream.write_all(&HELLO.encode()).unwrap();
    stream.write_all(&[1; MESSAGE_LEN - 1]).unwrap();
    assert!(ends(&stream, REPLY_LEN));
    server.logged("in time");
}

#[test]
fn a_recorded_handshake_opens_nothing() {
    let server = Harness::keyed();
    let shake = |message: Option<[u8; MESSAGE_LEN]>| {
        let mut stream = server.dial();
        stream.write_all(&HELLO.encode()).unwrap();
        let mut reply = [0; REPLY_LEN];
        stream.read_exact(&mut reply).unwrap();
        let hello = HELLO.encode();
        let key = server.key.as_ref().unwrap();
        let message = message.unwrap_or_else(|| Preamble { hello, reply }.initiate(key).unwrap().0);
        stream.write_all(&message).unwrap();
        let mut said = [9];
        stream.read_exact(&mut said).unwrap();
        (message, said[0])
    };
    let (recorded, first) = shake(None);
    assert_eq!(first, status::OK);
    assert_eq!(shake(Some(recorded)).1, status::WRONG_KEY);
}

#[test]
fn a_crowd_from_one_address_loses_its_oldest() {
    let limits = Limits { proof: LONG, pending_per_address: 4, ..Limits::default() };
    let server = Harness::start(Some(Key::generate()), limits);
    let crowd: Vec<_> = (0..8).map(|_| server.dial()).collect();
    assert!(crowd[..4].iter().all(|s| ends(s, 0)));
    server.logged("too many connections without proof");
    // The newest connections are still open, and a client with the key is still admitted.
    server.still_serves();
}

#[test]
fn a_stop_ends_an_idle_server_and_its_strangers() {
    let mut server = Harness::keyed();
    let mut stranger = server.dial();
    // Once the connection has its answer, the server has accepted it from the kernel's queue.
    stranger.write_all(&HELLO.encode()).unwrap();
    stranger.read_exact(&mut [0; REPLY_LEN]).unwrap();
    server.stop.request();
    server.thread.take().unwrap().join().unwrap();
    assert!(ends(&stranger, 0));
}

#[test]
fn an_idle_server_sleeps() {
    let server = Harness::keyed();
    server.still_serves();
    assert!(eventually(|| server.server.sessions() == 0));
    let switches = || {
        let status = std::fs::read_to_string(server.task()).unwrap();
        let line = status.lines().find(|l| l.starts_with("voluntary_ctxt_switches"));
        line.unwrap().to_owned()
    };
    // The gate's thread may not sleep yet.
    let mut before = switches();
    assert!(eventually(|| {
        thread::sleep(Duration::from_millis(50));
        std::mem::replace(&mut before, switches()) == before
    }));
    let until = Instant::now() + Duration::from_millis(500);
    while Instant::now() < until {
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(switches(), before);
}

#[test]
fn a_key_is_kept_only_when_the_server_accepts_it() {
    use crate::peer::client::{PairError, pair};
    use crate::peer::keys::client_key;

    let server = Harness::keyed();
    let home = tempfile::tempdir().unwrap();
    let target = target(server.address);
    let refused = pair(home.path(), &target, None, &Key::generate());
    let refused = refused.unwrap_err();
    assert!(matches!(refused, PairError::Peer(PeerError::WrongKey { .. })));
    assert!(refused.hint().contains("copy the whole key"));
    assert!(client_key(home.path(), &target.host).unwrap().is_none());
    let key = server.key.clone().unwrap();
    let file = pair(home.path(), &target, None, &key).unwrap();
    server.logged("the client checked the key");
    assert!(file.starts_with(home.path()));
    assert_eq!(client_key(home.path(), &target.host).unwrap(), Some(key));
}

#[test]
fn a_port_in_use_is_told() {
    let server = Harness::keyed();
    let second = Server::bind(ServerOptions {
        listen: vec![server.address.ip()],
        port: server.address.port(),
        key: None,
        allow: Vec::new(),
        limits: Limits::default(),
        machine: Arc::new(Blank("far")),
        changes: None,
        process: false,
        storage: None,
        log: Arc::new(|_| ()),
    });
    let error = second.err().expect("two servers on one port");
    assert!(matches!(error, PeerError::Listen { .. }), "{error:?}");
    assert!(error.hint().contains("choose another port"));
}
