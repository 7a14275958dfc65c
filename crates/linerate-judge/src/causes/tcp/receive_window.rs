//! The receiver's window is smaller than the path could use.

use crate::causes::network::held::SUSPECT;
use crate::causes::prelude::*;
use crate::causes::tcp::buffer_bound::{self, Buffer, held, proves};
use crate::causes::tcp::buffer_bound::{UNREAD, unread_share};
use crate::causes::tcp::socket_memory;
use crate::model::stayed;
use crate::signs::relay::{is_silly, relayed};
use crate::signs::threads::wanted;
use linerate_facts::advice::Step;

/// Minimum CPU utilization at which a reading thread has no time to empty the window at once.
const BUSY: f64 = 0.9;

pub(crate) static CAUSE: Cause = Cause {
    id: "receive-window",
    name: "the receive window is too small",
    needs: &[Feature::Connections],
    stage: Stage::Socket,
    decided_by: &[
        Factor::LargerWindow,
        Factor::HostWindow,
        Factor::HalfWindow,
        Factor::MoreStreams,
    ],
    page: include_str!("../pages/receive-window.md"),
    check,
    predict,
    decides: proves,
    advice: |model, direction| remedy(model, direction).into_iter().collect(),
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    if let Some(answer) = buffer_bound::overruled(model, direction, load) {
        return answer;
    }
    let Some(limited) = load.tcp.rwnd_limited else {
        return Err(lacks(model, "tcp", direction.sender()));
    };
    if limited < SUSPECT {
        return Err(clear(held(Buffer::Receive, limited, "only ")));
    }
    if let Some(why) = relayed(model, load) {
        return Err(NoFinding::Unknown(vec![Gap {
            what: format!("the window of the {} end", direction.receiver().name()),
            why,
            hint: "measure without it, or from its host to each of the ends".to_owned(),
        }]));
    }
    let Some(unread) = unread_share(load) else {
        return Err(lacks(model, "socket", direction.receiver()));
    };
    if unread > UNREAD {
        return Err(clear(format!(
            "{} of the window was payload that the application had not read",
            percent(unread)
        )));
    }
    if let Some(why) = socket_memory::holds(model, load, direction, direction.receiver()) {
        return Err(clear(why));
    }
    let found = buffer_bound::finding(model, direction, Buffer::Receive, limited, evidence(load));
    // A reader without spare CPU time closes the window too.
    let has_time = wanted(&load.receivers).is_some_and(|w| w < BUSY);
    Ok(Finding { enough: found.enough && has_time, ..found })
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        // A reader that needs less time for each read opens the window sooner.
        Factor::Discard => None,
        _ => buffer_bound::predict(model, trial, Buffer::Receive),
    }
}

fn evidence(load: &Load) -> Option<String> {
    let (flight, window) = (load.tcp.in_flight?, load.tcp.window?);
    let rtt = load.tcp.rtt?;
    let unscaled = if is_scaled(load) {
        ""
    } else {
        "; the ends did not agree to scale windows, and without that none exceeds 64 KiB"
    };
    Some(format!("{flight} in flight of a window of {window}, and a round trip of {rtt}{unscaled}"))
}

fn is_scaled(load: &Load) -> bool {
    load.tcp.window_scaling != Some(false)
}

fn remedy(model: &Model, direction: Direction) -> Option<Advice> {
    let load = &model.direction(direction)?.base;
    if !is_scaled(load) {
        let name = "net.ipv4.tcp_window_scaling";
        let advice = Advice::new(
            "turn window scaling on at the end where it is 0; if it is 1 at both, a firewall removes \
             the option from the handshake",
        );
        let look = Step {
            host: None,
            ..Step::on(Side::Near, format!("sysctl {name}")).about("look at both ends")
        };
        let set = |to: u8| Step {
            host: None,
            ..Step::set(Side::Near, format!("sudo sysctl -w {name}={to}"))
                .about("at the end with 0")
        };
        return Some(advice.step(look).step(set(1)).undo(set(0).about("at the same end")));
    }
    if is_silly(load) {
        return Some(Advice::new(
            "find the firewall or router that rewrites the scale of windows in the handshake: no receiver offers so little by \
             itself, and `ss -ti` (wscale) of one connection shows another scale at each end",
        ));
    }
    let knobs = &load.knobs;
    if knobs.recv_buffer.is_some() || knobs.window_clamp.is_some() {
        let what = "run without --recv-buffer: the kernel then sizes the buffer itself";
        return Some(Advice::new(what));
    }
    if is_clamped(model, direction) {
        let advice = Advice::new(
            "find what limits the window, since a larger buffer did not enlarge it: `window N` of a route, or a \
             firewall between the hosts that rewrites it",
        );
        return Some(advice.on(direction.receiver(), "ip route show"));
    }
    buffer_bound::advice(model, direction, Buffer::Receive)
}

/// Whether a trial gave the receiver a larger buffer, and it offered no larger window.
fn is_clamped(model: &Model, direction: Direction) -> bool {
    let base = model.direction(direction).map(|d| &d.base);
    let memory = |load: Option<&Load>| load.and_then(|load| load.recv_memory);
    let larger = [Factor::LargerWindow, Factor::HostWindow];
    let tried = larger.into_iter().filter_map(|f| model.tried(direction, f));
    tried.filter(|t| t.effect.is_none()).any(|t| {
        let changed = t.changed.as_ref();
        stayed(base, changed) && memory(changed) > memory(base)
    })
}
