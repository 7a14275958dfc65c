//! The memory that TCP may use is exhausted: by the limit of a control group, of the system, or of the receiving
//! socket.

use crate::causes::host::cpu_share::is_excluded;
use crate::causes::network::held::{SUSPECT, held_back};
use crate::causes::predict::bystander;
use crate::causes::prelude::*;
use crate::causes::tcp::buffer_bound::{self, Buffer, held};
use crate::causes::tcp::buffer_bound::{UNREAD, unread_share};
use crate::model::SocketMemory as Limit;
use crate::signs::dropped::MOST;
use crate::signs::lossy::{lost, retransmitted_share};
use linerate_facts::advice::Kept;
use linerate_plan::factor::Class;
use linerate_units::Bytes;
use linerate_units::shell::word;

/// Minimum number of refusals per second at which a control group is at its limit.
const OFTEN: f64 = 1.0;

/// Minimum share of a group's limit in use, at which more is refused: the kernel takes memory in batches.
const FULL: f64 = 0.95;

/// Minimum share of the system's limit in use, at which its memory counts as scarce if the kernel reported that at
/// times.
const PRESSED: f64 = 0.5;

/// Minimum share of readings in which the kernel saves memory, at which it did so throughout the load: another program
/// may make memory scarce for a moment.
const SAVING: f64 = 0.5;

/// Memory that a group of segments may request at once, and is refused: 64 KiB of payload, and the kernel's overhead.
const GROUP: u64 = 256 << 10;

/// The least limit that is advised for a group: enough for some connections over a long path.
const ROOM: u64 = 64 << 20;

/// Factor by which the advice enlarges a limit.
const TIMES: u64 = 16;

/// The kernel setting that limits TCP's memory for the whole system.
const SYSTEM: &str = "net.ipv4.tcp_mem";

