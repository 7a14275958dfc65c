//! A device on the path rewrites the segment size that both ends announce, and headers fill the path.

use crate::causes::Cost;
use crate::causes::network::shared_rate::{self, of_connections};
use crate::causes::predict::one_rate;
use crate::causes::prelude::*;
use linerate_ceiling::ethernet::{self, ETHERNET};
use linerate_units::{Bytes, Rate};

/// Minimum ratio of the payload that a rate carries in full segments to that in the present ones. Segments of 536
/// bytes, which TCP uses where no size is announced, lose as much; a smaller size for a tunnel loses less than a
/// hundredth.
//= RFC 9293, section 3.7.1: SendMSS is 536 for IPv4 if no option was received
const LOSES: f64 = 1.06;

/// Number of segments that a window must hold: if it holds fewer, TCP halves the segments.
//= Linux, include/net/tcp.h, tcp_bound_to_half_wnd()
const IN_WINDOW: u64 = 2;

/// Payload of a full segment on a path whose MTU is unknown.
//= RFC 894 and RFC 9293, section 3.7.1: 1500 bytes less the headers of IP and TCP
const USUAL: u64 = 1460;

pub(crate) static CAUSE: Cause = Cause {
    id: "segment-size",
    name: "something makes the segments small",
    needs: &[Feature::Connections],
    stage: Stage::Net,
    decided_by: &[Factor::MoreStreams, Factor::Paced, Factor::Crowd],
    page: include_str!("../pages/segment-size.md"),
    may_be_unread: true,
    check,
    is_last: shared_rate::is_last,
    predict,
    predict_loss,
    costs,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let cut = cut(load)?;
    let found = of_connections(model, direction)?;
    let evidence = std::iter::once(cut.words()).chain([cut.outlook(load.goodput.mean)]);
    Ok(Finding { evidence: evidence.chain(found.evidence).collect(), ..found })
}

/// The prediction of `path-rate`, if a device makes segments small; else nothing is predicted.
fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    holds(&model.direction(trial.direction)?.base)?;
    one_rate(model, trial)
}

fn predict_loss(model: &Model, trial: &TrialPlan) -> Option<Range> {
    holds(&model.direction(trial.direction)?.base)?;
    shared_rate::predict_loss(model, trial)
}

/// Cost of small segments: whatever limits the load, headers use a part of it, and there are more segments.
fn costs(model: &Model, direction: Direction) -> Vec<Cost> {
    let cut = model.direction(direction).map(|dir| cut(&dir.base));
    let cost = |cut: Cut| Cost {
        side: Place::Path,
        share: None,
        evidence: vec![cut.words()],
        advice: vec![cut.advice()],
    };
    cut.and_then(Result::ok).map(cost).into_iter().collect()
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let cut = model.direction(direction).map(|dir| cut(&dir.base));
    let gained = |cut: Cut| cut.advice().gain(Some(cut.gain(ETHERNET)));
    cut.and_then(Result::ok).map(gained).into_iter().collect()
}

/// The evidence that a device on the path makes the segments of a load small; `None` if none does.
pub(crate) fn holds(load: &Load) -> Option<String> {
    cut(load).ok().map(|cut| cut.words())
}

/// Segments that are smaller than both ends and the path accept.
struct Cut {
    payload: Bytes,
    takes: Bytes,
    /// Bytes of the IP and TCP headers of a segment.
    headers: u64,
}

/// The segments of a load, if they are far smaller than both ends and the path accept; else the reason why not.
fn cut(load: &Load) -> Result<Cut, NoFinding> {
    let clear = |why: String| Err(NoFinding::Clear(why));
    let sizes = load.packets.zip(load.packets.and_then(|sizes| sizes.packet));
    let Some((sizes, packet)) = sizes.filter(|(sizes, _)| sizes.payload.0 > 0) else {
        return Err(unread("the size of the segments"));
    };
    let cut = |takes: u64| Cut {
        payload: sizes.payload,
        takes: Bytes(takes),
        headers: packet.0.saturating_sub(sizes.payload.0),
    };
    let path = sizes.path_mtu.map(|mtu| mtu.0.saturating_sub(cut(0).headers));
    // What the ends accept does not matter if the path itself carries no larger segments.
    let most = path.unwrap_or(USUAL);
    if cut(most).gain(ETHERNET) < LOSES {
        let size = sizes.payload.0;
        return clear(format!("segments carry {size} bytes: few of the bytes are headers"));
    }
    if let Some(mss) = load.knobs.mss {
        return clear(format!("segments of {mss} bytes were asked for"));
    }
    let Some(takes) = load.takes else {
        return Err(unread("the segment size that both ends take"));
    };
    let whole = cut(takes.0.min(most));
    if whole.gain(ETHERNET) < LOSES {
        return clear(format!("an end takes no segments of more than {takes}"));
    }
    let window = load.tcp.window.map(|window| window.0);
    if window.is_some_and(|window| window < whole.takes.0.saturating_mul(IN_WINDOW)) {
        return clear("the receive window holds less than two segments".to_owned());
    }
    Ok(whole)
}

fn unread(what: &str) -> NoFinding {
    NoFinding::Unknown(vec![Gap {
        what: what.to_owned(),
        why: "it was not read at both ends, or changed during the load".to_owned(),
        hint: String::new(),
    }])
}

impl Cut {
    /// Ratio of the payload that one rate carries in segments as large as the ends accept, to the payload in the
    /// present ones; that rate counts `frame` bytes beyond each IP packet.
    //= RFC 791, section 3.1; RFC 9293, section 3.1; IEEE 802.3-2022, section 3.1.1: headers of each packet
    fn gain(&self, frame: u32) -> f64 {
        let share = |payload: u64| {
            payload as f64 / (payload as f64 + (self.headers + u64::from(frame)) as f64)
        };
        share(self.takes.0) / share(self.payload.0)
    }

    fn advice(&self) -> Advice {
        Advice::new(format!(
            "find what rewrites the maximum segment size of new connections between the hosts, and let it pass {} \
             bytes: a rule of a firewall (nftables: tcp option maxseg size set, iptables: TCPMSS), a router (adjust-mss) \
             or a tunnel",
            self.takes.0
        ))
    }

    fn words(&self) -> String {
        format!(
            "segments carry {} bytes, though both ends take {}: something between them rewrites the maximum segment size",
            self.payload.0, self.takes.0
        )
    }

    /// The payload that the present rate of the wire would carry in full segments, in words.
    fn outlook(&self, goodput: f64) -> String {
        let [packets, frames, wire] = [0, ETHERNET, ethernet::wire(0, 0)]
            .map(|each| Rate((goodput * self.gain(each)) as u64));
        format!(
            "in segments of {} bytes the same rate on the wire carries about {frames} of payload: {packets} if it counts \
             IP packets alone, {wire} if it counts all that a wire of Ethernet carries",
            self.takes.0
        )
    }
}
