//! The result of `linerate whatif` as JSON: a path described by hand. The schema of the document is made from
//! `Output`.

mod sweeps;

use linerate_ceiling::{Bounds, Ceiling, Relation, Solution, Source};
use linerate_explain::Headline;
use linerate_explain::case::{Answer, FigureCheck};
use linerate_plan::path::{Direction, Place, Side, Stage};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::import::json::Results;
use super::super::json::{integer, text};
use super::{Change, PathResults};
use crate::head::Head;
use sweeps::SweepOut;

/// One JSON document. Keys contain the units. Unknown values are null. Rates are bits per second of payload, with
/// the lower and the upper end of an interval; both are equal if every input is known.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate whatif")]
pub(crate) struct Output<'a> {
    #[serde(flatten)]
    head: Head<'static>,
    /// Title of the described case.
    title: &'a str,
    /// Values that were replaced in the case, as typed.
    set: &'a [String],
    before: AnswerOut<'a>,
    /// What is computed for the case with the replacements. Null if nothing was replaced.
    after: Option<AnswerOut<'a>>,
    /// Published figures in the case file, and what is computed for each without replacements.
    published: Vec<FigureCheckOut<'a>>,
    /// Times by size in the case file (`[[sweep]]`), and what they show about the hardware.
    sweeps: Vec<SweepOut<'a>>,
    /// Published results in the case file and what they show: of its own path first, then of paths that differ.
    results: Vec<ResultOut<'a>>,
}

/// The figures that are computed for a case.
#[derive(Serialize, JsonSchema)]
struct AnswerOut<'a> {
    /// Goodput from near to far. Null if unknown.
    forward: Option<SolutionOut<'a>>,
    /// Goodput from far to near. Null if unknown.
    reverse: Option<SolutionOut<'a>>,
    /// Goodput with both directions loaded at the same time. Null if unknown.
    both: Option<BothOut<'a>>,
    /// Ceilings of every stage, in the order of the forward direction; forward ceilings come first.
    ceilings: Vec<CeilingOut<'a>>,
    /// Estimates, which are no ceilings.
    estimates: Vec<EstimateOut<'a>>,
    /// Packets per second: lower and upper end of an interval. Null if unknown.
    #[schemars(inner(range(min = 0)))]
    packets_per_s: Option<[f64; 2]>,
    /// CPU cycles for each packet: lower and upper end of an interval. Null if unknown.
    #[schemars(inner(range(min = 0)))]
    cycles_per_packet: Option<[f64; 2]>,
    /// Lower bound of the one-way latency, for 64 bytes. Parts that are not described count as zero.
    latency_floor_ns: u64,
    /// The parts of `latency_floor_ns`.
    latency_floor: Vec<PartOut<'a>>,
    /// Price of the goodput. Null if unknown.
    price: Option<PriceOut<'a>>,
}

/// Goodput that the path allows in a direction, and what limits it.
#[derive(Serialize, JsonSchema)]
struct SolutionOut<'a> {
    /// Lower and upper end of the goodput.
    goodput_bps: [u64; 2],
    /// Names of the ceilings that limit the goodput: two if the limits at the two ends of the interval differ.
    binding: &'a [String],
    /// The next limit, once these ceilings are removed. Null if no other ceiling is known.
    next: Option<NextLimitOut<'a>>,
}

/// Goodput once the first limit is removed, and what limits it then.
#[derive(Serialize, JsonSchema)]
struct NextLimitOut<'a> {
    /// Lower and upper end of the goodput.
    goodput_bps: [u64; 2],
    /// Names of the ceilings that limit this goodput.
    binding: &'a [String],
}

/// Goodput of both directions loaded at the same time.
#[derive(Serialize, JsonSchema)]
struct BothOut<'a> {
    #[serde(flatten)]
    sum: SolutionOut<'a>,
    /// Goodput of the forward direction. Null if unknown.
    forward_bps: Option<[u64; 2]>,
    /// Goodput of the reverse direction. Null if unknown.
    reverse_bps: Option<[u64; 2]>,
}

/// The highest goodput that a part of the path allows.
#[derive(Serialize, JsonSchema)]
struct CeilingOut<'a> {
    direction: Direction,
    /// Name of the part: link, near slot. A case replaces all resources of this name together.
    name: &'a str,
    stage: Stage,
    side: Place,
    /// Lower and upper end of the ceiling.
    goodput_bps: [u64; 2],
    /// The formula of the ceiling, with its numbers.
    formula: &'a str,
    /// Inputs that the formula was computed from.
    inputs: Vec<InputOut<'a>>,
}

/// An input of a ceiling.
#[derive(Serialize, JsonSchema)]
struct InputOut<'a> {
    /// Key of the input in the case file.
    key: &'a str,
    /// The value of the input, in words.
    value: &'a str,
    source: Source,
}

/// An estimate, which is no ceiling.
#[derive(Serialize, JsonSchema)]
struct EstimateOut<'a> {
    #[schemars(extend("enum" = [Stage::Cpu, Stage::Memory]))]
    stage: Stage,
    #[schemars(with = "Side")]
    side: Place,
    /// The estimate in words.
    words: &'a str,
}

/// A part of the lower bound of the latency.
#[derive(Serialize, JsonSchema)]
struct PartOut<'a> {
    /// The source of the delay, with its numbers.
    words: &'a str,
    /// Delay of this part.
    #[schemars(range(min = 0))]
    ns: f64,
}

