//! Parses replies of the generic netlink family `netdev` (Linux 6.8 and later): which poller and which interrupt serve
//! a queue. Attribute numbers are from linux/netdev.h.

use super::Malformed;
use super::genetlink::bodies;
use super::netlink::{attributes, u32_at};
use crate::nic::QueueDirection;

const QUEUE: &str = "queue message";
const NAPI: &str = "poller message";

/// A queue of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    /// Number of the queue. Each direction counts from 0.
    pub number: u32,
    /// Whether the queue receives or sends.
    pub direction: QueueDirection,
    /// Id of the poller (NAPI) that serves the queue.
    pub napi: Option<u32>,
}

/// A poller of the kernel (NAPI), with its interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Napi {
    /// Id of the poller.
    pub id: u32,
    /// Number of the interrupt that wakes the poller.
    pub irq: Option<u32>,
}

/// Decodes the reply to `NETDEV_CMD_QUEUE_GET`: queues. Queues of an unknown kind are skipped.
pub fn queues(reply: &[u8]) -> Result<Vec<Queue>, Malformed> {
    let mut queues = Vec::new();
    for body in bodies(reply) {
        let [id, _, kind, napi] = words(body?, QUEUE)?;
        let direction = match kind {
            Some(0) => QueueDirection::Rx,
            Some(1) => QueueDirection::Tx,
            Some(_) => continue,
            None => return Err(Malformed::Missing(QUEUE)),
        };
        let number = id.ok_or(Malformed::Missing(QUEUE))?;
        queues.push(Queue { number, direction, napi });
    }
    Ok(queues)
}

/// Decodes the reply to `NETDEV_CMD_NAPI_GET`: pollers.
pub fn napis(reply: &[u8]) -> Result<Vec<Napi>, Malformed> {
    bodies(reply)
        .map(|body| {
            let [_, id, irq, _] = words(body?, NAPI)?;
            let id = id.ok_or(Malformed::Missing(NAPI))?;
            Ok(Napi { id, irq })
        })
        .collect()
}

/// The attributes 1 to 4 of a message, which are u32 in both kinds of reply.
fn words(body: &[u8], what: &'static str) -> Result<[Option<u32>; 4], Malformed> {
    let mut words = [None; 4];
    for attribute in attributes(body) {
        let (kind, value) = attribute?;
        let slot = usize::from(kind).checked_sub(1);
        if let Some(word) = slot.and_then(|slot| words.get_mut(slot)) {
            *word = Some(u32_at(value, 0, what)?);
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Napi, Queue, QueueDirection, napis, queues};
    use crate::parse::netlink::tests::{attr, msg};

    fn message(words: &[(u16, u32)]) -> Vec<u8> {
        let words = words.iter().flat_map(|(kind, v)| attr(*kind, &v.to_ne_bytes()));
        msg(22, &[10, 1, 0, 0].into_iter().chain(words).collect::<Vec<_>>())
    }

    fn sample() -> Vec<u8> {
        [
            message(&[(1, 3), (2, 7), (3, 1), (4, 8193)]),
            message(&[(1, 0), (2, 7), (3, 9)]),
            message(&[(1, 0), (2, 7), (3, 0)]),
            msg(3, &[0; 4]),
        ]
        .concat()
    }

    #[test]
    fn queues_and_pollers_parse_exactly() {
        let queue = |number, direction, napi| Queue { number, direction, napi };
        let want = [queue(3, QueueDirection::Tx, Some(8193)), queue(0, QueueDirection::Rx, None)];
        assert_eq!(queues(&sample()).unwrap(), want);
        let got = napis(&message(&[(1, 7), (2, 8193), (3, 38)])).unwrap();
        assert_eq!(got, [Napi { id: 8193, irq: Some(38) }]);
        assert!(napis(&message(&[(1, 7), (3, 38)])).is_err(), "without its number");
        assert!(queues(&message(&[(1, 7)])).is_err(), "without a direction");
    }

    proptest! {
        #[test]
        fn mutated_replies_never_panic(changes: Vec<(prop::sample::Index, u8)>, end: prop::sample::Index) {
            let mut reply = sample();
            for (at, byte) in changes {
                let at = at.index(reply.len());
                reply[at] = byte;
            }
            let part = &reply[..end.index(reply.len() + 1)];
            let _ = (queues(part), napis(part));
        }
    }
}
