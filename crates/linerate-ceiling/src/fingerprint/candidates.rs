//! The hardware whose ceiling a measured rate may be.
//!
//! A measured rate is a share of its ceiling, from [`REACHED`] to 1. So a ceiling a little above the rate is a
//! candidate, one far above is not the limit, and one below cannot carry the rate. A ceiling that is lower only by
//! the error of the measurement is listed as well, and comes last.

use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};

use super::facts::{Facts, slot_words};
use super::fit::Fit;
use super::table::{self, Carrier, Kind, Part, Row, Variant};
use crate::infiniband::Speed;
use crate::{Bounds, Link, pcie};
use linerate_units::Rate;

/// Smallest share of its ceiling that the rate of large messages is expected to reach.
//= docs/cases.md: 0.93 of a PCIe 2.0 x8 slot in case 3, 0.99 of a port in case 1, 1.0 of a slot in case 5
const REACHED: f64 = 0.93;

/// Least error of a rate, as a share of the rate: packet sizes, clocks and rounded tables are not known more exactly.
const LEAST_ERROR: f64 = 0.025;

/// The error of the rate is this share of the half-width of the fit's interval. The interval of few spans is wide:
/// it holds the true rate of 99 % of all sweeps. With 0.4 instead of 0.25 the true ceiling is listed in 99.6
/// instead of 99.0 % of simulated sweeps, but a candidate is listed nearly twice as often where no ceiling is near.
const INTERVAL_SHARE: f64 = 0.25;

/// Largest difference of two ceilings that no sweep can tell apart, as a share of their lower and of their upper ends.
const EQUAL: f64 = 0.02;

/// How often rare hardware limits a path, relative to common hardware: an assumption.
const RARE_WEIGHT: f64 = 0.2;

/// A measured rate, and how far the true rate may be from it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Measured {
    /// Measured rate in bits per second.
    rate: f64,
    /// Error of the rate, as a share of the rate.
    error: f64,
}

/// One piece of hardware of a candidate, with its ceiling.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// Name of the hardware in words: `PCIe gen2 x4`.
    pub name: String,
    /// Kind of the hardware or service.
    pub kind: Kind,
    /// Possible goodput in bits per second: from the slowest to the fastest way to use the hardware.
    pub carries: Bounds,
    /// The way to use the hardware whose rate is nearest to the measured one.
    pub nearest: Variant,
}

/// Hardware that carries about as much as was measured. It is no proof that the hardware is present.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Ceilings that are equal within 2 %, the one nearest to the rate first; never empty. A sweep cannot tell them
    /// apart.
    pub names: Vec<Named>,
    /// Possible goodput of all `names` together, in bits per second.
    pub carries: Bounds,
    /// Distance of the measured rate from the range `carries`, as a share of the nearer end: 0 inside,
    /// positive above the range, negative below it.
    pub off: f64,
    /// How far the upper end of `carries` is above the measured rate, as a share of the rate; negative if it is below.
    pub margin: f64,
    /// Whether the facts say that the path has this hardware.
    pub is_known: bool,
}

impl Candidate {
    /// The names of all its hardware in words: `PCIe gen1 x8 or PCIe gen2 x4`.
    pub fn words(&self) -> String {
        let names: Vec<&str> = self.names.iter().map(|named| named.name.as_str()).collect();
        names.join(" or ")
    }
}

/// Hardware whose ceiling agrees with the rate, but which a fact rules out.
#[derive(Debug, Clone, PartialEq)]
pub struct Excluded {
    /// The ceiling that is ruled out.
    pub named: Named,
    /// The fact that rules the ceiling out, in words: `the network is Ethernet`.
    pub by: String,
}

/// How a ceiling and a measured rate compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// The ceiling is far above the rate: it is not the limit.
    NotTheLimit,
    /// The rate is what a path with this ceiling can reach.
    Agrees,
    /// The rate is above the ceiling: the fact, or the sweep, is wrong.
    Exceeded,
}

/// A ceiling of hardware that the facts state, compared with the measured rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Stated {
    /// Name of the hardware in words.
    pub name: String,
    /// Possible goodput of the hardware, in bits per second.
    pub carries: Bounds,
    /// How far the upper end of `carries` is above the measured rate, as a share of the rate; negative if it is below.
    pub margin: f64,
    /// How the ceiling and the measured rate compare.
    pub standing: Standing,
}

