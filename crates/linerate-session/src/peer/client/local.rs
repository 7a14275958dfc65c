//! A server in this process, for a session whose two ends are both on this machine.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::super::keys::Key;
use super::super::server::{Limits, Server, ServerOptions};
use super::super::{PeerError, Stop};
use linerate_host::Machine;
use linerate_host::change::Ledger;

/// The server of a session of this machine with itself.
pub(super) struct LocalServer {
    pub(super) address: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl LocalServer {
    pub(super) fn start(
        key: Key,
        machine: Arc<dyn Machine>,
        changes: Option<Ledger>,
    ) -> Result<Self, PeerError> {
        let failed = |call| move |source| PeerError::System { call, source };
        let server = Server::bind(ServerOptions {
            listen: vec![IpAddr::from(Ipv4Addr::LOCALHOST)],
            port: 0,
            key: Some(key),
            allow: Vec::new(),
            limits: Limits::default(),
            machine,
            changes,
            process: false,
            storage: None,
            log: Arc::new(|_| ()),
        })?;
        let address = server.addresses().first().copied();
        let address = address.ok_or_else(|| {
            failed("asking for the local port")(std::io::ErrorKind::AddrNotAvailable.into())
        })?;
        let stop = Stop::new().map_err(failed("eventfd"))?;
        let requested = stop.clone();
        let thread = std::thread::Builder::new()
            .name("local server".into())
            // If the server fails, the session reports that it lost the far end.
            .spawn(move || drop(server.run(&requested)))
            .map_err(failed("starting a thread"))?;
        Ok(Self { address, stop, thread: Some(thread) })
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        self.stop.request();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
