//! A test with an iperf3 server: one direction, this end as client.
//!
//! Goodput is what the receiver counted over its own clock: of a forward test the server tells
//! that, of a reverse test this end knows it. Of the server's host nothing is read; what iperf3
//! does not tell is a gap.

mod datagrams;
mod error;
mod hello;
mod lines;
mod session;
mod talk;
mod watch;

use std::net::SocketAddr;
use std::sync::Arc;

use linerate_core::facts::Gap;
use linerate_core::iperf3::{Cpu, Protocol, Results};
use linerate_core::path::Direction;
use linerate_core::plan::Knobs;
use linerate_core::record::SetEnd;
use linerate_core::units::{Bytes, Nanos, Rate};

pub use datagrams::Datagrams;
pub use error::ClientError;
pub use session::run;

use crate::host::{Machine, Seen};

/// What is asked for.
pub struct ClientOptions {
    /// Addresses of the server; the first that takes a connection is used.
    pub servers: Vec<SocketAddr>,
    /// What carries the payload: TCP or UDP.
    pub protocol: Protocol,
    /// Which way payload flows.
    pub direction: Direction,
    /// For how long.
    pub time: Nanos,
    /// What the connections are made with.
    pub knobs: Knobs,
    pub machine: Arc<dyn Machine>,
}

/// What a test showed, or a part of one.
#[derive(Debug)]
pub struct Outcome {
    /// Where the server is.
    pub server: SocketAddr,
    /// What carried the payload.
    pub protocol: Protocol,
    /// Which way payload flowed.
    pub direction: Direction,
    /// Whether this end received, and dropped payload unread.
    pub discarded: bool,
    /// Connections.
    pub streams: u32,
    /// How long it flowed, by this end's clock.
    pub time: Nanos,
    /// Payload that this end sent or received in that time.
    pub moved: Bytes,
    /// What the server counted; `None` where it did not come to tell.
    pub far: Option<Results>,
    /// Segments that this end sent again; `None` for a receiver.
    pub retransmits: Option<u64>,
    /// What became of datagrams; `None` of connections, and where the receiver did not come to tell.
    pub datagrams: Option<Datagrams>,
    /// CPU of this program.
    pub cpu: Option<Cpu>,
    /// What this end's first connection got.
    pub set: SetEnd,
    /// What the kernel counted of this end's connections; `None` where it did not tell.
    pub seen: Option<Seen>,
    /// What is not known.
    pub gaps: Vec<Gap>,
    /// Why it ended early.
    pub broken: Option<ClientError>,
}

/// How much less time than this end, or more, a server may say that it counted for: its clock starts and stops a
/// trip later.
const SECONDS_SHARE: f64 = 0.5;

impl Outcome {
    /// Payload that the receiver counted, over its own clock; `None` where it is not known.
    pub fn goodput(&self) -> Option<Rate> {
        let (bytes, seconds) = match (self.direction, &self.far) {
            (Direction::Reverse, _) => (self.moved.0, self.time.secs()),
            (Direction::Forward, Some(far)) if self.doubt().is_none() => {
                (far.bytes(), far.seconds().unwrap_or(self.time.secs()))
            }
            (Direction::Forward, _) => return None,
        };
        (seconds > 0.0).then(|| Rate((bytes as f64 * 8.0 / seconds) as u64))
    }

    /// Why what a receiving server tells cannot be so.
    fn doubt(&self) -> Option<String> {
        let far = self
            .far
            .as_ref()
            .filter(|_| self.direction == Direction::Forward)?;
        if !far.are_of(self.streams as usize) {
            let (told, own) = (far.streams.len(), self.streams);
            return Some(format!(
                "it tells of {told} streams that are not the {own} of the test"
            ));
        }
        if far.bytes() > self.moved.0 {
            let (told, sent) = (far.bytes(), self.moved.0);
            return Some(format!(
                "it says that {told} bytes arrived, {sent} were sent"
            ));
        }
        let seconds = far.seconds()?;
        let like = SECONDS_SHARE..1.0 / SECONDS_SHARE;
        (!like.contains(&(seconds / self.time.secs()))).then(|| {
            let time = self.time.secs();
            format!("it says that it counted for {seconds:.3} s of a test of {time:.3} s")
        })
    }

    /// Everything that could have been known of the far end, and is not.
    fn lacking(&self) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let mut lacks = |what: &str, why: String, hint: &str| {
            gaps.push(Gap {
                what: what.to_owned(),
                why,
                hint: hint.to_owned(),
            });
        };
        match (&self.far, self.direction) {
            (None, Direction::Forward) => {
                lacks(
                    "goodput",
                    "the server did not tell what arrived".to_owned(),
                    "",
                );
            }
            (Some(far), Direction::Forward) => {
                if let Some(why) = self.doubt() {
                    lacks(
                        "goodput",
                        format!("the server's figures make no sense: {why}"),
                        "",
                    );
                } else if far.seconds().is_none() {
                    let why = "the server does not tell for how long it counted (before iperf3 3.2): \
                               goodput is over this end's clock";
                    lacks("time of the far end", why.to_owned(), "");
                }
            }
            (Some(far), Direction::Reverse)
                if self.protocol == Protocol::Tcp && far.retransmits().is_none() =>
            {
                let why = "the server does not tell what it sent again".to_owned();
                lacks("retransmits of the far end", why, "");
            }
            _ => {}
        }
        if self.protocol == Protocol::Udp && self.far.is_some() {
            match &self.datagrams {
                None => {
                    let why = "the server does not tell how many came, or tells what cannot be";
                    lacks("loss of datagrams", why.to_owned(), "");
                }
                Some(datagrams) if datagrams.order.is_none() => {
                    let why = "a server of iperf3 does not tell which came out of order or twice";
                    lacks("order of datagrams", why.to_owned(), "");
                }
                Some(_) => {}
            }
        }
        lacks(
            "sockets, CPUs and ports of the far end",
            "iperf3 does not tell of them".to_owned(),
            "run `linerate serve` there, and leave out iperf3://",
        );
        gaps
    }
}
