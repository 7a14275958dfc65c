//! Causes of slowness. Each cause has its own file in a folder here, and one row in [`CAUSES`].

mod disk;
mod expected;
mod host;
mod latency;
mod network;
mod predict;
mod rdma;
mod tcp;
mod udp;

pub(crate) use expected::{Effects, Expected, Fit, excludes, shown};
pub(crate) use host::hash_collision::crowded;
pub(crate) use host::softirq_core::side as full_of_packets;
pub(crate) use latency::raised::raised;
use linerate_facts::advice::Advice;
pub(crate) use network::ack_way::collapses;
pub(crate) use network::local_drops::most as most_dropped;
pub(crate) use network::tunnel::mended;
pub(crate) use udp::datagrams::moot;
pub(crate) use udp::socket_drops::ROOM;

use crate::model::{Ceiling, Load, Model};
use linerate_facts::Gap;
use linerate_facts::route::Route;
use linerate_plan::factor::Factor;
use linerate_plan::path::{Direction, Place, Slowness, Stage};
use linerate_plan::transport::Feature;
use linerate_record::{Host, TrialPlan};
use linerate_units::stats::Range;

/// Names that nearly every cause imports.
mod prelude {
    pub(super) use super::{Answer, Cause, Finding, NoFinding, base, clear, lacks, unknown};
    pub(super) use crate::model::{Load, Model};
    pub(super) use crate::signs::{GAIN, percent};
    pub(super) use linerate_facts::Gap;
    pub(super) use linerate_facts::advice::Advice;
    pub(super) use linerate_plan::factor::Factor;
    pub(super) use linerate_plan::path::{Direction, Place, Side, Stage};
    pub(super) use linerate_plan::transport::Feature;
    pub(super) use linerate_record::TrialPlan;
    pub(super) use linerate_units::stats::Range;
}

/// Minimum share of a ceiling that goodput must carry, so that the ceiling counts as reached (METHOD section 2).
pub(crate) const FULL: f64 = 0.98;

/// Share of its CPU above which a thread has too little spare time for anything else to be the limit.
const BUSY: f64 = 0.9;

/// Every cause: the causes that only disturb a measurement come first, the causes of latency last.
pub const CAUSES: &[&Cause] = &[
    &network::contended::CAUSE,
    &network::interrupted::CAUSE,
    &network::wire_full::CAUSE,
    &host::pcie_slot::CAUSE,
    &network::wrong_route::CAUSE,
    &network::duplex::CAUSE,
    &network::arp_flux::CAUSE,
    &network::path_rate::CAUSE,
    &network::burst_credit::CAUSE,
    &tcp::segment_size::CAUSE,
    &network::ack_way::CAUSE,
    &network::flow_rate_cap::CAUSE,
    &network::path_loss::CAUSE,
    &network::bad_checksums::CAUSE,
    &tcp::sack_discarded::CAUSE,
    &network::path_reordering::CAUSE,
    &tcp::congestion_control::CAUSE,
    &tcp::socket_memory::CAUSE,
    &tcp::receive_window::CAUSE,
    &tcp::send_buffer::CAUSE,
    &udp::socket_drops::CAUSE,
    &tcp::pacing::CAUSE,
    &network::host_shaping::CAUSE,
    &network::local_drops::CAUSE,
    &network::pause_frames::CAUSE,
    &network::tunnel::CAUSE,
    &network::cloud_allowance::CAUSE,
    &host::receiver_core::CAUSE,
    &host::sender_core::CAUSE,
    &host::softirq_core::CAUSE,
    &host::shared_core::CAUSE,
    &host::hash_collision::CAUSE,
    &host::small_packets::CAUSE,
    &host::numa_remote::CAUSE,
    &host::cpu_quota::CAUSE,
    &host::cpu_contention::CAUSE,
    &host::cpu_steal::CAUSE,
    &host::cpu_clock::CAUSE,
    &host::memory_bandwidth::CAUSE,
    &network::mtu_black_hole::CAUSE,
    &host::receiver_app::CAUSE,
    &host::sender_app::CAUSE,
    &host::exchange_deadlock::CAUSE,
    &host::queue_depth::CAUSE,
    &disk::contended::CAUSE,
    &disk::throttled::CAUSE,
    &disk::link::CAUSE,
    &disk::thermal::CAUSE,
    &disk::cache_knee::CAUSE,
    &disk::raid_write::CAUSE,
    &disk::crypt::CAUSE,
    &disk::split::CAUSE,
    &disk::depth_held::CAUSE,
    &disk::not_async::CAUSE,
    &disk::sync::CAUSE,
    &disk::read_ahead::CAUSE,
    &disk::page_cache::CAUSE,
    &disk::dirty::CAUSE,
    &disk::capped::CAUSE,
    &rdma::depth::CAUSE,
    &rdma::read_depth::CAUSE,
    &rdma::one_qp::CAUSE,
    &rdma::inline::CAUSE,
    &rdma::mtu::CAUSE,
    &rdma::one_port::CAUSE,
    &rdma::link_down::CAUSE,
    &rdma::loss::CAUSE,
    &rdma::receiver_not_ready::CAUSE,
    &latency::nagle::CAUSE,
    &latency::idle_states::CAUSE,
    &latency::interrupts::CAUSE,
    &latency::wakeup::CAUSE,
    &latency::queue::CAUSE,
];

