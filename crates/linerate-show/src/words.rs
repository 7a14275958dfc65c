//! Numbers and names in words, as all text pages use them.

use linerate_facts::{HostFacts, Port};
use linerate_judge::causes::cause;
use linerate_judge::model::{DirectionModel, Estimate, Latency, Load};
use linerate_judge::verdict::{Disturbance, Limit};
use linerate_plan::path::{Direction, Measure, Place, Side, Stage};
use linerate_plan::transport::{self, FarEnd, Feature, Options, TransportInfo};
use linerate_plan::{Handover, Knobs};
use linerate_units::stats::Interval;
use linerate_units::{Nanos, PerSecond, Rate, digits};

use super::names::Names;

/// A number with its noun: `1 stream`, `4 streams`.
pub(crate) fn count(n: u64, noun: &str) -> String {
    let noun = if n == 1 { noun.to_owned() } else { plural(noun) };
    format!("{n} {noun}")
}

/// The plural of a noun.
pub(crate) fn plural(noun: &str) -> String {
    let ending = if noun.ends_with("ch") { "es" } else { "s" };
    format!("{noun}{ending}")
}

/// Words for the time that does not count: `, the first 1 s left out`; empty if there is none.
pub(crate) fn left_out(washout: Nanos) -> String {
    match washout {
        Nanos(0) => String::new(),
        washout => format!(" (the first {washout} left out)"),
    }
}

/// A part of a whole in percent, as `8.9 %`: with at least two significant digits, however small it is.
pub(crate) fn share(part: u64, whole: u64) -> String {
    let percent = part as f64 / whole.max(1) as f64 * 100.0;
    let digits = match percent {
        p if p <= 0.0 => 0,
        p => (1.0 - p.log10().floor()).clamp(1.0, 9.0) as usize,
    };
    format!("{percent:.digits$} %")
}

/// Goodput in words: `4.71 Gb/s (589 MB/s) ±0.4 %`; without `±` if there is no interval.
pub(crate) fn goodput(estimate: &Estimate) -> String {
    within(Rate(estimate.mean.max(0.0) as u64).with_bytes(), estimate)
}

/// `4.71 Gb/s ±0.4 %`: the goodput without bytes per second, for narrow columns.
pub(crate) fn bits(estimate: &Estimate) -> String {
    within(Rate(estimate.mean.max(0.0) as u64).to_string(), estimate)
}

/// A rate in words, with its interval if there is one.
fn within(rate: String, estimate: &Estimate) -> String {
    match estimate.interval {
        Some(i) if estimate.mean > 0.0 => {
            let half = (i.high - i.low) / 2.0 / estimate.mean * 100.0;
            format!("{rate} {}", plus_minus(half))
        }
        _ => rate,
    }
}

/// Smallest half-width of an interval, as a share of the mean, at which the mean is not meaningful.
const UNEVEN: f64 = 0.5;

/// Bits of goodput for each MB/s, of 10^6 bytes.
pub(crate) const BITS_OF_MB: f64 = 8e6;

/// A rate in the units of disks: `1.58 GB/s`.
pub(crate) fn bytes_rate(bits: f64) -> String {
    let megabytes = bits / BITS_OF_MB;
    if megabytes >= 1000.0 {
        format!("{} GB/s", digits(megabytes / 1000.0))
    } else {
        format!("{} MB/s", digits(megabytes))
    }
}

/// A rate of a load in the unit of its kind: bits in a second of a path, bytes of a disk.
pub(crate) fn rate(load: &Load, bits: f64) -> String {
    if load.has(Feature::Disk) { bytes_rate(bits) } else { Rate(bits.max(0.0) as u64).to_string() }
}

/// A remark that the rate varied too much for a mean; `None` if it did not.
pub(crate) fn uneven(estimate: &Estimate) -> Option<String> {
    let half = estimate.interval.and_then(Interval::relative)?;
    (half >= UNEVEN).then(|| "varied too much for a mean".to_owned())
}

/// A rate of operations with its interval: `190 k/s ±0.4 %`.
pub(crate) fn per_second(estimate: &Estimate) -> String {
    let rate = PerSecond(estimate.mean.max(0.0));
    let half = estimate.interval.and_then(Interval::relative);
    half.map_or(rate.to_string(), |half| format!("{rate} {}", plus_minus(half * 100.0)))
}

