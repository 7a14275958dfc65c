//! Datagrams of a test: what can be asked for, and what became of them.

use linerate_core::iperf3::{DATAGRAM_MAX, DATAGRAM_MIN, Results, Width};
use linerate_core::path::Direction;
use linerate_core::plan::Knobs;
use linerate_core::units::{Bytes, Nanos, Rate};

use super::ClientError;
use crate::iperf3::streams::{Load, Moved, Tally};
use crate::load::transport::udp;

/// Seconds of a test from which on numbers have 64 bits: those of 32, which every server and whatever else
/// speaks this protocol knows, end after ten minutes of seven million in a second.
const NARROW_SECONDS: u64 = 600;

/// What became of the datagrams of a test, all streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagrams {
    /// Payload of each.
    pub size: Bytes,
    /// What each stream was to keep to; `None` for as fast as the sender can.
    pub pace: Option<Rate>,
    /// Those that the sender's kernel took; `None` where the server does not tell.
    pub sent: Option<u64>,
    /// Those that it did not take at once; `None` where the server sends.
    pub refused: Option<u64>,
    /// Those that the receiver read for the first time.
    pub came: u64,
    /// Those that it lacks, up to the last that it read.
    pub lost: u64,
    /// The part of that which was dropped at its socket; `None` where the server receives.
    pub at_socket: Option<u64>,
    /// Those that came out of order, and again; `None` where the server receives.
    pub order: Option<[u64; 2]>,
    /// How unevenly they came; `None` where the server does not tell.
    pub jitter: Option<Nanos>,
}

/// Refuses what datagrams cannot do.
pub(super) fn bounds(knobs: &Knobs) -> Result<(), ClientError> {
    let refuse = |what: String| Err(ClientError::Unsupported(what));
    let size = knobs.write_size.0;
    if !matches!(size, 0 | DATAGRAM_MIN..=DATAGRAM_MAX) {
        return refuse(format!(
            "a datagram of {size} B: iperf3 has those of {DATAGRAM_MIN} B to {DATAGRAM_MAX} B"
        ));
    }
    udp::lacks(knobs).or_else(refuse)
}

/// Bits of the numbers of a test that lasts so long.
pub(super) fn width(seconds: u64) -> Width {
    if seconds > NARROW_SECONDS {
        Width::Wide
    } else {
        Width::Narrow
    }
}

/// What this end counted, and knows where it is the receiver.
pub(super) struct Near<'a> {
    pub(super) moved: &'a [Moved],
    pub(super) drops: Option<u64>,
}

impl Datagrams {
    /// What both ends counted; `None` where the receiver does not tell, or tells what makes no sense.
    pub(super) fn of(
        direction: Direction,
        load: Load,
        near: &Near<'_>,
        far: Option<&Results>,
    ) -> Option<Self> {
        let Load::Datagrams { size, pace, .. } = load else {
            return None;
        };
        let each = || near.moved.iter().map(|moved| &moved.datagrams);
        let sum = |of: fn(&Tally) -> u64| each().map(of).sum::<u64>();
        let packets = sum(|t| t.packets);
        let base = Self {
            size: Bytes(size.into()),
            pace,
            sent: Some(packets),
            refused: None,
            came: 0,
            lost: 0,
            at_socket: None,
            order: None,
            jitter: None,
        };
        match direction {
            Direction::Forward => {
                let (seen, lost) = (far?.packets()?, far?.errors()?);
                (seen <= packets && lost <= seen).then(|| Self {
                    refused: Some(sum(|t| t.refused)),
                    came: seen - lost,
                    lost,
                    jitter: far.and_then(jitter),
                    ..base
                })
            }
            Direction::Reverse => {
                let lost = sum(|t| t.lost);
                let mean = sum(|t| t.jitter) / near.moved.len().max(1) as u64;
                Some(Self {
                    // It stops later than this end looks: what it sent since was not waited for.
                    sent: far.and_then(Results::packets).filter(|n| *n >= packets),
                    came: packets.saturating_sub(lost),
                    lost,
                    at_socket: near.drops.map(|drops| drops.min(lost)),
                    order: Some([sum(|t| t.reordered), sum(|t| t.duplicated)]),
                    jitter: Some(Nanos(mean)),
                    ..base
                })
            }
        }
    }
}

