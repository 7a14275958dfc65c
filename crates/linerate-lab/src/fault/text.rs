//! Faults as they are typed, and back.

use std::str::FromStr;

use linerate_core::application::{Habit, HabitError};
use linerate_core::plan::Side;
use linerate_core::units::{Bytes, Nanos, UnitError};

use super::{Depth, Fault, FaultError, Way};

impl Fault {
    /// The text that [`FromStr`] reads back as this fault, exactly.
    pub fn code(&self) -> String {
        match self {
            Self::PathRate { rate, depth, way } => {
                let depth = match depth {
                    Depth::Shallow => "shallow",
                    Depth::Deep => "deep",
                };
                format!("path-rate:{},{depth},{}", rate.exact(), way.name())
            }
            Self::ReceiveWindow { side, bytes } => {
                format!("receive-window:{},{}", side.name(), bytes.exact())
            }
            Self::SendBuffer { side, bytes } => {
                format!("send-buffer:{},{}", side.name(), bytes.exact())
            }
            Self::Mtu { bytes } => format!("mtu:{bytes}"),
            Self::Delay { forward, reverse } => delay_code(*forward, *reverse),
            Self::LinkDown {
                side,
                after,
                lasting,
            } => format!(
                "link-down:{},{},{}",
                side.name(),
                after.exact(),
                lasting.exact()
            ),
            Self::Application { side, role, burden } => {
                let (role, burden) = (*role, *burden);
                format!("application:{},{}", side.name(), Habit { role, burden })
            }
            Self::Environment { side, name, value } => {
                format!("environment:{},{name}={value}", side.name())
            }
        }
    }
}

fn delay_code(forward: Nanos, reverse: Nanos) -> String {
    if forward == reverse {
        return format!("delay:{}", Nanos(forward.0.saturating_mul(2)).exact());
    }
    match (forward.0, reverse.0) {
        (_, 0) => format!("delay:{},forward", forward.exact()),
        (0, _) => format!("delay:{},reverse", reverse.exact()),
        _ => format!("delay:{},{}", forward.exact(), reverse.exact()),
    }
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let parts: Vec<&str> = rest.split(',').map(str::trim).collect();
        let reader = Reader { text };
        match name.trim() {
            "path-rate" => reader.path_rate(&parts),
            "receive-window" => {
                let (side, bytes) = reader.side_bytes(&parts, "receive-window:far,256KiB")?;
                Ok(Self::ReceiveWindow { side, bytes })
            }
            "send-buffer" => {
                let (side, bytes) = reader.side_bytes(&parts, "send-buffer:near,64KiB")?;
                Ok(Self::SendBuffer { side, bytes })
            }
            "mtu" => reader.mtu(&parts),
            "delay" => reader.delay(&parts),
            "link-down" => reader.link_down(&parts),
            "application" => reader.application(&parts),
            "environment" => reader.environment(rest),
            other => Err(FaultError::Unknown(other.to_owned())),
        }
    }
}