/// Half the width of an interval in percent: `±1.2 %`.
pub(crate) fn plus_minus(percent: f64) -> String {
    if percent < 0.1 {
        "±0.1 %".to_owned()
    } else if percent < 10.0 {
        format!("±{percent:.1} %")
    } else {
        format!("±{percent:.0} %")
    }
}

/// A load in brief, for a page of many loads: `4.71 Gb/s ±0.4 %, 4 streams, zerocopy`.
pub(crate) fn base(load: &Load) -> String {
    format!("{}, {}", bits(&load.goodput), streams(load))
}

/// Streams of a load and how it sends: `4 streams, zerocopy`; ordinary copies are not named, datagrams are named
/// `UDP`.
pub(crate) fn streams(load: &Load) -> String {
    let mut words = count(u64::from(load.streams), "stream");
    if load.knobs.copy != Handover::Copy {
        words.push_str(", ");
        words.push_str(load.knobs.copy.name());
    }
    if load.has(Feature::Datagrams) {
        words.push_str(", UDP");
    }
    words
}

/// The loss of a load with datagrams: `25.00 % of the datagrams lost, about 20.00 % at the socket`.
pub(crate) fn lost(load: &Load) -> Option<String> {
    let reported = load.datagrams?;
    let of = |share: Option<f64>, place: &str| {
        let share = share.filter(|share| *share > 0.0);
        share.map_or(String::new(), |share| format!(", about {:.2} % {place}", share * 100.0))
    };
    let at_socket = of(reported.dropped(), "at the socket");
    let damaged = of(reported.damaged, "by bad checksums");
    let lost = reported.lost * 100.0;
    Some(format!("{lost:.2} % of the datagrams lost{at_socket}{damaged}"))
}

/// The effect of a trial on loss: `x0.20 (0.10 to 0.40) of the share retransmitted`, or of the share of datagrams
/// lost.
pub(crate) fn of_share(loss: Interval, transport: &TransportInfo) -> String {
    format!("{} of the share {}", effect(loss), share_lost(transport))
}

/// A word for the part of a load that was lost (datagrams) or retransmitted.
pub(crate) fn share_lost(transport: &TransportInfo) -> &'static str {
    if transport.has(Feature::Datagrams) { "lost" } else { "retransmitted" }
}

/// The result of zerocopy sends: the `share` that the kernel copied anyway; or that the kernel reported none.
pub(crate) fn copied(way: Handover, share: Option<f64>) -> Option<String> {
    match share {
        _ if !way.is_reported() => None,
        None => Some("the kernel reported no send without a copy".to_owned()),
        Some(share) if share < 0.001 => None,
        Some(share) => Some(format!("the kernel copied {:.1} % anyway", share * 100.0)),
    }
}

