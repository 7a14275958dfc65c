//! Parses `RTM_NEWQDISC` and `RTM_NEWTCLASS`: a queueing discipline or one of its classes, with statistics.

use std::borrow::Cow;

use super::netlink::{after, attributes, string, u32_at, u64_at};
use super::{Malformed, netlink};

const WHAT: &str = "qdisc message";
const NEW_QDISC: u16 = 36;
const NEW_CLASS: u16 = 40;
/// Size of `struct tcmsg`, in bytes.
const TCMSG_LEN: usize = 20;

/// Parent number that the discipline at the root of a port has.
pub const ROOT: u32 = u32::MAX;

/// A queueing discipline, or one of its classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qdisc<'a> {
    /// Index of the port that the discipline belongs to.
    pub port: u32,
    /// Handle of the discipline; zero if the kernel created the discipline by itself. For a class, the number of the
    /// class.
    pub handle: u32,
    /// Parent of the discipline: [`ROOT`], or the number of a class.
    pub parent: u32,
    /// Kind of the discipline: `fq_codel`, `tbf`, `noqueue` ...
    pub kind: Cow<'a, str>,
    /// Options of the discipline, undecoded. [`super::shaping`] reads the limits in them.
    pub options: &'a [u8],
    /// Counters of the discipline.
    pub stats: Option<QdiscStats>,
}

impl Qdisc<'_> {
    /// The handle or class number as `tc` writes it; the parent class if the discipline has no handle of its own.
    pub fn id(&self) -> String {
        let own = self.handle != 0 || self.parent == ROOT;
        let id = if own { self.handle } else { self.parent };
        match (id >> 16, id & 0xffff) {
            (major, 0) => format!("{major:x}:"),
            (major, minor) => format!("{major:x}:{minor:x}"),
        }
    }
}

/// Counters of a queueing discipline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QdiscStats {
    /// Bytes that the discipline has sent.
    pub bytes: u64,
    /// Packets that the discipline has sent.
    pub packets: u64,
    /// Bytes that wait in the queue now.
    pub backlog: u64,
    /// Packets that wait in the queue now.
    pub waiting: u64,
    /// Packets that the discipline has dropped.
    pub drops: u64,
    /// Number of times that a limit delayed a packet.
    pub overlimits: u64,
}

/// The queueing disciplines in a reply.
pub fn parse(reply: &[u8]) -> impl Iterator<Item = Result<Qdisc<'_>, Malformed>> {
    of_kind(reply, NEW_QDISC)
}

/// The classes in a reply.
pub fn classes(reply: &[u8]) -> impl Iterator<Item = Result<Qdisc<'_>, Malformed>> {
    of_kind(reply, NEW_CLASS)
}

fn of_kind(reply: &[u8], kind: u16) -> impl Iterator<Item = Result<Qdisc<'_>, Malformed>> {
    netlink::messages(reply).filter_map(move |message| match message {
        Ok(message) => (message.kind == kind).then(|| qdisc(message.body)),
        Err(error) => Some(Err(error)),
    })
}

fn qdisc(body: &[u8]) -> Result<Qdisc<'_>, Malformed> {
    let mut qdisc = Qdisc {
        port: u32_at(body, 4, WHAT)?,
        handle: u32_at(body, 8, WHAT)?,
        parent: u32_at(body, 12, WHAT)?,
        kind: Cow::Borrowed(""),
        options: &[],
        stats: None,
    };
    for attribute in attributes(after(body, TCMSG_LEN, WHAT)?) {
        // The attributes are TCA_KIND, TCA_OPTIONS and TCA_STATS2 of linux/rtnetlink.h.
        match attribute? {
            (1, value) => qdisc.kind = string(value),
            (2, value) => qdisc.options = value,
            (7, value) => qdisc.stats = Some(stats(value)?),
            _ => {}
        }
    }
    Ok(qdisc)
}