/// What a measured rate shows about the hardware of a path.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Candidates {
    /// Hardware whose ceiling agrees with the rate: hardware that the facts name comes first, then the likeliest.
    /// Rare hardware, such as links of 12 lanes, is less likely.
    pub possible: Vec<Candidate>,
    /// Hardware whose ceiling agrees with the rate, but which the facts rule out.
    pub excluded: Vec<Excluded>,
    /// Ceilings of the hardware that the facts state.
    pub stated: Vec<Stated>,
}

/// The hardware whose ceiling the rate of a sweep may be, as far as `facts` allow it.
pub fn candidates(fit: &Fit, facts: &Facts) -> Candidates {
    among(&table::rows(), fit, facts)
}

/// Rates that fill a link, as shares of what the link can carry. They are not exactly 1: rates are rounded, and a
/// program counts a little of its start.
const FILLS: std::ops::RangeInclusive<f64> = 0.985..=1.005;

/// The hardware of `kind` that a rate (bits per second) fills, and the way in which `carrier` uses it; `None` if
/// the rate fills none.
pub fn filled(rate: f64, kind: Kind, carrier: Carrier) -> Option<(String, Variant)> {
    let off = |way: &Variant| (rate / way.rate - 1.0).abs();
    ways(kind, carrier)
        .filter(|(_, way)| FILLS.contains(&(rate / way.rate)))
        .min_by(|(_, a), (_, b)| off(a).total_cmp(&off(b)))
}

/// The ways in which a carrier can use the hardware of a kind, each with the name of the hardware.
pub fn ways(kind: Kind, carrier: Carrier) -> impl Iterator<Item = (String, Variant)> {
    let rows = table::rows().into_iter().filter(move |row| row.kind == kind);
    let all = rows.flat_map(|row| {
        let name = row.name;
        let ways = row.variants.into_iter();
        ways.map(move |way| (name.clone(), way))
    });
    all.filter(move |(_, way)| way.carrier.is_none_or(|by| by == carrier))
}

/// Rates that count as equal to a ceiling, as shares of the ceiling: rates are rounded, and a program counts a
/// little of its start.
const AT_CEILING: std::ops::RangeInclusive<f64> = 0.99..=1.005;

/// Usual number of lanes of an InfiniBand link between ports: links with other numbers fell back or are bundles.
const USUAL_LANES: u32 = 4;

/// Rate of the slowest Ethernet port of cards with RDMA.
const LEAST_ROCE: Rate = Rate(10_000_000_000);

/// Start of the name of the TCP variant that systems use unless they are set otherwise.
const USUAL_SEGMENTS: &str = "TCP with timestamps";

/// Payload rates of ports that stay below what their link carries: speed of the link, what reaches the rate, bits
/// per second.
//= MVAPICH project, published rates of osu_bw: 6356 MB/s with ConnectX-3 and FDR in a slot of PCIe 3.0 x8; perftest
//= prints as much (6060 MiB/s)
const REACHED_BY: [(Speed, &str, f64); 1] =
    [(Speed::Fdr, "RDMA by a ConnectX-3 in PCIe gen3 x8", 50.95e9)];

/// Hardware whose ceiling is equal to a measured rate.
#[derive(Debug, Clone, PartialEq)]
pub struct At {
    /// Name of the hardware: `InfiniBand EDR 4x`.
    pub name: String,
    /// Kind of the hardware.
    pub kind: Kind,
    /// The link, if the hardware is one.
    pub link: Option<Link>,
    /// The way to use the hardware.
    pub way: Variant,
}

/// The ways to use common links, slots and USB buses whose ceiling is within 1 % of `rate` (bits per second), the
/// nearest first.
pub fn at(rate: f64, carrier: Carrier) -> Vec<At> {
    let is_usual = |row: &Row| match row.part {
        Part::Link(Link::InfiniBand { width, .. }) => width == USUAL_LANES,
        Part::Link(Link::Ethernet(rate)) => carrier == Carrier::Sockets || rate >= LEAST_ROCE,
        Part::Slot { .. } => !row.is_rare,
        Part::Other => row.kind == Kind::Usb && carrier == Carrier::Sockets,
    };
    let rows = table::rows().into_iter().filter(is_usual);
    let mut found: Vec<At> = rows.flat_map(|row| of_row(row, carrier)).collect();
    let share = |at: &At| rate / at.way.rate;
    found.retain(|at| AT_CEILING.contains(&share(at)));
    let off = |at: &At| (share(at) - 1.0).abs();
    found.sort_by(|a, b| off(a).total_cmp(&off(b)));
    found
}

