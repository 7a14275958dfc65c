//! Rules about counters of a kernel: retransmissions, drops, and busy CPUs of a host.

use super::super::{Explained, side_name};
use super::Remark;
use super::fabric::ports;
use super::transfers::{MOST_RUNS, transfers};
use linerate_facts::finding::Stands;
use linerate_plan::path::Side;
use linerate_record::reported::{Counters, CpuOf, Measured, Outcome, Source, Transfer};

/// Least share of retransmissions that DSACK reports as needless at which next to nothing was lost.
const NEEDLESS: f64 = 0.8;

/// Least share of retransmitted segments that is reported as loss.
const LOSES: f64 = 1e-3;

/// Range of CPU use, in processors, of one full processor: one thread, at most with its interrupts.
const FULL: std::ops::RangeInclusive<f64> = 0.9..=1.3;

/// Whether next to none of the transfers' retransmissions was needed, by the counters of the host during a run.
pub(super) fn is_needless(explained: &Explained<'_>) -> bool {
    let mut runs = explained.material.runs().take(MOST_RUNS);
    runs.any(|(_, result)| match &result.measured {
        Measured::Counters(counters) => {
            let most = needless(counters).is_some_and(|share| share > NEEDLESS);
            most && is_of_run(explained, counters)
        }
        _ => false,
    })
}

/// The share of retransmissions that were needless, by DSACK; `None` without retransmissions. Programs leave out
/// counters that are zero.
fn needless(counters: &Counters) -> Option<f64> {
    let repeated = counters.value("TcpRetransSegs").filter(|count| *count > 0)?;
    Some(counters.value("TcpExtTCPDSACKRecv").unwrap_or(0) as f64 / repeated as f64)
}

/// Largest relative difference between a count of the host and one of a transfer that are taken for the same packets.
const ALIKE: f64 = 0.1;

/// Whether the counters cover one run: they are a difference of two readings, or count as many retransmissions as a
/// transfer.
fn is_of_run(explained: &Explained<'_>, counters: &Counters) -> bool {
    let repeated = counters.value("TcpRetransSegs").unwrap_or(0) as f64;
    let is_same = |own: u64| repeated > 0.0 && (own as f64 / repeated - 1.0).abs() <= ALIKE;
    counters.grew || transfers(explained).any(|(_, _, one)| one.retransmits.is_some_and(is_same))
}

pub(super) fn retransmits(explained: &Explained<'_>) -> Vec<Remark> {
    let all = explained.material.runs().take(MOST_RUNS);
    all.filter_map(|(source, result)| match &result.measured {
        Measured::Counters(counters) => {
            let remark = repeated(explained, counters)?;
            Some(if remark.answer.is_some() { remark.shown_by(source, result) } else { remark })
        }
        _ => None,
    })
    .collect()
}

fn repeated(explained: &Explained<'_>, counters: &Counters) -> Option<Remark> {
    let (sent, retransmitted) =
        (counters.value("TcpOutSegs")?, counters.value("TcpRetransSegs").unwrap_or(0));
    let share = retransmitted as f64 / (sent as f64).max(1.0);
    let needless = needless(counters).unwrap_or(0.0);
    let found = |what: &str| {
        let counts = format!(
            "{retransmitted} of {sent} segments were retransmitted, {:.3} %",
            share * 100.0
        );
        Remark::new(Stands::Found, what).because(counts)
    };
    let dsack = format!("{:.0} % of the retransmissions were needless, by DSACK", needless * 100.0);
    // If there are transfers, their rates answer which cause limits; the counters only add to that.
    let is_alone = transfers(explained).next().is_none();
    let open = |remark: Remark, causes: &[&'static str]| {
        if is_alone { remark.names(causes).rules_out(&["path-loss"]) } else { remark }
    };
    Some(if !is_of_run(explained, counters) {
        let remark = found(
            "segments were retransmitted since the host started, or since they were read before: whether the load adds to them \
             is not known",
        );
        let remark = if is_alone { remark.names(&[]) } else { remark };
        remark.because(dsack).next("what is counted from now on", "nstat -n; sleep 10; nstat")
    } else if needless > NEEDLESS {
        let late =
            "next to nothing was lost: the data had arrived, and the acknowledgements came late";
        open(found(late).because(dsack), &["receiver-core", "path-reordering"])
            .next("see whether a processor of the receiver is full", "mpstat -P ALL 1")
    } else if share >= LOSES {
        found("segments are lost on the path")
            .because(dsack)
            .names(&["path-loss"])
            .next("the counters of every port of the path", "ethtool -S PORT")
    } else {
        open(
            found(
                "next to none of the segments were retransmitted: loss does not limit the connections",
            ),
            &[],
        )
        .next("see what does", "ss -ti")
    })
}

