//! One end of a path: its sets of connections and the steps that run on them.
//!
//! The near end (the client of a session) and the far end (the server's part of the session) each own a [`LocalEnd`].

mod drive;
mod lane;
mod live;
pub(crate) mod placement;
mod running;
mod sampler;
mod schedule;
mod step;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use linerate_facts::HostFacts;
use linerate_facts::nic::Nic;
use linerate_facts::rdma::RdmaEnd;
use linerate_plan::change::HostChange;
use linerate_plan::path::Side;
use linerate_plan::transport::{FarEnd, TransportInfo};
use linerate_plan::{Access, Pattern, SetPlan, StepPlan};
use linerate_record::SetEnd;
use linerate_sys::thread;
use linerate_units::Bytes;

use self::lane::Lane;
pub use self::live::Live;
pub use self::running::Running;
pub(crate) use self::running::is_unfinished;
use linerate_host::change::{ChangeError, Changes, Ledger};
use linerate_host::{self as host, Machine, Sources, Subject};
use linerate_load::transport::{self, Connected, Lines, Offer, Prepared, Transport};
use linerate_load::{BATCH, LoadError};
use linerate_plan::application::Role;

/// Largest number of lower ports that are sampled in addition to the port of the route, such as the members of a bond.
const BELOW_MAX: usize = 8;

/// One end of a path, in this process.
pub struct LocalEnd {
    side: Side,
    engine: String,
    machine: Arc<dyn Machine>,
    subject: Subject,
    shared: bool,
    watches_host: bool,
    cpus: Vec<u32>,
    batch: usize,
    facts: Option<HostFacts>,
    sets: BTreeMap<u32, EndSet>,
    /// Changes of this host's settings by trials; `None` if such changes are not allowed.
    changes: Option<Changes>,
}

/// A set of connections on this end.
struct EndSet {
    plan: SetPlan,
    /// The prepared set until it is connected.
    prepared: Option<Box<dyn Prepared>>,
    /// Lanes of the set; empty until it is connected.
    lanes: Vec<Arc<Lane>>,
    /// The RDMA port that carries the set; `None` for other transports, and until it is connected.
    rdma: Option<Box<RdmaEnd>>,
}

impl LocalEnd {
    /// Makes an end without sets. `subject` is the path whose facts are read. If the far end is only another process of
    /// this host, payload crosses no port.
    pub fn new(
        side: Side,
        engine: &str,
        machine: Arc<dyn Machine>,
        subject: impl Into<Subject>,
    ) -> Self {
        let crosses = linerate_plan::transport::of(engine).far_end != FarEnd::Process;
        Self {
            side,
            engine: engine.to_owned(),
            machine,
            subject: if crosses { subject.into() } else { Subject::Host },
            shared: false,
            watches_host: true,
            // If the list of allowed CPUs cannot be read, nothing is pinned; the record of the set shows this.
            cpus: thread::allowed_cpus().unwrap_or_default(),
            batch: BATCH,
            facts: None,
            sets: BTreeMap::new(),
            changes: None,
        }
    }

    /// Allows trials to change settings of this host, as long as this end exists.
    pub fn allow_changes(&mut self, ledger: Ledger) {
        self.changes = Some(Changes::new(ledger));
    }

    /// Returns the facts of this host. They are read at the first call and stored.
    pub fn facts(&mut self) -> HostFacts {
        let read = || {
            let machine = self.machine.as_ref();
            let mut facts = host::facts(machine, self.subject.clone());
            if let Some(changes) = &self.changes {
                let port = facts.port.as_ref().map(|port| port.name.as_str());
                let (possible, gap) = changes.possible(port);
                facts.changeable = possible;
                facts.gaps.extend(gap);
            }
            facts
        };
        self.facts.get_or_insert_with(read).clone()
    }

