//! Clients of all kinds: honest, killed, stopped, slow, and those that send garbage.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::BorrowedFd;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use linerate_host::{Machine, Query, SocketQuery};
use linerate_plan::path::Direction;
use linerate_plan::{Knobs, Pattern, Purpose, SetPlan, StepPlan};
use linerate_record::wire::preamble::{Hello, Kind, VERSIONS};
use linerate_session::link::{Link, StepControl};
use linerate_session::peer::PeerError;
use linerate_session::peer::address::Target;
use linerate_session::peer::client::{Client, ClientOptions};
use linerate_session::peer::keys::Key;
use linerate_units::Nanos;
use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};
use rustix::process::{Pid, Signal, kill_process};

/// Variable with the server's address; it makes this program act as a client that will be killed.
pub(crate) const ROLE: &str = "LINERATE_TEST_SIEGE";
const SEED: u64 = 0x1122_2026;
/// Most clients that are stopped, and most connections that are slow, at the same time.
const STOPPED: usize = 6;
const SLOW: usize = 24;
/// Most clients that measure until they are killed, at the same time.
const KILLED: usize = 8;
/// The first bytes that an iperf3 client sends.
const COOKIE: &[u8; 37] = b"siegesiegesiegesiegesiegesiegesieges\0";

struct Blank;

impl Machine for Blank {
    fn file(&self, _: &str) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }
    fn list(&self, _: &str) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::NotFound.into())
    }
    fn query(&self, _: &Query) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn socket(&self, _: &SocketQuery, _: BorrowedFd<'_>, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn options(address: SocketAddr, key: Option<&Key>) -> ClientOptions {
    ClientOptions {
        target: Target { host: address.ip().to_string(), port: address.port() },
        family: None,
        key: key.cloned(),
        open: key.is_none(),
        engine: "tcp".into(),
        machine: Arc::new(Blank),
        changes: None,
    }
}

pub(crate) fn connect(address: SocketAddr, key: &Key) -> Result<Client, PeerError> {
    Client::connect(&options(address, Some(key)))
}

pub(crate) fn connect_open(address: SocketAddr) -> Result<Client, PeerError> {
    Client::connect(&options(address, None))
}

pub(crate) fn set(id: u32, streams: u32) -> SetPlan {
    let direction = Direction::ALL[id as usize % 2];
    SetPlan {
        id,
        pattern: Pattern::Stream { direction },
        knobs: Knobs { streams, ..Knobs::default() },
    }
}

pub(crate) fn step(set: u32, millis: u64) -> StepPlan {
    StepPlan {
        index: 0,
        purpose: Purpose::Both,
        sets: vec![set],
        washout: Nanos(0),
        measure: Nanos::from_millis(millis),
        tick: Nanos::from_millis(10),
    }
}

/// Runs an honest client; its measurements must succeed.
pub(crate) fn run_once(address: SocketAddr, key: &Key) {
    let mut client = connect(address, key).unwrap();
    for id in 0..2 {
        client.prepare(&set(id, 2)).unwrap();
        let step = client.step(&step(id, 50), &mut |_| StepControl::Continue).unwrap();
        assert_eq!(step.trouble, None);
        assert_eq!(step.ends.len(), 2);
        client.release(id).unwrap();
    }
}

/// Runs a client that measures until it is killed.
pub(crate) fn measure(address: SocketAddr) {
    let key = Key::from_environment().unwrap().unwrap();
    // A server under siege may have no place for it; then this client ends.
    let Ok(mut client) = connect(address, &key) else {
        return;
    };
    for id in 0.. {
        client.prepare(&set(id, 2)).unwrap();
        client.step(&step(id, 20), &mut |_| StepControl::Continue).unwrap();
        client.release(id).unwrap();
    }
}

/// A connection from a given loopback address of this host.
pub(crate) fn dial(from: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    let fd = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    // The connection has `from` as its source address, and a free port that the kernel chooses.
    bind(&fd, &SocketAddr::from((from, 0)))?;
    rustix::net::connect(&fd, &to)?;
    let stream = TcpStream::from(fd);
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    Ok(stream)
}

/// The protocol of the clients: linerate's own with this key, or that of iperf3.
pub(crate) enum Door<'a> {
    Own(&'a Key),
    Iperf3,
}

/// Clients that are started one after another; the kind of each is drawn at random.
pub(crate) struct Besiegers<'a> {
    pub(crate) seed: u64,
    state: u64,
    address: SocketAddr,
    door: Door<'a>,
    killed: VecDeque<Child>,
    stopped: VecDeque<Child>,
    slow: VecDeque<TcpStream>,
    counts: [usize; 5],
}

impl<'a> Besiegers<'a> {
    pub(crate) fn new(address: SocketAddr, door: Door<'a>) -> Self {
        Self {
            seed: SEED,
            state: SEED,
            address,
            door,
            killed: VecDeque::new(),
            stopped: VecDeque::new(),
            slow: VecDeque::new(),
            counts: [0; 5],
        }
    }

