//! Bounds that a user sets on a result: `goodput>=9Gbit/s`, `reverse.latency.p99<=200us`,
//! `cause=receive-window`.

use std::fmt;
use std::str::FromStr;

use linerate_judge::causes::cause;
use linerate_judge::figure::{ALL, Figure, Subject, Summary, figure};
use linerate_judge::model::PERCENTILES;
use linerate_judge::verdict::{Disturbance, Verdict};
use linerate_plan::path::{Direction, Side};
use serde::{Deserialize, Serialize, de};

/// One condition that a result must satisfy.
#[derive(Debug, Clone, PartialEq)]
pub struct Expect {
    text: String,
    direction: Option<Direction>,
    bound: Bound,
}

#[derive(Debug, Clone, PartialEq)]
enum Bound {
    Figure(FigureBound),
    Cause(String),
}

/// A bound of a figure, such as `latency.p99<=1ms`.
#[derive(Debug, Clone, PartialEq)]
struct FigureBound {
    figure: &'static Figure,
    side: Option<Side>,
    percentile: Option<f64>,
    compare: Compare,
    /// The bound in the unit of the figure.
    value: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compare {
    AtLeast,
    AtMost,
    Above,
    Below,
}

impl Compare {
    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::AtLeast => value >= bound,
            Self::AtMost => value <= bound,
            Self::Above => value > bound,
            Self::Below => value < bound,
        }
    }
}

/// The reason why a bound cannot be parsed, and the place of the error in its text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}\n  {text}\n  {:>1$}", "^", .at + 1)]
pub struct ExpectError {
    text: String,
    /// Place of the error, in characters from the start.
    at: usize,
    what: String,
}

/// The names that are allowed on the left side, for error messages: `goodput, latency.p50, near.cpu, ... or cause`.
fn names() -> String {
    let name = |figure: &&Figure| match (figure.percentiles, figure.ends) {
        (true, _) => {
            let each = PERCENTILES.map(|p| format!("{}.p{p}", figure.id));
            each.join(", ")
        }
        (_, true) => format!("{0}, near.{0}, far.{0}", figure.id),
        _ => figure.id.to_owned(),
    };
    let all: Vec<String> = ALL.iter().map(name).collect();
    format!(
        "{} or cause, with forward. or reverse. before it for one direction (of a disk: write. or read.)",
        all.join(", ")
    )
}

impl FromStr for Expect {
    type Err = ExpectError;

    fn from_str(text: &str) -> Result<Self, ExpectError> {
        let fail = |at: usize, what: String| ExpectError {
            text: text.to_owned(),
            at: text[..at].chars().count(),
            what,
        };
        let split = text
            .find(['<', '>', '='])
            .ok_or_else(|| fail(text.len(), "expected a comparison: >=, <=, >, < or =".into()))?;
        let (direction, name) = direction_of(text[..split].trim());
        let with_equals = text[split + 1..].starts_with('=');
        let sign_end = split + if with_equals { 2 } else { 1 };
        let (sign, value) = (&text[split..sign_end], text[sign_end..].trim());
        // The name ends before the comparison and the spaces in front of it.
        let name_at = text[..split].trim_end().len() - name.len();
        let value_at = text.len() - text[sign_end..].trim_start().len();
        let no_sign = |expected: &str| {
            fail(split, format!("`{sign}` cannot compare {name}: expected {expected}"))
        };
        let bound = if name == "cause" {
            if sign != "=" {
                return Err(no_sign("="));
            }
            if value.is_empty() {
                return Err(fail(value_at, "expected the id of a cause".into()));
            }
            if cause(value).is_none() {
                let what = format!("`{value}` is not a cause; `linerate causes` lists them");
                return Err(fail(value_at, what));
            }
            Bound::Cause(value.to_owned())
        } else {
            let (figure, side, percentile) = named(name).ok_or_else(|| {
                let what = match name {
                    "" => "no figure is named".to_owned(),
                    _ => format!("`{name}` is unknown"),
                };
                fail(name_at, format!("{what}: expected {}", names()))
            })?;
            let compare = compare(sign).ok_or_else(|| no_sign(">=, <=, > or <"))?;
            let value = figure.unit.parse(value);
            Bound::Figure(FigureBound {
                figure,
                side,
                percentile,
                compare,
                value: value.map_err(|error| fail(value_at, error.to_string()))?,
            })
        };
        Ok(Self { text: text.to_owned(), direction, bound })
    }
}

