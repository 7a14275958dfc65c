//! Traffic that is not ours, between processes of the lab: a stream of TCP between the hosts, datagrams from
//! the router, which do not give way. A stream that begins on the router would: the kernel lets a socket keep a
//! millisecond of what it sends in its own host's queue, and what comes over a wire fills the rest.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use linerate_core::plan::Direction;
use linerate_core::units::Rate;
use linerate_sys::process;

use super::child::{Child, stop_all};
use super::network::{Network, Spot, station};
use crate::error::LabError;
use crate::fault::Origin;

/// How long a connection may take to come about.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two writes.
const STEP: Duration = Duration::from_millis(2);
/// What was not sent within this time is not made up for.
const CREDIT: Duration = Duration::from_millis(20);
/// Payload of a datagram, which every port of IPv6 can send whole.
const DATAGRAM: usize = 1200;

/// Starts a sender and a receiver.
pub(super) fn start(
    network: &Network,
    rate: Rate,
    direction: Direction,
    origin: Origin,
) -> Result<Vec<Child>, LabError> {
    let failed = |e: io::Error| LabError::step("cannot start other traffic", &e);
    let to = Spot::of(direction.receiver().into());
    let from = match origin {
        Origin::Router => Spot::Router,
        Origin::Ends => Spot::of(direction.sender().into()),
    };
    let (link, number) = station(network.topology(), direction.receiver().into());
    let address = (link.v4(number), 0);
    network.enter(to)?;
    let listener = match origin {
        Origin::Router => Listener::Datagrams(UdpSocket::bind(address).map_err(failed)?),
        Origin::Ends => Listener::Stream(TcpListener::bind(address).map_err(failed)?),
    };
    network.enter(from)?;
    let [sender, receiver] = match listener {
        Listener::Datagrams(receiver) => datagrams(receiver, rate),
        Listener::Stream(listener) => stream(&listener, rate),
    }
    .map_err(failed)?;
    Ok(vec![sender, receiver])
}

/// Who waits for traffic.
enum Listener {
    Datagrams(UdpSocket),
    Stream(TcpListener),
}

fn datagrams(receiver: UdpSocket, rate: Rate) -> io::Result<[Child; 2]> {
    let sender = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    sender.connect(receiver.local_addr()?)?;
    both(
        (sender.into(), |socket| {
            let socket = UdpSocket::from(socket);
            let bytes = [0; DATAGRAM];
            at_rate(rate, |due| {
                for _ in 0..due / DATAGRAM {
                    // One that a full queue or a port that is down refuses is lost, as on the way.
                    let _ = socket.send(&bytes);
                }
                Ok(due / DATAGRAM * DATAGRAM)
            })
        }),
        (receiver.into(), |socket| {
            let socket = UdpSocket::from(socket);
            let mut bytes = [0; DATAGRAM];
            loop {
                socket.recv(&mut bytes)?;
            }
        }),
    )
}

fn stream(listener: &TcpListener, rate: Rate) -> io::Result<[Child; 2]> {
    let (sender, receiver) = connect(listener)?;
    both(
        (sender.into(), |socket| {
            let mut stream = TcpStream::from(socket);
            let zeros = vec![0; 1 << 20];
            at_rate(rate, |due| {
                let piece = &zeros[..due.min(zeros.len())];
                stream.write_all(piece).map(|()| piece.len())
            })
        }),
        (receiver.into(), |socket| {
            let mut stream = TcpStream::from(socket);
            let mut bytes = vec![0; 1 << 20];
            while stream.read(&mut bytes)? > 0 {}
            Ok(())
        }),
    )
}

fn connect(listener: &TcpListener) -> io::Result<(TcpStream, TcpStream)> {
    let address: SocketAddr = listener.local_addr()?;
    let sender = TcpStream::connect_timeout(&address, PATIENCE)?;
    let (receiver, _) = listener.accept()?;
    Ok((sender, receiver))
}

/// Processes that send and that receive.
fn both(
    (sender, send): (OwnedFd, impl FnOnce(OwnedFd) -> io::Result<()>),
    (receiver, receive): (OwnedFd, impl FnOnce(OwnedFd) -> io::Result<()>),
) -> io::Result<[Child; 2]> {
    let send = child(&sender, send)?;
    match child(&receiver, receive) {
        Ok(receive) => Ok([send, receive]),
        Err(e) => {
            stop_all(&[send]).map_err(io::Error::other)?;
            Err(e)
        }
    }
}

fn child(socket: &OwnedFd, body: impl FnOnce(OwnedFd) -> io::Result<()>) -> io::Result<Child> {
    let pid = process::fork(&[socket], || match socket.try_clone().and_then(body) {
        Ok(()) => 0,
        Err(failed) => {
            eprintln!("lab: other traffic ended: {failed}");
            1
        }
    })?;
    Ok(Child(pid))
}

/// Has what is due sent, a piece at a time, until sending fails. `send` tells how much of it went.
fn at_rate(rate: Rate, mut send: impl FnMut(usize) -> io::Result<usize>) -> io::Result<()> {
    let bytes_in = |time: Duration| (rate.0 as f64 / 8.0 * time.as_secs_f64()) as usize;
    let mut sent_until = Instant::now();
    let mut left = 0;
    loop {
        std::thread::sleep(STEP);
        let now = Instant::now();
        left += bytes_in(now.duration_since(sent_until).min(CREDIT));
        sent_until = now;
        loop {
            match send(left)? {
                0 => break,
                gone => left -= gone,
            }
        }
    }
}