/// Decodes the statistics, attributes TCA_STATS_* of linux/gen_stats.h.
fn stats(nested: &[u8]) -> Result<QdiscStats, Malformed> {
    const WHAT: &str = "qdisc statistics";
    let mut stats = QdiscStats::default();
    let (mut basic, mut queue, mut packets_64) = (false, false, None);
    for attribute in attributes(nested) {
        match attribute? {
            (1, value) => {
                stats.bytes = u64_at(value, 0, WHAT)?;
                stats.packets = u64::from(u32_at(value, 8, WHAT)?);
                basic = true;
            }
            (3, value) => {
                stats.waiting = u64::from(u32_at(value, 0, WHAT)?);
                stats.backlog = u64::from(u32_at(value, 4, WHAT)?);
                stats.drops = u64::from(u32_at(value, 8, WHAT)?);
                stats.overlimits = u64::from(u32_at(value, 16, WHAT)?);
                queue = true;
            }
            // The kernel sends this only after the 32-bit count has overflowed (Linux 5.5 and later).
            (8, value) => packets_64 = Some(u64_at(value, 0, WHAT)?),
            _ => {}
        }
    }
    stats.packets = packets_64.unwrap_or(stats.packets);
    if basic && queue { Ok(stats) } else { Err(Malformed::Missing(WHAT)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{QdiscStats, classes, parse};
    use crate::parse::netlink::tests::{attr, msg};

    fn sample(extra: &[u8]) -> Vec<u8> {
        let words: Vec<u8> =
            [0u32, 4, 0x8001_0000, u32::MAX, 2].into_iter().flat_map(u32::to_ne_bytes).collect();
        let basic = [&9000u64.to_ne_bytes()[..], &6u32.to_ne_bytes(), &[0; 4]].concat();
        let queue: Vec<u8> = [1u32, 1500, 7, 0, 5].into_iter().flat_map(u32::to_ne_bytes).collect();
        let stats = [&attr(1, &basic)[..], &attr(3, &queue), extra].concat();
        let body = [words, attr(1, b"tbf\0"), attr(2, &[5; 4]), attr(7, &stats)];
        msg(36, &body.concat())
    }

    #[test]
    fn a_qdisc_parses_exactly() {
        let reply = sample(&[]);
        let got = parse(&reply).next().unwrap().unwrap();
        assert_eq!((got.port, got.handle, got.parent), (4, 0x8001_0000, super::ROOT));
        assert_eq!((&*got.kind, got.options), ("tbf", &[5; 4][..]));
        assert_eq!(got.id(), "8001:");
        let want = QdiscStats {
            bytes: 9000,
            packets: 6,
            backlog: 1500,
            waiting: 1,
            drops: 7,
            overlimits: 5,
        };
        assert_eq!(got.stats, Some(want));
    }

    #[test]
    fn classes_are_told_from_disciplines_and_named_as_tc_does() {
        let mut reply = sample(&[]);
        assert_eq!(classes(&reply).count(), 0);
        reply[4..6].copy_from_slice(&40u16.to_ne_bytes());
        reply[24..28].copy_from_slice(&0x1_001fu32.to_ne_bytes());
        assert_eq!(parse(&reply).count(), 0);
        let mut got = classes(&reply).next().unwrap().unwrap();
        assert_eq!(got.id(), "1:1f");
        (got.handle, got.parent) = (0, 0x2_0010);
        assert_eq!(got.id(), "2:10", "the class that it hangs on");
    }

    #[test]
    fn a_count_past_32_bits_replaces_the_short_one() {
        let reply = sample(&attr(8, &5_000_000_000u64.to_ne_bytes()));
        let got = parse(&reply).next().unwrap().unwrap();
        assert_eq!(got.stats.unwrap().packets, 5_000_000_000);
    }

    #[test]
    fn a_cut_reply_is_an_error() {
        let reply = sample(&[]);
        for end in 1..reply.len() {
            assert!(parse(&reply[..end]).any(|q| q.is_err()), "cut at {end}");
        }
    }

    proptest! {
        #[test]
        fn mutated_replies_never_panic(changes: Vec<(prop::sample::Index, u8)>, end: prop::sample::Index) {
            let mut reply = sample(&attr(8, &[0; 8]));
            for (at, byte) in changes {
                let at = at.index(reply.len());
                reply[at] = byte;
            }
            let end = end.index(reply.len() + 1);
            let _ = parse(&reply[..end]).count();
        }
    }
}
