//! Captures the requests and replies of a walk of an InfiniBand network, and replays them.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use linerate_fabric::capture::{Captured, Exchange, Mad};
use linerate_fabric::mad::Get;
use linerate_units::Nanos;

use super::{Arrival, MadPort, PortError};

/// A management port that records all requests and replies.
pub struct Capturing<P> {
    port: P,
    waiting: HashMap<u32, Box<Mad>>,
    captured: Captured,
}

impl<P: MadPort> Capturing<P> {
    /// Makes a port that records a walk through `port`. `through` is the port's name in the capture.
    pub fn new(port: P, through: &str) -> Self {
        Self {
            port,
            waiting: HashMap::new(),
            captured: Captured { through: through.to_owned(), exchanges: Vec::new(), whole: false },
        }
    }

    /// Returns the captured walk. If the walk is `whole`, it waited for every reply: requests without a reply are
    /// recorded as lost.
    pub fn captured(self, whole: bool) -> Captured {
        let mut captured = self.captured;
        captured.whole = whole;
        if !whole {
            return captured;
        }
        captured.exchanges.extend(self.waiting.into_values().map(|request| Exchange {
            // The time at which the request was lost is not known.
            at: Nanos(0),
            request,
            reply: None,
        }));
        captured
    }
}

impl<P: MadPort> MadPort for Capturing<P> {
    fn window(&self) -> usize {
        self.port.window()
    }

    fn pace(&self) -> u32 {
        self.port.pace()
    }

    fn now(&self) -> Nanos {
        self.port.now()
    }

    fn send(&mut self, transaction: u32, get: &Get) -> Result<(), PortError> {
        self.waiting.insert(transaction, Box::new(get.encode(0)));
        self.port.send(transaction, get)
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Arrival>, PortError> {
        let arrival = self.port.receive(wait)?;
        let (transaction, reply) = match &arrival {
            Some(Arrival::Mad(mad)) => {
                (linerate_fabric::mad::transaction(&mad[..]), Some(mad.clone()))
            }
            Some(Arrival::Lost(transaction) | Arrival::NotPossible(transaction)) => {
                (Some(*transaction), None)
            }
            None => (None, None),
        };
        if let Some(request) = transaction.and_then(|of| self.waiting.remove(&of)) {
            let at = self.port.now();
            self.captured.exchanges.push(Exchange { at, request, reply });
        }
        Ok(arrival)
    }

    fn pause(&mut self, time: Duration) {
        self.port.pause(time);
    }
}

/// The time of a reply, and the reply; `None` if the request was lost.
type Reply = (Nanos, Option<Box<Mad>>);

/// A port that replays a captured walk instead of a network. A request that was not captured is answered by
/// `NotPossible`.
pub struct Replay {
    replies: HashMap<Box<Mad>, VecDeque<Reply>>,
    arrived: VecDeque<(Nanos, Arrival)>,
    now: Nanos,
}

/// Most requests without a reply at one time: each reply is available at once.
const WINDOW: usize = 1;

impl Replay {
    /// Makes a port that replays the captured walk.
    pub fn new(captured: Captured) -> Self {
        let mut replies: HashMap<_, VecDeque<_>> = HashMap::new();
        for Exchange { at, request, reply } in captured.exchanges {
            replies.entry(request).or_default().push_back((at, reply));
        }
        Self { replies, arrived: VecDeque::new(), now: Nanos(0) }
    }
}

impl MadPort for Replay {
    fn window(&self) -> usize {
        WINDOW
    }

    fn pace(&self) -> u32 {
        u32::MAX
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn send(&mut self, transaction: u32, get: &Get) -> Result<(), PortError> {
        let kept = self.replies.get_mut(&get.encode(0)).and_then(|replies| {
            // If a request is sent more often than it was captured, the last reply is returned again.
            match replies.len() {
                0 | 1 => replies.front().cloned(),
                _ => replies.pop_front(),
            }
        });
        let arrival = match kept {
            None => (self.now, Arrival::NotPossible(transaction)),
            Some((at, None)) => (at, Arrival::Lost(transaction)),
            Some((at, Some(mut mad))) => {
                mad[12..16].copy_from_slice(&transaction.to_be_bytes());
                (at, Arrival::Mad(mad))
            }
        };
        self.arrived.push_back(arrival);
        Ok(())
    }

    fn receive(&mut self, _: Duration) -> Result<Option<Arrival>, PortError> {
        let Some((at, arrival)) = self.arrived.pop_front() else {
            return Ok(None);
        };
        self.now = self.now.max(at);
        Ok(Some(arrival))
    }

    fn pause(&mut self, _: Duration) {}
}
