//! All sources of readings of one end.

use std::sync::Arc;

use linerate_facts::Gap;
use linerate_record::Table;

use super::arrivals::Arrivals;
use super::cgroup::Cgroup;
use super::clock::Clock;
use super::conntrack::Conntrack;
use super::counters::Counters;
use super::cpu::Cpu;
use super::disk::Disk;
use super::fragments::Fragments;
use super::memory::Memory;
use super::netstat::Netstat;
use super::port::PortCounters;
use super::psi::Psi;
use super::qdisc::Qdisc;
use super::rdma::RdmaPort;
use super::route::{no_route, route_toward};
use super::socket_memory::SocketMemory;
use super::softnet::Softnet;
use super::source::Slot;
use super::thread::Thread;
use super::{Machine, Subject, Toward};

/// The sources of readings that are sampled while a load runs.
pub struct Sources {
    machine: Arc<dyn Machine>,
    host: Vec<Slot>,
    threads: Vec<Slot>,
    /// Tables of threads that are no longer watched.
    kept: Vec<Table>,
    gaps: Vec<Gap>,
}

impl Sources {
    /// Makes the sources of a host for a load with this subject. Among the host's ports, only the port of the route to
    /// a peer is sampled.
    pub fn new(machine: Arc<dyn Machine>, subject: impl Into<Subject>) -> Self {
        match subject.into() {
            Subject::Peer(toward) => Self::toward(machine, toward),
            Subject::File(path) => {
                let disk = Slot::new(Disk::new(&*machine, &path));
                let mut sources = Self::alone(machine);
                sources.host.push(disk);
                sources
            }
            Subject::Host => Self::alone(machine),
        }
    }

    /// Makes the sources of a host that sends packets to a peer.
    fn toward(machine: Arc<dyn Machine>, toward: Toward) -> Self {
        let port = |what| {
            let route = route_toward(&*machine, toward);
            route.map(|route| route.port).map_err(|error| no_route(what, toward, &error))
        };
        let (port, qdisc) = (port("port"), port("qdisc"));
        let mut sources = Self::alone(machine);
        sources.host.splice(
            1..1,
            [
                Slot::new(Softnet),
                Slot::new(PortCounters { port }),
                Slot::new(Qdisc::new(qdisc)),
                Slot::new(Netstat),
                Slot::new(SocketMemory::default()),
                Slot::new(Conntrack),
            ],
        );
        sources
    }

    /// Makes the sources of a host whose load needs no far end, so that no packet is sent.
    fn alone(machine: Arc<dyn Machine>) -> Self {
        Self {
            host: vec![
                Slot::new(Cpu),
                Slot::new(Cgroup::default()),
                Slot::new(Psi),
                Slot::new(Memory),
            ],
            ..Self::none(machine)
        }
    }

    /// Makes an empty set of sources, to which threads and clocks can be added.
    pub fn none(machine: Arc<dyn Machine>) -> Self {
        Self { machine, host: Vec::new(), threads: Vec::new(), kept: Vec::new(), gaps: Vec::new() }
    }

    /// Returns the machine that the sources read.
    pub fn machine(&self) -> &dyn Machine {
        &*self.machine
    }

    /// Watches a thread of this process, by the kernel's thread id; `subject` names its tables.
    pub fn watch_thread(&mut self, subject: &str, tid: i32) {
        self.threads.push(Slot::new(Thread::new(subject, tid)));
    }

    /// Watches the first thread of another process; `subject` names its tables.
    pub fn watch_process(&mut self, subject: &str, process: u32) {
        self.threads.push(Slot::new(Thread::of_process(subject, process)));
    }

    /// Watches the clocks of these CPUs. They are read after all other sources.
    pub fn watch_clocks(&mut self, cpus: Vec<u32>) {
        self.host.push(Slot::new(Clock { cpus }));
    }

    /// Watches the queueing disciplines of these ports, which are below the port of the route.
    pub fn watch_below(&mut self, ports: impl IntoIterator<Item = u32>) {
        for port in ports {
            self.host.push(Slot::new(Qdisc::new(Ok(port))));
        }
    }

    /// Watches the counters of the drivers of these ports, given by index and name.
    pub fn watch_drivers(&mut self, ports: impl IntoIterator<Item = (u32, String)>) {
        for (port, name) in ports {
            self.host.push(Slot::new(Counters::new(port, name)));
        }
    }

    /// Watches through which of these ports payload is received.
    pub fn watch_arrivals(&mut self, ports: Vec<u32>) {
        if !ports.is_empty() {
            self.host.push(Slot::new(Arrivals { ports }));
        }
    }

    /// Watches these RDMA ports, given by the name of the device and the number of the port.
    pub fn watch_rdma(&mut self, ports: impl IntoIterator<Item = (String, u32)>) {
        for (device, port) in ports {
            self.host.push(Slot::new(RdmaPort::new(&device, port)));
        }
    }

    /// Watches how many packets the host fragments, as it must if packets of a tunnel are too large.
    pub fn watch_fragments(&mut self) {
        self.host.push(Slot::new(Fragments));
    }

    /// Stops watching threads; the readings so far remain available.
    pub fn forget_threads(&mut self) {
        for mut slot in self.threads.drain(..) {
            self.kept.append(&mut slot.take());
        }
    }

    /// Reads all sources that are due, and appends a row to each of their tables. `at_ns` is the time of the row.
    pub fn observe(&mut self, at_ns: u64) {
        let mut gaps = Vec::new();
        for slot in self.threads.iter_mut().chain(&mut self.host) {
            slot.observe(&*self.machine, at_ns, &mut gaps);
        }
        for gap in gaps {
            // A gap that several sources share is reported once.
            if !self.gaps.contains(&gap) {
                self.gaps.push(gap);
            }
        }
    }

    /// Takes the tables and gaps since the last call. Sources that stopped with a gap are read again afterwards.
    pub fn take(&mut self) -> (Vec<Table>, Vec<Gap>) {
        let mut tables = std::mem::take(&mut self.kept);
        for slot in self.threads.iter_mut().chain(&mut self.host) {
            tables.append(&mut slot.take());
        }
        (tables, std::mem::take(&mut self.gaps))
    }
}
