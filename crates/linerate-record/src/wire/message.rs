//! The messages of a control connection: the near end sends requests, the far end answers them.
//!
//! Every request but [`Ask::Stop`] and [`Ask::Bye`] has one answer. The server also sends [`Answer::Bye`] without a
//! request, when it ends a session.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::WireError;
use super::codec::{self, Bounds};
use crate::{EndReadings, SetEnd, Table};
use linerate_facts::HostFacts;
use linerate_plan::{SetPlan, StepPlan};

/// A message from the near end to the far end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// Opens the session: the first message. Answer: [`Answer::Welcome`].
    Hello {
        /// Version of linerate on the near host.
        linerate: String,
        /// Name of the engine (transport) of this session.
        engine: String,
        /// Boot id of the near host; empty when unknown.
        boot_id: String,
    },
    /// Requests the facts of the far host. Answer: [`Answer::Facts`].
    Facts,
    /// Prepares a set of connections. Answer: [`Answer::Offered`].
    Prepare {
        /// The plan of the set.
        plan: Box<SetPlan>,
    },
    /// Connects a prepared set, using the near end's offer; the near end opens the data connections at the same time.
    /// Answer: [`Answer::Connected`].
    Connect {
        /// Number of the set.
        set: u32,
        /// The near end's offer, opaque to all but the engine.
        offer: Vec<u8>,
    },
    /// Closes a set. Answer: [`Answer::Released`].
    Release {
        /// Number of the set.
        set: u32,
    },
    /// Requests the time of the far clock, which also shows that the far end is alive. Answer: [`Answer::Pong`].
    Ping,
    /// Prepares a step, so that it can start at once. Answer: [`Answer::Armed`].
    Step {
        /// The plan of the step.
        plan: StepPlan,
    },
    /// Gives up the armed step; its sets are closed. Answer: [`Answer::Disarmed`].
    Disarm,
    /// Starts the armed step. Answer: [`Answer::Going`].
    Go,
    /// Ends the running step early and in order. It has no answer.
    Stop,
    /// Requests the far end's readings, once the near end has ended the step. Answer: [`Answer::Readings`].
    Read,
    /// Ends the session. It has no answer.
    Bye,
}

/// A message from the far end to the near end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Answer to [`Ask::Hello`]: the session is open.
    Welcome {
        /// Version of linerate on the far host.
        linerate: String,
        /// Boot id of the far host; empty when unknown.
        boot_id: String,
        /// Public name of the session, for data connections.
        session: [u8; 16],
        /// The key with which data connections prove that they belong to the session.
        secret: Secret,
    },
    /// Answer to [`Ask::Facts`].
    Facts {
        /// The facts of the far host.
        facts: Box<HostFacts>,
    },
    /// Answer to [`Ask::Prepare`].
    Offered {
        /// The far end's offer, opaque to all but the engine.
        offer: Vec<u8>,
    },
    /// Answer to [`Ask::Connect`]: the set is connected.
    Connected {
        /// The settings in force at the far end.
        end: SetEnd,
    },
    /// Answer to [`Ask::Release`]: the set is closed.
    Released,
    /// Answer to [`Ask::Ping`].
    Pong {
        /// Time of the far clock, in nanoseconds since some moment of this session.
        at: u64,
    },
    /// Answer to [`Ask::Step`]: the step is armed.
    Armed,
    /// Answer to [`Ask::Disarm`]: the step was given up.
    Disarmed,
    /// Answer to [`Ask::Go`]: the step runs.
    Going {
        /// Start of the step, on the clock of [`Answer::Pong`].
        began: u64,
    },
    /// Answer to [`Ask::Read`].
    Readings {
        /// The far end's readings during the step.
        end: EndReadings,
    },
    /// Answer to a request that cannot be fulfilled; the session continues.
    Refused {
        /// Why the request is refused, as a lowercase sentence fragment.
        what: String,
        /// A hint for the user; may be empty.
        hint: String,
    },
    /// The server ends the session, without a request.
    Bye {
        /// Why it ends, as a lowercase sentence fragment.
        what: String,
    },
}

/// A secret, whose `Debug` output is hidden so that no log shows it.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret(pub [u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Ask {
    /// Encodes the message as CBOR.
    pub fn encode(&self) -> Result<Vec<u8>, WireError> {
        codec::encode(self, Bounds::ASK)
    }

    /// Decodes CBOR received from a client.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        codec::decode(bytes, Bounds::ASK)
    }

    /// The name of the message, for logs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hello { .. } => "hello",
            Self::Facts => "facts",
            Self::Prepare { .. } => "prepare",
            Self::Connect { .. } => "connect",
            Self::Release { .. } => "release",
            Self::Ping => "ping",
            Self::Step { .. } => "step",
            Self::Disarm => "disarm",
            Self::Go => "go",
            Self::Stop => "stop",
            Self::Read => "read",
            Self::Bye => "bye",
        }
    }
}

impl Answer {
    /// Encodes the message as CBOR.
    pub fn encode(&self) -> Result<Vec<u8>, WireError> {
        codec::encode(self, Bounds::ANSWER)
    }

    /// Decodes CBOR received from a server. Readings that cannot be used are refused: each column must be as long as
    /// the times, and times must ascend.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let answer = codec::decode(bytes, Bounds::ANSWER)?;
        if let Self::Readings { end } = &answer {
            let bent = |t: &&Table| t.ragged().is_some() || !t.at.is_sorted();
            if let Some(table) = end.tables.iter().find(bent) {
                let table = table.name();
                return Err(WireError::Readings { table });
            }
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Total};
    use linerate_facts::metric::{Kind, Unit};
    use linerate_plan::path::Direction;
    use linerate_plan::{Knobs, Pattern, Purpose};
    use linerate_units::{Bytes, Nanos};
    use proptest::prelude::*;