pub(super) fn one_core(explained: &Explained<'_>) -> Vec<Remark> {
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
            Remark::new(Stands::Found, what)
                .names(&[cause])
                .of(one.direction)
                .at(side)
                .shown_by(source, result)
                .next("see whether one CPU is full there", "mpstat -P ALL 1")
        })
    })
    .collect()
}

/// Least number of lost datagrams at which two equal counts are no coincidence.
pub(super) const FEWEST_LOST: u64 = 20;

/// Each result whose counter `name` agrees with the datagrams that a transfer lost: source, result, count and transfer.
pub(super) fn as_lost<'a>(
    explained: &'a Explained<'_>,
    name: &'a str,
) -> impl Iterator<Item = (&'a Source, &'a Outcome, u64, &'a Transfer)> {
    let all = explained.material.runs().take(MOST_RUNS);
    all.filter_map(move |(source, result)| {
        let Measured::Counters(counters) = &result.measured else {
            return None;
        };
        let count = counters.value(name)?;
        let is_same =
            |lost: u64| lost >= FEWEST_LOST && (count as f64 / lost as f64 - 1.0).abs() <= ALIKE;
        let (_, _, one) = transfers(explained)
            .find(|(_, _, one)| one.datagrams.is_some_and(|all| is_same(all.lost)))?;
        Some((source, result, count, one))
    })
}

/// Remarks on datagrams that the receiver's host dropped because its socket was full: as many as a transfer lost.
pub(super) fn dropped(explained: &Explained<'_>) -> Vec<Remark> {
    as_lost(explained, "UdpRcvbufErrors")
        .map(|(source, result, dropped, one)| {
            let what = format!(
                "{dropped} datagrams arrived at the receiver and were dropped for want of room in its socket: as many as were lost"
            );
            let remark = Remark::new(Stands::Found, what)
                .names(&["socket-drops"])
                .rules_out(&["path-loss", "path-rate"])
                .of(one.direction)
                .at(one.direction.receiver())
                .shown_by(source, result)
                .because("its program does not read fast enough, or its buffer is small");
            remark.next("the largest buffer that a program may ask for", "sysctl net.core.rmem_max")
        })
        .collect()
}

/// Least share of its time in which a full CPU is busy; then the largest mean share of all CPUs at which the others are
/// idle enough.
const CPU_FULL: f64 = 0.95;
const OTHERS_REST: f64 = 0.8;

/// Remarks on a CPU that is full while others are idle, from a table of all CPUs.
pub(super) fn full_cpu(explained: &Explained<'_>) -> Vec<Remark> {
    let all = explained.material.runs().take(MOST_RUNS);
    all.filter_map(|(source, result)| {
        let Measured::Cpus(cpus) = &result.measured else {
            return None;
        };
        let mean = cpus.iter().find(|one| one.cpu.is_none());
        let together = mean.map(|all| all.busy).filter(|all| *all <= OTHERS_REST)?;
        let each = || cpus.iter().filter_map(|one| Some((one.cpu?, one)));
        let (cpu, most) = each().max_by(|a, b| a.1.busy.total_cmp(&b.1.busy))?;
        let full = each().filter(|(_, one)| one.busy >= CPU_FULL).count();
        if full == 0 {
            return None;
        }
        let shown = |what: String| {
            let remark = Remark::new(Stands::Found, what).shown_by(source, result).because(
                format!("all CPUs together are busy {:.0} % of the time", together * 100.0),
            );
            match source.side {
                Some(side) => remark.at(side),
                None => remark,
            }
        };
        let is_one = full == 1 && !ports::is_any_full(explained);
        Some(if most.interrupts >= most.busy / 2.0 && is_one {
            let what = format!(
                "CPU {cpu} is full, {:.1} % of its time with packets: one CPU takes them in",
                most.interrupts * 100.0
            );
            shown(what)
                .names(&["softirq-core"])
                .next("which CPUs the queues of the port interrupt", "cat /proc/interrupts")
        } else {
            // No answer: a busy CPU may belong to any program.
            let what = format!("{full} of the CPUs in the table are full, CPU {cpu} most");
            let remark = shown(what).next("the program on that CPU", "top -H");
            Remark { answer: None, ..remark }
        })
    })
    .collect()
}

/// The number of CPUs of a host. If only one host is known, the other is assumed to have as many.
fn cpus(explained: &Explained<'_>, side: Side) -> Option<usize> {
    let mut hosts = explained.material.hosts();
    hosts.sort_by_key(|(of, _)| *of != side);
    let counts = hosts.map(|(_, host)| host.processors.cpus.len());
    counts.into_iter().find(|count| *count > 1)
}