/// Round trips in words: `41 us p50, 58 us p99`; without percentiles for which there are too few samples.
pub(crate) fn latency(latency: &Latency) -> Option<String> {
    let shown: Vec<String> = [50.0, 99.0]
        .iter()
        .filter_map(|p| latency.percentile(*p).map(|v| format!("{v} p{p}")))
        .collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

/// The effect of more streams on goodput, in words; `None` if they were not tried.
pub(crate) fn more_streams(direction: &DirectionModel) -> Option<String> {
    let most = direction.sweep.iter().map(|l| l.streams).max()?;
    let knee = direction.knee();
    let base = &direction.base;
    Some(if knee.streams > base.streams {
        format!("{} with {}", Rate(knee.goodput.mean as u64), knee.streams)
    } else if most > base.streams {
        format!("no gain up to {most}")
    } else {
        return None;
    })
}

/// A port in words: `eth0 (mlx5_core, 10 Gb/s, MTU 9000)`; the speed of a virtual port is nominal and not shown.
pub(crate) fn port(port: &Port) -> String {
    let speed = match port.speed_mbps {
        _ if port.is_virtual => Some("virtual".to_owned()),
        Some(mbps) => Some(Rate(mbps.saturating_mul(1_000_000)).to_string()),
        None => None,
    };
    let driver = (!port.driver.is_empty()).then(|| port.driver.clone());
    let mtu = port.mtu.map(|m| format!("MTU {m}"));
    let details: Vec<String> = [driver, speed, mtu].into_iter().flatten().collect();
    if details.is_empty() {
        port.name.clone()
    } else {
        format!("{} ({})", port.name, details.join(", "))
    }
}

/// The processors of a host: `8 CPUs, 2 nodes`; empty if nothing is known.
pub(crate) fn processors(facts: &HostFacts) -> String {
    let mut parts = Vec::new();
    if !facts.cpus.is_empty() {
        parts.push(count(facts.cpus.len() as u64, "CPU"));
    }
    if facts.nodes > 0 {
        parts.push(count(u64::from(facts.nodes), "node"));
    }
    parts.join(", ")
}

/// The end and stage of a limit: `far cpu`, `net`.
pub(crate) fn place(limit: &Limit) -> String {
    at(limit.side, limit.stage)
}

/// The name of the host at a place, or the network.
pub(super) fn host(side: Place, names: &Names) -> &str {
    match side {
        Place::Near => names.of(Side::Near),
        Place::Far => names.of(Side::Far),
        Place::Path => names.path(),
    }
}

/// A limit by host and name: `brook: the receive window is too small`.
pub(super) fn named(limit: &Limit, names: &Names) -> String {
    let name = cause(limit.cause).map_or(limit.cause, |cause| cause.name);
    format!("{}: {name}", host(limit.side, names))
}

/// The name of a disturbance: `the hypervisor takes CPU time`.
pub(super) fn cause_of(disturbance: &Disturbance) -> &'static str {
    cause(disturbance.cause).map_or(disturbance.cause, |cause| cause.name)
}

/// A disturbance by host, name, id and direction: `brook: the hypervisor takes CPU time (cpu-steal), ripple -> brook`.
pub(super) fn disturbed(disturbance: &Disturbance, names: &Names) -> String {
    format!(
        "{}: {} ({}), {}",
        host(disturbance.side, names),
        cause_of(disturbance),
        disturbance.cause,
        names.way(disturbance.direction)
    )
}

fn at(side: Place, stage: Stage) -> String {
    match side {
        Place::Path => stage.name().to_owned(),
        side => format!("{} {}", side.name(), stage.name()),
    }
}

/// A disturbance by place, id and direction: `far cpu: cpu-steal, forward`.
pub(crate) fn disturbance(disturbance: &Disturbance) -> String {
    let Disturbance { side, stage, cause, direction, .. } = disturbance;
    format!("{}: {cause}, {}", at(*side, *stage), direction.name())
}

/// The part of the measurement that a disturbance explains: `explains about x1.32 of goodput`.
pub(crate) fn explains(disturbance: &Disturbance) -> String {
    disturbance.gain().map_or_else(
        || "how much it explains is not known".to_owned(),
        |gain| format!("explains about x{gain:.2} of goodput"),
    )
}

/// The limited quantity: `forward`, `forward operations` or `forward latency`.
pub(crate) fn metric(limit: &Limit) -> String {
    match limit.metric {
        Measure::Goodput => limit.direction.name().to_owned(),
        Measure::Operations => format!("{} operations", limit.direction.name()),
        Measure::Latency => format!("{} latency", limit.direction.name()),
    }
}

/// An effect with its interval: `x1.92 (1.88 to 1.95)`; with three digits if it is small: `x0.003 (0.002 to 0.004)`.
pub(crate) fn effect(effect: Interval) -> String {
    let Interval { low, mid, high } = effect;
    let digits = if mid < 0.1 { 3 } else { 2 };
    format!("x{mid:.digits$} ({low:.digits$} to {high:.digits$})")
}

/// What a cause means, in a line: the first sentence of its page, without heading and bold lead-in.
pub fn summary(page: &str) -> String {
    let paragraph: Vec<&str> = page
        .lines()
        .map(str::trim)
        .skip_while(|l| l.is_empty() || l.starts_with('#'))
        .take_while(|l| !l.is_empty())
        .collect();
    let text = paragraph.join(" ");
    // A bold lead-in such as `**Meaning.**` is the paragraph's title, so it is removed.
    let body = match text.strip_prefix("**").and_then(|rest| rest.split_once("**")) {
        Some((_, body)) => body.trim(),
        None => text.as_str(),
    };
    let end = body.find(". ").unwrap_or(body.len());
    body[..end].trim_end_matches('.').to_owned()
}

