//! The state of one stream's thread in a set: it keeps the worker
//! between steps and the counters that other threads read.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use linerate_plan::{Pattern, SetPlan};

use super::placement::Caps;
use linerate_load::application::Application;
use linerate_load::{Advice, BATCH, LoadError, Op, Worker};
use linerate_plan::application::Role;

/// Counters of one thread, in a pair of cache lines of their own. Only that thread writes them.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Counters {
    bytes: AtomicU64,
    ops: AtomicU64,
}

impl Counters {
    /// Adds `ops` operations that together moved `bytes`.
    #[inline]
    pub(super) fn add(&self, bytes: u64, ops: u64) {
        // This thread is the only writer, so no atomic read-modify-write is needed.
        self.bytes.store(self.bytes.load(Relaxed) + bytes, Relaxed);
        self.ops.store(self.ops.load(Relaxed) + ops, Relaxed);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    pub(super) fn ops(&self) -> u64 {
        self.ops.load(Relaxed)
    }
}

/// The state of one stream's thread in a set, which lasts from step to step.
pub(super) struct Lane {
    pub(super) set: u32,
    pub(super) stream: u32,
    pub(super) role: Role,
    pub(super) pattern: Pattern,
    pub(super) cpu: Option<u32>,
    /// Whether the sender yields its CPU after each operation, because the other end of its stream runs on the same
    /// CPU.
    pub(super) gives_way: bool,
    /// Whether the thread starts operations until the step is over. If not, it receives until the end mark arrives.
    pub(super) starts: bool,
    /// Number of operations that are submitted to the worker at once.
    pub(super) batch: usize,
    pub(super) counters: Counters,
    pub(super) advice: Arc<Advice>,
    pub application: Application,
    worker: Mutex<Option<Box<dyn Worker>>>,
}

impl Lane {
    /// Makes a lane that holds its worker. `batch` operations are submitted to the worker at once. `caps` limits the
    /// sizes that the plan leaves open.
    pub(super) fn new(
        plan: &SetPlan,
        stream: u32,
        role: Role,
        cpu: Option<u32>,
        caps: Caps,
        batch: usize,
        worker: Box<dyn Worker>,
    ) -> Result<Self, LoadError> {
        let requested = match role {
            Role::Sender => plan.knobs.write_size,
            Role::Receiver => plan.knobs.read_size,
        };
        Ok(Self {
            set: plan.id,
            stream,
            role,
            pattern: plan.pattern,
            cpu,
            gives_way: false,
            starts: role == Role::Sender,
            batch: batch.clamp(1, BATCH),
            counters: Counters::default(),
            advice: Arc::new(
                Advice::new(requested.0, caps.op)
                    .gathering(caps.gather)
                    .paced(plan.knobs.pacing.map(|pace| pace.0 / 8)),
            ),
            application: Application::new(role, &plan.knobs)?,
            worker: Mutex::new(Some(worker)),
        })
    }

    /// Returns the lane of an end that is `alone`: it starts operations in either direction.
    pub(super) fn alone(self, alone: bool) -> Self {
        Self { starts: self.starts || alone, ..self }
    }

    /// Returns the lane with `gives_way` set: whether its sender yields its CPU after each operation.
    pub(super) fn giving_way(self, gives_way: bool) -> Self {
        Self { gives_way, ..self }
    }

    /// Returns the operation that is submitted to a sending worker.
    pub(super) fn op(&self) -> Op {
        match self.pattern {
            Pattern::Operations { access } => Op::Access(access),
            Pattern::Stream { .. } | Pattern::PingPong { .. } => Op::Send(self.advice.op()),
        }
    }

    /// Returns the subject of this thread's tables, such as `s3/tx0`.
    pub(super) fn subject(&self) -> String {
        let way = match self.role {
            Role::Sender => "tx",
            Role::Receiver => "rx",
        };
        format!("s{}/{way}{}", self.set, self.stream)
    }

    /// Takes the worker for a step. Returns `None` if another step
    /// has the worker, or if it was lost because a step failed.
    pub(super) fn take(&self) -> Option<Box<dyn Worker>> {
        self.slot().take()
    }

    /// Returns the worker to the lane, ready for the next step.
    pub(super) fn give_back(&self, worker: Box<dyn Worker>) {
        *self.slot() = Some(worker);
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Box<dyn Worker>>> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