fn jitter(far: &Results) -> Option<Nanos> {
    Some(Nanos((far.jitter()? * 1e9) as u64))
}

#[cfg(test)]
mod tests {
    use linerate_core::plan::Handover;

    use linerate_core::iperf3::{Datagrams as Told, StreamResult};

    use super::*;

    const LOAD: Load = Load::Datagrams {
        size: 1000,
        width: Width::Narrow,
        pace: Some(Rate(8000)),
        burst: None,
    };

    fn moved(packets: u64, lost: u64) -> Moved {
        Moved {
            bytes: (packets - lost) * 1000,
            datagrams: Tally {
                packets,
                lost,
                reordered: 2,
                jitter: 100,
                ..Tally::default()
            },
        }
    }

    fn told(packets: u64, errors: Option<u64>) -> Results {
        Results {
            streams: vec![StreamResult {
                datagrams: Told {
                    packets: Some(packets),
                    errors,
                    jitter: Some(0.001),
                    ..Told::default()
                },
                ..StreamResult::default()
            }],
            ..Results::default()
        }
    }

    #[test]
    fn loss_is_the_receiver_s() {
        let near = [moved(60, 10), moved(40, 0)];
        let near = Near {
            moved: &near,
            drops: Some(4),
        };
        let of = |direction, far: &Results| Datagrams::of(direction, LOAD, &near, Some(far));
        // This end sent 100, 97 were seen there, 5 of them by their absence alone.
        let forward = of(Direction::Forward, &told(97, Some(5))).unwrap();
        assert_eq!(
            (forward.sent, forward.came, forward.lost),
            (Some(100), 92, 5)
        );
        assert_eq!((forward.order, forward.at_socket), (None, None));
        assert_eq!(forward.jitter, Some(Nanos::from_millis(1)));
        let reverse = of(Direction::Reverse, &told(107, Some(0))).unwrap();
        assert_eq!(
            (reverse.sent, reverse.came, reverse.lost),
            (Some(107), 90, 10)
        );
        assert_eq!((reverse.order, reverse.at_socket), (Some([4, 0]), Some(4)));
        assert_eq!(reverse.jitter, Some(Nanos(100)));
    }

    #[test]
    fn what_a_server_cannot_have_seen_is_not_believed() {
        let near = [moved(100, 0)];
        let near = Near {
            moved: &near,
            drops: None,
        };
        let known =
            |far: Option<&Results>| Datagrams::of(Direction::Forward, LOAD, &near, far).is_some();
        assert!(known(Some(&told(100, Some(100)))));
        assert!(!known(Some(&told(101, Some(0)))), "more than were sent");
        assert!(!known(Some(&told(90, Some(91)))), "more than there are");
        assert!(!known(Some(&told(90, None))), "not told");
        assert!(!known(None));
    }

    #[test]
    fn sizes_are_bounded_and_what_only_connections_have_is_refused() {
        let good = |change: fn(&mut Knobs)| {
            let mut knobs = Knobs::default();
            change(&mut knobs);
            bounds(&knobs).is_ok()
        };
        assert!(good(|_| ()));
        assert!(good(|k| k.write_size = Bytes(DATAGRAM_MIN)));
        assert!(!good(|k| k.write_size = Bytes(DATAGRAM_MIN - 1)));
        assert!(good(|k| k.write_size = Bytes(DATAGRAM_MAX)));
        assert!(!good(|k| k.write_size = Bytes(DATAGRAM_MAX + 1)));
        assert!(!good(|k| k.mss = Some(536)));
        assert!(!good(|k| k.congestion = Some("bbr".to_owned())));
        assert!(!good(|k| k.copy = Handover::Sendfile));
        assert!(good(|k| k.nodelay = true));
        assert_eq!(width(NARROW_SECONDS), Width::Narrow);
        assert_eq!(width(NARROW_SECONDS + 1), Width::Wide);
    }
}