    /// Returns the description of the transport; `None` if there is no transport of that name.
    pub fn info(&self) -> Option<&'static TransportInfo> {
        self.transport().ok().map(Transport::info)
    }

    /// Stores facts of this host that were read before.
    pub(crate) fn know(&mut self, facts: HostFacts) {
        self.facts = Some(facts);
    }

    /// Limits the readings of a step to the counters of this end's streams, without those of the host.
    pub(crate) fn watch_streams_only(&mut self) {
        self.watches_host = false;
    }

    /// Sets whether both ends run on the same machine, and so share its CPUs.
    pub fn share_machine(&mut self, shared: bool) {
        self.shared = shared;
    }

    /// Limits the number of operations that are submitted to a worker at once, in sets that are connected from now on.
    /// Examples use this to measure the benefit of batches.
    pub fn offer(&mut self, batch: usize) {
        self.batch = batch;
    }

    /// Returns the size of the buffers that each thread of this end would allocate for a set; `None` if the sizes of
    /// the set's operations determine it.
    pub fn room(&self, plan: &SetPlan) -> Option<Bytes> {
        self.transport().ok()?.room(self.side, plan)
    }

    /// Returns the number of file descriptors that this end would hold for each stream of a set.
    pub fn descriptors(&self) -> u32 {
        self.transport().map_or(1, Transport::descriptors)
    }

    /// Prepares a set and returns the offer for the other end.
    pub fn prepare(&mut self, plan: &SetPlan) -> Result<Offer, LoadError> {
        if self.sets.contains_key(&plan.id) {
            let what = format!("set {} is already prepared", plan.id);
            return Err(LoadError::Unsupported { what });
        }
        // Host settings are changed before the other end learns of the socket, because the window scale is fixed when
        // its first packet arrives.
        self.change(plan.knobs.host)?;
        let prepared = self.within_bounds(plan);
        if prepared.is_err() {
            self.change(None)?;
        }
        let prepared = prepared?;
        let offer = prepared.offer();
        let set =
            EndSet { plan: plan.clone(), prepared: Some(prepared), lanes: Vec::new(), rdma: None };
        self.sets.insert(plan.id, set);
        Ok(offer)
    }

    /// Connects a prepared set, given the other end's offer. A set that cannot be connected is released.
    pub fn connect(
        &mut self,
        set: u32,
        offer: &Offer,
        lines: &mut dyn Lines,
    ) -> Result<SetEnd, LoadError> {
        let Some(EndSet { plan, prepared: Some(prepared), .. }) = self.sets.remove(&set) else {
            return Err(LoadError::NotConnected { set });
        };
        let connected = prepared.connect(offer, lines)?;
        self.seat(&plan, connected)
    }

    /// Stores a set whose workers are connected, and makes a lane for each worker.
    pub(crate) fn seat(
        &mut self,
        plan: &SetPlan,
        connected: Connected,
    ) -> Result<SetEnd, LoadError> {
        let (workers, mut got) = (connected.workers, connected.end);
        let alone = self.info().is_some_and(TransportInfo::is_alone);
        let role = role(alone, self.side, plan.pattern);
        let facts = self.facts();
        let end = placement::End { side: self.side, shared: self.shared };
        let placement::Placed { mut cpus, meets } =
            placement::place(&facts, &self.cpus, end, &placed_as(alone, plan));
        // A thread may move several streams, so there can be fewer workers than CPUs.
        cpus.truncate(workers.len());
        let caps = placement::caps(facts.l2_cache, workers.len(), self.cpus.len());
        let batch = self.batch;
        let made = workers.into_iter().enumerate().map(|(stream, worker)| {
            let cpu = cpus.get(stream).copied();
            let lane = Lane::new(plan, stream as u32, role, cpu, caps, batch, worker)?;
            Ok(Arc::new(lane.giving_way(meets).alone(alone)))
        });
        let made = made.collect::<Result<Vec<_>, LoadError>>()?;
        got.gaps.extend(placement::refused(self.side, plan, &cpus));
        got.cpus = cpus;
        let (write, read) = sizes(plan, caps.op);
        // Sizes that the transport did not choose are set to those of the plan or the caps.
        for (got, open) in [(&mut got.write_size, write), (&mut got.read_size, read)] {
            *got = if *got == 0 { open } else { *got };
        }
        let set_of_lanes =
            EndSet { plan: plan.clone(), prepared: None, lanes: made, rdma: got.rdma.clone() };
        self.sets.insert(plan.id, set_of_lanes);
        Ok(got)
    }

    /// Closes a set and restores the host's old settings. Unknown ids are ignored.
    pub fn release(&mut self, set: u32) {
        self.sets.remove(&set);
        // If the old settings cannot be restored now, the next set or the drop of this end tries again.
        let _ = self.change(None);
    }

    /// Applies the host settings that a set requests on this side; with `None`, restores the old ones.
    fn change(&mut self, wanted: Option<HostChange>) -> Result<(), ChangeError> {
        let own = wanted.filter(|change| change.side == self.side);
        let port = own.and_then(|_| self.facts().port).map(|port| port.name);
        match (&mut self.changes, own) {
            (Some(changes), own) => changes.want(own, port.as_deref()),
            (None, None) => Ok(()),
            (None, Some(_)) => Err(ChangeError::NotAllowed),
        }
    }

    /// Starts the threads of a step and reads the first row of every table; payload flows only after [`Running::go`].
    pub fn arm(&mut self, plan: &StepPlan) -> Result<Running, LoadError> {
        self.arm_while(plan, &mut || true)
    }

    /// Arms a step as [`Self::arm`] does. While threads prepare, `goes_on` is
    /// called ten times a second. If it returns false, the step is aborted.
    pub fn arm_while(
        &mut self,
        plan: &StepPlan,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Running, LoadError> {
        schedule::bounds(plan)?;
        let mut lanes = Vec::new();
        for set in &plan.sets {
            match self.sets.get(set) {
                Some(set) if !set.lanes.is_empty() => lanes.extend(set.lanes.iter().cloned()),
                _ => return Err(LoadError::NotConnected { set: *set }),
            }
        }
        let wanted = |set| self.sets.get(set)?.plan.knobs.host;
        self.change(plan.sets.iter().find_map(wanted))?;
        if !self.watches_host {
            return Running::arm(plan, lanes, Sources::none(Arc::clone(&self.machine)), goes_on);
        }
        let machine = Arc::clone(&self.machine);
        let mut sources = Sources::new(machine, self.subject.clone());
        let facts = self.facts();
        let ports = facts.route.iter().flat_map(|route| &route.ports);
        let below = ports.clone().skip(1).take(BELOW_MAX);
        sources.watch_below(below.map(|nic| nic.index));
        if ports.clone().any(Nic::is_tunnel) {
            sources.watch_fragments();
        }
        let siblings = facts.route.iter().flat_map(|route| &route.siblings);
        sources.watch_arrivals(siblings.map(|port| port.index).collect());
        let cards = ports.filter(|nic| !nic.device.is_empty()).take(BELOW_MAX);
        sources.watch_drivers(cards.map(|nic| (nic.index, nic.name.clone())));
        sources.watch_rdma(self.rdma_ports(plan));
        Running::arm(plan, lanes, sources, goes_on)
    }

    /// Returns the RDMA ports that carry the sets of a step, each once.
    fn rdma_ports(&self, plan: &StepPlan) -> BTreeSet<(String, u32)> {
        let sets = plan.sets.iter().filter_map(|set| self.sets.get(set));
        let ports = sets.filter_map(|set| set.rdma.as_ref());
        ports.map(|port| (port.device.clone(), port.port)).collect()
    }

    /// Prepares a set, or refuses it if the transport does not support its settings.
    fn within_bounds(&self, plan: &SetPlan) -> Result<Box<dyn Prepared>, LoadError> {
        let transport = self.transport()?;
        let unsupported = |what| LoadError::Unsupported { what };
        transport::possible(transport, plan).map_err(unsupported)?;
        transport.prepare(self.side, plan)
    }

    fn transport(&self) -> Result<&'static dyn Transport, LoadError> {
        transport::transport(&self.engine).ok_or_else(|| LoadError::Unsupported {
            what: format!("there is no engine `{}`", self.engine),
        })
    }
}

