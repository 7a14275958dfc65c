//! Makes the result of a step from its record, for any kind of far end.

use linerate_explain::Headline;
use linerate_facts::Gap;
use linerate_judge::figure::{MESSAGES, OPERATIONS};
use linerate_judge::model::{
    Load, Once, is_alone, looks, memory_load, moved_by, once, same_machine, vanished,
};
use linerate_plan::path::{Direction, Side};
use linerate_plan::search::Search;
use linerate_plan::transport::{self, Feature, TransportInfo};
use linerate_plan::{Purpose, Receive};
use linerate_record::{End as Ending, Record, Step};
use linerate_units::{Bytes, Nanos};

use super::super::{refused, verbs};
use super::{Datagrams, DirectionResult, End, FarEnd, Probe, gap, memory};

/// Both ends, in the order of a record.
const SIDES: [Side; 2] = [Side::Near, Side::Far];

impl Probe {
    /// Makes the result of a record with one step under load, or of a search for the highest rate. `target` is the
    /// far end as typed, `searched` the share of datagrams that may be lost at the rate that is searched.
    pub fn own(target: &str, address: &str, record: &Record, searched: Option<f64>) -> Self {
        let (far_end, sides) = if is_alone(record) {
            (FarEnd::None, &SIDES[..1])
        } else {
            (FarEnd::Linerate, &SIDES[..])
        };
        let mut probe = Self::of(far_end, target, address, record, searched);
        let transport = transport::of(&probe.engine);
        let lacking = |result| lacking(result, transport, sides);
        let lacking: Vec<Gap> = probe.results.iter().flat_map(lacking).collect();
        probe.gaps.extend(lacking);
        probe.gaps.extend(probe.memory.as_ref().and_then(memory::lacking));
        probe
    }

    /// Makes the result of a record, without gaps for readings that an end did not report.
    pub(super) fn of(
        far_end: FarEnd,
        target: &str,
        address: &str,
        record: &Record,
        searched: Option<f64>,
    ) -> Self {
        let plan = &record.start.plan;
        let step = match searched {
            None => record.steps.first(),
            Some(_) => record.steps.iter().rev().find(|step| is_long(step)),
        };
        let most = plan.knobs.rate();
        let search = searched.map(|allowed| Search::replay(allowed, most, looks(record)));
        // A search that did not reach a longer step has no goodput to report, so it has no directions.
        let requested =
            if search.is_some() && step.is_none() { &[] } else { plan.directions.as_slice() };
        let results: Vec<DirectionResult> =
            requested.iter().map(|d| result_of(record, step, *d)).collect();
        let memory = step.and_then(|step| memory_load(record, step));
        let known = record.hosts.len() > 1 || is_alone(record);
        Self {
            target: target.to_owned(),
            far_end,
            address: address.to_owned(),
            engine: plan.engine.clone(),
            options: plan.knobs.options.clone(),
            rdma: verbs::ends(record),
            memory,
            streams: plan.knobs.streams,
            time: step.map_or(plan.time, |step| step.plan.measure),
            lasted: lasted(step),
            washout: step.map_or(Nanos(0), |step| step.plan.washout),
            same_machine: known.then(|| same_machine(record)),
            broken: broken(record),
            headline: Headline::of_record(record),
            search,
            gaps: refused::of_all(record)
                .into_iter()
                .chain(results.iter().filter_map(|result| blocked(record, step?, result)))
                .collect(),
            results,
            look: None,
        }
    }
}

/// The gap for a direction in which no payload arrives: the likely cause, and a command that proves it.
fn blocked(record: &Record, step: &Step, result: &DirectionResult) -> Option<Gap> {
    let found = vanished(record, step, result.direction)?;
    let side = result.direction.sender();
    let route = record.hosts.first()?.facts.route.as_ref();
    let other = match side {
        Side::Near => route.and_then(|route| route.peer),
        Side::Far => route.and_then(|route| route.own),
    };
    let other = other.map_or("PEER".to_owned(), |ip| ip.to_canonical().to_string());
    let why = format!(
        "nothing arrived, although connections were made and small messages passed: packets of {} B \
         may be too large for a link on the path, which drops them without an error (mtu-black-hole)",
        found.packet.0
    );
    let hint = format!(
        "linerate causes mtu-black-hole; then on the {} host `ping -M do -s {} {other}` gets no \
         answer, and `ping -M do -s 500 {other}` does",
        side.name(),
        found.echo.0
    );
    let what = format!("{} what blocks payload", result.direction.name());
    Some(gap(what, &why, &hint))
}

/// The interruptions of a load, except the one that ended the step: the page shows that one first.
fn interruptions(step: &Step, load: &Load) -> Vec<String> {
    let trouble = step.trouble.as_ref();
    let end = trouble.map(|trouble| format!("{}: {}", trouble.side.name(), trouble.what));
    let others = load.interruptions.iter();
    others.filter(|words| Some(*words) != end.as_ref()).cloned().collect()
}

/// Why a record of one step is not complete, in words; empty if it is complete.
pub(crate) fn broken(record: &Record) -> String {
    let trouble = record.steps.iter().find_map(|step| step.trouble.as_ref());
    match (&record.end, trouble) {
        (Some(Ending::Complete), None) => String::new(),
        (Some(Ending::Failed { why }), _) => why.clone(),
        (Some(Ending::Interrupted), _) => "interrupted".to_owned(),
        (_, Some(trouble)) => format!("{} end: {}", trouble.side.name(), trouble.what),
        (None, None) => "it did not end".to_owned(),
    }
}

/// Whether a step is one of the longer steps of a search.
fn is_long(step: &Step) -> bool {
    matches!(step.plan.purpose, Purpose::Base { .. })
}

