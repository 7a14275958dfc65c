//! A watched connection: its counters, the processes that own it, and their threads.

use std::io;

use linerate_facts::Gap;
use linerate_facts::metric::{SOCKET_UNREAD, THREAD_RUN, THREAD_WAIT};
use linerate_facts::parse::sock_diag::{self, Connection};
use linerate_facts::parse::{mem_info, schedstat, tcp_info};
use linerate_record::EndReadings;
use linerate_record::flow::{Flow, Owner};

use super::super::facts::numbered;
use super::super::{ConnectionId, Machine, Query, Toward, invalid, read, unreadable};
use super::owners::Holders;
use crate::sheet::Sheet;

/// Most threads of the owners that are watched. With more threads, it could not be determined which one serves the
/// connection.
const THREADS: usize = 64;

/// A connection whose counters are read repeatedly.
pub(super) struct Watched {
    pub(super) id: ConnectionId,
    congestion: String,
    owners: Vec<Owner>,
    tcp: Sheet,
    socket: Sheet,
    threads: Vec<(String, Sheet)>,
    ended: bool,
    gaps: Vec<Gap>,
}

impl Watched {
    pub(super) fn new(id: ConnectionId, holders: Holders<'_>) -> Self {
        Self {
            id,
            congestion: String::new(),
            owners: holders.owners.to_vec(),
            tcp: Sheet::new("tcp", Flow::SUBJECT.to_owned()),
            socket: Sheet::new("socket", Flow::SUBJECT.to_owned()),
            threads: Vec::new(),
            ended: false,
            gaps: holders.gap.cloned().into_iter().collect(),
        }
    }

    pub(super) fn toward(&self) -> Toward {
        Toward::of(self.id.remote.ip(), Some(self.id.local.ip()))
    }

    /// Adds a row with the kernel's counters of the connection.
    pub(super) fn observe(&mut self, machine: &dyn Machine, at: u64) {
        if self.ended {
            return;
        }
        let reported = machine.query(&Query::Connection(self.id)).and_then(|reply| {
            let one = sock_diag::parse(&reply).next();
            let one = one.ok_or(io::ErrorKind::NotFound)?.map_err(invalid)?;
            self.push(at, &one);
            Ok(())
        });
        if let Err(error) = reported {
            self.ended = true;
            if !is_gone(&error) {
                self.gaps.push(unreadable("tcp", "the connection", &error, ""));
            }
        }
    }

    fn push(&mut self, at: u64, one: &Connection<'_>) {
        if one.tcp_info.is_empty() {
            // The connection is being closed, so the kernel counts no more.
            self.ended = true;
            return;
        }
        if self.congestion.is_empty() {
            self.congestion = one.congestion.to_string();
        }
        let unread = (SOCKET_UNREAD, Some(i64::from(one.unread)));
        let socket = mem_info::values(one.mem_info).chain([unread]);
        self.gaps.extend(self.tcp.push(at, tcp_info::values(one.tcp_info)));
        self.gaps.extend(self.socket.push(at, socket));
    }

    /// Adds a row with the CPU time of each thread of the connection's owners.
    pub(super) fn observe_threads(&mut self, machine: &dyn Machine, at: u64) {
        if self.threads.is_empty() {
            self.threads = threads(machine, &self.owners);
        }
        for (path, sheet) in &mut self.threads {
            // A thread that has ended gets no further row. All values are zero for a thread that never ran, and for
            // every thread if the kernel does not count.
            let Ok(stat) = read(machine, path, schedstat::parse) else {
                continue;
            };
            if !stat.is_blank() {
                let nanos = |ns: u64| i64::try_from(ns).ok();
                let row = [(THREAD_RUN, nanos(stat.run_ns)), (THREAD_WAIT, nanos(stat.wait_ns))];
                self.gaps.extend(sheet.push(at, row));
            }
        }
    }

    /// Ends the watch, and returns all readings of the connection.
    pub(super) fn finish(mut self) -> Flow {
        let threads = self.threads.iter_mut().map(|(_, sheet)| sheet);
        let sheets = [&mut self.tcp, &mut self.socket].into_iter().chain(threads);
        Flow {
            local: self.id.local,
            remote: self.id.remote,
            congestion: self.congestion,
            owners: self.owners,
            ended: self.ended,
            facts: linerate_facts::HostFacts::default(),
            readings: EndReadings {
                tables: sheets.filter_map(Sheet::take).collect(),
                gaps: self.gaps,
                ..EndReadings::default()
            },
        }
    }
}

/// Returns whether the connection no longer exists, or another connection has its addresses now.
fn is_gone(error: &io::Error) -> bool {
    let stale = rustix::io::Errno::STALE.raw_os_error();
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(stale)
}

/// Returns the paths of the files with the CPU time of the owners' threads, with an empty table for each. Empty if
/// there are too many threads.
fn threads(machine: &dyn Machine, owners: &[Owner]) -> Vec<(String, Sheet)> {
    let mut all = Vec::new();
    for owner in owners {
        let tasks = format!("/proc/{}/task", owner.pid);
        let names = machine.list(&tasks).unwrap_or_default();
        for tid in numbered(&names, "") {
            let sheet = Sheet::new(THREAD_RUN.source, format!("t{tid}"));
            all.push((format!("{tasks}/{tid}/schedstat"), sheet));
        }
    }
    if all.len() > THREADS {
        all.clear();
    }
    all
}
