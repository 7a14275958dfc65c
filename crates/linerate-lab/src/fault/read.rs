//! Parsing of faults from the text that users type.

use std::str::FromStr;

use linerate_plan::application::{Habit, HabitError};
use linerate_plan::path::{Direction, Side};
use linerate_units::{Nanos, UnitError};

use super::{Depth, Fault, FaultDirection, FaultError, Manner, Origin, Rhythm};

impl Fault {
    /// Name of each kind of fault, with which its text begins.
    pub const KINDS: &'static [&'static str] = &[
        "path-rate",
        "police",
        "flow-rate",
        "loss",
        "reorder",
        "jitter",
        "delay",
        "hold",
        "black-hole",
        "mtu",
        "traffic",
        "link-down",
        "receive-window",
        "send-buffer",
        "shape",
        "queue",
        "offloads",
        "hog",
        "cpus",
        "quota",
        "stall",
        "application",
        "environment",
    ];
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
                let (side, bytes) = reader.side_quantity(&parts, "receive-window:far,256KiB")?;
                Ok(Self::ReceiveWindow { side, bytes })
            }
            "send-buffer" => {
                let (side, bytes) = reader.side_quantity(&parts, "send-buffer:near,64KiB")?;
                Ok(Self::SendBuffer { side, bytes })
            }
            "mtu" => reader.mtu(&parts),
            "delay" => reader.delay(&parts),
            "link-down" => reader.link_down(&parts),
            "application" => reader.application(&parts),
            "environment" => reader.environment(rest),
            "police" => reader.police(&parts),
            "flow-rate" => reader.flow_rate(&parts),
            "loss" => reader.loss(&parts),
            "reorder" => reader.reorder(&parts),
            "jitter" => reader.jitter(&parts),
            "hold" => {
                let (side, period) = reader.side_quantity(&parts, "hold:far,200us")?;
                Ok(Self::Hold { side, period })
            }
            "black-hole" => reader.black_hole(&parts),
            "traffic" => reader.traffic(&parts),
            "shape" => {
                let (side, rate) = reader.side_quantity(&parts, "shape:near,500Mb/s")?;
                Ok(Self::Shape { side, rate })
            }
            "queue" => reader.queue(&parts),
            "hog" => reader.hog(&parts),
            "cpus" => reader.cpus(&parts),
            "quota" => reader.quota(&parts),
            "offloads" => reader.offloads(&parts),
            "stall" => reader.stall(&parts),
            other => Err(FaultError::Unknown(other.to_owned())),
        }
    }
}

