//! A server for iperf3 clients: one port, one test at a time.
//!
//! One thread accepts connections and assigns them to tests by their cookies. The first connection of a test is its
//! control connection. The others carry the payload, unless it is sent in datagrams. A test has its own thread, and one
//! for each stream. Everything that a client can request is bounded, and so is its time. Clients are not authenticated,
//! because iperf3 has no authentication that is safe from eavesdropping.

mod door;
mod facts;
mod gate;
mod moving;
mod session;
mod terms;
mod words;

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ipnet::IpNet;
use linerate_record::iperf3::Cookie;

use crate::net;
use crate::net::Stop;
use crate::peer::PeerError;
use crate::peer::server::Log;
use crate::strangers::{Bounds, Lines, Strangers};
use linerate_host::Machine;

use facts::Facts;

/// Limits of a server.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most connections that have not sent their cookie. Beyond this number, the oldest connection of the address
    /// with the most connections is dropped.
    pub pending: usize,
    /// Most connections without a cookie from one address (IPv6: one /64).
    pub pending_per_address: usize,
    /// Time within which a client must send its cookie, and each message on the control connection.
    pub word: Duration,
    /// Time without payload after which a test is ended.
    pub stall: Duration,
    /// Time that a test may last beyond its agreed duration.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pending: 128,
            pending_per_address: 64,
            word: Duration::from_secs(10),
            stall: Duration::from_secs(60),
            grace: Duration::from_secs(30),
        }
    }
}

/// Options of a server.
pub struct ServerOptions {
    /// Addresses to listen on; if empty, all addresses of this host.
    pub listen: Vec<IpAddr>,
    /// TCP and UDP port; 0 lets the system choose, which is possible for one address only.
    pub port: u16,
    /// Networks from which clients may connect; if empty, all networks.
    pub allow: Vec<IpNet>,
    /// Limits of what clients can use.
    pub limits: Limits,
    pub machine: Arc<dyn Machine>,
    /// Receiver of the log lines.
    pub log: Log,
}

/// An iperf3 server that has bound its port.
pub struct Server {
    listeners: Vec<TcpListener>,
    options: ServerOptions,
    facts: Facts,
    lines: Lines,
    slot: Slot,
}

impl Server {
    /// Binds the port. Clients can connect from now on; they are served by [`Server::run`].
    pub fn bind(options: ServerOptions) -> Result<Self, PeerError> {
        let listeners = net::listen(&options.listen, options.port)?;
        Ok(Self {
            listeners,
            lines: Lines::new(&options.log, "iperf3 "),
            options,
            facts: Facts::default(),
            slot: Slot::default(),
        })
    }

    /// Returns the addresses that the server listens on.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        net::addresses(&self.listeners)
    }

    /// Serves clients until a stop is requested and the running test has ended. While no client is connected, the
    /// thread sleeps and is not woken.
    pub fn run(&self, stop: &Stop) -> Result<(), PeerError> {
        let limits = &self.options.limits;
        let bounds = Bounds {
            allow: &self.options.allow,
            all: limits.pending,
            each_address: limits.pending_per_address,
            time: limits.word,
        };
        let served = thread::scope(|scope| {
            let gate = gate::Gate { server: self, stop, scope };
            let mut strangers = Strangers::new(&self.listeners, stop, bounds, &self.lines, gate);
            let served = strangers.run();
            stop.request();
            served
        });
        self.lines.finish();
        served.map_err(|source| PeerError::System { call: "waiting for iperf3 clients", source })
    }
}

/// Slot for the one test that may run at a time; `None` while no test runs.
#[derive(Debug, Default)]
struct Slot(Mutex<Option<Seated>>);

/// The test that is running.
#[derive(Debug)]
struct Seated {
    cookie: Cookie,
    streams: SyncSender<std::net::TcpStream>,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<Seated>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for the next test.
    fn leave(&self) {
        *self.lock() = None;
    }
}
