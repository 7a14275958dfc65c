//! Rules about collective operations of many processes, such as those of NCCL: which transport carries them, which host
//! is slow, and whether their bus bandwidth fills the ports of a host.

use super::super::super::{Explained, facts};
use super::super::moved::{Moved, runs, tables};
use super::super::{Remark, rate};
use super::ports::capacity;
use linerate_facts::finding::Stands;
use linerate_plan::path::Side;
use linerate_record::reported::{Carrier, Setup};

/// A library whose absence, if the program reports it, proves the cause: without it nothing can use RDMA.
const NO_LIBRARY: &str = "libibverbs";

/// Remark on a collective operation whose messages between hosts use sockets.
pub(in crate::rule) fn sockets(explained: &Explained<'_>) -> Vec<Remark> {
    let all = tables(explained);
    let by_sockets =
        all.iter().filter(|run| run.carrier == Carrier::Sockets && run.setup.collective);
    let best = by_sockets.max_by(|a, b| a.best.total_cmp(&b.best));
    best.map(|run| not_by_rdma(explained, run)).into_iter().collect()
}

fn not_by_rdma(explained: &Explained<'_>, run: &Moved<'_>) -> Remark {
    let setup = run.setup;
    let by = setup.ports.join(", ");
    let by = if by.is_empty() { "unknown" } else { &by };
    let what = format!(
        "the messages went over TCP sockets (interface {by}), not by RDMA: at most {}",
        rate(run.best)
    );
    let port = facts::ports_of(explained.material).into_iter().find(|port| port.is_rdma);
    // Interfaces of IP over InfiniBand have names that begin so.
    let is_ipoib = setup.ports.iter().any(|name| name.starts_with("ib"));
    let is_sure = port.is_some() || is_ipoib || setup.no_rdma.contains(NO_LIBRARY);
    let causes: &[&'static str] =
        if is_sure { &["wrong-route"] } else { &["wrong-route", "path-rate"] };
    let mut remark = Remark::new(Stands::Found, what).names(causes);
    if !setup.no_rdma.is_empty() {
        remark = remark.because(format!("the program says `{}`", setup.no_rdma));
    }
    remark = match port {
        Some(port) => remark.because(format!("the facts show {} ({})", port.name, port.link)),
        None => {
            remark.because("hosts without InfiniBand and RoCE have no other way than such sockets")
        }
    };
    remark.shown_by(run.source, run.outcome).next(
        "whether programs find the ports of RDMA, in the container of the program too: it needs libibverbs (rdma-core)",
        "ibv_devinfo",
    )
}

/// Least ratio of other runs' rates to that of a run that is slow: runs of equal hosts differ by a few percent.
const SLOWER: f64 = 1.3;
/// Most hosts that are named in a remark.
const NAMED: usize = 4;

/// Compares runs of one test on different hosts: if some runs are slow, names the host that only the slow runs have.
pub(in crate::rule) fn hosts(explained: &Explained<'_>) -> Vec<Remark> {
    let all = tables(explained);
    let between = || all.iter().filter(|run| run.setup.hosts.len() > 1);
    let Some(top) = between().max_by(|a, b| a.best.total_cmp(&b.best)) else {
        return Vec::new();
    };
    let alike = between().filter(|run| is_same(run, top));
    // Rates are compared at the largest message size that both runs have.
    let shares = alike.filter_map(|run| {
        let (_, own, best) = run.beside(top)?;
        Some((run, own / best))
    });
    let (mut slow, mut fast): (Vec<&Moved<'_>>, Vec<&Moved<'_>>) = (Vec::new(), Vec::new());
    for (run, share) in shares {
        if share * SLOWER <= 1.0 {
            slow.push(run);
        } else {
            fast.push(run);
        }
    }
    differ(&slow, &fast).into_iter().collect()
}

/// Whether two runs differ only in their hosts.
fn is_same(one: &Moved<'_>, other: &Moved<'_>) -> bool {
    let without = |setup: &Setup| Setup { hosts: Vec::new(), ..setup.clone() };
    one.outcome.title == other.outcome.title
        && one.is_like(other)
        && one.setup.hosts.len() == other.setup.hosts.len()
        && without(one.setup) == without(other.setup)
}

/// The lowest and highest rate of several runs, in words.
fn range(all: &[&Moved<'_>]) -> String {
    let best = || all.iter().map(|run| run.best);
    let ends = best().reduce(f64::min).zip(best().reduce(f64::max));
    match ends {
        Some((least, most)) if most >= least * 1.01 => format!("{} to {}", rate(least), rate(most)),
        Some((_, most)) => rate(most),
        None => String::new(),
    }
}

fn named(hosts: &[String]) -> String {
    let few: Vec<&str> = hosts.iter().take(NAMED).map(String::as_str).collect();
    few.join(", ")
}

fn differ(slow: &[&Moved<'_>], fast: &[&Moved<'_>]) -> Option<Remark> {
    let (first, top) = (slow.first()?, fast.first()?);
    let has = |run: &Moved<'_>, host: &String| run.setup.hosts.contains(host);
    let is_equal = |a: &Moved<'_>, b: &Moved<'_>| a.setup.hosts.iter().all(|host| has(b, host));
    // If a slow and a fast run have the same hosts, the hosts do not explain the difference.
    if slow.iter().any(|a| fast.iter().any(|b| is_equal(a, b))) {
        return None;
    }
    let is_only_slow = |host: &&String| {
        slow.iter().all(|run| has(run, host)) && !fast.iter().any(|run| has(run, host))
    };
    let found: Vec<&str> =
        first.setup.hosts.iter().filter(is_only_slow).map(String::as_str).collect();
    let (low, high) = (range(slow), range(fast));
    let what = match found.as_slice() {
        [host] => format!(
            "{host}: each run with it moves {low}, and those without it {high}: this host, or its way to the others, is slow"
        ),
        [] => format!(
            "runs of the same at other hosts differ: {low} and {high}; no host is in all slow runs and in no fast one"
        ),
        several => format!(
            "runs of the same at other hosts differ: {low} with {}, and {high} with others: one of these hosts, or the way \
             between them, is slow",
            several.iter().take(NAMED).copied().collect::<Vec<_>>().join(" and ")
        ),
    };
    Some(
        Remark::new(Stands::Found, what)
            .because(format!("slow, such as {}: {}", named(&first.setup.hosts), rate(first.best)))
            .because(format!("fast, such as {}: {}", named(&top.setup.hosts), rate(top.best)))
            .names(&[])
            .shown_by(first.source, first.outcome)
            .next(
                "on the slow host and on a fast one: the rate of each port, and the slot of each card (LnkSta)",
                "ibstat; sudo lspci -vv",
            ),
    )
}

/// Whether a collective operation may use several ports of a host at once: its rate is then that of all of them, and
/// cannot be compared with a single link.
pub(super) fn is_spread(run: &Moved<'_>) -> bool {
    let setup = run.setup;
    let is_one_each = setup.processes.map(|n| n as usize) == Some(setup.hosts.len());
    setup.collective && setup.ports.len() != 1 && !is_one_each
}

/// Least share of the capacity of all ports together at which they are full. A ring loses 2 to 8 % to headers and to
/// its start.
//= NVIDIA nccl-tests, doc/PERFORMANCE.md: bus bandwidth is to be held against the speed of the hardware
const FULL: f64 = 0.9;
/// Largest ratio of the rate to the capacity that rounding, and a tree between two hosts, explain: above it other ports
/// carry it, too.
const ROUNDED: f64 = 1.02;

/// Compares the best bus bandwidth with the capacity of a host's ports, if the operation may use several.
pub(in crate::rule) fn bus_bandwidth(explained: &Explained<'_>) -> Vec<Remark> {
    // If runs on different hosts differ, that is the better answer.
    if !hosts(explained).is_empty() {
        return Vec::new();
    }
    let all = runs(explained);
    let counts = |run: &&Moved<'_>| is_spread(run) && run.setup.only_host().is_none();
    let best = all.iter().filter(counts).max_by(|a, b| a.best.total_cmp(&b.best));
    best.and_then(|run| beside_ports(explained, run)).into_iter().collect()
}

/// The capacities of the ports that carry a run, in bits per second: of the ports that the run names; else of all RDMA
/// ports in the facts, if there are several.
fn carried_by(explained: &Explained<'_>, setup: &Setup) -> Option<Vec<f64>> {
    let ports = facts::ports_of(explained.material);
    let own: Vec<&facts::Port> =
        ports.iter().filter(|port| port.side == Side::Near && port.is_rdma).collect();
    if setup.ports.is_empty() {
        return (own.len() > 1).then(|| own.iter().map(|port| capacity(port)).collect());
    }
    let of = |name: &String| {
        let start = format!("{name} ");
        let port = own.iter().find(|port| port.name.starts_with(&start))?;
        Some(capacity(port))
    };
    setup.ports.iter().map(of).collect()
}

fn beside_ports(explained: &Explained<'_>, run: &Moved<'_>) -> Option<Remark> {
    let words = rate(run.best);
    let ports = carried_by(explained, run.setup).filter(|_| run.setup.hosts.len() > 1);
    let remark = if let Some(ports) = ports {
        let (count, sum) = (ports.len(), ports.iter().sum::<f64>());
        let share = run.best / sum;
        let beside = format!(
            "the best bus bandwidth, {words}, is {:.0} % of the {count} ports of a host, {}",
            share * 100.0,
            rate(sum)
        );
        // If the largest messages do not keep the rate, it is not limited by the ports.
        let held = run.rows.last_key_value().map_or(0.0, |(_, (rate, _))| rate / sum);
        if share > ROUNDED || share >= FULL && held < FULL {
            return None;
        }
        // Without named ports, some of the listed ports alone may carry the run.
        if share >= FULL && run.setup.ports.is_empty() {
            let what = format!("{beside}: they are full if these are all ports that carry it");
            Remark::new(Stands::Found, what).next("all ports of a host", "ibstat")
        } else if share >= FULL {
            let what = format!("{beside}: they are as full as such operations make them");
            Remark::new(Stands::Good, what)
                .because("smaller messages take longer for each byte: their rates do not count")
        } else {
            let what =
                format!("{beside}: on a path without a fault such operations reach 90 % and more");
            Remark::new(Stands::Found, what)
                .because("left are the slots of the cards, the links between processors, and ports that are not used")
                .next("the network, the ports and the links that NCCL chooses", "NCCL_DEBUG=INFO ./build/all_reduce_perf -b 1G -e 8G -f 2")
        }
    } else {
        let each = match run.setup.ports.len() {
            0 => "if it crossed the network, each port of a host carries that divided by the number of its ports".to_owned(),
            count => format!("each of its {count} ports carries {}", rate(run.best / count as f64)),
        };
        let what = format!(
            "the best bus bandwidth is {words}: {each}; the rate of the ports is not known"
        );
        Remark::new(Stands::Found, what).next("the rate of each port", "ibstat")
    };
    Some(remark.names(&[]).shown_by(run.source, run.outcome))
}