/// The name of the far end, with its address if that is known; a record does not contain the address.
pub(super) fn server(far_end: &str, address: &str) -> String {
    if address.is_empty() {
        return far_end.to_owned();
    }
    format!("{far_end} at {address}")
}

/// The word for a direction of a load: a disk is read and written.
pub(super) fn direction(engine: &str, direction: Direction) -> &'static str {
    match transport::of(engine).far_end {
        FarEnd::File => direction.access(),
        _ => direction.name(),
    }
}

/// Whether loads of the engine read and write a file or a disk.
pub(super) fn is_disk(engine: &str) -> bool {
    transport::of(engine).has(Feature::Disk)
}

/// Whether the far end is another process of this host, which linerate starts.
pub(super) fn starts_far_end(engine: &str) -> bool {
    transport::of(engine).far_end == FarEnd::Process
}

/// Words for the wait of round trips for a delayed acknowledgement.
pub(super) fn delayed(more: Nanos) -> String {
    format!(
        "about {more} of a round trip is a wait: Nagle's algorithm holds the second write until the far end \
         acknowledges the first one, and the far end delays that. TCP_NODELAY avoids it"
    )
}

/// How messages of round trips are sent: `, busy polling, Nagle's algorithm on, two writes each`.
pub(super) fn how_sent(knobs: &Knobs) -> String {
    let parts = [
        (knobs.busy_poll, ", busy polling"),
        (knobs.nagle, ", Nagle's algorithm on"),
        (knobs.two_writes, ", two writes each"),
    ];
    let said = parts.iter().filter(|(is_so, _)| *is_so);
    said.map(|(_, words)| *words).collect()
}

/// Name of an engine in words, with the operation that carries payload if there are several: `UDP`, `RDMA send by
/// UD`, `preloaded program`.
pub(super) fn engine(name: &str, options: &Options) -> String {
    let words = transport::of(name).words;
    words.map_or_else(|| name.to_uppercase(), |words| words(options))
}

/// Whether a timed operation of an engine, such as an RDMA read, is a round trip by itself that no program answers.
pub(super) fn returns(engine: &str, options: &Options) -> bool {
    (transport::of(engine).returns)(options)
}

/// Whether an engine may lose messages, so that they are never answered.
pub(super) fn may_lose(engine: &str, options: &Options) -> bool {
    (transport::of(engine).may_lose_messages)(options)
}

#[cfg(test)]
mod tests {
    use linerate_judge::model::Datagrams;

    use super::*;

    #[test]
    fn an_rdma_engine_is_named_with_its_operation() {
        let mut options = Options::default();
        assert_eq!(engine("rdma", &options), "RDMA write");
        let read = transport::Setting::Word("read".to_owned());
        options.set(transport::rdma::OPERATION.key, read);
        assert_eq!(engine("rdma", &options), "RDMA read");
        assert_eq!(engine("udp", &options), "UDP");
        assert_eq!(engine("program", &options), "ordinary program");
        let on = transport::Setting::Switch(true);
        options.set(transport::PRELOAD.key, on);
        assert_eq!(engine("program", &options), "preloaded program");
    }

    fn estimate(mean: f64, half: f64) -> Estimate {
        Estimate {
            mean,
            interval: Some(Interval { low: mean - half, mid: mean, high: mean + half }),
            samples: 10,
        }
    }

    #[test]
    fn an_interval_stands_beside_the_mean_where_there_is_one() {
        assert_eq!(goodput(&estimate(1e9, 4e6)), "1 Gb/s (125 MB/s) ±0.4 %");
        assert_eq!(bits(&estimate(1e9, 4e6)), "1 Gb/s ±0.4 %");
        assert_eq!(goodput(&estimate(1e9, 1e8)), "1 Gb/s (125 MB/s) ±10 %");
        assert_eq!(goodput(&estimate(0.0, 0.0)), "0 b/s");
        assert_eq!(uneven(&estimate(1e9, 4.99e8)), None);
        assert!(uneven(&estimate(1e9, 5e8)).is_some());
        let mut unsure = estimate(1e9, 0.0);
        unsure.interval = None;
        assert_eq!(goodput(&unsure), "1 Gb/s (125 MB/s)");
        assert_eq!(uneven(&unsure), None);
    }

