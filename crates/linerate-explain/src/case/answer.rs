//! The computed results for a case: goodput in each direction and in both, estimates, floor, price.

use super::parts::{channels, description, express};
use super::{Case, CaseError, Host, Slot};
use linerate_ceiling::latency::{self, Part};
use linerate_ceiling::{Bounds, Ceiling, Link, Path, Solution, cpu, memory};
use linerate_plan::path::{Direction, Place, Side, Stage};
use linerate_units::Nanos;

/// Size in bytes of the small message whose minimum one-way time is computed.
const SMALL_MESSAGE: f64 = 64.0;

/// The computed results for a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The path of the case, with the resources that limit it.
    pub path: Path,
    /// Goodput from near to far, without traffic in the other direction.
    pub forward: Option<Solution>,
    /// Goodput from far to near, without traffic in the other direction.
    pub reverse: Option<Solution>,
    /// Goodput of both directions that are loaded at the same time.
    pub both: Option<Solution>,
    /// Estimates of quantities that are no ceilings.
    pub estimates: Vec<Estimate>,
    /// Packets per second at the ceiling of forward goodput.
    pub packets: Option<Bounds>,
    /// CPU cycles that one core of the far host has for each received packet.
    pub cycles: Option<Bounds>,
    /// The parts of the minimum one-way time of a small message.
    pub floor: Vec<Part>,
    /// The price for each Gb/s of forward goodput.
    pub price: Option<Price>,
}

/// An estimated quantity that the hardware alone does not determine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// The stage of the path that the estimate is about.
    pub stage: Stage,
    /// The place of that stage: near, far, or the path between.
    pub side: Place,
    /// The estimated quantity, with its numbers.
    pub words: String,
}

/// Price of one Gb/s of goodput.
#[derive(Debug, Clone, PartialEq)]
pub struct Price {
    /// Amount for each Gb/s of goodput.
    pub per_gigabit: Bounds,
    /// The currency of the amount.
    pub currency: String,
    /// The unit of time that the price is for: `hour`; empty if the hardware is bought.
    pub per: String,
}

impl Answer {
    /// Goodput of one direction, without traffic in the other.
    pub const fn way(&self, way: Direction) -> Option<&Solution> {
        match way {
            Direction::Forward => self.forward.as_ref(),
            Direction::Reverse => self.reverse.as_ref(),
        }
    }

    /// The ceiling of every stage in one direction.
    pub fn ceilings(&self, way: Direction) -> Vec<Ceiling<'_>> {
        self.path.ceilings(way)
    }

    /// The minimum one-way time of a small message, in seconds.
    pub fn floor_seconds(&self) -> f64 {
        self.floor.iter().map(|part| part.seconds).sum()
    }
}

/// Computes all results of a case.
pub fn answer(case: &Case) -> Result<Answer, CaseError> {
    let description = description(case)?;
    let (path, payload) = (description.path(), description.packet.payload);
    let forward = path.solve(&[Direction::Forward]);
    let reverse = path.solve(&[Direction::Reverse]);
    let packets = forward.as_ref().map(|s| cpu::packets(s.goodput, payload));
    // With RDMA the card handles packets, so cycles of a core for each packet are only for protocols that copy.
    let clock = case.far.clock.filter(|_| case.protocol.copies());
    Ok(Answer {
        both: path.solve(&Direction::ALL),
        estimates: estimates(case, [forward.as_ref(), reverse.as_ref()], payload),
        packets,
        cycles: packets.zip(clock).map(|(p, clock)| cpu::cycles(clock.hertz, p)),
        floor: floor(case),
        price: forward.as_ref().and_then(|s| price(case, s.goodput)),
        path,
        forward,
        reverse,
    })
}

fn price(case: &Case, goodput: Bounds) -> Option<Price> {
    let tag = case.price.as_ref()?;
    let gigabits = |bits: f64| tag.amount / (bits / 1e9).max(1e-9);
    Some(Price {
        per_gigabit: Bounds::new(gigabits(goodput.high()), gigabits(goodput.low())),
        currency: tag.currency.clone(),
        per: tag.per.clone(),
    })
}

fn estimates(case: &Case, ways: [Option<&Solution>; 2], payload: Bounds) -> Vec<Estimate> {
    let mut all = Vec::new();
    for (side, host) in [(Side::Near, &case.near), (Side::Far, &case.far)] {
        // Receiving costs a host more than sending, so its estimates use the goodput that it receives.
        let into = match side {
            Side::Near => ways[1],
            Side::Far => ways[0],
        };
        let solved = into.map(|s| s.goodput);
        if case.protocol.copies() {
            all.extend(core(side, host, solved, payload));
        }
        all.extend(typical_memory(case, side, host));
    }
    all
}

fn core(side: Side, host: &Host, goodput: Option<Bounds>, payload: Bounds) -> Option<Estimate> {
    let (clock, goodput) = (host.clock?, goodput?);
    let packets = cpu::packets(goodput, payload);
    let cycles = cpu::cycles(clock.hertz, packets);
    Some(Estimate {
        stage: Stage::Cpu,
        side: side.into(),
        words: format!(
            "{} at the ceiling: one core at {} GHz has {} for each",
            packets.words(packets_in_words),
            clock.hertz / 1e9,
            cycles.words(cycles_in_words),
        ),
    })
}

/// A packet rate in words.
pub(super) fn packets_in_words(packets: f64) -> String {
    format!("{:.2} M packets/s", packets / 1e6)
}

/// The CPU cycles that a core has for one packet, in words.
pub(super) fn cycles_in_words(cycles: f64) -> String {
    format!("{cycles:.0} cycles")
}

fn typical_memory(case: &Case, side: Side, host: &Host) -> Option<Estimate> {
    let channels = channels(host)?;
    let crossings = memory::typical(case.protocol.copies());
    let gigabits = channels.capacity().low() * 8.0 / 1e9 / f64::from(crossings);
    Some(Estimate {
        stage: Stage::Memory,
        side: side.into(),
        words: format!("{gigabits:.0} Gb/s received: {}, as is usual", channels.words(crossings)),
    })
}

/// The parts of the minimum one-way time. A part that is not known is left out: the result is then lower, but still a
/// minimum.
fn floor(case: &Case) -> Vec<Part> {
    let mut parts = Vec::new();
    let links = [case.near.port.link, case.far.port.link];
    parts.extend(slot(Side::Near, &case.near));
    let rates = links.into_iter().flatten().map(Link::capacity);
    let slowest = rates.min_by(|a, b| a.high().total_cmp(&b.high()));
    parts.extend(slowest.map(|rate| latency::serialisation("link", SMALL_MESSAGE, rate)));
    parts.extend(case.net.cable.map(latency::propagation));
    let each = case.net.switch_latency.map(Nanos::secs);
    let switches = case.net.switches;
    parts.extend(switches.map(|count| latency::switches(count, each)));
    parts.extend(slot(Side::Far, &case.far));
    parts
}

fn slot(side: Side, host: &Host) -> Option<Part> {
    let name = format!("{} slot", side.name());
    let capacity = match host.port.pcie? {
        Slot::NoSlot => return None,
        Slot::Bus(bus) => bus.capacity(),
        Slot::Express { .. } => express(host)?.capacity(),
    };
    Some(latency::serialisation(&name, SMALL_MESSAGE, capacity))
}