/// Parser of the parts of one fault's text.
struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    fn form(&self, example: &'static str) -> FaultError {
        FaultError::Form { text: self.text.to_owned(), example }
    }

    fn quantity<T: FromStr<Err = UnitError>>(&self, part: &str) -> Result<T, FaultError> {
        part.parse().map_err(|error| FaultError::Quantity { text: self.text.to_owned(), error })
    }

    fn path_rate(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let example = "path-rate:100Mb/s,shallow,forward";
        let (parts, directions) = directions(parts);
        let [rate, depth] = parts else {
            return Err(self.form(example));
        };
        let depth = match *depth {
            "shallow" => Depth::Shallow,
            "deep" => Depth::Deep,
            _ => return Err(self.form(example)),
        };
        let rate = self.quantity(rate)?;
        Ok(Fault::PathRate { rate, depth, directions })
    }

    fn side(&self, part: &str, example: &'static str) -> Result<Side, FaultError> {
        match part {
            "near" => Ok(Side::Near),
            "far" => Ok(Side::Far),
            _ => Err(self.form(example)),
        }
    }

    fn side_quantity<T: FromStr<Err = UnitError>>(
        &self,
        parts: &[&str],
        example: &'static str,
    ) -> Result<(Side, T), FaultError> {
        let [side, quantity] = parts else {
            return Err(self.form(example));
        };
        Ok((self.side(side, example)?, self.quantity(quantity)?))
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
            HabitError::Pause { error, .. } => {
                FaultError::Quantity { text: self.text.to_owned(), error }
            }
        })?;
        Ok(Fault::Application { side: self.side(side, example)?, role, burden })
    }

    /// The value is used literally, with its commas.
    fn environment(&self, rest: &str) -> Result<Fault, FaultError> {
        let example = "environment:near,LINERATE_PACING=500Mb/s";
        let parts = rest.split_once(',').and_then(|(side, set)| Some((side, set.split_once('=')?)));
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

    fn number(&self, part: &str, example: &'static str) -> Result<u32, FaultError> {
        part.parse().map_err(|_| self.form(example))
    }

    /// Parses the number behind `name=`.
    fn named(&self, part: &str, name: &str, example: &'static str) -> Result<u32, FaultError> {
        let value = part.strip_prefix(name).and_then(|p| p.strip_prefix('='));
        self.number(value.ok_or_else(|| self.form(example))?, example)
    }

    fn share(&self, part: &str) -> Result<super::Share, FaultError> {
        part.parse().map_err(|error| FaultError::Share { text: self.text.to_owned(), error })
    }

    fn police(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let (parts, directions) = directions(parts);
        let [rate] = parts else {
            return Err(self.form("police:500Mb/s,forward"));
        };
        let rate = self.quantity(rate)?;
        Ok(Fault::Police { rate, directions })
    }

    fn flow_rate(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let (parts, directions) = directions(parts);
        let (rate, manner) = match parts {
            [rate, "shaped"] => (rate, Manner::Shaped),
            [rate, "policed"] => (rate, Manner::Policed),
            _ => return Err(self.form("flow-rate:500Mb/s,shaped,forward")),
        };
        let rate = self.quantity(rate)?;
        Ok(Fault::FlowRate { rate, manner, directions })
    }

    fn loss(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let example = "loss:1%,bursts=20,forward";
        let (parts, directions) = directions(parts);
        let (share, burst) = match parts {
            [share] => (share, 1),
            [share, burst] => (share, self.named(burst, "bursts", example)?),
            _ => return Err(self.form(example)),
        };
        let share = self.share(share)?;
        Ok(Fault::Loss { share, burst, directions })
    }

    fn reorder(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let example = "reorder:1ms,every=100,forward";
        let (parts, directions) = directions(parts);
        let [by, every] = parts else {
            return Err(self.form(example));
        };
        let every = self.named(every, "every", example)?;
        let by = self.quantity(by)?;
        Ok(Fault::Reorder { by, every, directions })
    }

    fn jitter(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let (parts, directions) = directions(parts);
        let [most] = parts else {
            return Err(self.form("jitter:2ms,forward"));
        };
        let most = self.quantity(most)?;
        Ok(Fault::Jitter { most, directions })
    }

    fn black_hole(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let example = "black-hole:1400,forward";
        let (parts, directions) = directions(parts);
        let [bytes] = parts else {
            return Err(self.form(example));
        };
        let bytes = self.number(bytes, example)?;
        Ok(Fault::BlackHole { bytes, directions })
    }

    fn traffic(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let example = "traffic:500Mb/s,forward";
        let (rate, direction, origin) = match parts {
            [rate, direction] => (rate, direction, Origin::Elsewhere),
            [rate, direction, "ends"] => (rate, direction, Origin::Ends),
            _ => return Err(self.form(example)),
        };
        let named = Direction::ALL.into_iter().find(|d| d.name() == *direction);
        Ok(Fault::Traffic {
            rate: self.quantity(rate)?,
            direction: named.ok_or_else(|| self.form(example))?,
            origin,
        })
    }

    fn queue(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let example = "queue:near,2Gb/s,30KiB";
        let [side, rate, bytes] = parts else {
            return Err(self.form(example));
        };
        Ok(Fault::Queue {
            side: self.side(side, example)?,
            rate: self.quantity(rate)?,
            bytes: self.quantity(bytes)?,
        })
    }

    fn hog(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let example = "hog:cpu=0,threads=3";
        let [cpu, threads] = parts else {
            return Err(self.form(example));
        };
        Ok(Fault::Hog {
            cpu: self.named(cpu, "cpu", example)?,
            threads: self.named(threads, "threads", example)?,
        })
    }

    fn cpus(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let example = "cpus:near,0";
        let [side, cpu] = parts else {
            return Err(self.form(example));
        };
        Ok(Fault::Cpus { side: self.side(side, example)?, cpu: self.number(cpu, example)? })
    }

    fn quota(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let example = "quota:near,50%";
        let [side, share] = parts else {
            return Err(self.form(example));
        };
        Ok(Fault::Quota { side: self.side(side, example)?, share: self.share(share)? })
    }

    fn offloads(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let example = "offloads:near,off";
        let [side, "off"] = parts else {
            return Err(self.form(example));
        };
        let side = self.side(side, example)?;
        Ok(Fault::Offloads { side })
    }

    fn stall(&self, parts: &[&str]) -> Result<Fault, FaultError> {
        let example = "stall:far,200ms,every=1s";
        let [side, first, second] = parts else {
            return Err(self.form(example));
        };
        let (lasting, rhythm) = match second.strip_prefix("every=") {
            Some(period) => (first, Rhythm::Every(self.quantity(period)?)),
            None => (second, Rhythm::Once(self.quantity(first)?)),
        };
        Ok(Fault::Stall {
            side: self.side(side, example)?,
            lasting: self.quantity(lasting)?,
            rhythm,
        })
    }
}

/// Splits off the direction, if the last part names one; otherwise both directions.
fn directions<'a, 'p>(parts: &'a [&'p str]) -> (&'a [&'p str], FaultDirection) {
    let all = [FaultDirection::Forward, FaultDirection::Reverse, FaultDirection::Both];
    let named = |last: &str| all.into_iter().find(|directions| directions.name() == last);
    match parts.split_last() {
        Some((last, others)) => match named(last) {
            Some(directions) => (others, directions),
            None => (parts, FaultDirection::Both),
        },
        None => (parts, FaultDirection::Both),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