/// Returns the role of this side's threads. A transport without a far end is driven by its only end.
fn role(alone: bool, side: Side, pattern: Pattern) -> Role {
    match pattern {
        Pattern::Stream { direction } if direction.sender() == side => Role::Sender,
        Pattern::Stream { .. } => Role::Receiver,
        _ if alone => Role::Sender,
        Pattern::PingPong { .. } | Pattern::Operations { .. } if side == Side::Near => Role::Sender,
        _ => Role::Receiver,
    }
}

/// Returns the plan that decides where threads are placed. Threads that time round trips are left to the scheduler. The
/// exception are transports without a far end: their memory or device is close to some CPUs and remote from others.
fn placed_as(alone: bool, plan: &SetPlan) -> SetPlan {
    let pattern =
        if alone { Pattern::Operations { access: Access::default() } } else { plan.pattern };
    SetPlan { pattern, ..plan.clone() }
}

/// Returns the sizes of a set's largest write and read in bytes:
/// those of the plan, or `cap` if the plan leaves them open.
fn sizes(plan: &SetPlan, cap: u32) -> (u64, u64) {
    if let Pattern::PingPong { size, .. } = plan.pattern {
        return (size.0, size.0);
    }
    let open = |requested: u64| if requested == 0 { u64::from(cap) } else { requested };
    (open(plan.knobs.write_size.0), open(plan.knobs.read_size.0))
}
