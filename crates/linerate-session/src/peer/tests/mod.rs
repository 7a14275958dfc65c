//! Tests over real sockets on loopback. No test asserts an absolute
//! time: waits have generous limits, and only events are compared.

mod changes;
mod datagrams;
mod gate;
mod hostile;
#[path = "../../../../linerate-host/src/change/tests/place.rs"]
mod place;
mod processes;
mod relay;
mod sessions;
mod stops;
mod strangers;

use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::address::Target;
use super::client::{Client, ClientOptions};
use super::keys::Key;
use super::server::{Limits, Server, ServerOptions};
use super::{PeerError, Stop};
use linerate_host::change::Ledger;
use linerate_host::{Machine, Query, SocketQuery};

/// Long enough for anything that should happen at all on a busy machine.
const LONG: Duration = Duration::from_secs(20);

/// A machine that answers only the query for its boot id.
struct Blank(&'static str);

impl Machine for Blank {
    fn file(&self, path: &str) -> io::Result<Vec<u8>> {
        if path.ends_with("/boot_id") {
            return Ok(format!("{}\n", self.0).into_bytes());
        }
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

/// A server on loopback, which is stopped when this value is dropped.
struct Harness {
    server: Arc<Server>,
    address: SocketAddr,
    key: Option<Key>,
    stop: Stop,
    lines: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
    // Id of the thread that runs the gate.
    gate: rustix::thread::Pid,
}

impl Harness {
    fn start(key: Option<Key>, limits: Limits) -> Self {
        Self::listen(vec![IpAddr::from(Ipv4Addr::LOCALHOST)], key, limits, None)
    }

    /// Starts a server on which trials may change settings.
    fn changeable(ledger: Ledger) -> Self {
        let here = vec![IpAddr::from(Ipv4Addr::LOCALHOST)];
        let key = Some(Key::generate());
        Self::listen(here, key, Limits::default(), Some(ledger))
    }

    fn listen(
        listen: Vec<IpAddr>,
        key: Option<Key>,
        limits: Limits,
        changes: Option<Ledger>,
    ) -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        let server = Server::bind(ServerOptions {
            listen,
            port: 0,
            key: key.clone(),
            allow: Vec::new(),
            limits,
            machine: Arc::new(Blank("far")),
            changes,
            process: false,
            storage: None,
            log: Arc::new(move |line| sink.lock().unwrap().push(line.to_owned())),
        })
        .unwrap();
        let (server, stop) = (Arc::new(server), Stop::new().unwrap());
        let (runner, requested) = (Arc::clone(&server), stop.clone());
        let (tell, reported) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            runner.run(&requested).unwrap();
        });
        Self {
            address: server.addresses()[0],
            server,
            key,
            stop,
            lines,
            thread: Some(thread),
            gate: reported.recv().unwrap(),
        }
    }

    fn keyed() -> Self {
        Self::start(Some(Key::generate()), Limits::default())
    }

    /// Starts a server that gives connections only the time `proof` to authenticate themselves.
    fn hasty(proof: Duration) -> Self {
        let limits = Limits { proof, ..Limits::default() };
        Self::start(Some(Key::generate()), limits)
    }

    fn options(&self, key: Option<&Key>) -> ClientOptions {
        ClientOptions {
            target: target(self.address),
            family: None,
            key: key.cloned(),
            open: key.is_none(),
            engine: "tcp".into(),
            machine: Arc::new(Blank("near")),
            changes: None,
        }
    }

    fn connect_with(&self, key: Option<&Key>) -> Result<Client, PeerError> {
        Client::connect(&self.options(key))
    }

    /// Returns the path of the kernel's status file for the gate's thread.
    fn task(&self) -> String {
        format!("/proc/self/task/{}/status", self.gate.as_raw_nonzero())
    }

    fn dial(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream
    }

    /// Waits for a log line that contains `part`.
    fn logged(&self, part: &str) {
        let seen = || self.lines.lock().unwrap().iter().any(|l| l.contains(part));
        assert!(eventually(seen), "no `{part}` in {:?}", self.lines.lock().unwrap());
    }

    /// Asserts that the server still admits clients with the key. A server with short time limits may reject one if
    /// this machine stands still, so the check is repeated.
    fn still_serves(&self) {
        let (target, key) = (target(self.address), self.key.as_ref().unwrap());
        assert!(eventually(|| { super::client::verify(&target, None, key).is_ok() }));
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.stop.request();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the server panicked");
        }
    }
}

fn target(address: SocketAddr) -> Target {
    Target { host: address.ip().to_string(), port: address.port() }
}

fn eventually(mut what: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + LONG;
    loop {
        if what() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns whether the other side closes the connection after at most `most` bytes.
fn ends(mut stream: &TcpStream, most: usize) -> bool {
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Ok(_) => said.len() <= most,
        Err(e) => e.kind() == io::ErrorKind::ConnectionReset,
    }
}
