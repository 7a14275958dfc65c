//! The server: one port, one thread that lets connections in, one thread for each session.

mod gate;
mod rooms;
mod session;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use linerate_core::wire::limits::PlanLimits;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, ipproto, listen, socket_with, sockopt,
};

use super::keys::Key;
use super::{PeerError, Stop, descriptors};
use crate::change::Ledger;
use crate::host::Machine;
use gate::Gate;
use rooms::Sessions;

/// Takes one line for the admin, without time: who came, what was refused, what ended.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// What a server allows.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Sessions at a time.
    pub sessions: usize,
    /// Connections that have not proved anything yet; beyond it the oldest is dropped.
    pub pending: usize,
    /// The same for one address (IPv6: one /64).
    pub pending_per_address: usize,
    /// Time that a connection has to prove itself.
    pub proof: Duration,
    /// A session without a request for this long is ended.
    pub idle: Duration,
    /// A session is ended after this long.
    pub session: Duration,
    /// What the plans of one session may ask for.
    pub plan: PlanLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 32,
            pending: 64,
            pending_per_address: 16,
            proof: Duration::from_secs(3),
            idle: Duration::from_secs(60),
            session: Duration::from_secs(3600),
            plan: PlanLimits::default(),
        }
    }
}

/// What a server is made with.
pub struct ServerOptions {
    /// Addresses to listen on; empty for all of this host.
    pub listen: Vec<IpAddr>,
    /// Port; 0 lets the system choose, then for one address only.
    pub port: u16,
    /// The key that sessions need; `None` lets anyone measure.
    pub key: Option<Key>,
    /// What is allowed.
    pub limits: Limits,
    /// The machine whose facts and counters are served.
    pub machine: Arc<dyn Machine>,
    /// Where changes of its settings are written down; `None` forbids them.
    pub changes: Option<Ledger>,
    /// Where log lines go.
    pub log: Log,
}

/// A server that holds its port.
pub struct Server {
    listeners: Vec<TcpListener>,
    options: ServerOptions,
    sessions: Arc<Sessions>,
}

impl Server {
    /// Takes the port. Clients can connect from now on; they are served by [`Server::run`].
    pub fn bind(options: ServerOptions) -> Result<Self, PeerError> {
        let listeners = if options.listen.is_empty() {
            // A host without IPv6 cannot listen on its wildcard.
            listener(SocketAddr::from((Ipv6Addr::UNSPECIFIED, options.port)))
                .or_else(|_| listener(SocketAddr::from((Ipv4Addr::UNSPECIFIED, options.port))))
                .map(|l| vec![l])
        } else {
            let addresses = options.listen.iter();
            addresses
                .map(|ip| listener(SocketAddr::from((*ip, options.port))))
                .collect()
        }?;
        descriptors::raise(&options.limits);
        Ok(Self {
            listeners,
            options,
            sessions: Arc::default(),
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let addresses = self.listeners.iter();
        addresses.filter_map(|l| l.local_addr().ok()).collect()
    }

    /// Sessions that are open.
    pub fn sessions(&self) -> usize {
        self.sessions.count()
    }

    /// Serves until the stop is requested and all sessions have ended, which takes no longer than
    /// the drain of a step. Sleeps without wake-ups while nobody is connected. The port, and who
    /// waits in the kernel's queue for it, is let go when the server is dropped.
    pub fn run(&self, stop: &Stop) -> Result<(), PeerError> {
        let served = Gate::new(self, stop).run();
        // Without the gate no session could get data connections any more.
        stop.request();
        self.sessions.wait_for_end();
        served.map_err(|source| PeerError::System {
            call: "waiting for connections",
            source,
        })
    }
}

fn listener(address: SocketAddr) -> Result<TcpListener, PeerError> {
    listen_on(address).map_err(|source| PeerError::Listen { address, source })
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd: OwnedFd = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    // A server that is started again must not wait for old connections to be forgotten.
    sockopt::set_socket_reuseaddr(&fd, true)?;
    if address.is_ipv6() {
        // The wildcard serves IPv4 too, whatever the system's default is.
        sockopt::set_ipv6_v6only(&fd, !address.ip().is_unspecified())?;
    }
    bind(&fd, &address)?;
    listen(&fd, 128)?;
    Ok(TcpListener::from(fd))
}
