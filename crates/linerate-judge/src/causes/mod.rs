//! Causes of slowness. One cause is one file here and one row in [`CAUSES`].

mod ack_way;
mod arp_flux;
mod bad_checksums;
mod beyond_hosts;
mod buffer_bound;
mod burst_credit;
mod busy_thread;
mod cloud_allowance;
mod congestion_control;
mod contended;
mod core_bound;
mod cpu_clock;
mod cpu_contention;
mod cpu_quota;
mod cpu_share;
mod cpu_steal;
mod datagrams;
mod duplex;
mod exchange_deadlock;
mod expected;
mod flow_rate_cap;
mod hash_collision;
mod held;
mod host_shaping;
mod interrupted;
mod latency;
mod latency_idle_states;
mod latency_interrupts;
mod latency_nagle;
mod latency_queue;
mod latency_wakeup;
mod local_drops;
mod loss;
mod memory_bandwidth;
mod mtu_black_hole;
mod numa_remote;
mod pacing;
mod path_loss;
mod path_rate;
mod path_reordering;
mod pause_frames;
mod pcie_slot;
mod predict;
mod queue_depth;
mod rdma_depth;
mod rdma_inline;
mod rdma_link_down;
mod rdma_loss;
mod rdma_mtu;
mod rdma_one_port;
mod rdma_one_qp;
mod rdma_port;
mod rdma_queues;
mod rdma_read_depth;
mod rdma_receiver_not_ready;
mod receive_window;
mod receiver_app;
mod receiver_core;
mod sack_discarded;
mod segment_size;
mod send_buffer;
mod sender_app;
mod sender_core;
mod shared_core;
mod shared_rate;
mod small_packets;
mod socket_drops;
mod socket_memory;
mod softirq_core;
mod tunnel;
mod verbs;
mod wire_full;
mod wrong_route;

pub(crate) use ack_way::collapses;
pub(crate) use datagrams::moot;
pub(crate) use expected::{Effects, Expected, Fit, excludes, shown};
pub(crate) use hash_collision::crowded;
pub(crate) use latency::raised;
use linerate_facts::advice::Advice;
pub(crate) use local_drops::most as most_dropped;
pub(crate) use socket_drops::ROOM;
pub(crate) use softirq_core::side as full_of_packets;
pub(crate) use tunnel::mended;

use crate::model::{Ceiling, Load, Model};
use linerate_facts::Gap;
use linerate_facts::route::Route;
use linerate_plan::factor::Factor;
use linerate_plan::path::{Direction, Place, Slowness, Stage};
use linerate_plan::transport::Scope;
use linerate_record::{Host, TrialPlan};
use linerate_units::stats::Range;

/// Minimum share of a ceiling at which the ceiling is reached (METHOD section 2).
pub(crate) const FULL: f64 = 0.98;

/// A thread that wants more of its CPU than this has too little slack for something else to bind.
const BUSY: f64 = 0.9;