fn direction_of(left: &str) -> (Option<Direction>, &str) {
    let each = Direction::ALL
        .map(|direction| [(direction, direction.name()), (direction, direction.access())]);
    for (direction, name) in each.into_iter().flatten() {
        let rest = left.strip_prefix(name);
        if let Some(rest) = rest.and_then(|r| r.strip_prefix('.')) {
            return (Some(direction), rest);
        }
    }
    (None, left)
}

fn compare(sign: &str) -> Option<Compare> {
    Some(match sign {
        ">=" => Compare::AtLeast,
        "<=" => Compare::AtMost,
        ">" => Compare::Above,
        "<" => Compare::Below,
        _ => return None,
    })
}

/// Splits a name such as `goodput`, `near.cpu` or `latency.p99` into its figure, end and percentile.
fn named(name: &str) -> Option<(&'static Figure, Option<Side>, Option<f64>)> {
    let (id, percentile) = match name.split_once(".p") {
        Some((id, digits)) => {
            let known = |p: &f64| p.to_string() == digits;
            (id, Some(PERCENTILES.into_iter().find(known)?))
        }
        None => (name, None),
    };
    let of_side = |side: Side| Some((side, id.strip_prefix(side.name())?.strip_prefix('.')?));
    let (side, id) = match [Side::Near, Side::Far].into_iter().find_map(of_side) {
        Some((side, id)) => (Some(side), id),
        None => (None, id),
    };
    let figure = figure(id)?;
    // A name without an end is the figure of both ends.
    let fits = figure.percentiles == percentile.is_some() && (figure.ends || side.is_none());
    fits.then_some((figure, side, percentile))
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Expect {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Expect {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(de::Error::custom)
    }
}

/// The results for which conditions are checked.
#[derive(Debug)]
pub struct Found<'a> {
    /// The figures that were measured.
    pub summary: Summary,
    /// The verdict with the causes; `None` if the command looks for no causes.
    pub verdict: Option<&'a Verdict>,
}

impl Found<'_> {
    /// Results with figures and without a verdict.
    pub const fn figures(summary: Summary) -> Self {
        Self { summary, verdict: None }
    }
}

impl Expect {
    /// Checks the results against the condition; `requested` has the directions of the plan. The error states the value
    /// that was found instead.
    pub fn check(&self, requested: &[Direction], found: &Found<'_>) -> Result<(), String> {
        match &self.bound {
            Bound::Figure(bound) => {
                let mut loads = self.loads(bound.figure, requested).into_iter();
                loads.try_for_each(|load| bound.check(load, &found.summary))
            }
            Bound::Cause(id) => self.cause(id, found),
        }
    }

    /// The loads for which the figure must satisfy the bound; `None` is the path without a load.
    fn loads(&self, figure: &Figure, requested: &[Direction]) -> Vec<Option<Direction>> {
        match self.direction {
            Some(direction) => vec![Some(direction)],
            // Without a direction, latency is that of the idle path.
            None if figure.percentiles || requested.is_empty() => vec![None],
            None => requested.iter().copied().map(Some).collect(),
        }
    }

    fn cause(&self, id: &str, found: &Found<'_>) -> Result<(), String> {
        let verdict = found.verdict.ok_or("no causes were looked for")?;
        let limits = verdict.limits.iter().map(|l| (l.cause, l.direction));
        // A cause that can limit a path counts only if it is a limit; a cause that only disturbs counts if it disturbed
        // the run.
        let disturbs = |d: &&Disturbance| cause(d.cause).is_some_and(|cause| cause.only_disturbs);
        let disturbances = verdict.disturbances.iter().filter(disturbs);
        let disturbances = disturbances.map(|d| (d.cause, d.direction));
        let named = limits.chain(disturbances);
        let in_reach = named.filter(|(_, way)| self.direction.is_none_or(|d| *way == d));
        let in_reach: Vec<_> = in_reach.collect();
        if in_reach.iter().any(|(cause, _)| *cause == id) {
            return Ok(());
        }
        let found = in_reach.iter();
        let found: Vec<_> = found.map(|(cause, way)| format!("{cause} ({})", way.name())).collect();
        Err(if found.is_empty() {
            "no cause was found".into()
        } else {
            format!("found {}", found.join(", "))
        })
    }
}

