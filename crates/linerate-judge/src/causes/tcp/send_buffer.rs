//! The send buffer is smaller than the path could use.

use crate::causes::network::held::SUSPECT;
use crate::causes::prelude::*;
use crate::causes::tcp::buffer_bound::{self, Buffer, held, proves};
use crate::causes::tcp::socket_memory;
use crate::signs::lossy::retransmitted_share;
use linerate_units::Bytes;

pub(crate) static CAUSE: Cause = Cause {
    id: "send-buffer",
    name: "the send buffer is too small",
    needs: &[Feature::Connections],
    stage: Stage::Socket,
    decided_by: &[
        Factor::LargerSendBuffer,
        Factor::HostSendBuffer,
        Factor::HalfSendBuffer,
        Factor::MoreStreams,
    ],
    page: include_str!("../pages/send-buffer.md"),
    check,
    predict: |model, trial| buffer_bound::predict(model, trial, Buffer::Send),
    decides: proves,
    advice: |model, direction| remedy(model, direction).into_iter().collect(),
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    if let Some(answer) = buffer_bound::overruled(model, direction, load) {
        return answer;
    }
    let Some(limited) = load.tcp.sndbuf_limited else {
        return Err(lacks(model, "tcp", direction.sender()));
    };
    if limited < SUSPECT {
        return Err(clear(held(Buffer::Send, limited, "only ")));
    }
    if let Some(why) = socket_memory::holds(model, load, direction, direction.sender()) {
        return Err(clear(why));
    }
    let more = evidence(load);
    Ok(buffer_bound::finding(model, direction, Buffer::Send, limited, more))
}

fn evidence(load: &Load) -> Option<String> {
    let (flight, memory) = (load.tcp.in_flight?, load.tcp.send_memory?);
    let rtt = load.tcp.rtt?;
    let repeated = retransmitted_share(load).map_or(String::new(), |share| {
        format!(
            "; {} of the bytes were retransmitted, and stay in it for one more round trip",
            percent(share)
        )
    });
    Some(format!(
        "{flight} in flight from a buffer of {memory} of memory, and a round trip of {rtt}{repeated}"
    ))
}

fn remedy(model: &Model, direction: Direction) -> Option<Advice> {
    let load = &model.direction(direction)?.base;
    if load.knobs.send_buffer.is_some() {
        return Some(Advice::new(
            "run without --send-buffer: the kernel then sizes the buffer itself",
        ));
    }
    let larger = buffer_bound::advice(model, direction, Buffer::Send);
    larger.or_else(|| left_alone(model, direction))
}

/// Advice for connections of another program, if its send buffer is far below the most that autotuning allows.
fn left_alone(model: &Model, direction: Direction) -> Option<Advice> {
    let host = model.host(direction.sender()).filter(|_| model.watched)?;
    let [_, _, most] = host.facts.buffers.tcp_wmem?;
    Some(Advice::new(format!(
        "let the sending program leave SO_SNDBUF alone: the kernel then lets the buffer grow to {}",
        Bytes(most)
    )))
}