/// The measured part of a step's time, without its washout.
pub(crate) fn lasted(step: Option<&Step>) -> Nanos {
    let Some(step) = step else {
        return Nanos(0);
    };
    let rows = step.ends.iter().flat_map(|end| &end.tables);
    let last = rows.filter_map(|table| table.at.last()).max();
    let counted = last.map_or(0, |at| at.saturating_sub(step.plan.washout.0));
    Nanos(counted).min(step.plan.measure)
}

fn result_of(record: &Record, step: Option<&Step>, direction: Direction) -> DirectionResult {
    let Some((step, once)) = step.and_then(|step| Some((step, once(record, step, direction)?)))
    else {
        let sent = step.and_then(|step| sent(record, step, direction));
        let near_receives = direction.receiver() == Side::Near;
        let received = step
            .filter(|_| near_receives)
            .and_then(|step| moved_by(record, step, direction, Side::Near));
        return DirectionResult { near: sent, received, ..DirectionResult::unknown(direction) };
    };
    let load = &once.load;
    let messages = load.has(Feature::Verbs).then_some(&MESSAGES);
    let counts = messages.or(load.has(Feature::Disk).then_some(&OPERATIONS));
    let end = |side| end(step, &once, side);
    DirectionResult {
        direction,
        goodput: Some(load.goodput),
        received: once.moved.receiver,
        ramp: once.ramp,
        steady: once.sampled.then_some(load.steady),
        interruptions: interruptions(step, load),
        handed: Some((load.knobs.copy, load.copied)),
        discarded: load.knobs.receive == Receive::Discard,
        intervals: once.intervals.clone(),
        retransmitted: once.retransmitted,
        retransmitted_share: once.retransmitted_share,
        rtt: load.tcp.rtt,
        min_rtt: load.tcp.min_rtt,
        datagrams: datagrams(&once),
        counted: load.operations.zip(counts).map(|(done, figure)| (figure, done)),
        missing: once.missing,
        near: end(Side::Near),
        // Without a far end, this end counted as sender and as receiver.
        far: end(Side::Far).filter(|_| !is_alone(record)),
    }
}

/// Counts and rates of the load's datagrams; `None` if it sends none.
fn datagrams(once: &Once) -> Option<Datagrams> {
    let (load, counted) = (&once.load, once.datagrams?);
    let secs = once.moved.receiver?.1.secs();
    Some(Datagrams {
        size: Bytes(load.made.sender.write_size),
        requested: load.knobs.rate(),
        each: load.knobs.pacing,
        bursts: once.send_gaps.clone().map(|gaps| (load.made.sender.burst, gaps)),
        per_sec: counted.received as f64 / secs,
        counted,
        jitter: once.jitter,
    })
}

/// Payload, time and CPU time that one end of a load counted.
fn end(step: &Step, once: &Once, side: Side) -> Option<End> {
    let (bytes, time) = (*once.moved.at(once.direction, side))?;
    let readings = step.ends.get(usize::from(side == Side::Far));
    let mut made = once.load.made.at(once.direction, side).clone();
    if let Some(congestion) = readings.and_then(|end| end.congestion.clone()) {
        made.congestion = congestion;
    }
    Some(End {
        bytes,
        time: Some(time),
        cpu_percent: *once.program.at(once.direction, side),
        cpu_per_byte: *once.cpu_per_byte.at(once.direction, side),
        made,
    })
}

/// What this end sent, if the receiver ended before it reported.
fn sent(record: &Record, step: &Step, direction: Direction) -> Option<End> {
    if direction.sender() != Side::Near {
        return None;
    }
    let (bytes, time) = moved_by(record, step, direction, Side::Near)?;
    let mut sets = record.sets.iter();
    let set = sets.find(|set| {
        step.plan.sets.contains(&set.plan.id) && set.plan.pattern.direction() == Some(direction)
    })?;
    Some(End {
        bytes,
        time: Some(time),
        cpu_percent: None,
        cpu_per_byte: None,
        made: set.ends.first()?.clone(),
    })
}

/// Gaps for values of a direction that are missing.
fn lacking(result: &DirectionResult, transport: &TransportInfo, sides: &[Side]) -> Vec<Gap> {
    let name = result.direction.name();
    if result.goodput.is_none() {
        let why = if result.near.is_some() || result.received.is_some() {
            "only this end counted, and the far end reported nothing"
        } else {
            "nothing was counted"
        };
        return vec![gap(format!("{name} goodput"), why, "")];
    }
    untold(result, transport, sides)
}

/// Gaps for readings that the ends should have reported for a measured direction, but did not.
pub(super) fn untold(
    result: &DirectionResult,
    transport: &TransportInfo,
    sides: &[Side],
) -> Vec<Gap> {
    let name = result.direction.name();
    let mut gaps = Vec::new();
    for side in sides.iter().copied() {
        if result.end(side).is_none_or(|end| end.cpu_per_byte.is_none()) {
            let what = format!("{name} CPU time of the {} end", side.name());
            let nothing = result.goodput.is_some_and(|goodput| goodput.mean <= 0.0);
            let why =
                if nothing { "no payload moved" } else { "its threads' times could not be read" };
            gaps.push(gap(what, why, ""));
        }
    }
    // Only TCP counts retransmitted segments and measures round trips.
    let reported =
        sides.contains(&result.direction.sender()) && transport.has(Feature::Connections);
    if reported && (result.retransmitted.is_none() || result.rtt.is_none()) {
        let what = format!("{name} retransmits and round trips of the sender");
        gaps.push(gap(what, "its kernel did not report them (TCP_INFO)", ""));
    }
    gaps
}