/// Every cause: the causes that only disturb a measurement come first, the causes of latency last.
pub const CAUSES: &[&Cause] = &[
    &contended::CAUSE,
    &interrupted::CAUSE,
    &wire_full::CAUSE,
    &pcie_slot::CAUSE,
    &wrong_route::CAUSE,
    &duplex::CAUSE,
    &arp_flux::CAUSE,
    &path_rate::CAUSE,
    &burst_credit::CAUSE,
    &segment_size::CAUSE,
    &ack_way::CAUSE,
    &flow_rate_cap::CAUSE,
    &path_loss::CAUSE,
    &bad_checksums::CAUSE,
    &sack_discarded::CAUSE,
    &path_reordering::CAUSE,
    &congestion_control::CAUSE,
    &socket_memory::CAUSE,
    &receive_window::CAUSE,
    &send_buffer::CAUSE,
    &socket_drops::CAUSE,
    &pacing::CAUSE,
    &host_shaping::CAUSE,
    &local_drops::CAUSE,
    &pause_frames::CAUSE,
    &tunnel::CAUSE,
    &cloud_allowance::CAUSE,
    &receiver_core::CAUSE,
    &sender_core::CAUSE,
    &softirq_core::CAUSE,
    &shared_core::CAUSE,
    &hash_collision::CAUSE,
    &small_packets::CAUSE,
    &numa_remote::CAUSE,
    &cpu_quota::CAUSE,
    &cpu_contention::CAUSE,
    &cpu_steal::CAUSE,
    &cpu_clock::CAUSE,
    &memory_bandwidth::CAUSE,
    &mtu_black_hole::CAUSE,
    &receiver_app::CAUSE,
    &sender_app::CAUSE,
    &exchange_deadlock::CAUSE,
    &queue_depth::CAUSE,
    &rdma_depth::CAUSE,
    &rdma_read_depth::CAUSE,
    &rdma_one_qp::CAUSE,
    &rdma_inline::CAUSE,
    &rdma_mtu::CAUSE,
    &rdma_one_port::CAUSE,
    &rdma_link_down::CAUSE,
    &rdma_loss::CAUSE,
    &rdma_receiver_not_ready::CAUSE,
    &latency_nagle::CAUSE,
    &latency_idle_states::CAUSE,
    &latency_interrupts::CAUSE,
    &latency_wakeup::CAUSE,
    &latency_queue::CAUSE,
];

/// A reason for slowness that can be tested: what is known of it before any load, and what it answers of a model.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of a cause")]
pub struct Cause {
    /// Stable id: `receive-window`.
    pub id: &'static str,
    /// The fault, as a short clause that follows the name of the place: `the receive window is too small`.
    pub name: &'static str,
    /// The transports whose loads it can limit. For others it is not evaluated, and is no rival.
    pub scope: Scope,
    /// The limiting stage if this cause holds.
    pub stage: Stage,
    /// The limiting stage if it was found at an end and not on the path, where that is another one.
    at_an_end: Option<Stage>,
    /// How the cause makes a path slow: in rate or in latency.
    pub slows: Slowness,
    /// The factors whose trials can prove it: those that affect its resource. Other trials can only exclude it.
    pub decided_by: &'static [Factor],
    /// The causes that this cause explains, at the same place: it is no rival of theirs. If one of them is
    /// proved, both are named, and the proof does not depend on readings of this cause.
    pub explains: &'static [&'static str],
    /// The cause's page for people: its meaning, the differences to similar causes, how to confirm it by hand,
    /// and how to fix it.
    pub page: &'static str,
    /// Whether it is about the idle path, which both directions share: it is named for the first measured
    /// direction, and cleared for the other.
    pub is_once: bool,
    /// Whether it only disturbs a measurement. It is then never the limit of the path, and has neither rivals
    /// nor trials.
    pub only_disturbs: bool,
    /// Whether proofs of other causes remain valid if this cause could not be read. A kernel counts stolen time
    /// only if its hypervisor reports it, so other proofs must not depend on it.
    pub may_be_unread: bool,
    /// Whether a finding of it proves itself without a trial: it is a ceiling that was reached, every input of which was
    /// read.
    pub proves_itself: bool,
    /// Whether the cause means full speed: then there is nothing to fix.
    pub full_speed: bool,
    /// The stage whose ceiling is reached if the cause holds.
    pub ceiling: Option<Stage>,
    /// Whether it acts on the share that is delivered, not on the rate that is sent. What a sender's own port drops was
    /// sent.
    pub of_delivery: bool,
    /// Whether a queue on the path explains the cause.
    pub slowed_by_queue: bool,
    /// The result of its counters, for one direction.
    check: fn(&Model, Direction) -> Answer,
    /// What the cause cost the measurement at each end, whether it is a limit or not.
    pub(crate) costs: fn(&Model, Direction) -> Vec<Cost>,
    /// Whether weak evidence of this cause is enough if no other cause is left: it shows a place that all goodput must
    /// pass, with little or no capacity to spare.
    pub(crate) is_last: fn(&Model, Direction) -> bool,
    /// The predicted ratio of the goodput, after over before the trial's change, if this cause holds; `None` when it is
    /// unknown.
    predict: fn(&Model, &TrialPlan) -> Option<Range>,
    /// The same of the share of bytes retransmitted. Called only for trials on transports that retransmit.
    pub(crate) predict_loss: fn(&Model, &TrialPlan) -> Option<Range>,
    /// The same of the round trip under load.
    predict_latency: fn(&Model, &TrialPlan) -> Option<Range>,
    /// Whether a trial of one of the factors that can prove the cause tests it: it acts where the cause is.
    decides: fn(&Model, &TrialPlan) -> bool,
    /// The remedy if the cause holds.
    advice: fn(&Model, Direction) -> Vec<Advice>,
}

