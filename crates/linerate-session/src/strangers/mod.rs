//! Strangers: connections that are not authenticated yet. Each
//! server handles its strangers in one poll loop, without threads.
//!
//! Each stranger has only a short time. The number of strangers is limited for each address and in total. If there is
//! no free place for a new one, it displaces an older one, but never one whose address has fewer places. So many
//! connections from one address displace only each other.
//!
//! A [`Doorman`] handles the messages of strangers; this module contains nothing of their protocol.

mod lines;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use rustix::event::{PollFd, PollFlags, poll};

use crate::net::{Stop, timespec};

pub(crate) use lines::Lines;
pub use lines::Log;

/// Time for which no connection is accepted after the system ran out of file descriptors.
const REST: Duration = Duration::from_millis(100);

/// Reason why a stranger is dropped, for the log.
pub(crate) type Refusal = &'static str;

/// Limits of strangers: from which networks they may connect, their number, and their time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds<'a> {
    /// Networks from which connections are accepted; if empty, all networks.
    pub(crate) allow: &'a [IpNet],
    /// Largest number of strangers in total.
    pub(crate) all: usize,
    /// Largest number of strangers from one address (IPv6: from one /64).
    pub(crate) each_address: usize,
    /// Time within which a stranger must send its whole message.
    pub(crate) time: Duration,
}

/// A connection that is not authenticated yet.
pub(crate) struct Stranger<S> {
    /// Non-blocking connection of the stranger.
    pub(crate) stream: TcpStream,
    /// Address from which the stranger connects.
    pub(crate) from: IpAddr,
    /// Bytes that were received from the stranger so far.
    pub(crate) received: S,
    until: Instant,
}

/// Reads from strangers, and admits those that have sent a complete message.
pub(crate) trait Doorman {
    /// Bytes that a stranger has sent so far.
    type Received: Default;

    /// Reason for dropping a stranger whose time is up.
    const LATE: Refusal;
    /// Reason for dropping a stranger that another one displaces.
    const CROWDED: Refusal;

    /// Reads the available bytes without waiting; returns true once the message is complete.
    fn hear(&self, stranger: &mut Stranger<Self::Received>) -> Result<bool, Refusal>;

    /// Admits a stranger whose message is complete.
    fn admit(&self, stranger: Stranger<Self::Received>) -> Result<(), Refusal>;
}

/// Number of connections by outcome, for the last log line of a server.
#[derive(Default)]
struct Tally {
    admitted: u64,
    sent_away: u64,
    not_allowed: u64,
}

/// The strangers of one server.
pub(crate) struct Strangers<'a, D: Doorman> {
    listeners: &'a [TcpListener],
    stop: &'a Stop,
    bounds: Bounds<'a>,
    lines: &'a Lines,
    doorman: D,
    tally: Tally,
    // Strangers in the order of their arrival.
    inside: Vec<Stranger<D::Received>>,
    rest_until: Option<Instant>,
}

impl<'a, D: Doorman> Strangers<'a, D> {
    pub(crate) fn new(
        listeners: &'a [TcpListener],
        stop: &'a Stop,
        bounds: Bounds<'a>,
        lines: &'a Lines,
        doorman: D,
    ) -> Self {
        Self {
            listeners,
            stop,
            bounds,
            lines,
            doorman,
            tally: Tally::default(),
            inside: Vec::new(),
            rest_until: None,
        }
    }

