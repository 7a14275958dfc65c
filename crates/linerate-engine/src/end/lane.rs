//! One thread's place in a set: its worker between steps, and the counters that it shares.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use linerate_core::plan::{Pattern, SetPlan};

use super::placement::Caps;
use crate::load::application::{Application, Role};
use crate::load::{Advice, BATCH, LoadError, Op, Worker};

/// What a thread counts, on a cache line pair of its own. Written by that thread alone.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Counters {
    bytes: AtomicU64,
    ops: AtomicU64,
}

impl Counters {
    /// Counts operations that moved `bytes` together.
    #[inline]
    pub(super) fn add(&self, bytes: u64, ops: u64) {
        // The only writer: no atomic read-modify-write is needed.
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

/// One thread's place in a set.
pub(super) struct Lane {
    pub(super) set: u32,
    pub(super) stream: u32,
    pub(super) role: Role,
    pub(super) pattern: Pattern,
    pub(super) cpu: Option<u32>,
    /// Whether the other end of its stream runs on the same CPU.
    pub(super) gives_way: bool,
    /// How many operations the worker is offered at once.
    pub(super) batch: usize,
    pub(super) counters: Counters,
    pub(super) advice: Arc<Advice>,
    pub(super) application: Application,
    worker: Mutex<Option<Box<dyn Worker>>>,
}

impl Lane {
    /// A lane at rest, whose worker is offered `batch` operations at once. `caps` bound what
    /// the plan leaves open.
    pub(super) fn new(
        plan: &SetPlan,
        stream: u32,
        role: Role,
        cpu: Option<u32>,
        caps: Caps,
        batch: usize,
        worker: Box<dyn Worker>,
    ) -> Result<Self, LoadError> {
        let asked = match role {
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
            batch: batch.clamp(1, BATCH),
            counters: Counters::default(),
            advice: Arc::new(
                Advice::new(asked.0, caps.op)
                    .gathering(caps.gather)
                    .paced(plan.knobs.pacing.map(|pace| pace.0 / 8)),
            ),
            application: Application::new(role, &plan.knobs)?,
            worker: Mutex::new(Some(worker)),
        })
    }

    /// The same lane, whose sender may let the other end run after each of its operations.
    pub(super) fn giving_way(self, gives_way: bool) -> Self {
        Self { gives_way, ..self }
    }

    /// The operation that its worker is offered, of a role that starts them.
    pub(super) fn op(&self) -> Op {
        match self.pattern {
            Pattern::Operations { access } => Op::Access(access),
            Pattern::Stream { .. } | Pattern::PingPong { .. } => Op::Send(self.advice.op()),
        }
    }

    /// Subject of this thread's tables: `s3/tx0`.
    pub(super) fn subject(&self) -> String {
        let way = match self.role {
            Role::Sender => "tx",
            Role::Receiver => "rx",
        };
        format!("s{}/{way}{}", self.set, self.stream)
    }

    /// Takes the worker for a step; `None` when a step has it, or lost it.
    pub(super) fn take(&self) -> Option<Box<dyn Worker>> {
        self.slot().take()
    }

    /// Gives the worker back, fit for the next step.
    pub(super) fn give_back(&self, worker: Box<dyn Worker>) {
        *self.slot() = Some(worker);
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Box<dyn Worker>>> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