impl Cause {
    /// Defaults for most causes. Each cause sets its own id, name, stage, page, check, prediction and advice.
    const BASE: Self = Self {
        id: "",
        name: "",
        scope: Scope::Any,
        stage: Stage::App,
        at_an_end: None,
        slows: Slowness::Rate,
        decided_by: &[],
        explains: &[],
        page: "",
        is_once: false,
        only_disturbs: false,
        may_be_unread: false,
        proves_itself: false,
        full_speed: false,
        ceiling: None,
        of_delivery: false,
        slowed_by_queue: false,
        check: |_, _| Err(NoFinding::Unknown(Vec::new())),
        costs: |_, _| Vec::new(),
        is_last: |_, _| false,
        predict: |_, _| None,
        predict_loss: |_, _| None,
        predict_latency: |_, _| None,
        decides: |_, _| true,
        advice: |_, _| Vec::new(),
    };

    /// The limiting stage if the cause was found at `place`.
    pub fn stage_at(&self, place: Place) -> Stage {
        self.at_an_end.filter(|_| place != Place::Path).unwrap_or(self.stage)
    }

    /// The result of its counters, for one direction.
    pub fn check(&self, model: &Model, direction: Direction) -> Answer {
        (self.check)(model, direction)
    }

    /// The predicted ratio of the goodput, after over before the trial's change, if this cause holds; `None` when it is
    /// unknown.
    pub fn predict(&self, model: &Model, trial: &TrialPlan) -> Option<Range> {
        (self.predict)(model, trial)
    }

    /// Whether a trial tests the cause: its factor decides the cause, at the end where the cause is.
    pub fn is_about(&self, model: &Model, trial: &TrialPlan) -> bool {
        let decides = |factor| self.decided_by.contains(&factor) && (self.decides)(model, trial);
        trial.factor().is_some_and(decides)
    }

    /// The remedy if the cause holds.
    pub fn advice(&self, model: &Model, direction: Direction) -> Vec<Advice> {
        (self.advice)(model, direction)
    }
}

/// The command that measures the same path again, with more options.
fn again(model: &Model, options: &str) -> String {
    model.asked.run(options)
}

/// The cause with a given id.
pub fn cause(id: &str) -> Option<&'static Cause> {
    CAUSES.iter().copied().find(|c| c.id == id)
}

/// The answer of a cause: it may hold, or the reason why it was not found.
pub type Answer = Result<Finding, NoFinding>;

/// Why a cause was not found.
#[derive(Debug, Clone, PartialEq)]
pub enum NoFinding {
    /// The cause does not hold, for this reason.
    Clear(String),
    /// It is unknown whether the cause holds: these readings are missing.
    Unknown(Vec<Gap>),
}

/// A cause that does not hold, for this reason.
fn clear(why: impl Into<String>) -> NoFinding {
    NoFinding::Clear(why.into())
}

/// A cause of which it is unknown whether it holds, since something was not read.
fn unknown(what: impl Into<String>, why: &str) -> NoFinding {
    let gap = Gap { what: what.into(), why: why.to_owned(), hint: String::new() };
    NoFinding::Unknown(vec![gap])
}

