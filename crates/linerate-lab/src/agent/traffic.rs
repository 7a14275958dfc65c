//! Background traffic: a TCP stream between processes of the lab.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use linerate_plan::path::Direction;
use linerate_sys::process;
use linerate_units::Rate;

use super::child::{Child, stop_all};
use super::network::{Network, Spot, station};
use crate::error::LabError;
use crate::fault::Origin;

/// Longest time for a connection to be established.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two writes.
const STEP: Duration = Duration::from_millis(2);
/// Longest delay of a write whose payload is still sent in full; payload that was due earlier is left out.
const CREDIT: Duration = Duration::from_millis(20);

/// Starts a process that sends and one that receives.
pub(super) fn start(
    network: &Network,
    rate: Rate,
    direction: Direction,
    origin: Origin,
) -> Result<Vec<Child>, LabError> {
    let failed = |e: io::Error| LabError::step("cannot start other traffic", &e);
    let to = Spot::of(direction.receiver().into());
    let from = match origin {
        Origin::Elsewhere => Spot::Elsewhere,
        Origin::Ends => Spot::of(direction.sender().into()),
    };
    let (link, number) = station(network.topology(), direction.receiver().into());
    network.enter(to)?;
    let listener = TcpListener::bind((link.v4(number), 0)).map_err(failed)?;
    network.enter(from)?;
    let (sender, receiver) = connect(&listener).map_err(failed)?;
    let send = child(sender, |stream| send(stream, rate)).map_err(failed)?;
    match child(receiver, receive) {
        Ok(receive) => Ok(vec![send, receive]),
        Err(e) => {
            stop_all(&[send])?;
            Err(failed(e))
        }
    }
}

fn connect(listener: &TcpListener) -> io::Result<(TcpStream, TcpStream)> {
    let address: SocketAddr = listener.local_addr()?;
    let sender = TcpStream::connect_timeout(&address, PATIENCE)?;
    let (receiver, _) = listener.accept()?;
    Ok((sender, receiver))
}

fn child(stream: TcpStream, body: impl FnOnce(TcpStream) -> io::Result<()>) -> io::Result<Child> {
    let socket = OwnedFd::from(stream);
    let pid = process::fork(&[&socket], || {
        let stream = socket.try_clone().map(TcpStream::from);
        match stream.and_then(body) {
            Ok(()) => 0,
            Err(failed) => {
                eprintln!("lab: other traffic ended: {failed}");
                1
            }
        }
    })?;
    Ok(Child(pid))
}

/// Sends the payload that is due in each step, until the connection fails.
fn send(mut stream: TcpStream, rate: Rate) -> io::Result<()> {
    let bytes_in = |time: Duration| (rate.0 as f64 / 8.0 * time.as_secs_f64()) as usize;
    let zeros = vec![0; 1 << 20];
    let mut sent_until = Instant::now();
    loop {
        std::thread::sleep(STEP);
        let now = Instant::now();
        let due = now.duration_since(sent_until).min(CREDIT);
        sent_until = now;
        let mut left = bytes_in(due);
        while left > 0 {
            let piece = &zeros[..left.min(zeros.len())];
            stream.write_all(piece)?;
            left -= piece.len();
        }
    }
}

/// Reads until the sender closes the connection.
fn receive(mut stream: TcpStream) -> io::Result<()> {
    let mut bytes = vec![0; 1 << 20];
    while stream.read(&mut bytes)? > 0 {}
    Ok(())
}
