//! The server: one port, one thread that admits connections, and one thread for each session.

mod gate;
mod rooms;
mod session;
mod waiter;

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ipnet::IpNet;
use linerate_record::wire::limits::PlanLimits;
use linerate_sys::memory;

use super::keys::Key;
use super::{PeerError, descriptors};
use crate::net;
use crate::net::Stop;
use crate::strangers::{Bounds, Lines, Strangers};
use linerate_host::Machine;
use linerate_host::change::Ledger;

pub use crate::strangers::Log;

use gate::Gate;
use rooms::Sessions;

/// Limits of a server.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Largest number of simultaneous sessions.
    pub sessions: usize,
    /// Largest number of connections that are not authenticated yet. Beyond this number, the oldest connection of the
    /// address with the most connections is dropped.
    pub pending: usize,
    /// Largest number of unauthenticated connections from one address (IPv6: from one /64).
    pub pending_per_address: usize,
    /// Time within which a connection must authenticate itself.
    pub proof: Duration,
    /// Time without a request after which a session is ended.
    pub idle: Duration,
    /// Longest duration of a session.
    pub session: Duration,
    /// Time within which an answer of a few bytes must be sent.
    pub answer: Duration,
    /// Time within which the readings of a step must be sent.
    pub readings: Duration,
    /// Limits of the sets and steps that one session may request.
    pub plan: PlanLimits,
    /// Limit of this process's file descriptors; `None` unless
    /// it reduces the number of streams that a session may have.
    pub descriptors: Option<usize>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 32,
            pending: 128,
            // A client opens eight connections at the same time, and several clients may share one address.
            pending_per_address: 32,
            proof: Duration::from_secs(3),
            idle: Duration::from_secs(60),
            // The limit is twice the longest run.
            session: Duration::from_secs(2 * 3600),
            answer: Duration::from_secs(10),
            readings: Duration::from_secs(60),
            plan: PlanLimits::default(),
            descriptors: None,
        }
    }
}

impl Limits {
    /// Adapts the limits to a number of file descriptors. Each stream needs one. However few there are, unauthenticated
    /// connections must leave some for sessions.
    fn within(mut self, descriptors: usize) -> Self {
        self.pending = self.pending.min(descriptors / 4).max(1);
        let plan = self.plan.within(descriptors::streams(descriptors, &self));
        if plan.streams < self.plan.streams {
            self.descriptors = Some(descriptors);
        }
        self.plan = plan;
        self
    }
}

/// Options of a server.
#[derive(Clone)]
pub struct ServerOptions {
    /// Addresses to listen on; if empty, all addresses of this host.
    pub listen: Vec<IpAddr>,
    /// TCP port; 0 lets the system choose, which is possible for one address only.
    pub port: u16,
    /// Key that clients must hold; `None` lets anyone measure.
    pub key: Option<Key>,
    /// Networks from which clients may connect; if empty, all networks.
    pub allow: Vec<IpNet>,
    /// Limits of what clients can use.
    pub limits: Limits,
    /// Machine whose facts and counters are served.
    pub machine: Arc<dyn Machine>,
    /// Journal of changed host settings; `None` forbids such changes.
    pub changes: Option<Ledger>,
    /// Whether the only client is the process that started this server, and may share memory with it.
    pub process: bool,
    /// Folder in which clients may measure the disk, by a file of linerate's own; `None` forbids it.
    pub storage: Option<String>,
    /// Receiver of the log lines.
    pub log: Log,
}

/// A server that has bound its port.
pub struct Server {
    listeners: Vec<TcpListener>,
    options: ServerOptions,
    sessions: Arc<Sessions>,
    // Log of sessions. It is separate from the log of unauthenticated connections, so that a flood of such connections
    // does not suppress lines about sessions.
    lines: Lines,
}

impl Server {
    /// Binds the port. Clients can connect from now on; they are served by [`Server::run`].
    pub fn bind(mut options: ServerOptions) -> Result<Self, PeerError> {
        let listeners = net::listen(&options.listen, options.port)?;
        // A server runs for a long time and is mostly idle, so its
        // threads share memory that can be returned to the system.
        memory::share();
        let descriptors = descriptors::raise(&options.limits);
        options.limits = options.limits.within(descriptors);
        Ok(Self {
            listeners,
            lines: Lines::new(&options.log, ""),
            options,
            sessions: Arc::default(),
        })
    }

    /// Returns the addresses that the server listens on.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        net::addresses(&self.listeners)
    }

    /// Returns the number of open sessions.
    pub fn sessions(&self) -> usize {
        self.sessions.count()
    }

    /// Serves clients until a stop is requested and all sessions have ended, which takes no longer than the drain of a
    /// step. While no client is connected, the thread sleeps and is not woken. If the server is dropped, the port is
    /// closed, and so are the connections that still wait in the kernel's queue.
    pub fn run(&self, stop: &Stop) -> Result<(), PeerError> {
        let lines = Lines::new(&self.options.log, "");
        let limits = &self.options.limits;
        let bounds = Bounds {
            allow: &self.options.allow,
            all: limits.pending,
            each_address: limits.pending_per_address,
            time: limits.proof,
        };
        let served = thread::scope(|scope| {
            let gate = Gate { server: self, stop, scope, begun: Cell::new(0) };
            let served = Strangers::new(&self.listeners, stop, bounds, &lines, gate).run();
            // Without the gate, no session could get data connections any more, so the server stops.
            stop.request();
            served
        });
        self.lines.finish();
        served.map_err(|source| PeerError::System { call: "waiting for connections", source })
    }
}
