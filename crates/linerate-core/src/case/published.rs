//! Published figures compared with computed ones.

use super::answer::{cycles_in_words, packets_in_words};
use super::value::Figure;
use super::{Answer, Case, CaseError, Directions, Holds, Published, answer};
use crate::ceiling::Bounds;
use crate::units::{Nanos, Rate};

/// Minimum share of a ceiling at which a figure reaches it.
const REACHED: f64 = 0.98;
/// Highest share of a ceiling that a figure may have because of rounding.
const ROUNDED: f64 = 1.005;
/// The tolerance of "about", in both directions.
const ABOUT: f64 = 0.10;
/// Share of a ceiling below which a figure cannot be explained by the ceiling.
const FAR_BELOW: f64 = 0.5;

/// A published figure and the computed one.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureCheck {
    /// Description of the measured quantity.
    pub what: String,
    /// The published figure, in words.
    pub figure: String,
    /// The computed figure, in words.
    pub computed: String,
    /// The relation between the two figures that the file claims.
    pub claim: &'static str,
    /// Whether the claim is true.
    pub holds: bool,
}

/// Computes each published figure of a case file.
pub fn check_figures(text: &str) -> Result<Vec<FigureCheck>, CaseError> {
    let case = Case::read(text, &[""; 0])?;
    case.published.iter().map(|p| one(text, p)).collect()
}

fn one(text: &str, published: &Published) -> Result<FigureCheck, CaseError> {
    let case = Case::read(text, &published.set)?;
    let answer = answer(&case)?;
    let (figure, words) = figure(published);
    let computed = computed(&answer, published);
    Ok(FigureCheck {
        what: published.what.clone(),
        figure: words,
        computed: computed.map_or_else(|| "unknown".to_owned(), |c| in_words(c, published)),
        claim: claim(published.holds),
        holds: computed.is_some_and(|c| holds(figure, c, published.holds)),
    })
}

/// The figure as a number, and in words: as published, and also in bits if it was published in bytes.
fn figure(p: &Published) -> (f64, String) {
    if let Some(Figure { rate, text }) = &p.goodput {
        let words = if text.ends_with("B/s") {
            format!("{text} = {rate}")
        } else {
            text.clone()
        };
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

fn holds(figure: f64, computed: Bounds, how: Holds) -> bool {
    let (low, high) = (computed.low(), computed.high());
    match how {
        Holds::Reached => (low * REACHED..=high * ROUNDED).contains(&figure),
        Holds::Inside => computed.contains(figure),
        Holds::About => (low * (1.0 - ABOUT)..=high * (1.0 + ABOUT)).contains(&figure),
        Holds::Below => figure < low * REACHED,
        Holds::FarBelow => figure < low * FAR_BELOW,
        Holds::Above => figure > high,
    }
}

const fn claim(how: Holds) -> &'static str {
    match how {
        Holds::Reached => "reaches the ceiling",
        Holds::Inside => "is inside the estimate",
        Holds::About => "agrees within 10 %",
        Holds::Below => "is below the ceiling: something else binds",
        Holds::FarBelow => "is below half of every ceiling of the hardware: software is the limit",
        Holds::Above => "is above the floor",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_claim_holds_on_one_side_of_its_threshold_only() {
        let ceiling = Bounds::new(100.0, 120.0);
        for (how, yes, no) in [
            (Holds::Reached, 98.1, 97.9),
            (Holds::Reached, 120.5, 120.7),
            (Holds::Inside, 100.0, 99.9),
            (Holds::Inside, 120.0, 120.1),
            (Holds::About, 90.1, 89.9),
            (Holds::About, 131.9, 132.1),
            (Holds::Below, 97.9, 98.1),
            (Holds::FarBelow, 49.9, 50.1),
            (Holds::Above, 120.1, 119.9),
        ] {
            assert!(holds(yes, ceiling, how), "{how:?} {yes}");
            assert!(!holds(no, ceiling, how), "{how:?} {no}");
        }
    }
}
