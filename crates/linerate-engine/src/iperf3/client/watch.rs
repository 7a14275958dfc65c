//! This end's connections of a test, watched as `linerate flows` watches those of others: what the
//! judge may conclude from one end alone, it concludes from this.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_core::facts::Gap;

use crate::host::{Flows, Machine, Seen, Wanted};

/// Time between the first two rounds: what is busy is watched soon.
const FIRST: Duration = Duration::from_millis(250);
/// Time between later rounds.
const ROUND: Duration = Duration::from_secs(1);
/// So many times what a round costs there is none after it, however many connections there are.
const REST: u32 = 20;
/// Connections that are watched at most, those that carry most.
const MOST: usize = 16;

/// A look at this end's connections.
pub(super) struct Watch {
    flows: Flows,
    ours: Vec<SocketAddr>,
    begin: Instant,
    next_round: Duration,
    failed: Option<Gap>,
}

impl Watch {
    /// A look at the connections from `ours` to `server`.
    pub(super) fn new(
        machine: Arc<dyn Machine>,
        server: SocketAddr,
        ours: Vec<SocketAddr>,
        begin: Instant,
    ) -> Self {
        let wanted = Wanted::End {
            addresses: vec![server.ip().to_canonical()],
            port: Some(server.port()),
        };
        // On one machine both ends are found, and half of them are dropped again.
        let top = (2 * ours.len()).min(2 * MOST);
        let mut watch = Self {
            flows: Flows::new(machine, wanted, top),
            ours,
            begin,
            next_round: FIRST,
            failed: None,
        };
        watch.round();
        watch
    }

    /// Reads what is due.
    pub(super) fn tick(&mut self) {
        let now = self.begin.elapsed();
        if now >= self.next_round {
            self.round();
            let cost = self.begin.elapsed().saturating_sub(now);
            self.next_round = self.begin.elapsed() + ROUND.max(cost * REST);
        }
        self.flows.sample(self.at());
    }

    /// Ends the look; `None` where the kernel tells nothing of connections.
    pub(super) fn finish(mut self, gaps: &mut Vec<Gap>) -> Option<Seen> {
        self.flows.sample(self.at());
        self.round();
        if let Some(gap) = self.failed {
            gaps.push(gap);
            return None;
        }
        let mut seen = self.flows.finish();
        seen.flows.retain(|flow| self.ours.contains(&flow.local));
        seen.flows.truncate(MOST);
        Some(seen)
    }

    fn round(&mut self) {
        if self.failed.is_some() {
            return;
        }
        if let Err(error) = self.flows.round(self.at()) {
            self.failed = Some(Gap {
                what: "what the kernel counts of this end's connections".to_owned(),
                why: error.to_string(),
                hint: "sudo modprobe tcp_diag".to_owned(),
            });
        }
    }

    fn at(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
