//! The messages of a control connection: the near end sends requests, the far end answers.
//!
//! Every request but [`Ask::Stop`] and [`Ask::Bye`] has one answer. The server sends [`Answer::Bye`] by itself
//! when it ends a session.

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
    /// First of all: who asks, and with which engine. Answer: [`Answer::Welcome`].
    Hello {
        /// Version of linerate on the near host.
        linerate: String,
        /// The engine of this session.
        engine: String,
        /// Boot id of the near host; empty when unknown.
        boot_id: String,
    },
    /// Facts of the far host, please. Answer: [`Answer::Facts`].
    Facts,
    /// Get ready for a set. Answer: [`Answer::Offered`].
    Prepare {
        /// The set.
        plan: Box<SetPlan>,
    },
    /// Connect a prepared set to the near end's offer; data connections are being dialled.
    /// Answer: [`Answer::Connected`].
    Connect {
        /// The set.
        set: u32,
        /// The near end's offer.
        offer: Vec<u8>,
    },
    /// Close a set. Answer: [`Answer::Released`].
    Release {
        /// The set.
        set: u32,
    },
    /// Asks for the far end's clock, and whether it is still there. Answer: [`Answer::Pong`].
    Ping,
    /// Arm a step. Answer: [`Answer::Armed`].
    Step {
        /// The plan of the step.
        plan: StepPlan,
    },
    /// Give the armed step up; its sets are lost. Answer: [`Answer::Disarmed`].
    Disarm,
    /// Run the armed step. Answer: [`Answer::Going`].
    Go,
    /// End the running step early and in order.
    Stop,
    /// The near end of the step has ended: what did you read? Answer: [`Answer::Readings`].
    Read,
    /// The session ends.
    Bye,
}

/// A message from the far end to the near end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The session is open.
    Welcome {
        /// Version of linerate on the far host.
        linerate: String,
        /// Boot id of the far host; empty when unknown.
        boot_id: String,
        /// Public name of the session.
        session: [u8; 16],
        /// Proves that data connections belong to the session.
        secret: Secret,
    },
    /// The facts of the far host.
    Facts {
        /// The facts.
        facts: Box<HostFacts>,
    },
    /// The far end's offer for a set.
    Offered {
        /// Opaque to all but the engine.
        offer: Vec<u8>,
    },
    /// A set is connected.
    Connected {
        /// The settings in force at the far end.
        end: SetEnd,
    },
    /// A set is closed.
    Released,
    /// The time of the far clock.
    Pong {
        /// Nanoseconds since some moment of this session.
        at: u64,
    },
    /// The step is armed.
    Armed,
    /// The step was aborted.
    Disarmed,
    /// The step runs.
    Going {
        /// Start of the step, on the clock of [`Answer::Pong`].
        began: u64,
    },
    /// The far end's readings during the step.
    Readings {
        /// The readings.
        end: EndReadings,
    },
    /// The request is impossible; the session goes on.
    Refused {
        /// Why, as a lowercase sentence fragment.
        what: String,
        /// The hint; may be empty.
        hint: String,
    },
    /// The server ends the session.
    Bye {
        /// Why, as a lowercase sentence fragment.
        what: String,
    },
}

/// A secret that no log shows.
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

    /// Decodes CBOR received from outside.
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

    /// Decodes CBOR received from outside. Readings must be usable for a model: columns as long as their time
    /// axis, and ascending times.
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
