//! Shows what a path costs, and compares it with other things that move bytes.

use linerate_ceiling::Bounds;
use linerate_explain::Best;
use linerate_explain::case::{Answer, Case};
use linerate_units::Rate;

use super::super::{Document, Tone};
use super::{Change, PathResults};

/// Writes the price of the computed goodput.
pub(super) fn price(doc: &mut Document, change: &Change<'_>) {
    let words = |answer: &Answer| {
        let price = answer.price.as_ref()?;
        let amount = in_currency(price.per_gigabit, &price.currency, &price.per);
        Some(format!("{amount} for each Gb/s"))
    };
    let before = words(change.before.1);
    let after = change.after.and_then(|(_, answer)| words(answer));
    match (before, after) {
        (Some(before), Some(after)) if before != after => {
            doc.entry("cost", &[(Tone::Plain, &format!("before: {before}; after: {after}"))], 2);
        }
        (Some(one), _) | (None, Some(one)) => doc.entry("cost", &[(Tone::Plain, &one)], 2),
        (None, None) => {}
    }
}

/// Writes the price of the highest rate among the published results.
pub(super) fn reached(doc: &mut Document, case: &Case, own: &[&PathResults<'_>]) {
    let best = own.iter().find_map(|reported| Best::of(reported.explained.material));
    let (Some(price), Some(best)) = (&case.price, best) else {
        return;
    };
    let each = price.amount / (best.rate / 1e9).max(1e-9);
    let text = format!(
        "{} for each Gb/s that was reached: {} ({})",
        in_currency(Bounds::exact(each), &price.currency, &price.per),
        Rate(best.rate as u64),
        best.file
    );
    doc.entry("", &[(Tone::Plain, &text)], 2);
}

/// An amount with its currency and its period: `10.09 to 10.10 JPY per hour`.
pub(super) fn in_currency(amount: Bounds, currency: &str, per: &str) -> String {
    let digits = |v: f64| format!("{v:.0$}", if v < 100.0 { 2 } else { 0 });
    let per = if per.is_empty() { String::new() } else { format!(" per {per}") };
    format!("{} {currency}{per}", amount.words(digits))
}

/// Writes the path among other things that move bytes, the slowest first.
pub(super) fn media(doc: &mut Document, case: &Case, answer: &Answer) {
    let Some(solved) = answer.forward.as_ref().filter(|_| !case.media.is_empty()) else {
        return;
    };
    let row = |rate: Bounds, name, tone| {
        let words = rate.words(|bits| format!("{:.0} MB/s", bits / 8e6));
        (rate.low(), format!("{words} {name}"), tone)
    };
    let media = case.media.iter();
    let mut rows: Vec<(f64, String, Tone)> = media
        .map(|m| row(Bounds::exact(m.rate.0 as f64), m.name.as_str(), Tone::Plain))
        .chain([row(solved.goodput, "this path", Tone::Strong)])
        .collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (i, (_, words, tone)) in rows.iter().enumerate() {
        let label = if i == 0 { "compared" } else { "" };
        doc.entry(label, &[(*tone, words)], 2);
    }
}