/// A cause that may hold, with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The place of the finding.
    pub side: Place,
    /// The share of the time, or of the slowness, that the cause explains; 0 to 1.
    pub share: f64,
    /// Whether the evidence is enough to name it as `supported` without a deciding trial. A rival
    /// that cannot be ruled out by counters is a finding, but not enough.
    pub enough: bool,
    /// Whether a ceiling was reached: both capacity and use of a resource were read, and it is used up.
    pub reached: bool,
    /// The evidence: numbers, in sentences without a full stop.
    pub evidence: Vec<String>,
}

/// The cost of a cause in a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// The place of the finding.
    pub side: Place,
    /// The cost's share of the time, or of the bytes that a port carried; `None` if unknown.
    pub share: Option<f64>,
    /// The evidence: numbers, in sentences without a full stop.
    pub evidence: Vec<String>,
    /// Advice without a gain, since no trial showed one.
    pub advice: Vec<Advice>,
}

/// Minimum share of the time at which a disturbance is reported: without the disturbance there was a tenth
/// more.
const DISTURBS: f64 = 0.1;

/// The answer of a cause that only disturbs.
fn disturbed(cause: &Cause, model: &Model, direction: Direction, none: &str) -> Answer {
    base(model, direction)?;
    match (cause.costs)(model, direction).pop() {
        None => Err(clear(none)),
        Some(cost) => Ok(Finding {
            side: cost.side,
            share: cost.share.unwrap_or(1.0),
            enough: true,
            reached: false,
            evidence: cost.evidence,
        }),
    }
}

/// The base load of a direction, or the answer when there is none.
fn base(model: &Model, direction: Direction) -> Result<&Load, NoFinding> {
    model.direction(direction).map(|d| &d.base).ok_or_else(|| {
        NoFinding::Unknown(vec![Gap {
            what: format!("goodput {}", direction.name()),
            why: "this direction was not measured".to_owned(),
            hint: String::new(),
        }])
    })
}

/// The answer of a cause that needs a reading of one end which is not there.
fn lacks(model: &Model, what: &str, side: linerate_plan::path::Side) -> NoFinding {
    let known = model.gaps.iter().find(|(s, g)| *s == side && g.what.starts_with(what));
    // In a run, the name of a reading includes its end, so that users know where to look.
    let named = |gap: &Gap| {
        if model.watched || side.is_named_in(&gap.what) {
            gap.what.clone()
        } else {
            format!("{} {}", side.name(), gap.what)
        }
    };
    NoFinding::Unknown(vec![known.map_or_else(
        || Gap {
            what: format!("{} {what}", side.name()),
            why: "the readings have no such counter".to_owned(),
            hint: String::new(),
        },
        |(_, gap)| Gap { what: named(gap), ..gap.clone() },
    )])
}

/// The port of an end for a command: its wire if there is one, else the one that its route leaves by. `PORT` if
/// none is known.
fn port_of(model: &Model, side: linerate_plan::path::Side) -> &str {
    model.host(side).map_or("PORT", port_at)
}

/// The port of `host` for a command: its wire if there is one, else the one that its route leaves by. `PORT`
/// if none is known.
fn port_at(host: &Host) -> &str {
    let route = host.facts.route.as_ref();
    let wires = route.and_then(Route::wires).unwrap_or_default();
    let wire = wires.first().copied();
    let nic = wire.or_else(|| route?.ports.first());
    let port = host.facts.port.as_ref();
    let name = nic.map(|nic| &nic.name).or(port.map(|port| &port.name));
    name.map_or("PORT", String::as_str)
}

/// The ceiling of the slower of the two wires.
fn wire(model: &Model, direction: Direction) -> Option<&Ceiling> {
    model.direction(direction)?.ceiling_of(Stage::Net)
}

/// The lowest ceiling that a direction reached.
fn reached(model: &Model, direction: Direction) -> Option<&Ceiling> {
    let dir = model.direction(direction)?;
    dir.ceilings.iter().find(|c| c.reached(&dir.base) >= FULL)
}