    /// Handles strangers until a stop is requested. While there are none, the thread sleeps and is not woken.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        while !self.stop.requested() {
            let (arrivals, talkers) = self.wait()?;
            // The order of arrival is kept, because the streams of an iperf3 test are numbered in this order.
            let mut gone = 0;
            for at in talkers {
                gone += usize::from(self.hear(at - gone));
            }
            self.expire();
            for listener in arrivals {
                self.accept(listener);
            }
        }
        let Tally { admitted, sent_away, not_allowed } = self.tally;
        self.lines.last(&format!(
            "connections: {admitted} accepted, {sent_away} refused, {not_allowed} from networks that are not allowed"
        ));
        Ok(())
    }

    /// Waits for listeners with new connections, and for strangers that have sent bytes. Returns the indices of both.
    fn wait(&mut self) -> io::Result<(Vec<usize>, Vec<usize>)> {
        let now = Instant::now();
        self.rest_until = self.rest_until.filter(|until| *until > now);
        let listeners = match self.rest_until {
            Some(_) => &[],
            None => self.listeners,
        };
        let deadlines = self.inside.iter().map(|s| s.until);
        let until = deadlines.chain(self.rest_until).min();
        let timeout = until.map(|at| timespec(at.saturating_duration_since(now)));
        let mut fds = vec![PollFd::new(self.stop, PollFlags::IN)];
        fds.extend(listeners.iter().map(|l| PollFd::new(l, PollFlags::IN)));
        let streams = self.inside.iter().map(|s| &s.stream);
        fds.extend(streams.map(|s| PollFd::new(s, PollFlags::IN)));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        let (listening, talking) = fds[1..].split_at(listeners.len());
        Ok((ready(listening), ready(talking)))
    }

    /// Reads from a stranger. Returns true if the stranger was admitted or dropped.
    fn hear(&mut self, at: usize) -> bool {
        match self.doorman.hear(&mut self.inside[at]) {
            Ok(false) => false,
            Ok(true) => {
                let stranger = self.inside.remove(at);
                let from = stranger.from;
                match self.doorman.admit(stranger) {
                    Ok(()) => self.tally.admitted += 1,
                    Err(why) => self.refused(from, why),
                }
                true
            }
            Err(why) => {
                self.send_away(at, why);
                true
            }
        }
    }

    fn accept(&mut self, listener: usize) {
        // Only one connection is accepted here: the caller's loop
        // returns for more after it has checked the other sockets.
        match self.listeners[listener].accept() {
            Ok((stream, from)) => {
                self.arrive(stream, from.ip().to_canonical());
            }
            Err(e) if exhausted(&e) => {
                self.lines.say(&format!("cannot accept a connection: {e}"));
                if !self.relieve() {
                    // The listener stays readable, so without a pause this would be a busy loop.
                    self.rest_until = Some(Instant::now() + REST);
                }
            }
            // The other side has already closed the connection.
            Err(_) => {}
        }
    }

    fn arrive(&mut self, stream: TcpStream, from: IpAddr) {
        let allow = self.bounds.allow;
        if !allow.is_empty() && !allow.iter().any(|network| network.contains(&from)) {
            self.tally.not_allowed += 1;
            let line = format!("{from}: refused, its network is not allowed");
            return self.lines.say(&line);
        }
        if stream.set_nonblocking(true).is_ok() {
            self.make_room(from);
            self.inside.push(Stranger {
                stream,
                from,
                received: D::Received::default(),
                until: Instant::now() + self.bounds.time,
            });
        }
    }

    fn make_room(&mut self, newcomer: IpAddr) {
        let newcomer = group(newcomer);
        let alike = |s: &Stranger<D::Received>| group(s.from) == newcomer;
        let oldest_alike = self.inside.iter().position(alike);
        let crowd = self.inside.iter().filter(|s| alike(s)).count();
        match oldest_alike {
            Some(at) if crowd >= self.bounds.each_address => self.send_away(at, D::CROWDED),
            _ if self.inside.len() >= self.bounds.all => drop(self.relieve()),
            _ => {}
        }
    }

    /// Drops the oldest stranger of the address group with the most strangers; returns false if there are no strangers.
    fn relieve(&mut self) -> bool {
        let mut crowds = HashMap::new();
        for stranger in &self.inside {
            *crowds.entry(group(stranger.from)).or_insert(0) += 1;
        }
        let all = self.inside.iter().enumerate().rev();
        // The iteration is reversed, so that of several such strangers the oldest is chosen.
        let most = all.max_by_key(|(_, stranger)| crowds[&group(stranger.from)]);
        let at = most.map(|(at, _)| at);
        if let Some(at) = at {
            self.send_away(at, D::CROWDED);
        }
        at.is_some()
    }

    fn send_away(&mut self, at: usize, why: Refusal) {
        let stranger = self.inside.remove(at);
        self.refused(stranger.from, why);
    }

    fn refused(&mut self, from: IpAddr, why: Refusal) {
        self.tally.sent_away += 1;
        self.lines.say(&format!("{from}: {why}"));
    }

    fn expire(&mut self) {
        let now = Instant::now();
        while let Some(at) = self.inside.iter().position(|s| s.until <= now) {
            self.send_away(at, D::LATE);
        }
    }
}

fn ready(fds: &[PollFd<'_>]) -> Vec<usize> {
    let all = fds.iter().enumerate();
    all.filter(|(_, f)| !f.revents().is_empty()).map(|(at, _)| at).collect()
}

/// Returns the address group of an address. One party can have many IPv6 addresses, so each /64 is one group.
pub(crate) fn group(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
    }
}

/// Returns whether the system has no file descriptor or no memory left for another connection.
fn exhausted(e: &io::Error) -> bool {
    use rustix::io::Errno;
    let codes = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    e.raw_os_error().is_some_and(|code| codes.iter().any(|c| c.raw_os_error() == code))
}

#[cfg(test)]
mod tests;