/// A reason for slowness that can be tested: its fixed properties, and the functions that judge it by a model.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of a cause")]
pub struct Cause {
    /// Id of the cause, such as `receive-window`. It never changes.
    pub id: &'static str,
    /// The fault, as a short clause that is shown after the name of the place: `the receive window is too small`.
    pub name: &'static str,
    /// The features that a transport needs, so that the cause can limit its loads. For a load of another transport
    /// the cause is not evaluated, and is no rival of other causes.
    pub needs: &'static [Feature],
    /// The limiting stage if this cause holds.
    pub stage: Stage,
    /// The limiting stage if the cause is found at an end of the path; `None` if it is `stage` there as well.
    at_an_end: Option<Stage>,
    /// Whether the cause makes a path slow in rate or in latency.
    pub slows: Slowness,
    /// The factors whose trials can prove the cause: those that affect its resource. Other trials can only exclude
    /// it.
    pub decided_by: &'static [Factor],
    /// Other causes that this cause explains, if it is found at the same place. It is no rival of theirs: if one of
    /// them is proved, both are named, and the proof does not depend on readings of this cause.
    pub explains: &'static [&'static str],
    /// The cause's page for people: its meaning, the differences to similar causes, how to confirm it by hand,
    /// and how to fix it.
    pub page: &'static str,
    /// Whether the cause is about the idle path, which both directions share. It is named for the first measured
    /// direction only, and cleared for the other one.
    pub is_once: bool,
    /// Whether the cause only disturbs a measurement. Such a cause is never the limit of the path, and has neither
    /// rivals nor trials.
    pub only_disturbs: bool,
    /// Whether proofs of other causes remain valid if this cause could not be read. A kernel counts stolen time
    /// only if its hypervisor reports it, so other proofs must not depend on it.
    pub may_be_unread: bool,
    /// Whether a finding of the cause proves itself without a trial: it is a ceiling that was reached, and every
    /// input of that ceiling was read.
    pub proves_itself: bool,
    /// Whether the cause means full speed: then there is nothing to fix.
    pub full_speed: bool,
    /// The stage whose ceiling is reached if the cause holds.
    pub ceiling: Option<Stage>,
    /// Whether the cause reduces the share of datagrams that is delivered, not the rate that is sent: packets that a
    /// sender's own port drops count as sent.
    pub of_delivery: bool,
    /// Whether a queue on the path that the load filled explains the cause, as it does for congestion control that
    /// slows down.
    pub slowed_by_queue: bool,
    /// Judges one direction by counters: whether the cause may hold.
    check: fn(&Model, Direction) -> Answer,
    /// The loss of time or traffic by the cause at each end, whether it is a limit or not.
    pub(crate) costs: fn(&Model, Direction) -> Vec<Cost>,
    /// Whether weak evidence of this cause is enough once all other causes are ruled out: it then shows a place that
    /// all goodput must pass, with little or no capacity to spare.
    pub(crate) is_last: fn(&Model, Direction) -> bool,
    /// The goodput after the trial's change over the goodput before, as predicted if this cause holds; `None` when it
    /// is unknown.
    predict: fn(&Model, &TrialPlan) -> Option<Range>,
    /// The predicted ratio, after over before, of the share of bytes retransmitted. Called only for trials on
    /// transports that retransmit.
    pub(crate) predict_loss: fn(&Model, &TrialPlan) -> Option<Range>,
    /// The predicted ratio, after over before, of the round trip under load.
    predict_latency: fn(&Model, &TrialPlan) -> Option<Range>,
    /// Whether a trial of one of the factors in `decided_by` tests the cause: it must act at the end where the cause
    /// is.
    decides: fn(&Model, &TrialPlan) -> bool,
    /// Advice that removes the cause, if it holds.
    advice: fn(&Model, Direction) -> Vec<Advice>,
}