    fn pattern() -> impl Strategy<Value = Pattern> {
        prop_oneof![
            any::<bool>().prop_map(|forward| Pattern::Stream {
                direction: Direction::ALL[usize::from(forward)],
            }),
            any::<(u64, u64)>().prop_map(|(size, interval)| Pattern::PingPong {
                size: Bytes(size),
                interval: Nanos(interval),
            }),
        ]
    }

    fn ask() -> impl Strategy<Value = Ask> {
        let text = "\\PC{0,40}";
        let hello = (text, text, text).prop_map(|(linerate, engine, boot_id)| Ask::Hello {
            linerate,
            engine,
            boot_id,
        });
        let prepare = (any::<u32>(), pattern(), any::<u32>()).prop_map(|(id, pattern, streams)| {
            let knobs = Knobs { streams, ..Knobs::default() };
            Ask::Prepare { plan: SetPlan { id, pattern, knobs }.into() }
        });
        let step =
            (any::<[u64; 3]>(), prop::collection::vec(any::<u32>(), 0..9)).prop_map(|(t, sets)| {
                let (trial, changed) = (t[0] as u32, t[1] & 1 == 0);
                let plan = StepPlan {
                    index: t[2] as u32,
                    purpose: Purpose::Slice { trial, changed },
                    sets,
                    washout: Nanos(t[0]),
                    measure: Nanos(t[1]),
                    tick: Nanos(t[2]),
                };
                Ask::Step { plan }
            });
        let connect = (any::<u32>(), prop::collection::vec(any::<u8>(), 0..99))
            .prop_map(|(set, offer)| Ask::Connect { set, offer });
        prop_oneof![hello, prepare, step, connect, Just(Ask::Go)]
    }

    fn readings() -> impl Strategy<Value = Answer> {
        let table = ("[a-z]{1,9}", prop::collection::vec(any::<i64>(), 0..50));
        let tables = prop::collection::vec(table, 0..5);
        (tables, any::<u64>()).prop_map(|(tables, sent)| {
            let table = |(name, values): (String, Vec<i64>)| Table {
                source: name.clone(),
                subject: "s0/tx0".into(),
                at: (0..values.len() as u64).map(|row| row * row).collect(),
                columns: vec![Column {
                    name: name.into(),
                    unit: Unit::Bytes,
                    kind: Kind::Counter,
                    values,
                }],
            };
            let end = EndReadings {
                tables: tables.into_iter().map(table).collect(),
                totals: vec![Total { set: 0, stream: 1, sent, received: 0, complete: true }],
                ..EndReadings::default()
            };
            Answer::Readings { end }
        })
    }

    #[test]
    fn the_secret_does_not_show() {
        let welcome = Answer::Welcome {
            linerate: String::new(),
            boot_id: String::new(),
            session: [0; 16],
            secret: Secret([201; 32]),
        };
        assert!(!format!("{welcome:?}").contains("201"));
        assert_eq!(Answer::decode(&welcome.encode().unwrap()), Ok(welcome));
    }

    #[test]
    fn readings_that_nobody_can_have_made_are_refused() {
        let of = |at: &[u64], values: &[i64]| {
            let table = Table {
                source: "worker".into(),
                subject: "s0/tx0".into(),
                at: at.to_vec(),
                columns: vec![Column {
                    name: "bytes".into(),
                    unit: Unit::Bytes,
                    kind: Kind::Counter,
                    values: values.to_vec(),
                }],
            };
            let end = EndReadings { tables: vec![table], ..EndReadings::default() };
            Answer::decode(&Answer::Readings { end }.encode().unwrap()).map(drop)
        };
        let refused = Err(WireError::Readings { table: "worker s0/tx0".into() });
        assert_eq!(of(&[0, 5, 5], &[1, 2, 3]), Ok(()));
        assert_eq!(of(&[0, 5, 4], &[1, 2, 3]), refused);
        assert_eq!(of(&[0, 5], &[1]), refused);
        assert_eq!(of(&[0, 5], &[1, 2, 3]), refused);
    }

    #[test]
    fn the_largest_ask_is_bounded() {
        let offer = |n| Ask::Connect { set: 0, offer: vec![1; n] };
        assert!(offer(16_000).encode().is_ok());
        assert!(offer(17_000).encode().is_err());
    }

    proptest! {
        #[test]
        fn asks_round_trip(ask in ask()) {
            prop_assert_eq!(Ask::decode(&ask.encode().unwrap()), Ok(ask));
        }

        #[test]
        fn readings_round_trip(answer in readings()) {
            prop_assert_eq!(Answer::decode(&answer.encode().unwrap()), Ok(answer));
        }

        #[test]
        fn a_message_cut_short_is_an_error(ask in ask(), cut in any::<prop::sample::Index>()) {
            let bytes = ask.encode().unwrap();
            prop_assert!(Ask::decode(&bytes[..cut.index(bytes.len())]).is_err());
        }

        #[test]
        fn a_bent_message_is_a_message_or_an_error(
            answer in readings(), at in any::<prop::sample::Index>(), bits in 1u8..,
        ) {
            let mut bytes = answer.encode().unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
            let _ = Answer::decode(&bytes);
        }

        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Ask::decode(&bytes);
            let _ = Answer::decode(&bytes);
        }
    }
}