    #[test]
    fn a_share_keeps_two_digits_however_small_it_is() {
        let reported = [(0, 7), (1, 1), (1, 4), (1, 300), (3, 1_000_000), (5, 0)];
        assert_eq!(
            reported.map(|(part, whole)| share(part, whole)),
            ["0 %", "100.0 %", "25.0 %", "0.33 %", "0.00030 %", "500.0 %"]
        );
    }

    #[test]
    fn datagrams_are_named_with_what_was_lost_of_them() {
        let mut load = super::super::sample::load(1, 1e9);
        load.goodput.interval = None;
        assert_eq!(lost(&load), None);
        load.transport = &transport::UDP;
        load.datagrams = Some(Datagrams {
            sent: 1e5,
            per_sec: 75e3,
            lost: 0.25,
            at_socket: None,
            damaged: None,
            joined: Some(4.0),
            reordered: 0.0,
            duplicated: 0.0,
        });
        assert_eq!(base(&load), "1 Gb/s, 1 stream, UDP");
        assert_eq!(lost(&load).as_deref(), Some("25.00 % of the datagrams lost"));
        load.datagrams.as_mut().expect("such").at_socket = Some(0.05);
        assert_eq!(
            lost(&load).as_deref(),
            Some("25.00 % of the datagrams lost, about 20.00 % at the socket")
        );
        let reported = load.datagrams.as_mut().expect("such");
        (reported.at_socket, reported.damaged) = (Some(0.0), Some(0.25));
        assert_eq!(
            lost(&load).as_deref(),
            Some("25.00 % of the datagrams lost, about 25.00 % by bad checksums")
        );
    }

    #[test]
    fn a_way_that_is_not_the_usual_one_is_named_with_what_became_of_it() {
        let mut load = super::super::sample::load(2, 1e9);
        load.goodput.interval = None;
        let became = |load: &Load| copied(load.knobs.copy, load.copied);
        let result_of = |load: &Load| (base(load), became(load));
        assert_eq!(result_of(&load), ("1 Gb/s, 2 streams".into(), None));
        load.knobs.copy = Handover::Sendfile;
        assert_eq!(result_of(&load), ("1 Gb/s, 2 streams, sendfile".into(), None));
        load.knobs.copy = Handover::Zerocopy;
        let (headline, unknown) = result_of(&load);
        assert_eq!(headline, "1 Gb/s, 2 streams, zerocopy");
        assert!(unknown.is_some(), "nothing is known of it");
        load.knobs.copy = Handover::IoUring;
        assert_eq!(result_of(&load), ("1 Gb/s, 2 streams, io-uring".into(), unknown));
        load.copied = Some(0.000_9);
        assert_eq!(became(&load), None);
        load.copied = Some(0.001);
        assert_eq!(became(&load), Some("the kernel copied 0.1 % anyway".into()));
    }

    #[test]
    fn an_effect_that_is_small_keeps_its_digits() {
        let of = |low, mid, high| effect(Interval { low, mid, high });
        assert_eq!(of(1.88, 1.924, 1.95), "x1.92 (1.88 to 1.95)");
        assert_eq!(of(0.002, 0.0031, 0.0042), "x0.003 (0.002 to 0.004)");
        assert_eq!(of(0.08, 0.1, 0.12), "x0.10 (0.08 to 0.12)");
    }

    #[test]
    fn the_speed_of_a_virtual_port_is_not_shown() {
        let mut p = Port { name: "eth0".into(), speed_mbps: Some(10_000), ..Port::default() };
        assert_eq!(port(&p), "eth0 (10 Gb/s)");
        p.is_virtual = true;
        assert_eq!(port(&p), "eth0 (virtual)");
    }

    #[test]
    fn the_summary_of_a_page_is_its_first_sentence() {
        assert_eq!(summary("# id\n\nThe window is small. It binds.\n"), "The window is small");
        let page = "# id\n\n**Meaning.** The window\nis small. It binds.\n\nMore.\n";
        assert_eq!(summary(page), "The window is small");
        assert_eq!(summary(""), "");
    }
}
