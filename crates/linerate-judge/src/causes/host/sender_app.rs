//! The sending program does not write, although there is room and it has spare CPU time.

use crate::causes::host::core_bound::kept_from_its_cpu;
use crate::causes::host::receiver_app::{BUSY, Idle, halved, operation};
use crate::causes::network::held::SUSPECT;
use crate::causes::predict::{UNCOPIED, added_work, around, bystander, per_stream};
use crate::causes::prelude::*;
use crate::causes::udp::datagrams::lossy;
use crate::signs::threads::wanted;
use linerate_units::Bytes;

/// Minimum share of samples in which the program limited the sender, at which the program is a suspect.
const STARVED: f64 = 0.5;

/// Share of the time that a program must pause to be named without a trial. Shorter pauses may be due to a thread that
/// other traffic delays.
const PAUSES: f64 = 0.25;

/// The result for a load of datagrams. No counter shows whether a sender with spare time waits in its program or for
/// room in its port's queue.
fn of_datagrams(load: &Load, direction: Direction, busy: f64) -> Answer {
    if let Some(lost) = load.datagrams.as_ref().and_then(lossy) {
        return Err(clear(lost));
    }
    if busy >= BUSY {
        return Err(clear(format!("the sending thread was busy {}", percent(busy))));
    }
    if let Some(pace) = load.knobs.pacing {
        return Err(clear(format!("it waited for its pace of {pace}")));
    }
    Err(NoFinding::Unknown(vec![Gap {
        what: format!("why the sending program of {} waited", direction.sender().name()),
        why: format!(
            "its thread used its CPU only {} of the time, and almost everything that it sent arrived",
            percent(busy)
        ),
        hint: String::new(),
    }]))
}

pub(crate) static CAUSE: Cause = Cause {
    id: "sender-app",
    name: "the sending program pauses",
    needs: &[Feature::Stack],
    stage: Stage::App,
    decided_by: &[Factor::SmallerWrites],
    page: include_str!("../pages/sender-app.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let Some(busy) = wanted(&load.senders) else {
        return Err(lacks(model, "thread", direction.sender()));
    };
    if load.has(Feature::Datagrams) {
        return of_datagrams(load, direction, busy);
    }
    let tcp = &load.tcp;
    let Some((starved, sndbuf)) = tcp.starved.zip(tcp.sndbuf_limited) else {
        return Err(lacks(model, "tcp", direction.sender()));
    };
    // Linux before 4.10 does not measure the time of a full window. A full window leaves data unsent, or fills the
    // buffer; it does not limit a program that has not written.
    if tcp.rwnd_limited.is_none() && !model.watched {
        return Err(lacks(model, "tcp", direction.sender()));
    }
    if busy >= BUSY {
        return Err(clear(format!("the sending thread was busy {}", percent(busy))));
    }
    if let Some(id) = kept_from_its_cpu(model, direction, direction.sender()) {
        return Err(clear(format!("the sending thread does not get its CPU: {id}")));
    }
    if sndbuf >= SUSPECT || tcp.rwnd_limited.is_some_and(|rwnd| rwnd >= SUSPECT) {
        return Err(clear("a buffer or window held the sender, not the program"));
    }
    if starved < STARVED {
        return Err(clear(left(load, "only ", starved)));
    }
    let idle =
        Idle { side: direction.sender(), busy, share: starved, seen: left(load, "", starved) };
    let mut finding = idle.finding(model, load, direction);
    finding.enough &= finding.share >= PAUSES;
    if model.watched {
        finding.evidence.extend(room(load));
    }
    Ok(finding)
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let load = &model.direction(trial.direction)?.base;
    match trial.factor()? {
        Factor::SmallerWrites => halved(wanted(&load.senders)),
        Factor::SenderWork => Some(around(1.0 / (1.0 + added_work(model, trial, true)?), 0.06)),
        // The sender still pauses. Sending without a copy saves only some of the time in which it works.
        Factor::ZeroCopy => {
            Some(Range { high: UNCOPIED.high / (1.0 - wanted(&load.senders)?), ..UNCOPIED })
        }
        Factor::MoreStreams => Some(per_stream(trial)),
        _ => bystander(model, trial),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let action = if model.watched {
        base(model, direction).ok().map(more)
    } else {
        operation(model, direction, |l| &l.senders).map(|size| {
            format!(
                "let the sending program write more at a time than {size}, or keep it from \
                 waiting between writes"
            )
        })
    };
    action.map(Advice::new).into_iter().collect()
}

/// Describes the time in which the program wrote nothing. Bytes may wait unsent if they are too few for a segment.
fn left(load: &Load, only: &str, starved: f64) -> String {
    let what = if load.tcp.not_sent.unwrap_or_default() == Bytes(0) {
        "left the connection without data"
    } else {
        "gave the connection too little to send"
    };
    format!("the program {what} in {only}{} of the samples", percent(starved))
}

/// Share of samples in which the program itself holds back less than a segment (`TCP_CORK`), if it is large.
fn is_corked(load: &Load) -> Option<f64> {
    load.tcp.corked.filter(|share| *share >= SUSPECT)
}

/// The reason why the program is the limit: it had room to write, or it holds back data itself; `None` if neither.
fn room(load: &Load) -> Option<String> {
    if let Some(share) = is_corked(load) {
        return Some(format!(
            "in {} of the samples less than a segment waited unsent although nothing was unacknowledged: \
             TCP_CORK or MSG_MORE delays it",
            percent(share)
        ));
    }
    let (flight, cwnd) = (load.tcp.in_flight?, load.tcp.cwnd?);
    let window = load.tcp.window;
    let window = window.map_or(String::new(), |window| format!(" and a window of {window}"));
    Some(format!(
        "{flight} in flight of a congestion window of {cwnd}{window}, and a round trip of {}",
        load.tcp.rtt?
    ))
}

/// Advice for the sending program of a watched connection.
//= tcp(7), TCP_CORK: what is corked is sent after 200 ms
fn more(load: &Load) -> String {
    let action = if is_corked(load).is_some() {
        "let the sending program end each message without MSG_MORE, or turn TCP_CORK off: else the \
         last part of a segment is sent only after 200 ms"
    } else {
        "let the sending program send more before it waits for a reply: a larger window of its own \
         protocol (SSH, SMB, HTTP/2, replication), larger requests or more at once, or several connections"
    };
    action.to_owned()
}
