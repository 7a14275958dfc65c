//! Published figures compared with computed ones.

use serde::Deserialize;

use super::answer::{cycles_in_words, packets_in_words};
use super::value::{self, Figure};
use super::{Answer, Case, CaseError, Directions, answer};
use linerate_ceiling::{Bounds, Relation};
use linerate_units::{Nanos, Rate};

/// Share by which a ceiling may differ from another one that is the same.
const SAME: f64 = 0.005;

/// Ends of the keys that say how many of a part there are.
const NUMBERS: [&str; 2] = [".ports", ".cards"];

/// A published figure. Exactly one of the figures is given.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Published {
    /// Description of the measured quantity.
    pub what: String,
    /// Differences of the measured path from the case, as they would be typed after `--set`.
    #[serde(default)]
    pub set: Vec<String>,
    /// The direction of the figure.
    #[serde(default)]
    pub way: Directions,
    /// Payload per second.
    #[serde(default, deserialize_with = "value::text")]
    pub goodput: Option<Figure>,
    /// Packets per second.
    #[serde(default, deserialize_with = "value::positive")]
    pub packets: Option<f64>,
    /// Cycles that one core has for a packet.
    #[serde(default, deserialize_with = "value::positive")]
    pub cycles: Option<f64>,
    /// Round-trip time.
    #[serde(default, deserialize_with = "value::text")]
    pub round_trip: Option<Nanos>,
}

/// A published figure and the computed one.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureCheck {
    /// Description of the measured quantity.
    pub what: String,
    /// The published figure, in words.
    pub figure: String,
    /// The computed figure, in words.
    pub computed: String,
    /// How the two compare; `None` if nothing could be computed.
    pub relation: Option<Relation>,
    /// What more ports or cards change, beside another figure; `None` if the two differ in other things.
    pub change: Option<String>,
}

/// Computes each published figure of a case file.
pub fn check_figures(text: &str) -> Result<Vec<FigureCheck>, CaseError> {
    let case = Case::read(text, &[""; 0])?;
    let each = case.published.iter().map(|one| {
        let case = Case::read(text, &one.set)?;
        Ok((one, computed(&answer(&case)?, one)))
    });
    let all = each.collect::<Result<Vec<_>, CaseError>>()?;
    let each = all.iter().enumerate();
    Ok(each.map(|(at, one)| check(one, &all[..at])).collect())
}

/// A figure, and what is computed for it.
type Both<'a> = (&'a Published, Option<Bounds>);

/// A figure beside its computed one, and beside the figures before it.
fn check(one: &Both<'_>, before: &[Both<'_>]) -> FigureCheck {
    let (published, computed) = *one;
    let (figure, words) = figure(published);
    let relation = |computed| match published.round_trip {
        Some(_) => Relation::to_floor(figure, computed),
        None => Relation::to_ceiling(figure, computed),
    };
    FigureCheck {
        what: published.what.clone(),
        figure: words,
        computed: computed.map_or_else(|| "unknown".to_owned(), |c| in_words(c, published)),
        relation: computed.map(relation),
        change: before.iter().rev().find_map(|other| change(other, one)),
    }
}

/// What more ports or cards change from one figure to another.
fn change((from, before): &Both<'_>, (to, after): &Both<'_>) -> Option<String> {
    let kept = from.set.iter().all(|set| to.set.contains(set)) && from.way == to.way;
    let more: Vec<&str> =
        to.set.iter().filter(|set| !from.set.contains(set)).map(String::as_str).collect();
    let is_number = |set: &&str| {
        let key = set.split('=').next().unwrap_or_default().trim();
        NUMBERS.iter().any(|end| key.ends_with(end))
    };
    if !kept || more.is_empty() || !more.iter().all(is_number) {
        return None;
    }
    let ratio = after.as_ref()?.high() / before.as_ref()?.high().max(1.0);
    let measured = to.goodput.as_ref()?.rate.0 as f64 / from.goodput.as_ref()?.rate.0.max(1) as f64;
    let computed = if (ratio - 1.0).abs() < SAME {
        "adds nothing to the ceiling".to_owned()
    } else {
        format!("makes the ceiling x{ratio:.2}")
    };
    Some(format!("`{}` {computed} of `{}`; measured x{measured:.2}", more.join(", "), from.what))
}

/// The figure as a number, and in words: as published, and also in bits if it was published in bytes.
fn figure(p: &Published) -> (f64, String) {
    if let Some(Figure { rate, text }) = &p.goodput {
        let words = if text.ends_with("B/s") { format!("{text} = {rate}") } else { text.clone() };
        return (rate.0 as f64, words);
    }
    if let Some(time) = p.round_trip {
        return (time.secs(), time.to_string());
    }
    let number = p.packets.or(p.cycles).unwrap_or_default();
    (number, in_words(Bounds::exact(number), p))
}

fn computed(answer: &Answer, p: &Published) -> Option<Bounds> {
    if p.packets.is_some() {
        return answer.packets;
    }
    if p.cycles.is_some() {
        return answer.cycles;
    }
    if p.round_trip.is_some() {
        return Some(Bounds::exact(2.0 * answer.floor_seconds()));
    }
    let solved = match p.way {
        Directions::Forward => &answer.forward,
        Directions::Reverse => &answer.reverse,
        Directions::Both => &answer.both,
    };
    solved.as_ref().map(|s| s.goodput)
}

fn in_words(value: Bounds, p: &Published) -> String {
    value.words(|v| {
        if p.goodput.is_some() {
            Rate(v as u64).to_string()
        } else if p.round_trip.is_some() {
            Nanos((v * 1e9) as u64).to_string()
        } else if p.packets.is_some() {
            packets_in_words(v)
        } else {
            cycles_in_words(v)
        }
    })
}
