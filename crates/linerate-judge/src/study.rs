//! Results of a study: the figures of each point, in the same structure for every kind of study.

use linerate_facts::Gap;
use linerate_plan::path::{Direction, Side};
use linerate_plan::study::Axis;
use linerate_plan::transport::Swept;
use linerate_record::Record;
use linerate_units::stats::{
    Histogram, Interval, middle, moments, percentile, percentile_ci, samples,
};

use crate::figure::{
    COPIED, CPU, DEVIATION, Entry, Evidence, Figure, GOODPUT, LATENCY, LEAST, MEAN, MOST, Subject,
    Summary, Value,
};
use crate::model::{Estimate, Setting};

/// A percentile of times; `None` if there are too few.
fn part(times: &Histogram, percent: f64, of: Subject) -> Option<Entry> {
    let interval = percentile_ci(times, percent / 100.0);
    let known = percentile(times, percent / 100.0);
    let mid = if percent == TYPICAL { middle(times) } else { known };
    let evidence = interval.map_or(Evidence::None, Evidence::Interval);
    let of = Subject { percentile: Some(percent), ..of };
    Some(Entry { figure: &LATENCY, of, value: Ok(Value { mid: mid? as f64, evidence }) })
}

/// The percentiles of times that are shown, as far as there are enough of them.
pub fn percentiles(times: &Histogram, of: Subject) -> Vec<Entry> {
    [TYPICAL, 99.0, 99.9].into_iter().filter_map(|percent| part(times, percent, of)).collect()
}

/// The percentile that is shown as the typical round trip: the median.
pub const TYPICAL: f64 = 50.0;

/// The factor that is varied within this one record, and its values; `None` if the record varies no factor.
pub fn varied(record: &Record) -> Option<(Swept, &Axis)> {
    let study = record.start.study.as_ref()?;
    let own = study.axes.get(study.at.len()..)?.last()?;
    let swept = Swept::ALL.into_iter().find(|swept| swept.name() == own.name)?;
    record.start.plan.directions.first().map(|_| (swept, own))
}

/// A point of a study: a value of each axis, and the figures measured there.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The value of each axis at this point, in words.
    pub values: Vec<String>,
    /// Number of rounds or round trips from which the figures are derived.
    pub samples: u64,
    /// Messages that were sent and never answered; `None` where the transport cannot lose any.
    pub lost: Option<u64>,
    /// The figures, in the order in which they are shown.
    pub summary: Summary,
    /// Ratio of a figure at this point to that figure at the point of reference, with the figure and its subject.
    pub ratios: Vec<(&'static Figure, Subject, Interval)>,
    /// Why the point has no figures; `None` if it has some.
    pub lacks: Option<Gap>,
}

impl Point {
    /// A point with these figures and nothing else.
    pub const fn new(values: Vec<String>, samples: u64, entries: Vec<Entry>) -> Self {
        let summary = Summary { entries };
        Self { values, samples, lost: None, summary, ratios: Vec::new(), lacks: None }
    }

    /// A point without figures.
    pub fn lacking(values: Vec<String>, why: Gap) -> Self {
        let lacks = Some(Gap { what: values.join(", "), ..why });
        Self { lacks, ..Self::new(values, 0, Vec::new()) }
    }

    /// A point with the figures of round trips.
    pub fn of_times(values: Vec<String>, times: &Histogram) -> Self {
        let (number, found, exact) = (samples(times), moments(times), times.exact);
        let bare =
            |figure, nanos: Option<f64>| Some(Entry::bare(figure, Subject::default(), nanos?));
        let exactly = |nanos: Option<u64>| nanos.map(|nanos| nanos as f64);
        let part = |percent| part(times, percent, Subject::default());
        let deviation = found.as_ref().filter(|_| number > 1).map(|found| found.deviation);
        let entries = [
            bare(&LEAST, exactly(exact.map(|exact| exact.least))),
            part(TYPICAL),
            bare(&MEAN, found.map(|found| found.mean)),
            bare(&DEVIATION, deviation),
            part(99.0),
            part(99.9),
            bare(&MOST, exactly(exact.map(|exact| exact.most))),
        ];
        Self::new(values, number, entries.into_iter().flatten().collect())
    }

    /// The point of one setting of a swept factor: the figures of the load that ran with this setting.
    pub fn of_setting(values: Vec<String>, setting: &Setting, direction: Direction) -> Self {
        let of = Subject::load(direction);
        let entry = |figure, of, estimate: Option<&Estimate>| {
            let Estimate { mean, interval, .. } = *estimate?;
            let evidence = interval.map_or(Evidence::None, |interval| {
                Evidence::Interval(Interval { low: interval.low.max(0.0), ..interval })
            });
            Some(Entry { figure, of, value: Ok(Value { mid: mean, evidence }) })
        };
        let at = |side| Subject { side: Some(side), ..of };
        let cpu = |side| entry(&CPU, at(side), setting.cpu.at(direction, side).as_ref());
        let entries = [
            entry(&GOODPUT, of, setting.goodput.as_ref()),
            cpu(Side::Near),
            cpu(Side::Far),
            setting.copied.map(|share| Entry::bare(&COPIED, of, share)),
        ];
        let rounds = setting.goodput.map_or(0, |goodput| goodput.samples as u64);
        let goodput = setting.goodput_ratio.map(|ratio| (&GOODPUT, of, ratio));
        let spent = setting.cpu_ratio.map(|ratio| (&CPU, at(direction.sender()), ratio));
        Self {
            ratios: goodput.into_iter().chain(spent).collect(),
            ..Self::new(values, rounds, entries.into_iter().flatten().collect())
        }
    }

    /// Ratio of a figure at this point to that figure at the point of reference; `None` if there is none.
    pub fn ratio(&self, figure: &'static Figure, of: Subject) -> Option<Interval> {
        let mut all = self.ratios.iter();
        all.find(|(own, whose, _)| *own == figure && *whose == of).map(|(.., ratio)| *ratio)
    }
}

/// What limits a mounted folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Least {
    /// The disk of the server.
    Disk,
    /// The network to the server.
    Network,
    /// What is between both: the protocol, its options, or how many operations it keeps in flight.
    Protocol,
    /// A cache answers in place of the disk.
    Cache,
    /// None of these is known to.
    Unknown,
}

/// Share of the least of the disk and the network, from which on the mount is as fast as that.
const AS_FAST: f64 = 0.85;
/// Share up to which something between both takes the rest.
const SLOWER: f64 = 0.7;
/// Share from which on the mount is faster than both allow.
const FASTER: f64 = 1.1;

/// What limits a mounted folder, from the goodput of the server's disk alone, of the network alone, and of the mount.
pub fn least(disk: f64, network: f64, mount: f64) -> Least {
    let share = mount / disk.min(network).max(1.0);
    if share > FASTER {
        Least::Cache
    } else if share < SLOWER {
        Least::Protocol
    } else if share < AS_FAST {
        Least::Unknown
    } else if disk < network {
        Least::Disk
    } else {
        Least::Network
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_named_on_one_side_of_each_threshold() {
        for (disk, network, mount, expected) in [
            (100.0, 200.0, 86.0, Least::Disk),
            (200.0, 100.0, 86.0, Least::Network),
            (100.0, 200.0, 84.0, Least::Unknown),
            (100.0, 200.0, 71.0, Least::Unknown),
            (100.0, 200.0, 69.0, Least::Protocol),
            (100.0, 200.0, 109.0, Least::Disk),
            (100.0, 200.0, 111.0, Least::Cache),
        ] {
            assert_eq!(least(disk, network, mount), expected, "{disk} {network} {mount}");
        }
    }
}