/// The ways in which a carrier uses the hardware of a row of the table.
fn of_row(row: Row, carrier: Carrier) -> Vec<At> {
    let link = match row.part {
        Part::Link(link) => Some(link),
        Part::Slot { .. } | Part::Other => None,
    };
    let reached = REACHED_BY.iter().filter(
        |(speed, ..)| matches!(link, Some(Link::InfiniBand { speed: own, .. }) if own == *speed),
    );
    let reached = reached.map(|(_, name, rate)| Variant::plain(name, *rate));
    let usable = |way: &Variant| match way.carrier {
        Some(Carrier::Sockets) => {
            carrier == Carrier::Sockets && way.name.starts_with(USUAL_SEGMENTS)
        }
        by => by.is_none_or(|by| by == carrier),
    };
    let Row { name, kind, variants, .. } = row;
    let ways =
        variants.into_iter().filter(usable).chain(reached.filter(|_| carrier == Carrier::Verbs));
    let at = |way| At { name: name.clone(), kind, link, way };
    ways.map(at).collect()
}

/// Compares the rate of a sweep with the ceilings of the given rows, as far as `facts` allow them.
pub(super) fn among(rows: &[Row], fit: &Fit, facts: &Facts) -> Candidates {
    let measured = Measured::of(fit);
    let named = |row: &Row, facts: &Facts| measured.named(row, facts);
    let (mut allowed, mut excluded) = (Vec::new(), Vec::new());
    for row in rows {
        match facts.against(row) {
            None => allowed.push((row, named(row, facts))),
            Some(by) => {
                let named = named(row, &Facts::default());
                if measured.standing(named.carries) == Standing::Agrees {
                    excluded.push(Excluded { named, by });
                }
            }
        }
    }
    Candidates {
        possible: measured.possible(allowed, facts),
        excluded,
        stated: measured.stated(facts),
    }
}

/// Rows with equal ceilings, and the rates of all their variants.
struct Group {
    names: Vec<Named>,
    rates: Vec<f64>,
    is_known: bool,
    is_rare: bool,
}

impl Measured {
    fn of(fit: &Fit) -> Self {
        let half = (fit.interval.high() - fit.interval.low()) / 2.0 / fit.rate;
        Self { rate: fit.rate, error: (INTERVAL_SHARE * half).max(LEAST_ERROR) }
    }

    fn named(self, row: &Row, facts: &Facts) -> Named {
        let off = |v: &Variant| (v.rate / self.rate - 1.0).abs();
        let variants = || row.variants.iter().filter(|v| facts.allows(v));
        let nearest = variants().min_by(|a, b| off(a).total_cmp(&off(b)));
        Named {
            name: row.name.clone(),
            kind: row.kind,
            carries: Bounds::of(variants().map(|v| v.rate)),
            nearest: nearest.copied().unwrap_or(Variant::plain("", 0.0)),
        }
    }

    fn standing(self, carries: Bounds) -> Standing {
        if carries.high() * (1.0 + self.error) < self.rate {
            Standing::Exceeded
        } else if carries.low() * REACHED * (1.0 - self.error) > self.rate {
            Standing::NotTheLimit
        } else {
            Standing::Agrees
        }
    }

    fn possible(self, rows: Vec<(&Row, Named)>, facts: &Facts) -> Vec<Candidate> {
        let mut scored = Vec::new();
        for group in grouped(rows, facts) {
            let carries = Bounds::of(group.rates.iter().copied());
            if self.standing(carries) == Standing::Agrees {
                let weight = if group.is_rare { RARE_WEIGHT } else { 1.0 };
                let score = weight * self.likelihood(&group.rates);
                scored.push((group.is_known, score, self.candidate(group, carries)));
            }
        }
        scored.sort_by(|(known, a, _): &(bool, f64, Candidate), (other, b, _)| {
            other.cmp(known).then(b.total_cmp(a))
        });
        let candidates = scored.into_iter().map(|(.., candidate)| candidate);
        candidates.collect()
    }

