//! Bounds that a user sets on a result: `goodput>=9Gbit/s`, `reverse.latency.p99<=200us`,
//! `cause=receive-window`.

use std::fmt;
use std::str::FromStr;

use linerate_core::causes::cause;
use linerate_core::model::{Latency, Model};
use linerate_core::path::Direction;
use linerate_core::units::{Nanos, Percent, Rate};
use linerate_core::verdict::{Disturbance, Verdict};
use serde::{Deserialize, Serialize, de};

/// One bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Expect {
    text: String,
    direction: Option<Direction>,
    bound: Bound,
}

#[derive(Debug, Clone, PartialEq)]
enum Bound {
    Goodput(Compare, Rate),
    Loss(Compare, Percent),
    Latency(f64, Compare, Nanos),
    Cause(String),
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

/// Why a bound could not be read, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}\n  {text}\n  {:>1$}", "^", .at + 1)]
pub struct ExpectError {
    text: String,
    /// Where it went wrong, in characters from the start.
    at: usize,
    what: String,
}

/// Names that may stand on the left, for messages.
const NAMES: &str = "goodput, loss, latency.p50, latency.p90, latency.p99, latency.p99.9 or cause, \
                     with forward. or reverse. before it for one direction";

impl FromStr for Expect {
    type Err = ExpectError;

