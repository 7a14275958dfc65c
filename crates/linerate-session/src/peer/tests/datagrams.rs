//! Tests of a session's datagrams: which ones are accepted, and the readings of a session with datagrams.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linerate_plan::path::Direction;
use linerate_plan::{Knobs, Pattern, Purpose, SetPlan, StepPlan};
use linerate_record::wire::knock::{KNOCK_LEN, PLACE_LEN, Place};
use linerate_record::wire::message::Secret;
use linerate_units::{Bytes, Nanos, Rate};

use super::{Harness, LONG};
use crate::link::{Link, StepControl};
use crate::peer::Stop;
use crate::peer::client::Client;
use crate::peer::datagrams::Meeting;
use crate::peer::keys::Key;
use linerate_load::LoadError;
use linerate_load::transport::Datagrams;

const SECRET: Secret = Secret([8; 32]);

const fn of(secret: &Secret, stream: u32) -> Meeting<'_> {
    Meeting { secret, set: 3, stream }
}

/// Returns the near side of a data connection, and the thread of a far end that accepts on the other side.
fn far() -> (TcpStream, JoinHandle<Result<Datagrams, LoadError>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let far = listener.accept().unwrap().0;
    let far = thread::spawn(move || {
        let stop = Stop::new().unwrap();
        of(&SECRET, 1).accept(&far, &stop, &mut |_| Ok(()))
    });
    (near, far)
}

fn place(mut near: &TcpStream) -> (SocketAddr, Place) {
    let mut bytes = [0; PLACE_LEN];
    near.read_exact(&mut bytes).unwrap();
    let place = Place::decode(&bytes).unwrap();
    ((Ipv4Addr::LOCALHOST, place.port).into(), place)
}

fn silent(socket: &UdpSocket) -> bool {
    let few = Some(Duration::from_millis(300));
    socket.set_read_timeout(few).unwrap();
    socket.recv(&mut [0; 64]).is_err()
}

#[test]
fn both_ends_meet_with_each_other_s_tags() {
    let (near, far) = far();
    let near = of(&SECRET, 1).dial(&near, &mut |_| Ok(())).unwrap();
    let far = far.join().unwrap().unwrap();
    assert_eq!((near.own, near.other), (far.other, far.own));
    assert_ne!(near.own, near.other);
    let (near, far) = (UdpSocket::from(near.fd), UdpSocket::from(far.fd));
    near.send(b"there").unwrap();
    // Hellos that were sent again may be read before the payload.
    let mut room = [0; 64];
    far.set_read_timeout(Some(LONG)).unwrap();
    while far.recv(&mut room).unwrap() == KNOCK_LEN {}
    assert_eq!(&room[..5], b"there");
}

#[test]
fn a_knock_with_another_secret_stream_or_challenge_is_not_answered() {
    let (mut near, far) = far();
    let (address, place) = place(&near);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.connect(address).unwrap();
    let right = of(&SECRET, 1).sent(&place.challenge);
    let mut bent = right;
    bent[20] ^= 1;
    let mut long = right.to_vec();
    long.push(0);
    for wrong in [
        of(&Secret([9; 32]), 1).sent(&place.challenge).to_vec(),
        of(&SECRET, 2).sent(&place.challenge).to_vec(),
        of(&SECRET, 1).sent(&[0; 16]).to_vec(),
        bent.to_vec(),
        long,
        right[..KNOCK_LEN - 1].to_vec(),
        vec![0; 65_000],
        Vec::new(),
    ] {
        socket.send(&wrong).unwrap();
    }
    assert!(silent(&socket));
    // The right hello is answered. The same hello from another port is not answered.
    socket.send(&right).unwrap();
    assert_eq!(socket.recv(&mut [0; 64]).unwrap(), KNOCK_LEN);
    let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    other.send_to(&right, address).unwrap();
    assert!(silent(&other));
    near.write_all(&[1]).unwrap();
    let far = UdpSocket::from(far.join().unwrap().unwrap().fd);
    assert_eq!(far.peer_addr().unwrap(), socket.local_addr().unwrap());
}

#[test]
fn a_near_end_that_leaves_or_speaks_too_soon_is_given_up() {
    let (near, waits) = far();
    drop(near);
    assert!(waits.join().unwrap().is_err());
    let (mut near, waits) = far();
    near.write_all(&[1]).unwrap();
    let why = waits.join().unwrap().unwrap_err().to_string();
    assert!(why.contains("before its hello"), "{why}");
}

#[test]
fn a_server_that_proves_nothing_gets_no_datagrams() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let mut line = listener.accept().unwrap().0;
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let place = Place { port: socket.local_addr().unwrap().port(), challenge: [5; 16] };
        line.write_all(&place.encode()).unwrap();
        // This far end returns each datagram that it receives, which proves nothing.
        socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let mut room = [0; 64];
        while let Ok((got, from)) = socket.recv_from(&mut room) {
            socket.send_to(&room[..got], from).unwrap();
        }
        line
    });
    let line = TcpStream::connect(address).unwrap();
    let e = of(&SECRET, 1).dial(&line, &mut |_| Ok(())).unwrap_err();
    assert!(e.to_string().starts_with("no UDP datagram reaches"), "{e}");
    assert!(e.hint().contains("UDP"));
    drop(server.join());
}

#[test]
fn a_session_of_datagrams_measures_and_serves_on() {
    let harness = Harness::start(Some(Key::generate()), super::Limits::default());
    let mut options = harness.options(harness.key.as_ref());
    options.engine = "udp".into();
    let mut client = Client::connect(&options).unwrap();
    let knobs = Knobs {
        streams: 2,
        write_size: Bytes(500),
        pacing: Some(Rate(10_000_000)),
        ..Knobs::default()
    };
    let size = Bytes(64);
    let interval = Nanos::from_millis(5);
    let patterns = [
        Pattern::Stream { direction: Direction::Forward },
        Pattern::Stream { direction: Direction::Reverse },
        Pattern::PingPong { size, interval },
    ];
    for (id, pattern) in patterns.into_iter().enumerate() {
        let plan = SetPlan { id: id as u32, pattern, knobs: knobs.clone() };
        client.prepare(&plan).unwrap();
    }
    let plan = StepPlan {
        index: 0,
        purpose: Purpose::Both,
        sets: vec![0, 1, 2],
        washout: Nanos(0),
        measure: Nanos::from_millis(300),
        tick: Nanos::from_millis(50),
    };
    let step = client.step(&plan, &mut |_| StepControl::Continue).unwrap();
    assert_eq!(step.trouble, None);
    for end in &step.ends {
        assert_eq!(end.totals.len(), 6);
        for total in end.totals.iter().filter(|t| t.set < 2) {
            assert!(total.complete && total.sent + total.received > 0, "{total:?}");
        }
    }
    drop(client);
    harness.still_serves();
}