impl FigureBound {
    fn check(&self, load: Option<Direction>, summary: &Summary) -> Result<(), String> {
        let both = [Some(Side::Near), Some(Side::Far)];
        let sides = match self.side {
            None if self.figure.ends => &both[..],
            _ => &[self.side],
        };
        sides.iter().try_for_each(|side| self.check_one(load, *side, summary))
    }

    fn check_one(
        &self,
        direction: Option<Direction>,
        side: Option<Side>,
        summary: &Summary,
    ) -> Result<(), String> {
        let of = Subject { direction, side, percentile: self.percentile };
        let name = || self.name(of);
        let entry = summary.all(self.figure).find(|entry| entry.of == of);
        let entry = entry.ok_or_else(|| format!("{} was not measured", name()))?;
        let value = entry.value.as_ref();
        let value = value.map_err(|why| format!("{}: {why}", name()))?;
        if self.compare.holds(value.mid, self.value) {
            return Ok(());
        }
        let found = self.figure.unit.words(value.mid);
        let percentile = self.percentile.map_or(String::new(), |p| format!(" p{p}"));
        Err(format!("{} was {found}{percentile}", name()))
    }

    /// The figure in words: `forward goodput`, `forward near cpu`, `idle latency`, `latency during the forward load`.
    fn name(&self, of: Subject) -> String {
        let side = of.side.map_or(String::new(), |s| format!("{} ", s.name()));
        let id = format!("{side}{}", self.figure.id);
        match of.direction {
            None if self.figure.percentiles => format!("idle {id}"),
            None => id,
            Some(direction) if self.figure.percentiles => {
                format!("{id} during the {} load", direction.name())
            }
            Some(direction) => format!("{} {id}", direction.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_judge::figure::{CPU, Entry, LOSS, Value};

    use super::*;
    use linerate_sim::sample;

    fn found((record, model, verdict): &sample::Result) -> Found<'_> {
        Found { summary: Summary::of(record, model), verdict: Some(verdict) }
    }

    /// Results with one measured figure.
    fn measured(figure: &'static Figure, of: Subject, value: f64) -> Found<'static> {
        Found::figures(Summary::sorted([Entry { figure, of, value: Ok(Value::bare(value)) }]))
    }

    fn check(text: &str) -> Result<(), String> {
        let result = sample::limited();
        let expect: Expect = text.parse().unwrap();
        expect.check(&Direction::ALL, &found(&result))
    }

    #[test]
    fn what_only_disturbs_holds_as_a_cause_and_what_may_be_a_limit_and_is_none_does_not() {
        let result = sample::disturbed();
        let check = |text: &str| {
            let expect: Expect = text.parse().unwrap();
            expect.check(&Direction::ALL, &found(&result))
        };
        assert_eq!(check("cause=contended"), Ok(()));
        assert_eq!(check("cause=receive-window"), Ok(()));
        assert!(check("cause=cpu-steal").is_err());
        assert!(check("forward.cause=contended").is_err());
    }

    #[test]
    fn loss_is_of_round_trips_where_no_load_was_asked_for() {
        let found = measured(&LOSS, Subject::default(), 0.02);
        let check = |text: &str, requested: &[Direction]| {
            let expect: Expect = text.parse().unwrap();
            expect.check(requested, &found)
        };
        assert_eq!(check("loss<2.1%", &[]), Ok(()));
        let missed = check("loss<2%", &[]).unwrap_err();
        assert_eq!(missed, "loss was 2.00 %");
        // The loss of round trips is not that of the load, and the loss of the load is not that of round trips.
        for (text, requested) in
            [("loss<50%", &[Direction::Forward][..]), ("forward.loss<50%", &[])]
        {
            assert!(check(text, requested).unwrap_err().contains("not measured"), "{text}");
        }
    }

    #[test]
    fn bounds_hold_on_one_side_and_fail_on_the_other() {
        // The sample: forward 4.71 Gb/s, reverse 9.38 Gb/s, idle p99 58 us, forward p99 3.4 ms.
        assert_eq!(check("goodput>=4.7Gbit/s"), Ok(()));
        assert!(
            check("goodput>=4.72Gbit/s").unwrap_err().contains("forward goodput was 4.71 Gb/s")
        );
        assert_eq!(check("reverse.goodput >= 9Gbit/s"), Ok(()));
        // A read of a disk is reverse, a write forward.
        assert_eq!(check("read.goodput >= 9Gbit/s"), Ok(()));
        assert!(check("write.goodput >= 9Gbit/s").is_err());
        assert!(check("reverse.goodput<9.38Gbit/s").is_err());
        assert_eq!(check("reverse.goodput<=9.38Gbit/s"), Ok(()));
        assert_eq!(check("latency.p99<=58us"), Ok(()));
        assert!(check("latency.p99<58us").is_err());
        assert!(check("forward.latency.p99<=3ms").unwrap_err().contains("3.4 ms"));
    }

    #[test]
    fn loss_is_a_share_of_the_datagrams_that_were_sent() {
        let found = measured(&LOSS, Subject::load(Direction::Forward), 0.012);
        let check = |text: &str, requested: &[Direction]| {
            let expect: Expect = text.parse().unwrap();
            expect.check(requested, &found)
        };
        assert_eq!(check("loss<=1.2%", &[Direction::Forward]), Ok(()));
        assert_eq!(
            check("loss<1.2%", &[Direction::Forward]).unwrap_err(),
            "forward loss was 1.20 %"
        );
        for (text, requested) in [
            ("loss<5%", &Direction::ALL[..]),
            ("reverse.loss<5%", &[Direction::Forward]),
            ("loss<5%", &[]),
            ("goodput>0b/s", &[]),
        ] {
            let why = check(text, requested).unwrap_err();
            assert!(why.ends_with("was not measured"), "{text}: {why}");
        }
    }

    #[test]
    fn a_figure_of_each_end_is_bound_at_both_unless_one_is_named() {
        let of = |side| Subject { side: Some(side), ..Subject::load(Direction::Forward) };
        let entry =
            |side, value| Entry { figure: &CPU, of: of(side), value: Ok(Value::bare(value)) };
        let both = [entry(Side::Near, 0.2), entry(Side::Far, 0.6)];
        let found = Found::figures(Summary::sorted(both));
        let check = |text: &str| {
            let expect: Expect = text.parse().unwrap();
            expect.check(&[Direction::Forward], &found)
        };
        assert_eq!(check("near.cpu<=0.2ns/B"), Ok(()));
        assert_eq!(check("forward.far.cpu>0.5ns/B"), Ok(()));
        assert_eq!(check("cpu<0.7ns/B"), Ok(()));
        let why = check("cpu<0.5ns/B").unwrap_err();
        assert_eq!(why, "forward far cpu was 0.60 ns/B");
        assert!(check("reverse.cpu<1ns/B").unwrap_err().ends_with("was not measured"));
    }

    #[test]
    fn a_cause_is_looked_for_where_it_was_expected() {
        assert_eq!(check("cause=receive-window"), Ok(()));
        assert_eq!(check("forward.cause=receive-window"), Ok(()));
        assert!(check("reverse.cause=receive-window").is_err());
        let why = check("cause=send-buffer").unwrap_err();
        assert_eq!(why, "found receive-window (forward), wire-full (reverse)");
    }

    #[test]
    fn what_was_not_measured_fails_in_words() {
        assert!(check("latency.p99.9<=1s").unwrap_err().contains("too few"));
        assert!(check("reverse.latency.p50<=1s").unwrap_err().contains("not measured"));
    }

    #[test]
    fn what_cannot_be_read_is_pointed_at() {
        for (text, at, word) in [
            ("goodput", 7, "comparison"),
            ("godput>=1Gbit/s", 0, "godput"),
            ("forward.godput>=1Gbit/s", 8, "expected goodput"),
            ("goodput>=9", 9, "no unit"),
            ("goodput>=9s", 9, "not a unit"),
            ("goodput=9Gbit/s", 7, "cannot compare"),
            ("loss<1", 5, "no unit"),
            ("loss=1%", 4, "cannot compare"),
            ("cause>=x", 5, "expected ="),
            ("cause=", 6, "id of a cause"),
            ("cause=recieve-window", 6, "linerate causes"),
            ("latency.p98<=1ms", 0, "latency.p98"),
            ("latency<=1ms", 0, "latency.p50"),
            ("forward.<1", 8, "no figure is named"),
            ("reverse.reverse>1", 8, "`reverse` is unknown"),
            ("goodput.p50>=1Gbit/s", 0, "unknown"),
            ("near.goodput>=1Gbit/s", 0, "near.cpu"),
            ("operations>=1Gbit/s", 12, "not a unit"),
            ("", 0, "comparison"),
        ] {
            let error = text.parse::<Expect>().unwrap_err();
            assert_eq!(error.at, at, "{text}");
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}