pub(crate) static CAUSE: Cause = Cause {
    id: "socket-memory",
    name: "the memory for TCP is used up",
    needs: &[Feature::Connections],
    stage: Stage::Socket,
    page: include_str!("../pages/socket-memory.md"),
    // Records of older versions have no such counters.
    may_be_unread: true,
    check,
    predict,
    is_last: |_, _| true,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    if let Some(answer) = of_queue(model, direction, load) {
        return answer;
    }
    match [Buffer::Receive, Buffer::Send].map(|buffer| of_buffer(model, direction, buffer)) {
        [Ok(found), _] | [_, Ok(found)] => Ok(found),
        // An unknown fact is reported before the reason why a cause is clear.
        [Err(NoFinding::Clear(_)), other] => other,
        [first, _] => first,
    }
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let factor = trial.factor()?;
    // Each stream has a little room of its own, and half a buffer may need less than is free.
    match factor.class() {
        Class::HalfBuffer | Class::Parallel => None,
        _ if factor == Factor::HalfSendBuffer => None,
        _ => bystander(model, trial),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let Some(load) = model.direction(direction).map(|d| &d.base) else {
        return Vec::new();
    };
    let sides = [direction.receiver(), direction.sender()];
    let pressed = sides.into_iter().find_map(|side| Some((side, pressed(load, direction, side)?)));
    let room = match pressed {
        Some((side, limit)) => Some(more(side, limit)),
        None => buffer_bound::advice(model, direction, Buffer::Receive),
    };
    room.into_iter().collect()
}

/// The finding that the receiver has no memory for segments that arrive, and drops them.
fn of_queue(model: &Model, direction: Direction, load: &Load) -> Option<Answer> {
    let dropped = drops(load)?;
    let held = held_back(model, direction).ok()?;
    let side = direction.receiver();
    let limit = pressed(load, direction, side).map(|limit| words(side, limit));
    let is_reached = limit.is_some();
    let evidence = std::iter::once(dropped).chain(limit).collect();
    Some(Ok(Finding::at(side, held.share, evidence).enough(true).reached(is_reached)))
}

/// The result for the memory limits at the end whose buffer limits the sender.
fn of_buffer(model: &Model, direction: Direction, buffer: Buffer) -> Answer {
    let load = base(model, direction)?;
    let side = buffer.side(direction);
    let limited = match buffer {
        Buffer::Receive => load.tcp.rwnd_limited,
        Buffer::Send => load.tcp.sndbuf_limited,
    };
    let limited = limited.ok_or_else(|| lacks(model, "tcp", direction.sender()))?;
    let share = if limited < SUSPECT {
        lost_for_want(model, direction, buffer)
            .ok_or_else(|| clear(held(buffer, limited, "only ")))?
    } else {
        limited
    };
    let reads_late = unread_share(load).is_some_and(|unread| unread > UNREAD);
    if buffer == Buffer::Receive && reads_late {
        let why = "the program does not read what fills the memory".to_owned();
        return Err(clear(why));
    }
    if load.socket_memory.at(direction, side).is_none() {
        return Err(lacks(model, "socket_memory", side));
    }
    // A container does not see the limit of the system, but counts how often the limit was reached.
    let is_unseen =
        |limit: &Limit| limit.most.is_none() && limit.refused > 0.0 && !limit.is_saved();
    let mut limits = load.socket_memory.at(direction, side).iter().flatten();
    if limits.any(is_unseen) {
        return Err(lacks(model, "socket_memory", side));
    }
    let Some(limit) = pressed(load, direction, side) else {
        return Err(clear(format!(
            "no limit of the memory for TCP was reached on {}",
            side.name()
        )));
    };
    let evidence = [held(buffer, limited, ""), words(side, limit)]
        .into_iter()
        .chain(cut(load).filter(|_| buffer == Buffer::Receive))
        .collect();
    Ok(Finding::at(side, share, evidence).enough(limit.is_of_tcp()).reached(limit.is_of_tcp()))
}

/// The share of the time in which congestion control limited the sender, if the receiver was short of memory: it then
/// drops segments, which are retransmitted.
fn lost_for_want(model: &Model, direction: Direction, buffer: Buffer) -> Option<f64> {
    let load = base(model, direction).ok()?;
    let lossy =
        buffer == Buffer::Receive && short(load) > 0.0 && retransmitted_share(load).is_some();
    lossy.then(|| held_back(model, direction).ok())?.map(|held| held.share)
}

impl Limit {
    fn is_of_system(&self) -> bool {
        self.limit == SYSTEM
    }

    /// Whether the limit is one of TCP alone. The limit of all memory of a group is often reached by cached files,
    /// whose memory the kernel frees when needed.
    fn is_of_tcp(&self) -> bool {
        self.is_of_system() || self.limit.contains(".tcp.")
    }

    /// Whether the kernel saved the system's memory throughout the load; it may have begun long before.
    fn is_saved(&self) -> bool {
        self.pressed.is_some_and(|share| share >= SAVING)
    }

    /// Whether the limit was reached during the load. `short` is how often per second the receiving host was short of
    /// memory.
    fn is_reached(&self, short: f64) -> bool {
        let is_full = |used: Bytes, share: f64| {
            let most = self.most.map(|most| most.0 as f64 * share);
            most.is_some_and(|most| used.0 as f64 >= most)
        };
        if self.is_of_system() {
            // Another program may have used much memory for a moment.
            let pressed = self.refused > 0.0 && is_full(self.used, PRESSED);
            // Once memory is scarce, the kernel saves it until less than the first number of `tcp_mem` is in use.
            self.is_saved() || pressed || is_full(self.used, 1.0)
        } else if self.is_of_tcp() {
            let once = |ever: Bytes| is_full(Bytes(ever.0.saturating_add(GROUP)), 1.0);
            let once = self.ever.is_some_and(once);
            self.refused >= OFTEN || is_full(self.used, FULL) || once && short > 0.0
        } else {
            self.refused >= OFTEN
        }
    }
}

/// How often per second the receiving host shrank its queues, or dropped segments for which they had no memory.
fn short(load: &Load) -> f64 {
    let counted = load.netstat.receiver;
    let [pruned, dropped] = [counted.pruned, counted.queue_drops].map(Option::unwrap_or_default);
    pruned.max(dropped)
}

/// Whether the receiving host had no memory for segments that had arrived.
pub(crate) fn drops_some(load: &Load) -> bool {
    short(load) > 0.0
}

/// The limit that an end has reached; one of TCP alone before others.
fn pressed(load: &Load, direction: Direction, side: Side) -> Option<&Limit> {
    let short = if side == direction.receiver() { short(load) } else { 0.0 };
    let limits = load.socket_memory.at(direction, side).iter().flatten();
    let reached = limits.filter(|limit| limit.is_reached(short));
    reached.max_by_key(|limit| limit.is_of_tcp())
}

/// Why a larger buffer at an end would not help, if no trial showed that it does.
pub(crate) fn holds(
    model: &Model,
    load: &Load,
    direction: Direction,
    side: Side,
) -> Option<String> {
    let limit = pressed(load, direction, side).filter(|limit| limit.is_of_tcp());
    let limit = limit.filter(|_| !is_excluded(&CAUSE, model, direction));
    limit.map(|limit| words(side, limit))
}

/// The segments for which the receiver's queue had no memory, in words, if they are most of the retransmitted ones.
pub(crate) fn drops(load: &Load) -> Option<String> {
    lost(load)?;
    let (dropped, retransmitted) = load.netstat.receiver.queue_drops.zip(load.tcp.repeated)?;
    (dropped > 0.0 && dropped >= retransmitted * MOST).then(|| {
        format!(
            "in a second the receiving host dropped {dropped:.0} segments that it had no memory for (TCPRcvQDrop), and \
             {retransmitted:.0} were retransmitted"
        )
    })
}

fn words(side: Side, limit: &Limit) -> String {
    let used = limit.ever.map_or(limit.used, |ever| ever.max(limit.used));
    let most = limit.most.map_or(String::new(), |most| format!(" of the {most}"));
    let whose = if limit.is_of_system() {
        "all TCP of"
    } else if limit.is_of_tcp() {
        "TCP in the control group of"
    } else {
        "the control group of"
    };
    let often = limit.refused;
    let often = if often >= OFTEN {
        format!(", and reached that {often:.0} times in a second")
    } else {
        String::new()
    };
    let side = side.name();
    if limit.is_saved() {
        return format!(
            "the kernel of {side} saved memory for TCP (press in /proc/net/protocols): all its TCP used up to {used}, and {SYSTEM} \
             limits that{often}"
        );
    }
    format!("{whose} {side} used up to {used}{most} that {} allows{often}", limit.limit)
}

/// How often the receiving host was short of memory, in words.
fn cut(load: &Load) -> Option<String> {
    let short = short(load);
    (short > 0.0).then(|| {
        format!(
            "the receiving host was short of memory for what arrived {short:.1} times in a second (PruneCalled, TCPRcvQDrop)"
        )
    })
}

/// Advice to raise a limit.
fn more(side: Side, limit: &Limit) -> Advice {
    if limit.is_of_system() && limit.most.is_none() {
        // This network namespace neither shows the setting nor allows to change it.
        return Advice::new(format!(
            "outside of this network namespace, in the first one of the machine: close connections that hold data which nobody \
             reads (`ss -tmn` shows it there), or let TCP use more memory ({SYSTEM})"
        ))
        .on(Some(side), "grep -E '^(protocol|TCP) ' /proc/net/protocols");
    }
    if limit.is_of_system() {
        let larger = format!(
            "sudo sysctl -w {SYSTEM}=\"$(awk '{{print 4*$1, 4*$2, 4*$3}}' /proc/sys/net/ipv4/tcp_mem)\""
        );
        let what = "let TCP use more memory, in the first network namespace of the machine; or close connections that hold \
                    data which nobody reads (`ss -tmn` shows it)";
        return Advice::new(what).keeping(side, Kept::sysctl(SYSTEM), larger);
    }
    let file = word(&limit.limit);
    let set = |bytes: u64| format!("echo {bytes} | sudo tee {file}");
    let most = limit.most.map_or(0, |most| most.0);
    if !limit.is_of_tcp() {
        // The limit protects the whole machine: how much more it allows is for its owner to decide.
        return Advice::new(
            "let the control group of the program use more memory, or the program use less: a container or service by its own \
             setting (--memory, MemoryMax=)",
        )
        .on(Some(side), format!("cat {file}"));
    }
    let room = most.saturating_mul(TIMES).max(ROOM);
    Advice::new(format!(
        "let the control group of the program use more memory, {}: a container or service by its own setting \
         (--memory, MemoryMax=), else here",
        Bytes(room)
    ))
    .set(side, set(room))
    .undo_on(side, set(most))
}