impl Cause {
    /// Default values for most causes. Each cause sets its own id, name, stage, page, check, prediction and advice.
    const BASE: Self = Self {
        id: "",
        name: "",
        needs: &[],
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

    /// Judges one direction by counters: whether the cause may hold.
    pub fn check(&self, model: &Model, direction: Direction) -> Answer {
        (self.check)(model, direction)
    }

    /// The goodput after the trial's change over the goodput before, as predicted if this cause holds; `None` when it
    /// is unknown.
    pub fn predict(&self, model: &Model, trial: &TrialPlan) -> Option<Range> {
        (self.predict)(model, trial)
    }

    /// Whether a trial tests the cause: its factor is in `decided_by`, and it acts at the end where the cause is.
    pub fn is_about(&self, model: &Model, trial: &TrialPlan) -> bool {
        let decides = |factor| self.decided_by.contains(&factor) && (self.decides)(model, trial);
        trial.factor().is_some_and(decides)
    }

    /// Advice that removes the cause, if it holds.
    pub fn advice(&self, model: &Model, direction: Direction) -> Vec<Advice> {
        (self.advice)(model, direction)
    }
}

/// The command that measures the same path again, with more options.
fn rerun(model: &Model, options: &str) -> String {
    model.requested.run(options)
}

/// The cause with this id; `None` if there is none.
pub fn cause(id: &str) -> Option<&'static Cause> {
    CAUSES.iter().copied().find(|c| c.id == id)
}

/// The result of checking a cause: a finding, or the reason why there is none.
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

/// The result for a cause that cannot be judged, because `what` was not read.
fn unknown(what: impl Into<String>, why: &str) -> NoFinding {
    let gap = Gap { what: what.into(), why: why.to_owned(), hint: String::new() };
    NoFinding::Unknown(vec![gap])
}

/// A cause that may hold, with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The place where the cause may hold.
    pub side: Place,
    /// The share of the time, or of the missing goodput, that the cause explains; 0 to 1.
    pub share: f64,
    /// Whether the evidence is enough to name the cause as `supported` without a deciding trial. A finding may also
    /// be a rival that counters cannot rule out: its evidence is not enough.
    pub enough: bool,
    /// Whether a ceiling was reached: both capacity and use of a resource were read, and it is used up.
    pub reached: bool,
    /// The evidence: numbers, in sentences without a full stop.
    pub evidence: Vec<String>,
}

impl Finding {
    /// A finding at a place, whose evidence is not enough to name the cause.
    fn at(side: impl Into<Place>, share: f64, evidence: Vec<String>) -> Self {
        Self { side: side.into(), share, enough: false, reached: false, evidence }
    }

    fn enough(self, enough: bool) -> Self {
        Self { enough, ..self }
    }

    fn reached(self, reached: bool) -> Self {
        Self { reached, ..self }
    }
}

/// The share of a measurement that a cause took.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// The place of the cause.
    pub side: Place,
    /// The cost's share of the time, or of the bytes that a port carried; `None` if unknown.
    pub share: Option<f64>,
    /// The evidence: numbers, in sentences without a full stop.
    pub evidence: Vec<String>,
    /// Advice without a gain, since no trial showed one.
    pub advice: Vec<Advice>,
}

/// Minimum share of the time at which a disturbance is reported: without it there would be a tenth more goodput.
const DISTURBS: f64 = 0.1;

/// The result of checking a cause that only disturbs a measurement; `none` says why there is no finding.
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

/// The base load of a direction; else the gap that this direction was not measured.
fn base(model: &Model, direction: Direction) -> Result<&Load, NoFinding> {
    model.direction(direction).map(|d| &d.base).ok_or_else(|| {
        NoFinding::Unknown(vec![Gap {
            what: format!("goodput {}", direction.name()),
            why: "this direction was not measured".to_owned(),
            hint: String::new(),
        }])
    })
}

/// The result for a cause that needs a reading of one end, where that reading is missing.
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

/// The port of the host at one end, to be put into a command: its wire if it has one, else the port that its route
/// leaves by. `PORT` if no port is known.
fn port_of(model: &Model, side: linerate_plan::path::Side) -> &str {
    model.host(side).map_or("PORT", port_at)
}

/// The port of `host`, to be put into a command: its wire if it has one, else the port that its route leaves by.
/// `PORT` if no port is known.
fn port_at(host: &Host) -> &str {
    let route = host.facts.route.as_ref();
    let wires = route.and_then(Route::wires).unwrap_or_default();
    let wire = wires.first().copied();
    let nic = wire.or_else(|| route?.ports.first());
    let port = host.facts.port.as_ref();
    let name = nic.map(|nic| &nic.name).or(port.map(|port| &port.name));
    name.map_or("PORT", String::as_str)
}

/// The lowest ceiling of a wire in a direction: the slower of the wires at the two ends.
fn wire(model: &Model, direction: Direction) -> Option<&Ceiling> {
    model.direction(direction)?.ceiling_of(Stage::Net)
}

/// The lowest ceiling that the base load of a direction reached.
fn reached(model: &Model, direction: Direction) -> Option<&Ceiling> {
    let dir = model.direction(direction)?;
    dir.ceilings.iter().find(|c| c.reached(&dir.base) >= FULL)
}
