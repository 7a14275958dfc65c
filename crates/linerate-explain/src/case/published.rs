//! Compares published figures with computed ones.

use serde::Deserialize;

use super::answer::{cycles_in_words, packets_in_words};
use super::value::{self, Figure};
use super::{Answer, Case, CaseError, Directions, answer};
use linerate_ceiling::{Bounds, Relation};
use linerate_units::{Nanos, Rate};

/// Largest difference between two computed ceilings that are taken for equal, as a share of one of them.
const SAME_CEILING: f64 = 0.005;

/// Ends of the keys that hold a number of ports or cards.
const COUNT_KEYS: [&str; 2] = [".ports", ".cards"];

/// A published figure. Exactly one of `goodput`, `packets`, `cycles` and `round_trip` is given.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Published {
    /// Description of the measured quantity.
    pub what: String,
    /// Values in which the measured path differs from the case, written as after `--set`.
    #[serde(default)]
    pub set: Vec<String>,
    /// The direction in which the figure was measured.
    #[serde(default)]
    pub way: Directions,
    /// Payload per second that arrived.
    #[serde(default, deserialize_with = "value::text")]
    pub goodput: Option<Figure>,
    /// Packets that were received per second.
    #[serde(default, deserialize_with = "value::positive")]
    pub packets: Option<f64>,
    /// CPU cycles that one core has for each packet.
    #[serde(default, deserialize_with = "value::positive")]
    pub cycles: Option<f64>,
    /// Round-trip time of a message.
    #[serde(default, deserialize_with = "value::text")]
    pub round_trip: Option<Nanos>,
}

/// A published figure beside the computed one.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureCheck {
    /// Description of the measured quantity.
    pub what: String,
    /// The published figure, in words.
    pub figure: String,
    /// The computed figure, in words.
    pub computed: String,
    /// Whether the published figure reaches or exceeds the computed one; `None` if nothing could be computed.
    pub relation: Option<Relation>,
    /// The effect of more ports or cards, compared with an earlier figure; `None` if no earlier figure differs only in
    /// these.
    pub change: Option<String>,
}

/// Computes the figure that belongs to each published one in a case file.
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

/// A published figure, and the range that is computed for it.
type Both<'a> = (&'a Published, Option<Bounds>);

/// Compares a published figure with the computed one, and with the figures listed before it.
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

/// The effect of more ports or cards on the ceiling and on the measured goodput, from one figure to another.
fn change((from, before): &Both<'_>, (to, after): &Both<'_>) -> Option<String> {
    let kept = from.set.iter().all(|set| to.set.contains(set)) && from.way == to.way;
    let more: Vec<&str> =
        to.set.iter().filter(|set| !from.set.contains(set)).map(String::as_str).collect();
    let is_number = |set: &&str| {
        let key = set.split('=').next().unwrap_or_default().trim();
        COUNT_KEYS.iter().any(|end| key.ends_with(end))
    };
    if !kept || more.is_empty() || !more.iter().all(is_number) {
        return None;
    }
    let ratio = after.as_ref()?.high() / before.as_ref()?.high().max(1.0);
    let measured = to.goodput.as_ref()?.rate.0 as f64 / from.goodput.as_ref()?.rate.0.max(1) as f64;
    let computed = if (ratio - 1.0).abs() < SAME_CEILING {
        "adds nothing to the ceiling".to_owned()
    } else {
        format!("makes the ceiling x{ratio:.2}")
    };
    Some(format!("`{}` {computed} of `{}`; measured x{measured:.2}", more.join(", "), from.what))
}

/// The published figure as a number, and in words. A rate that was published in bytes is also given in bits.
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
