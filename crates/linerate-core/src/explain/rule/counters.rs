//! Rules about what kernels count: the clocks of connections, and the processors of a host.

use super::super::{Explained, side_name};
use super::course::{MOST_RUNS, transfers};
use super::{Remark, Stands};
use crate::path::Side;
use crate::reported::{Counters, CpuOf, Measured};

/// Share of the retransmissions that DSACK calls needless from which next to none of them was.
const NEEDLESS: f64 = 0.8;

/// Share of all segments from which loss is worth a word.
const LOSES: f64 = 1e-3;

/// Share of one processor from which it is full, and the most that one thread and its interrupts take.
const FULL: std::ops::RangeInclusive<f64> = 0.9..=1.3;

/// Whether next to none of the retransmissions that a host counts was needed.
pub(super) fn is_needless(explained: &Explained<'_>) -> bool {
    let mut runs = explained.material.runs().take(MOST_RUNS);
    runs.any(|(_, result)| match &result.measured {
        Measured::Counters(counters) => needless(counters).is_some_and(|share| share > NEEDLESS),
        _ => false,
    })
}

/// The share of the retransmissions that were needless, by DSACK.
fn needless(counters: &Counters) -> Option<f64> {
    let repeated = counters
        .value("TcpRetransSegs")
        .filter(|count| *count > 0)?;
    Some(counters.value("TcpExtTCPDSACKRecv").unwrap_or(0) as f64 / repeated as f64)
}

pub(super) fn retransmits(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let all = explained.material.runs();
    all.filter_map(|(source, result)| {
        let Measured::Counters(counters) = &result.measured else {
            return None;
        };
        let of = |name: &str| counters.value(name).map(|value| value as f64);
        let (sent, repeated) = (of("TcpOutSegs")?, of("TcpRetransSegs")?);
        let share = repeated / sent.max(1.0);
        let needless = needless(counters).unwrap_or(0.0);
        let told = |what: String| Remark::new(id, Stands::Finding, what).shown_by(source, result);
        let counts = format!("{repeated:.0} of {sent:.0} segments were sent again, {:.3} %", share * 100.0);
        let dsack = format!("{:.0} % of the retransmissions were needless, by DSACK", needless * 100.0);
        let remark = if repeated > 0.0 && needless > NEEDLESS {
            let late = told("next to nothing was lost: the data had arrived, and the acknowledgements came late".to_owned());
            // Beside transfers their rates answer, without these retransmissions.
            if transfers(explained).next().is_some() {
                Remark { answer: None, ..late }
            } else {
                late.names(&["receiver-core", "path-reordering"]).rules_out(&["path-loss"])
            }
            .next("see whether a processor of the receiver is full", "mpstat -P ALL 1")
        } else if share >= LOSES {
            told("segments are lost on the path".to_owned())
                .names(&["path-loss"])
                .next("the counters of every port of the path", "ethtool -S PORT")
        } else {
            return None;
        };
        let remark = remark.because(dsack);
        let remark = remark.because(counts);
        Some(if counters.grew {
            remark
        } else {
            remark.because("one reading counts since the host started: what a test adds is not known")
        })
    })
    .collect()
}

pub(super) fn one_core(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let each = transfers(explained).flat_map(|of| {
        let (sender, receiver) = (of.2.direction.sender(), of.2.direction.receiver());
        let ends = [
            ("sender-core", sender, of.2.cpu.sender),
            ("receiver-core", receiver, of.2.cpu.receiver),
        ];
        ends.map(|end| (of, end))
    });
    each.filter_map(|((source, result, one), (cause, side, cpu))| {
        let share = cpu.filter(|cpu| cpu.of == CpuOf::AllCpus)?.total;
        let cpus = cpus(explained, side)?;
        let busy = share * cpus as f64;
        FULL.contains(&busy).then(|| {
            let what = format!(
                "{}: {:.2} % of {cpus} CPUs are one full CPU, and one core can do no more",
                side_name(side),
                share * 100.0
            );
            Remark::new(id, Stands::Finding, what)
                .names(&[cause])
                .of(one.direction)
                .at(side)
                .shown_by(source, result)
                .next("see whether one CPU is full there", "mpstat -P ALL 1")
        })
    })
    .collect()
}

/// The number of CPUs of a host. Where one host alone is known, the other one is taken to be alike.
fn cpus(explained: &Explained<'_>, side: Side) -> Option<usize> {
    let of = |side: Side| {
        let host = match side {
            Side::Near => &explained.material.near,
            Side::Far => &explained.material.far,
        };
        Some(host.processors.cpus.len()).filter(|count| *count > 1)
    };
    of(side).or_else(|| {
        of(match side {
            Side::Near => Side::Far,
            Side::Far => Side::Near,
        })
    })
}