    fn candidate(self, mut group: Group, carries: Bounds) -> Candidate {
        let off = |named: &Named| (named.nearest.rate / self.rate - 1.0).abs();
        group.names.sort_by(|a, b| off(a).total_cmp(&off(b)));
        Candidate {
            names: group.names,
            carries,
            off: self.off(carries),
            margin: self.margin(carries),
            is_known: group.is_known,
        }
    }

    fn off(self, carries: Bounds) -> f64 {
        if self.rate > carries.high() {
            self.rate / carries.high() - 1.0
        } else if self.rate < carries.low() {
            self.rate / carries.low() - 1.0
        } else {
            0.0
        }
    }

    fn margin(self, carries: Bounds) -> f64 {
        carries.high() / self.rate - 1.0
    }

    /// How likely this hardware gives the measured rate: each variant is as likely, each share of its ceiling from
    /// [`REACHED`] to 1 is as likely, and the error of the measurement is normal. Compare it only for the same
    /// rate.
    fn likelihood(self, rates: &[f64]) -> f64 {
        // The error is taken as two standard deviations.
        let deviation = self.error / 2.0 * self.rate;
        let below = |rate: f64| Normal::standard().cdf((rate - self.rate) / deviation);
        let of = |most: &f64| (below(*most) - below(most * REACHED)) / (most * (1.0 - REACHED));
        rates.iter().map(of).sum::<f64>() / rates.len().max(1) as f64
    }

    fn stated(self, facts: &Facts) -> Vec<Stated> {
        let links = facts.links.parts.iter().map(|link| {
            let named = self.named(&table::link(*link), facts);
            (named.name, named.carries)
        });
        let slots = facts.slots.parts.iter().map(|slot| {
            let name = format!("PCIe {}", slot_words(slot));
            (name, slot_carries(slot))
        });
        let mut all: Vec<Stated> = Vec::new();
        for (name, carries) in links.chain(slots) {
            if all.iter().all(|other| other.name != name) {
                all.push(Stated {
                    name,
                    carries,
                    margin: self.margin(carries),
                    standing: self.standing(carries),
                });
            }
        }
        all
    }
}

/// Groups the rows whose ceilings are equal.
fn grouped(rows: Vec<(&Row, Named)>, facts: &Facts) -> Vec<Group> {
    let near = |a: f64, b: f64| (a / b - 1.0).abs() <= EQUAL;
    let mut groups: Vec<Group> = Vec::new();
    for (row, named) in rows {
        let rates = row.variants.iter().filter(|v| facts.allows(v)).map(|v| v.rate);
        let is_known = is_stated(row.part, facts);
        let equal = groups.iter_mut().find(|group| {
            let first = group.names[0].carries;
            near(first.low(), named.carries.low()) && near(first.high(), named.carries.high())
        });
        if let Some(group) = equal {
            group.rates.extend(rates);
            group.is_known |= is_known;
            group.is_rare &= row.is_rare;
            group.names.push(named);
        } else {
            groups.push(Group {
                rates: rates.collect(),
                names: vec![named],
                is_known,
                is_rare: row.is_rare,
            });
        }
    }
    groups
}

fn is_stated(part: Part, facts: &Facts) -> bool {
    match part {
        Part::Link(link) => facts.links.parts.contains(&link),
        Part::Slot { generation, lanes } => facts
            .slots
            .parts
            .iter()
            .any(|slot| slot.generations == [generation] && slot.lanes == [lanes]),
        Part::Other => false,
    }
}

/// Payload that a slot carries in bits per second if its link sends data packets only.
fn slot_carries(slot: &pcie::Slot) -> Bounds {
    let (capacity, write, read) = (slot.capacity(), slot.write(), slot.read());
    let payload = slot.payloads.iter().copied().min().unwrap_or(128);
    let least = pcie::Slot { payloads: vec![payload], ..slot.clone() };
    let most = write.per_byte.low().min(read.per_byte.low());
    Bounds::new(capacity.low() * 8.0 / least.write().per_byte.low(), capacity.high() * 8.0 / most)
}