/// Reads the parts of one fault's text.
struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    fn form(&self, example: &'static str) -> FaultError {
        FaultError::Form {
            text: self.text.to_owned(),
            example,
        }
    }

    fn quantity<T: FromStr<Err = UnitError>>(&self, part: &str) -> Result<T, FaultError> {
        part.parse().map_err(|error| FaultError::Quantity {
            text: self.text.to_owned(),
            error,
        })
    }

    fn path_rate(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let example = "path-rate:100Mb/s,shallow";
        let (rate, depth, way) = match parts {
            [rate, depth] => (rate, depth, "both"),
            [rate, depth, way] => (rate, depth, *way),
            _ => return Err(self.form(example)),
        };
        let depth = match *depth {
            "shallow" => Depth::Shallow,
            "deep" => Depth::Deep,
            _ => return Err(self.form(example)),
        };
        let way = match way {
            "forward" => Way::Forward,
            "reverse" => Way::Reverse,
            "both" => Way::Both,
            _ => return Err(self.form("path-rate:100Mb/s,shallow,forward")),
        };
        let rate = self.quantity(rate)?;
        Ok(Fault::PathRate { rate, depth, way })
    }

    fn side(&self, part: &str, example: &'static str) -> Result<Side, FaultError> {
        match part {
            "near" => Ok(Side::Near),
            "far" => Ok(Side::Far),
            _ => Err(self.form(example)),
        }
    }

    fn side_bytes(
        &self,
        parts: &[&str],
        example: &'static str,
    ) -> Result<(Side, Bytes), FaultError> {
        let [side, bytes] = parts else {
            return Err(self.form(example));
        };
        Ok((self.side(side, example)?, self.quantity(bytes)?))
    }

    fn mtu(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let [bytes] = parts else {
            return Err(self.form("mtu:1280"));
        };
        let bytes = bytes.parse().map_err(|_| self.form("mtu:1280"))?;
        Ok(Fault::Mtu { bytes })
    }

    fn delay(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let (forward, reverse) = match parts {
            [round_trip] => {
                let Nanos(all) = self.quantity(round_trip)?;
                (Nanos(all / 2), Nanos(all / 2))
            }
            [time, "forward"] => (self.quantity(time)?, Nanos(0)),
            [time, "reverse"] => (Nanos(0), self.quantity(time)?),
            [forward, reverse] => (self.quantity(forward)?, self.quantity(reverse)?),
            _ => return Err(self.form("delay:20ms")),
        };
        Ok(Fault::Delay { forward, reverse })
    }

    fn link_down(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let example = "link-down:far,2s,500ms";
        let [side, after, lasting] = parts else {
            return Err(self.form(example));
        };
        Ok(Fault::LinkDown {
            side: self.side(side, example)?,
            after: self.quantity(after)?,
            lasting: self.quantity(lasting)?,
        })
    }

    fn application(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let example = "application:far,receiver,work=800ps/B";
        let (side, habit) = parts.split_first().ok_or_else(|| self.form(example))?;
        let Habit { role, burden } = habit.join(",").parse().map_err(|error| match error {
            HabitError::Form(_) => self.form(example),
            HabitError::Pause { error, .. } => FaultError::Quantity {
                text: self.text.to_owned(),
                error,
            },
        })?;
        Ok(Fault::Application {
            side: self.side(side, example)?,
            role,
            burden,
        })
    }

    /// The value is taken as it stands, commas and all.
    fn environment(&self, rest: &str) -> Result<Fault, FaultError> {
        let example = "environment:near,LINERATE_PACING=500Mb/s";
        let parts = rest
            .split_once(',')
            .and_then(|(side, set)| Some((side, set.split_once('=')?)));
        match parts {
            Some((side, (name, value))) if !name.is_empty() && !rest.contains('\0') => {
                Ok(Fault::Environment {
                    side: self.side(side, example)?,
                    name: name.to_owned(),
                    value: value.to_owned(),
                })
            }
            _ => Err(self.form(example)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_core::application::{Burden, Role};
    use linerate_core::units::Rate;
    use proptest::prelude::*;

    fn side() -> impl Strategy<Value = Side> {
        prop_oneof![Just(Side::Near), Just(Side::Far)]
    }

    fn way() -> impl Strategy<Value = Way> {
        prop_oneof![Just(Way::Forward), Just(Way::Reverse), Just(Way::Both)]
    }

    /// Numbers below 2^53, half of them round.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![
            0..1_u64 << 52,
            (0..9_000_000_u64).prop_map(|n| n * 1_000_000)
        ]
    }

    fn fault() -> impl Strategy<Value = Fault> {
        let depth = prop_oneof![Just(Depth::Shallow), Just(Depth::Deep)];
        let role = prop_oneof![
            Just(None),
            Just(Some(Role::Sender)),
            Just(Some(Role::Receiver))
        ];
        let burden = prop_oneof![
            any::<u64>().prop_map(|ps_per_byte| Burden::Work { ps_per_byte }),
            number().prop_map(|n| Burden::Pause {
                per_operation: Nanos(n)
            }),
        ];
        prop_oneof![
            (number(), depth, way()).prop_map(|(rate, depth, way)| Fault::PathRate {
                rate: Rate(rate),
                depth,
                way
            }),
            (side(), number()).prop_map(|(side, n)| Fault::ReceiveWindow {
                side,
                bytes: Bytes(n)
            }),
            (side(), number()).prop_map(|(side, n)| Fault::SendBuffer {
                side,
                bytes: Bytes(n)
            }),
            any::<u32>().prop_map(|bytes| Fault::Mtu { bytes }),
            (number(), number(), 0..4).prop_map(|(a, b, kind)| {
                let (forward, reverse) = match kind {
                    0 => (a, 0),
                    1 => (0, a),
                    2 => (a, a),
                    _ => (a, b),
                };
                Fault::Delay {
                    forward: Nanos(forward),
                    reverse: Nanos(reverse),
                }
            }),
            (side(), number(), number()).prop_map(|(side, after, lasting)| Fault::LinkDown {
                side,
                after: Nanos(after),
                lasting: Nanos(lasting)
            }),
            (side(), role, burden).prop_map(|(side, role, burden)| Fault::Application {
                side,
                role,
                burden
            }),
            (side(), "[A-Z_]+", "[^\0]*").prop_map(|(side, name, value)| Fault::Environment {
                side,
                name,
                value
            }),
        ]
    }

    proptest! {
        #[test]
        fn a_fault_reads_back_as_itself(fault in fault()) {
            prop_assert_eq!(fault.code().parse(), Ok(fault));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in ".*") {
            let _ = text.parse::<Fault>();
        }
    }

    #[test]
    fn what_is_left_out_has_its_usual_meaning() {
        let read = |text: &str| text.parse::<Fault>().unwrap().code();
        assert_eq!(
            read("path-rate:100Mb/s,shallow"),
            "path-rate:100Mb/s,shallow,both"
        );
        assert_eq!(
            read("path-rate: 0.1Gb/s, deep, reverse"),
            "path-rate:100Mb/s,deep,reverse"
        );
        assert_eq!(read("delay:10ms,10ms"), "delay:20ms");
        assert_eq!(read("delay:0ms,5ms"), "delay:5ms,reverse");
    }

    #[test]
    fn what_is_not_a_fault_is_refused() {
        for text in [
            "",
            "gremlins",
            "path-rate",
            "path-rate:100,deep",
            "path-rate:1Gb/s,wide",
            "path-rate:1Gb/s,deep,up",
            "receive-window:middle,1MiB",
            "mtu:1500B",
            "mtu:1,2",
            "delay:20",
            "delay:1ms,2ms,3ms",
            "link-down:far",
            "application:far,work=1",
            "application:far,idler,work=1ps/B",
            "application:far,pause=1us",
            "environment:near",
            "environment:near,LINERATE_PACING",
            "environment:near,=500Mb/s",
            "environment:middle,A=1",
            "environment:near,A=1\0",
        ] {
            assert!(text.parse::<Fault>().is_err(), "`{text}`");
        }
    }
}