    /// Words with the number of clients of each kind.
    pub(crate) fn sent(&self) -> String {
        let [killed, stopped, slow, garbage, reset] = self.counts;
        format!(
            "{killed} killed, {stopped} stopped, {slow} slow, {garbage} with garbage, {reset} reset"
        )
    }

    pub(crate) fn send(&mut self, count: usize) {
        for _ in 0..count {
            // Processes cost much time, so only two clients of ten are processes.
            let kind = match self.draw(10) {
                0 => self.kill(),
                1 => self.stop(),
                2..=4 => self.trickle(),
                5..=7 => self.babble(),
                _ => self.reset(),
            };
            self.counts[kind] += 1;
        }
    }

    /// Ends all clients that are left: kills processes and closes connections.
    pub(crate) fn leave(&mut self) {
        for mut child in self.killed.drain(..).chain(self.stopped.drain(..)) {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        self.slow.clear();
    }

    /// A random number below `bound`; the sequence is the same in every run. //= Marsaglia, Xorshift RNGs, 2003
    fn draw(&mut self, bound: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % bound
    }

    fn child(&mut self) -> Child {
        let mut command = match self.door {
            Door::Own(key) => {
                let mut own = Command::new(std::env::current_exe().unwrap());
                own.env(ROLE, self.address.to_string()).env("LINERATE_KEY", key.text());
                own
            }
            Door::Iperf3 => {
                let mut iperf3 = iperf3(self.address);
                iperf3.args(["-t", "60", "-P", "2"]);
                iperf3.args([["-R"].as_slice(), &["-u"], &[]][self.draw(3) as usize]);
                iperf3
            }
        };
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// The number of clients that may hold their connections at the same time; iperf3's protocol has one test at a
    /// time, and refuses others.
    fn at_a_time(&self, many: usize) -> usize {
        match self.door {
            Door::Own(_) => many,
            Door::Iperf3 => 0,
        }
    }

    /// Starts a client that measures, and kills one of those running at a random time.
    fn kill(&mut self) -> usize {
        let child = self.child();
        self.killed.push_back(child);
        if self.killed.len() > self.at_a_time(KILLED) {
            thread::sleep(Duration::from_micros(self.draw(20_000)));
            let at = self.draw(self.killed.len() as u64) as usize;
            let mut child = self.killed.remove(at).unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
        }
        0
    }

    /// Starts a client that measures and stops it at a random time; it is killed much later.
    fn stop(&mut self) -> usize {
        let child = self.child();
        thread::sleep(Duration::from_micros(self.draw(20_000)));
        kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
        self.stopped.push_back(child);
        if self.stopped.len() > self.at_a_time(STOPPED) {
            let mut oldest = self.stopped.pop_front().unwrap();
            oldest.kill().unwrap();
            oldest.wait().unwrap();
        }
        1
    }

    /// Opens a connection, and sends one byte on each of the slow ones.
    fn trickle(&mut self) -> usize {
        self.slow.extend(dial(Ipv4Addr::LOCALHOST, self.address));
        for mut stream in &self.slow {
            // The server may have closed some of them, so errors are ignored.
            let _ = stream.write(b"L");
        }
        if self.slow.len() > SLOW {
            self.slow.pop_front();
        }
        2
    }

    /// Sends garbage, either from the first byte on or after a valid beginning.
    fn babble(&mut self) -> usize {
        let drawn = self.draw(3);
        let mut words = match (&self.door, drawn) {
            (_, 0) => Vec::new(),
            (Door::Iperf3, 1) => COOKIE.to_vec(),
            // The parameters' length is larger than the bytes that follow.
            (Door::Iperf3, _) => [COOKIE.as_slice(), &[0, 0, 0, 60], b"{\"tcp\":true,"].concat(),
            (Door::Own(_), 1) => hello(Kind::Control),
            (Door::Own(_), _) => hello(Kind::Data),
        };
        let length = self.draw(2_000);
        words.extend((0..length).map(|_| self.draw(256) as u8));
        if let Ok(mut stream) = dial(Ipv4Addr::LOCALHOST, self.address) {
            let _ = stream.write_all(&words);
            // Some clients wait for a reply of the server.
            if self.draw(2) == 0 && length > 200 {
                let _ = stream.read(&mut [0; 200]);
            }
        }
        3
    }

    /// Sends a part of a valid beginning, then resets the connection as a crash would.
    fn reset(&mut self) -> usize {
        let words = match self.door {
            Door::Own(_) => hello(Kind::Control),
            Door::Iperf3 => COOKIE.to_vec(),
        };
        let part = self.draw(words.len() as u64 + 1) as usize;
        if let Ok(mut stream) = dial(Ipv4Addr::LOCALHOST, self.address) {
            let _ = stream.write_all(&words[..part]);
            sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
        }
        4
    }
}

/// A command that runs Debian's iperf3 as a client of this server.
pub(crate) fn iperf3(address: SocketAddr) -> Command {
    let mut command = Command::new("iperf3");
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    command.args(["-c", &host, "-p", &port]);
    command
}

fn hello(kind: Kind) -> Vec<u8> {
    let versions = VERSIONS;
    Hello { versions, kind }.encode().to_vec()
}

impl Drop for Besiegers<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}
