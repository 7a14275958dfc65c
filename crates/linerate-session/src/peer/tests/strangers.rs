//! Tests of what a client reports about services that are not the server that it expects.

use std::io::Write;
use std::net::TcpListener;

use linerate_record::wire::preamble::{Access, HELLO_LEN, Reply, VERSIONS, Versions};

use super::*;
use crate::link::LinkError;
use crate::peer::address::Family;
use crate::peer::handshake::{MESSAGE_LEN, random, status};

/// Connects to a service that reads the hello and then runs `service`; returns the client's error.
fn meet(service: impl FnOnce(TcpStream) + Send + 'static) -> PeerError {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.read_exact(&mut [0; HELLO_LEN]).unwrap();
        service(stream);
    });
    let error = attempt(&target(address), None);
    thread.join().unwrap();
    error
}

fn attempt(target: &Target, family: Option<Family>) -> PeerError {
    attempt_unless(target, family, &|| false)
}

fn attempt_unless(
    target: &Target,
    family: Option<Family>,
    stopped: &dyn Fn() -> bool,
) -> PeerError {
    let options = ClientOptions {
        target: target.clone(),
        family,
        key: Some(Key::generate()),
        open: false,
        engine: "tcp".into(),
        machine: Arc::new(Blank("near")),
        changes: None,
    };
    let session = Client::connect_unless(&options, stopped);
    session.err().expect("no session")
}

fn reply(versions: Versions) -> Reply {
    Reply { versions, access: Access::Key, nonce: random() }
}

#[test]
fn other_services_are_told_by_their_first_words() {
    for (words, seems) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "a web server"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "an ssh server"),
        (&[0x15, 3, 1, 0, 2, 2, 10], "a TLS server"),
        (&[0xDE, 0xAD], "is not a linerate server"),
        (b"", "closed the connection"),
    ] {
        let error = meet(move |mut stream| stream.write_all(words).unwrap());
        assert!(matches!(error, PeerError::NotLinerate { .. }), "{error:?}");
        assert!(error.to_string().contains(seems), "{error}");
        assert!(error.hint().contains("check the port"));
    }
}

#[test]
fn an_echo_is_told() {
    let error = meet(|mut stream| {
        let hello = linerate_record::wire::preamble::Hello {
            versions: VERSIONS,
            kind: linerate_record::wire::preamble::Kind::Control,
        };
        stream.write_all(&hello.encode()).unwrap();
    });
    assert!(error.to_string().contains("echoes"), "{error}");
}

#[test]
fn other_versions_say_who_must_update() {
    let other = |low, high| {
        meet(move |mut stream| {
            let versions = Versions { low, high };
            stream.write_all(&reply(versions).encode()).unwrap();
        })
    };
    let newer = other(VERSIONS.high + 1, VERSIONS.high + 3);
    assert!(matches!(newer, PeerError::Version { .. }), "{newer:?}");
    assert_eq!(newer.hint(), "update linerate on this host");
}

#[test]
fn a_server_that_does_not_hold_the_key_is_not_believed() {
    let error = meet(|mut stream| {
        stream.write_all(&reply(VERSIONS).encode()).unwrap();
        stream.read_exact(&mut [0; MESSAGE_LEN]).unwrap();
        stream.write_all(&[status::OK]).unwrap();
        stream.write_all(&random::<MESSAGE_LEN>()).unwrap();
    });
    assert!(matches!(error, PeerError::Impostor { .. }), "{error:?}");
}

#[test]
fn a_server_that_dies_in_the_handshake_is_an_error() {
    let error = meet(|mut stream| stream.write_all(&reply(VERSIONS).encode()).unwrap());
    assert!(matches!(error, PeerError::Broken { .. }), "{error:?}");
}

#[test]
fn a_service_that_says_nothing_is_told() {
    let error = meet(|mut stream| {
        let _ = stream.read(&mut [0]);
    });
    assert!(matches!(error, PeerError::Silent { .. }), "{error:?}");
}

#[test]
fn nobody_there_and_nowhere_to_go_are_told_apart() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let error = attempt(&target(address), None);
    assert!(matches!(error, PeerError::NoServer { .. }), "{error:?}");
    let there = format!("run `linerate serve --port {}` on 127.0.0.1", address.port());
    assert_eq!(error.hint(), there);

    let error = attempt(&target(address), Some(Family::V6));
    assert!(matches!(error, PeerError::FamilyMismatch { .. }), "{error:?}");

    let unknown = Target { host: "no-such-host.invalid".into(), port: 1 };
    let error = attempt(&unknown, None);
    assert!(matches!(error, PeerError::UnknownHost { .. }), "{error:?}");
}

#[test]
fn a_service_that_says_nothing_is_not_waited_for_once_the_user_stops() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = target(listener.local_addr().unwrap());
    let requested = std::cell::Cell::new(0);
    let stopped = || {
        requested.set(requested.get() + 1);
        requested.get() > 2
    };
    let error = attempt_unless(&target, None, &stopped);
    assert!(matches!(error, PeerError::Interrupted), "{error:?}");
    assert!(matches!(LinkError::from(error), LinkError::Interrupted));
}