/// Price of the goodput.
#[derive(Serialize, JsonSchema)]
struct PriceOut<'a> {
    /// Price of one Gb/s: lower and upper end of an interval.
    #[schemars(inner(range(min = 0)))]
    per_gbps: [f64; 2],
    /// Currency of the price.
    currency: &'a str,
    /// The period that the price is for, such as `hour`, if the hardware is rented. Null if it is bought.
    per: Option<&'a str>,
}

/// A published figure and the figure computed for it.
#[derive(Serialize, JsonSchema)]
struct FigureCheckOut<'a> {
    /// What was measured, in words.
    what: &'a str,
    /// The published figure, in words.
    figure: &'a str,
    /// The computed figure, in words.
    computed: &'a str,
    /// How the published and the computed figure compare, in words.
    claim: &'static str,
    /// Whether the two figures could be compared.
    holds: bool,
    /// How the two figures compare: `reached` (within 2 %), `inside` (a wide interval), `about` (10 %), `below`,
    /// `far-below` (half), `above`; for times `above-floor` or `below-floor`. Null if nothing was computed.
    relation: Option<&'static str>,
    /// What more ports or cards change, compared with another published figure. Null if the two differ in other
    /// things.
    change: Option<&'a str>,
}

/// Published results of one path, and what they show.
#[derive(Serialize, JsonSchema)]
struct ResultOut<'a> {
    /// Differences of the path from the case, in the form in which one would type them. Empty for the path of the
    /// case.
    set: &'a [String],
    /// The headline of the results. Null if they have only facts of hosts.
    headline: Option<&'a Headline>,
    #[serde(flatten)]
    results: Results<'a>,
}

/// The result as one JSON document, with a line feed at its end.
pub fn document(change: &Change<'_>) -> serde_json::Result<String> {
    let output = Output {
        head: Head::new(change.headline()),
        title: &change.before.0.title,
        set: change.sets,
        before: answer(change.before.1),
        after: change.after.map(|(_, after)| answer(after)),
        published: change.checks.iter().map(check).collect(),
        sweeps: sweeps::all(change.before.0),
        results: change.results.iter().map(result).collect(),
    };
    text(&output)
}

fn answer(answer: &Answer) -> AnswerOut<'_> {
    let ceilings = Direction::ALL.into_iter().flat_map(|way| {
        let all = answer.ceilings(way).into_iter();
        all.map(move |c| ceiling(way, &c))
    });
    AnswerOut {
        forward: answer.forward.as_ref().map(solution),
        reverse: answer.reverse.as_ref().map(solution),
        both: answer.both.as_ref().map(both),
        ceilings: ceilings.collect(),
        estimates: answer
            .estimates
            .iter()
            .map(|e| EstimateOut { stage: e.stage, side: e.side, words: &e.words })
            .collect(),
        packets_per_s: answer.packets.map(numbers),
        cycles_per_packet: answer.cycles.map(numbers),
        latency_floor_ns: integer(answer.floor_seconds() * 1e9),
        latency_floor: answer
            .floor
            .iter()
            .map(|part| PartOut { words: &part.words, ns: part.seconds * 1e9 })
            .collect(),
        price: answer.price.as_ref().map(|price| PriceOut {
            per_gbps: numbers(price.per_gigabit),
            currency: &price.currency,
            per: (!price.per.is_empty()).then_some(&price.per),
        }),
    }
}

fn solution(solved: &Solution) -> SolutionOut<'_> {
    SolutionOut {
        goodput_bps: integers(solved.goodput),
        binding: &solved.binding,
        next: solved.next.as_ref().map(|next| NextLimitOut {
            goodput_bps: integers(next.goodput),
            binding: &next.binding,
        }),
    }
}

fn both(solved: &Solution) -> BothOut<'_> {
    BothOut {
        sum: solution(solved),
        forward_bps: solved.each.first().copied().map(integers),
        reverse_bps: solved.each.get(1).copied().map(integers),
    }
}

fn ceiling<'a>(way: Direction, ceiling: &Ceiling<'a>) -> CeilingOut<'a> {
    let resource = ceiling.resource;
    CeilingOut {
        direction: way,
        name: &resource.name,
        stage: resource.stage,
        side: resource.side,
        goodput_bps: integers(ceiling.goodput),
        formula: ceiling.formula,
        inputs: resource
            .inputs
            .iter()
            .map(|input| InputOut { key: &input.key, value: &input.value, source: input.source })
            .collect(),
    }
}

fn result<'a>(path: &'a PathResults<'a>) -> ResultOut<'a> {
    let explained = &path.explained;
    ResultOut {
        set: path.set,
        headline: explained.headline.as_ref(),
        results: Results::of(explained),
    }
}

fn check(check: &FigureCheck) -> FigureCheckOut<'_> {
    FigureCheckOut {
        what: &check.what,
        figure: &check.figure,
        computed: &check.computed,
        claim: check.relation.map_or("nothing is computed", Relation::words),
        holds: check.relation.is_some(),
        relation: check.relation.map(Relation::name),
        change: check.change.as_deref(),
    }
}

pub(super) fn integers(bounds: Bounds) -> [u64; 2] {
    [integer(bounds.low()), integer(bounds.high())]
}

pub(super) fn numbers(bounds: Bounds) -> [f64; 2] {
    [bounds.low(), bounds.high()]
}