    fn from_str(text: &str) -> Result<Self, ExpectError> {
        let fail = |at: usize, what: String| ExpectError {
            text: text.to_owned(),
            at: text[..at].chars().count(),
            what,
        };
        let split = text.find(['<', '>', '=']).ok_or_else(|| {
            fail(
                text.len(),
                "expected a comparison: >=, <=, >, < or =".into(),
            )
        })?;
        let (direction, name) = direction_of(text[..split].trim());
        let sign_end = split
            + if text[split + 1..].starts_with('=') {
                2
            } else {
                1
            };
        let (sign, value) = (&text[split..sign_end], text[sign_end..].trim());
        let name_at = text.find(name).unwrap_or(0);
        let value_at = text.len() - text[sign_end..].trim_start().len();
        let compare = || {
            compare(sign).ok_or_else(|| {
                fail(
                    split,
                    format!("`{sign}` does not compare {name}: expected >=, <=, > or <"),
                )
            })
        };
        let quantity = |e: linerate_core::units::UnitError| fail(value_at, e.to_string());
        let bound = match (name, percentile(name)) {
            ("goodput", _) => Bound::Goodput(compare()?, value.parse().map_err(quantity)?),
            ("loss", _) => {
                let share: Percent = value.parse().map_err(quantity)?;
                Bound::Loss(compare()?, share)
            }
            (_, Some(p)) => Bound::Latency(p, compare()?, value.parse().map_err(quantity)?),
            ("cause", _) if sign != "=" => {
                return Err(fail(
                    split,
                    format!("`{sign}` does not compare cause: expected ="),
                ));
            }
            ("cause", _) if value.is_empty() => {
                return Err(fail(value_at, "expected the id of a cause".into()));
            }
            ("cause", _) => Bound::Cause(value.to_owned()),
            _ => {
                return Err(fail(
                    name_at,
                    format!("`{name}` is unknown: expected {NAMES}"),
                ));
            }
        };
        Ok(Self {
            text: text.to_owned(),
            direction,
            bound,
        })
    }
}

fn direction_of(left: &str) -> (Option<Direction>, &str) {
    for direction in Direction::ALL {
        let rest = left.strip_prefix(direction.name());
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

fn percentile(name: &str) -> Option<f64> {
    Some(match name.strip_prefix("latency.p")? {
        "50" => 50.0,
        "90" => 90.0,
        "99" => 99.0,
        "99.9" => 99.9,
        _ => return None,
    })
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

/// What was found that bounds are held against.
#[derive(Debug, Default)]
pub struct Found<'a> {
    /// Goodput of each direction that was measured, in bits per second.
    pub goodput: Vec<(Direction, f64)>,
    /// Share of its datagrams that was lost, of each direction in which some were sent.
    pub loss: Vec<(Direction, f64)>,
    /// Share of the round trips of an engine that may lose them which were lost.
    pub lost_trips: Option<f64>,
    /// Round trips on the idle path.
    pub idle: Option<&'a Latency>,
    /// Round trips beside the load of each direction.
    pub beside: Vec<(Direction, &'a Latency)>,
    /// The causes; `None` where none were looked for.
    pub verdict: Option<&'a Verdict>,
}

impl<'a> Found<'a> {
    /// Of a run.
    pub fn of(model: &'a Model, verdict: &'a Verdict) -> Self {
        let each = || model.directions.iter();
        Self {
            goodput: each().map(|d| (d.direction, d.base.goodput.mean)).collect(),
            loss: each()
                .filter_map(|d| Some((d.direction, d.base.datagrams?.lost)))
                .collect(),
            lost_trips: None,
            idle: model.idle.as_ref(),
            beside: each()
                .filter_map(|d| Some((d.direction, d.base.latency.as_ref()?)))
                .collect(),
            verdict: Some(verdict),
        }
    }
}

impl Expect {
    /// Holds the result against the bound; `asked` are the directions that the plan wanted.
    /// An error says in words what was found instead.
    pub fn check(&self, asked: &[Direction], found: &Found<'_>) -> Result<(), String> {
        match &self.bound {
            Bound::Goodput(compare, bound) => {
                let told = |mean: f64| Rate(mean as u64).to_string();
                let holds = |mean| compare.holds(mean, bound.0 as f64);
                self.each("goodput", asked, &found.goodput, holds, told)
            }
            Bound::Loss(compare, bound) => {
                let told = |share: f64| format!("{:.3} %", share * 100.0);
                let holds = |share: f64| compare.holds(share * 100.0, bound.0);
                // Where no load was asked for, it is the round trips that may be lost.
                let of_trips = self.direction.is_none() && asked.is_empty();
                match found.lost_trips.filter(|_| of_trips) {
                    None => self.each("loss of datagrams", asked, &found.loss, holds, told),
                    Some(share) if holds(share) => Ok(()),
                    Some(share) => Err(format!("loss of round trips was {}", told(share))),
                }
            }
            Bound::Latency(p, compare, bound) => self.latency(*p, *compare, *bound, found),
            Bound::Cause(id) => self.cause(id, found),
        }
    }

    /// Holds each direction that is meant against the bound; where there is none, nothing was measured.
    fn each(
        &self,
        what: &str,
        asked: &[Direction],
        found: &[(Direction, f64)],
        holds: impl Fn(f64) -> bool,
        told: impl Fn(f64) -> String,
    ) -> Result<(), String> {
        let one = self.direction.map(|d| [d]);
        let wanted = one.as_ref().map_or(asked, |d| d.as_slice());
        if wanted.is_empty() {
            return Err(format!("{what} was not measured"));
        }
        for direction in wanted {
            let name = direction.name();
            let value = found.iter().find(|(d, _)| d == direction);
            let (_, value) = *value.ok_or_else(|| format!("{name} {what} was not measured"))?;
            if !holds(value) {
                return Err(format!("{name} {what} was {}", told(value)));
            }
        }
        Ok(())
    }

    fn latency(
        &self,
        p: f64,
        compare: Compare,
        bound: Nanos,
        found: &Found<'_>,
    ) -> Result<(), String> {
        let beside = |d| found.beside.iter().find(|(of, _)| *of == d);
        let (what, latency): (String, Option<&Latency>) = match self.direction {
            None => ("idle latency".into(), found.idle),
            Some(d) => (
                format!("latency beside the {} load", d.name()),
                beside(d).map(|(_, latency)| *latency),
            ),
        };
        let latency = latency.ok_or_else(|| format!("{what} was not measured"))?;
        let value = latency.percentile(p).ok_or_else(|| {
            format!(
                "{what}: {} round trips are too few for p{p}",
                latency.samples
            )
        })?;
        if compare.holds(value.0 as f64, bound.0 as f64) {
            Ok(())
        } else {
            Err(format!("{what} was {value} p{p}"))
        }
    }

    fn cause(&self, id: &str, found: &Found<'_>) -> Result<(), String> {
        let verdict = found.verdict.ok_or("no causes were looked for")?;
        let limits = verdict.limits.iter().map(|l| (l.cause, l.direction));
        // A cause that may be a limit, and only disturbed, does not limit the path.
        let disturbs =
            |d: &&Disturbance| cause(d.cause).is_some_and(|cause| cause.info().only_disturbs);
        let disturbances = verdict.disturbances.iter().filter(disturbs);
        let disturbances = disturbances.map(|d| (d.cause, d.direction));
        let named = limits.chain(disturbances);
        let in_reach = named.filter(|(_, way)| self.direction.is_none_or(|d| *way == d));
        let in_reach: Vec<_> = in_reach.collect();
        if in_reach.iter().any(|(cause, _)| *cause == id) {
            return Ok(());
        }
        let found = in_reach.iter();
        let found: Vec<_> = found
            .map(|(cause, way)| format!("{cause} ({})", way.name()))
            .collect();
        Err(if found.is_empty() {
            "no cause was found".into()
        } else {
            format!("found {}", found.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::sample;

    fn check(text: &str) -> Result<(), String> {
        let (_, model, verdict) = sample::limited();
        let expect: Expect = text.parse().unwrap();
        expect.check(&Direction::ALL, &Found::of(&model, &verdict))
    }

    #[test]
    fn what_only_disturbs_holds_as_a_cause_and_what_may_be_a_limit_and_is_none_does_not() {
        let (_, model, verdict) = sample::disturbed();
        let check = |text: &str| {
            let expect: Expect = text.parse().unwrap();
            expect.check(&Direction::ALL, &Found::of(&model, &verdict))
        };
        assert_eq!(check("cause=contended"), Ok(()));
        assert_eq!(check("cause=receive-window"), Ok(()));
        assert!(check("cause=cpu-steal").is_err());
        assert!(check("forward.cause=contended").is_err());
    }

    #[test]
    fn loss_is_of_round_trips_where_no_load_was_asked_for() {
        let found = Found {
            lost_trips: Some(0.02),
            ..Found::default()
        };
        let check = |text: &str, asked: &[Direction]| {
            let expect: Expect = text.parse().unwrap();
            expect.check(asked, &found)
        };
        assert_eq!(check("loss<2.1%", &[]), Ok(()));
        let missed = check("loss<2%", &[]).unwrap_err();
        assert_eq!(missed, "loss of round trips was 2.000 %");
        // Those beside a load are not its datagrams.
        for (text, asked) in [
            ("loss<50%", &[Direction::Forward][..]),
            ("forward.loss<50%", &[]),
        ] {
            assert!(
                check(text, asked).unwrap_err().contains("not measured"),
                "{text}"
            );
        }
    }

    #[test]
    fn bounds_hold_on_one_side_and_fail_on_the_other() {
        // The sample: forward 4.71 Gb/s, reverse 9.38 Gb/s, idle p99 58 us, forward p99 3.4 ms.
        assert_eq!(check("goodput>=4.7Gbit/s"), Ok(()));
        assert!(
            check("goodput>=4.72Gbit/s")
                .unwrap_err()
                .contains("forward goodput was 4.71 Gb/s")
        );
        assert_eq!(check("reverse.goodput >= 9Gbit/s"), Ok(()));
        assert!(check("reverse.goodput<9.38Gbit/s").is_err());
        assert_eq!(check("reverse.goodput<=9.38Gbit/s"), Ok(()));
        assert_eq!(check("latency.p99<=58us"), Ok(()));
        assert!(check("latency.p99<58us").is_err());
        assert!(
            check("forward.latency.p99<=3ms")
                .unwrap_err()
                .contains("3.4 ms")
        );
    }

    #[test]
    fn loss_is_a_share_of_the_datagrams_that_were_sent() {
        let found = Found {
            loss: vec![(Direction::Forward, 0.012)],
            ..Found::default()
        };
        let check = |text: &str, asked: &[Direction]| {
            let expect: Expect = text.parse().unwrap();
            expect.check(asked, &found)
        };
        assert_eq!(check("loss<=1.2%", &[Direction::Forward]), Ok(()));
        assert_eq!(
            check("loss<1.2%", &[Direction::Forward]).unwrap_err(),
            "forward loss of datagrams was 1.200 %"
        );
        for (text, asked) in [
            ("loss<5%", &Direction::ALL[..]),
            ("reverse.loss<5%", &[Direction::Forward]),
            ("loss<5%", &[]),
            ("goodput>0b/s", &[]),
        ] {
            let why = check(text, asked).unwrap_err();
            assert!(why.ends_with("was not measured"), "{text}: {why}");
        }
    }

    #[test]
    fn a_cause_is_looked_for_where_it_was_expected() {
        assert_eq!(check("cause=receive-window"), Ok(()));
        assert_eq!(check("forward.cause=receive-window"), Ok(()));
        assert!(check("reverse.cause=receive-window").is_err());
        let why = check("cause=send-buffer").unwrap_err();
        assert_eq!(why, "found receive-window (forward), path-rate (reverse)");
    }

    #[test]
    fn what_was_not_measured_fails_in_words() {
        assert!(check("latency.p99.9<=1s").unwrap_err().contains("too few"));
        assert!(
            check("reverse.latency.p50<=1s")
                .unwrap_err()
                .contains("not measured")
        );
    }

    #[test]
    fn what_cannot_be_read_is_pointed_at() {
        for (text, at, word) in [
            ("goodput", 7, "comparison"),
            ("godput>=1Gbit/s", 0, "godput"),
            ("forward.godput>=1Gbit/s", 8, "expected goodput"),
            ("goodput>=9", 9, "no unit"),
            ("goodput>=9s", 9, "not a unit"),
            ("goodput=9Gbit/s", 7, "does not compare"),
            ("loss<1", 5, "no unit"),
            ("loss=1%", 4, "does not compare"),
            ("cause>=x", 5, "expected ="),
            ("cause=", 6, "id of a cause"),
            ("latency.p98<=1ms", 0, "latency.p98"),
            ("", 0, "comparison"),
        ] {
            let error = text.parse::<Expect>().unwrap_err();
            assert_eq!(error.at, at, "{text}");
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}
