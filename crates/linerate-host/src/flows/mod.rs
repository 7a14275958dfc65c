//! Live connections of other programs, watched without sending any payload.
//!
//! A *round* lists all connections, of which a host may have tens of thousands, and keeps only how many bytes each has
//! moved. The busiest connections are then *watched*: the kernel is queried for each separately, and all its counters
//! are kept.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use linerate_facts::Gap;
use linerate_facts::parse::sock_diag::{self, Connection};
use linerate_record::flow::{Flow, Seen};

use self::watched::Watched;
use super::{ConnectionId, Machine, Query, Sources, Toward, facts, gap, unreadable};

mod owners;
#[cfg(test)]
mod tests;
mod watched;

pub use owners::is_running;

/// Lowest rate, in bytes per second, of a connection that counts as busy: 100 kb/s. A connection that is slower, and
/// has no data waiting, is idle.
const BUSY: f64 = 12_500.0;

/// Most watched connections, as a multiple of the connections that are shown: other connections may become busy
/// meanwhile.
const SPARE: usize = 4;

/// Which connections the user wants to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// All connections.
    All,
    /// Connections with one end that has one of these addresses (any if empty) and this TCP port (any if `None`).
    End { addresses: Vec<IpAddr>, port: Option<u16> },
    /// Connections that are held by processes whose name contains this text.
    Process(String),
}

impl Wanted {
    fn takes(&self, one: &Connection<'_>, inodes: &BTreeSet<u32>) -> bool {
        match self {
            Self::All => true,
            Self::Process(_) => inodes.contains(&one.inode),
            Self::End { addresses, port } => {
                let is_it = |end: SocketAddr| {
                    let ip = end.ip().to_canonical();
                    port.is_none_or(|p| p == end.port())
                        && (addresses.is_empty() || addresses.contains(&ip))
                };
                is_it(one.local) || is_it(one.remote)
            }
        }
    }
}

/// How many bytes a connection had moved at one time, and whether data waited in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    at: u64,
    moved: u64,
    waits: bool,
}

/// A connection, with its counts in the first and in the last round.
#[derive(Debug)]
struct Counted {
    id: ConnectionId,
    inode: u32,
    first: Count,
    last: Count,
    round: u32,
}

impl Counted {
    /// Returns the rate in bytes per second, of both directions together; `None` if the connection was counted only
    /// once.
    fn rate(&self) -> Option<f64> {
        let time = self.last.at.checked_sub(self.first.at).filter(|t| *t > 0)?;
        let moved = self.last.moved.saturating_sub(self.first.moved);
        Some(moved as f64 * 1e9 / time as f64)
    }

    /// Returns whether the connection is busy, or is stuck: data waits in a buffer and no byte has moved.
    fn is_active(&self) -> bool {
        let stuck = self.first.waits && self.last.waits && self.first.moved == self.last.moved;
        self.rate().is_some_and(|rate| rate >= BUSY || stuck)
    }
}

/// The observation of a machine's connections.
pub struct Flows {
    machine: Arc<dyn Machine>,
    wanted: Wanted,
    top: usize,
    round: u32,
    counted: HashMap<u64, Counted>,
    watched: Vec<Watched>,
    hosts: BTreeMap<Toward, Sources>,
    gaps: Vec<Gap>,
}

impl Flows {
    /// Starts to observe connections of the kind `wanted`, of which the `top` busiest will be reported.
    pub fn new(machine: Arc<dyn Machine>, wanted: Wanted, top: usize) -> Self {
        Self {
            machine,
            wanted,
            top,
            round: 0,
            counted: HashMap::new(),
            watched: Vec::new(),
            hosts: BTreeMap::new(),
            gaps: Vec::new(),
        }
    }

    /// Lists all connections, and starts to watch those that are busy. `at` is the time since the observation began.
    /// Fails if the kernel does not list the connections over IPv4.
    pub fn round(&mut self, at: u64) -> io::Result<()> {
        self.round += 1;
        let machine = Arc::clone(&self.machine);
        let mut look = owners::Look::new(&*machine);
        let inodes = match &self.wanted {
            Wanted::Process(name) => look.sockets_of(name),
            _ => BTreeSet::new(),
        };
        self.list(&Query::ConnectionsV4, at, &inodes)?;
        if let Err(error) = self.list(&Query::ConnectionsV6, at, &inodes) {
            self.lack(unreadable("connections of IPv6", "sock_diag", &error, ""));
        }
        let round = self.round;
        self.counted.retain(|_, one| one.round == round);
        for watched in &mut self.watched {
            watched.observe_threads(&*self.machine, at);
        }
        for host in self.hosts.values_mut() {
            host.observe(at);
        }
        self.watch(at, &mut look);
        Ok(())
    }

