//! A path described by hand, for programs. Its schema is `schema/whatif.schema.json`.

use linerate_core::case::{Answer, Sweep, Told};
use linerate_core::ceiling::fingerprint::{Candidate, Knee, candidates, fit};
use linerate_core::ceiling::{Bounds, Ceiling, Solution};
use linerate_core::path::Direction;
use serde::Serialize;

use super::super::json::integer;
use super::Change;

/// Version of the document; raised when a key changes its meaning or goes away.
const FORMAT: u32 = 1;

/// The published schema of the document.
pub(crate) const SCHEMA: &str = include_str!("../../../schema/whatif.schema.json");

#[derive(Serialize)]
struct Output<'a> {
    format: u32,
    linerate: &'static str,
    title: &'a str,
    set: &'a [String],
    before: AnswerOut<'a>,
    after: Option<AnswerOut<'a>>,
    published: Vec<ToldOut<'a>>,
    sweeps: Vec<SweepOut<'a>>,
}

#[derive(Serialize)]
struct AnswerOut<'a> {
    forward: Option<SolutionOut<'a>>,
    reverse: Option<SolutionOut<'a>>,
    both: Option<BothOut<'a>>,
    ceilings: Vec<CeilingOut<'a>>,
    estimates: Vec<EstimateOut<'a>>,
    packets_per_s: Option<[f64; 2]>,
    cycles_per_packet: Option<[f64; 2]>,
    latency_floor_ns: u64,
    latency_floor: Vec<PartOut<'a>>,
    price: Option<PriceOut<'a>>,
}

#[derive(Serialize)]
struct SolutionOut<'a> {
    goodput_bps: [u64; 2],
    binding: &'a [String],
    next: Option<NextOut<'a>>,
}

#[derive(Serialize)]
struct NextOut<'a> {
    goodput_bps: [u64; 2],
    binding: &'a [String],
}

#[derive(Serialize)]
struct BothOut<'a> {
    #[serde(flatten)]
    sum: SolutionOut<'a>,
    forward_bps: Option<[u64; 2]>,
    reverse_bps: Option<[u64; 2]>,
}

#[derive(Serialize)]
struct CeilingOut<'a> {
    direction: &'static str,
    name: &'a str,
    stage: &'static str,
    side: &'static str,
    goodput_bps: [u64; 2],
    formula: &'a str,
    inputs: Vec<InputOut<'a>>,
}

#[derive(Serialize)]
struct InputOut<'a> {
    key: &'a str,
    value: &'a str,
    source: &'static str,
}

#[derive(Serialize)]
struct EstimateOut<'a> {
    stage: &'static str,
    side: &'static str,
    words: &'a str,
}

#[derive(Serialize)]
struct PartOut<'a> {
    words: &'a str,
    ns: f64,
}

#[derive(Serialize)]
struct PriceOut<'a> {
    per_gbps: [f64; 2],
    currency: &'a str,
    per: Option<&'a str>,
}

#[derive(Serialize)]
struct ToldOut<'a> {
    what: &'a str,
    figure: &'a str,
    computed: &'a str,
    claim: &'static str,
    holds: bool,
}

#[derive(Serialize)]
struct SweepOut<'a> {
    what: &'a str,
    fit: Option<FitOut>,
}

#[derive(Serialize)]
struct FitOut {
    rate_bps: u64,
    interval_bps: [u64; 2],
    spans: usize,
    floor_ns: u64,
    half_bytes: u64,
    knees: Vec<KneeOut>,
    candidates: Vec<CandidateOut>,
}

#[derive(Serialize)]
struct KneeOut {
    from_bytes: u64,
    to_bytes: u64,
    rate_bps: u64,
}

#[derive(Serialize)]
struct CandidateOut {
    name: String,
    carries_bps: [u64; 2],
    off: f64,
}

/// One JSON document, with a line feed at its end.
pub(crate) fn document(change: &Change<'_>) -> serde_json::Result<String> {
    let output = Output {
        format: FORMAT,
        linerate: env!("CARGO_PKG_VERSION"),
        title: &change.before.0.title,
        set: change.sets,
        before: answer(change.before.1),
        after: change.after.map(|(_, after)| answer(after)),
        published: change.told.iter().map(told).collect(),
        sweeps: change.before.0.sweep.iter().map(sweep).collect(),
    };
    let mut text = serde_json::to_string_pretty(&output)?;
    text.push('\n');
    Ok(text)
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
            .map(|e| EstimateOut {
                stage: e.stage.name(),
                side: e.side.name(),
                words: &e.words,
            })
            .collect(),
        packets_per_s: answer.packets.map(numbers),
        cycles_per_packet: answer.cycles.map(numbers),
        latency_floor_ns: integer(answer.floor_seconds() * 1e9),
        latency_floor: answer
            .floor
            .iter()
            .map(|part| PartOut {
                words: &part.words,
                ns: part.seconds * 1e9,
            })
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
        next: solved.next.as_ref().map(|next| NextOut {
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
        direction: way.name(),
        name: &resource.name,
        stage: resource.stage.name(),
        side: resource.side.name(),
        goodput_bps: integers(ceiling.goodput),
        formula: ceiling.formula,
        inputs: resource
            .inputs
            .iter()
            .map(|input| InputOut {
                key: &input.key,
                value: &input.value,
                source: input.source.name(),
            })
            .collect(),
    }
}

fn sweep(sweep: &Sweep) -> SweepOut<'_> {
    SweepOut {
        what: &sweep.what,
        fit: fit(&sweep.points).map(|fit| FitOut {
            rate_bps: integer(fit.rate),
            interval_bps: integers(fit.interval),
            spans: fit.spans,
            floor_ns: fit.floor.0,
            half_bytes: fit.half.0,
            candidates: candidates(fit.rate).into_iter().map(candidate).collect(),
            knees: fit.knees.iter().map(knee).collect(),
        }),
    }
}

fn knee(knee: &Knee) -> KneeOut {
    KneeOut {
        from_bytes: knee.from.0,
        to_bytes: knee.to.0,
        rate_bps: integer(knee.rate),
    }
}

fn candidate(candidate: Candidate) -> CandidateOut {
    CandidateOut {
        carries_bps: integers(candidate.carries),
        off: candidate.off,
        name: candidate.name,
    }
}

fn told(told: &Told) -> ToldOut<'_> {
    ToldOut {
        what: &told.what,
        figure: &told.figure,
        computed: &told.computed,
        claim: told.claim,
        holds: told.holds,
    }
}

fn integers(bounds: Bounds) -> [u64; 2] {
    [integer(bounds.low()), integer(bounds.high())]
}

fn numbers(bounds: Bounds) -> [f64; 2] {
    [bounds.low(), bounds.high()]
}
