//! The program set a pace for its streams in the kernel.

use crate::causes::predict::bystander;
use crate::causes::prelude::*;

/// Minimum share of the pace that a stream must reach, so that the pace may be its limit.
const REACHED: f64 = 0.85;

/// Minimum share of the pace at which a trial decides. On a busy CPU or in a virtual machine, timers are late, and the
/// kernel does not make up for it: a stream stays below its pace.
const NEARLY: f64 = 0.5;

/// Bytes of a packet's headers: IPv4, and TCP with timestamps.
const HEADERS: f64 = 52.0;

pub(crate) static CAUSE: Cause = Cause {
    id: "pacing",
    name: "a pace limits the sender",
    needs: &[Feature::Stack],
    stage: Stage::Socket,
    decided_by: &[Factor::Unpaced],
    page: include_str!("../pages/pacing.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let Some(pace) = load.knobs.pacing.or(load.tcp.max_pacing) else {
        return Err(clear("no pace was set"));
    };
    // The pace of TCP counts packets with headers, and goodput counts their payload. For datagrams both count payload.
    let payload = load
        .packets
        .filter(|_| load.has(Feature::Connections))
        .map(|sizes| sizes.payload.0 as f64)
        .map_or(1.0, |bytes| bytes / (bytes + HEADERS));
    let each = load.goodput.mean / f64::from(load.streams.max(1));
    let reached = each / (pace.0 as f64 * payload).max(1.0);
    if reached < NEARLY {
        return Err(clear(format!(
            "each stream ran at {} of the pace of {pace}",
            percent(reached)
        )));
    }
    let evidence =
        vec![format!("each stream ran at {} of the pace that was set, {pace}", percent(reached))];
    Ok(Finding::at(direction.sender(), reached.min(1.0), evidence).enough(reached >= REACHED))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        Factor::MoreStreams => Some(crate::causes::predict::per_stream(trial)),
        // Any gain is possible, up to the next limit.
        Factor::Unpaced => Some(Range { low: GAIN, high: f64::MAX }),
        _ => bystander(model, trial),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let tried = model.tried(direction, Factor::Unpaced);
    let gain = tried.and_then(|t| t.effect).map(|effect| effect.mid);
    let ours = model.direction(direction).is_none_or(|d| d.base.knobs.pacing.is_some());
    let what = if model.reported {
        "run the program again with a higher rate, or with none: over UDP iperf3 sends 1 Mbit/s unless -b says \
         otherwise"
    } else if ours {
        "run without --pacing"
    } else {
        "let the sending program set a higher pace (SO_MAX_PACING_RATE), or none"
    };
    vec![Advice::new(what).gain(gain)]
}