    fn list(&mut self, query: &Query, at: u64, inodes: &BTreeSet<u32>) -> io::Result<()> {
        let machine = Arc::clone(&self.machine);
        let mut lacking = None;
        machine.parts(query, &mut |part| {
            for one in sock_diag::parse(part) {
                let lacks = match one {
                    Ok(one) if self.wanted.takes(&one, inodes) => self.count(&one, at),
                    Ok(_) => None,
                    Err(error) => Some(gap("connection", &error.to_string(), "")),
                };
                lacking = lacking.take().or(lacks);
            }
        })?;
        if let Some(gap) = lacking {
            self.lack(gap);
        }
        Ok(())
    }

    /// Stores how many bytes a connection has moved; returns a gap if the kernel does not count them.
    fn count(&mut self, one: &Connection<'_>, at: u64) -> Option<Gap> {
        let Some((acked, received)) = one.moved() else {
            let why = "this kernel does not count the bytes of connections (Linux 4.1 does)";
            // A connection that is being closed has no counters on any kernel.
            return (!one.tcp_info.is_empty()).then(|| gap("connection", why, ""));
        };
        let now = Count {
            at,
            moved: acked.saturating_add(received),
            waits: one.queued > 0 || one.unread > 0,
        };
        let counted = self.counted.entry(one.cookie).or_insert_with(|| Counted {
            id: ConnectionId {
                local: one.local,
                remote: one.remote,
                bound: one.bound,
                cookie: one.cookie,
            },
            inode: one.inode,
            first: now,
            last: now,
            round: 0,
        });
        counted.last = now;
        counted.round = self.round;
        None
    }

    /// Starts to watch the busiest connections that are not watched yet.
    fn watch(&mut self, at: u64, look: &mut owners::Look<'_>) {
        let known: BTreeSet<u64> = self.watched.iter().map(|w| w.id.cookie).collect();
        let mut active: Vec<&Counted> = self.counted.values().filter(|c| c.is_active()).collect();
        active.sort_by(|a, b| {
            let rates = b.rate().unwrap_or(0.0).total_cmp(&a.rate().unwrap_or(0.0));
            rates.then(a.id.cmp(&b.id))
        });
        let room = (self.top * SPARE).saturating_sub(self.watched.len());
        let fresh: Vec<(ConnectionId, u32)> = active
            .into_iter()
            .take(self.top)
            .filter(|c| !known.contains(&c.id.cookie))
            .take(room)
            .map(|c| (c.id, c.inode))
            .collect();
        if fresh.is_empty() {
            return;
        }
        let inodes = fresh.iter().map(|(_, inode)| *inode).collect();
        let found = look.holders_of(&inodes);
        for (id, inode) in fresh {
            let mut watched = Watched::new(id, found.holders(inode));
            watched.observe_threads(&*self.machine, at);
            watched.observe(&*self.machine, at);
            let toward = watched.toward();
            let machine = &self.machine;
            self.hosts.entry(toward).or_insert_with(|| {
                let mut host = Sources::new(Arc::clone(machine), toward);
                host.watch_fragments();
                host.observe(at);
                host
            });
            self.watched.push(watched);
        }
    }

    /// Reads the counters of all watched connections.
    pub fn sample(&mut self, at: u64) {
        for watched in &mut self.watched {
            watched.observe(&*self.machine, at);
        }
    }

    /// Ends the observation and returns its results.
    pub fn finish(mut self) -> Seen {
        let mut flows: Vec<(Toward, f64, Flow)> = Vec::new();
        for watched in std::mem::take(&mut self.watched) {
            let (toward, flow) = (watched.toward(), watched.finish());
            // A connection that was read only once cannot be distinguished from an idle one, so it is left out.
            if let Some([sent, received]) = flow.carried() {
                let carried = sent.0.saturating_add(received.0) as f64;
                flows.push((toward, carried, flow));
            }
        }
        flows.sort_by(|a, b| b.1.total_cmp(&a.1));
        flows.truncate(self.top);
        let mut known = BTreeMap::new();
        for (toward, _, flow) in &mut flows {
            let (facts, (tables, gaps)) = known.entry(*toward).or_insert_with(|| {
                let host = self.hosts.get_mut(toward).map(Sources::take);
                (facts(&*self.machine, *toward), host.unwrap_or_default())
            });
            flow.facts.clone_from(facts);
            flow.readings.tables.extend(tables.iter().cloned());
            flow.readings.gaps.extend(gaps.iter().cloned());
        }
        Seen {
            connections: self.counted.len(),
            flows: flows.into_iter().map(|(_, _, flow)| flow).collect(),
            gaps: self.gaps,
        }
    }

    fn lack(&mut self, gap: Gap) {
        if !self.gaps.contains(&gap) {
            self.gaps.push(gap);
        }
    }
}
