//! One row for each fault, from which its parser, its text and its description are made.

use std::fmt;
use std::str::FromStr;

use linerate_plan::application::Habit;

use super::bounds::{BUFFER, BUFFERS, DELAYS, PACKETS, PERIODS, RATE, RATES, ROOMS, THREADS};
use super::parts::{
    Bursts, Choice, Course, Cpu, Every, Off, Part, RoundTrip, Stalls, Threads, Variable, read,
};
use super::words::{bearer, effect, goal, in_a_row};
use super::{Fault, FaultError, Rhythm};

/// Makes the functions of [`Fault`] from its rows. A row has
/// - the fault's name, and an example of the text after the name;
/// - the fault, with its fields in the order of the text, and after `as` the parts of the text, if they are not simply
///   the fields;
/// - its description for people;
/// - after `where` the bounds of its numbers, and the error message for numbers outside them.
macro_rules! faults {
    ($(
        $name:literal: $example:literal => $fault:ident { $($field:ident),* } $(as $parts:tt)?,
        $words:literal $(, $word:expr)* $(, where $within:expr, else $why:expr)?;
    )*) => {
        impl Fault {
            /// Names of all kinds of faults; a fault's text begins with one of them.
            pub const KINDS: &'static [&'static str] = &[$($name),*];

            /// One example of each kind, as users type it.
            pub const EXAMPLES: &'static [&'static str] = &[$(concat!($name, ":", $example)),*];

            /// Returns the name of the fault's kind.
            pub(crate) const fn name(&self) -> &'static str {
                match self {
                    $(Self::$fault { .. } => $name,)*
                }
            }

            /// Returns the error message for a number of the fault that is out of bounds; `None` if all are within.
            #[expect(unused_variables, reason = "not every field has bounds")]
            pub(crate) fn out_of_bounds(&self) -> Option<&'static str> {
                match self {
                    $(Self::$fault { $($field),* } => None$(.or((!$within).then_some($why)))?,)*
                }
            }

            /// Returns the text that [`FromStr`](std::str::FromStr) parses to exactly this fault.
            pub fn code(&self) -> String {
                let parts = match self.clone() {
                    $(Self::$fault { $($field),* } => parts!($($field),* $(as $parts)?).text(),)*
                };
                format!("{}:{parts}", self.name())
            }
        }

        impl FromStr for Fault {
            type Err = FaultError;

            #[expect(unused_parens, reason = "a single part needs none")]
            fn from_str(text: &str) -> Result<Self, FaultError> {
                let (name, rest) = text.split_once(':').unwrap_or((text, ""));
                match name.trim() {
                    $($name => {
                        let example = concat!($name, ":", $example);
                        let parts!($($field),* $(as $parts)?) = read(text, rest, example)?;
                        Ok(Self::$fault { $($field),* })
                    })*
                    other => Err(FaultError::Unknown(other.to_owned())),
                }
            }
        }

        impl fmt::Display for Fault {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$fault { $($field),* } => write!(f, $words $(, $word)*),)*
                }
            }
        }
    };
}

/// Returns the parts of a row: those after `as`, otherwise the fields.
macro_rules! parts {
    ($($field:ident),*) => { ($($field),*) };
    ($($field:ident),* as $parts:tt) => { $parts };
}

faults! {
    "path-rate": "100Mb/s,shallow,forward" => PathRate { rate, depth, directions },
        "the network carries {rate} {directions}, with a {} queue", depth.word(),
        where RATES.contains(rate), else RATE;
    "police": "500Mb/s,forward" => Police { rate, directions },
        "the network drops traffic above {rate} {directions}",
        where RATES.contains(rate), else RATE;
    "flow-rate": "500Mb/s,shaped,forward" => FlowRate { rate, manner, directions },
        "the network carries {rate} of each flow {directions}, and {} the rest", manner.verb(),
        where RATES.contains(rate), else RATE;
    "loss": "1%,bursts=20,forward" => Loss { share, burst, directions }
        as (share, Bursts(burst, directions)),
        "the network loses {share} of the packets {directions}{}", in_a_row(*burst),
        where share.part() <= 0.5 && (1..=10_000).contains(burst),
        else "the share is above 50%, or the burst outside 1 to 10000 packets";
    "reorder": "1ms,every=100,forward" => Reorder { by, every, directions }
        as (by, Every(every), directions),
        "one of {every} packets {directions} arrives {by} late",
        where DELAYS.contains(by) && *every >= 2,
        else "the time is outside 1 ns to 10 s, or more than every second packet is late";
    "jitter": "2ms,forward" => Jitter { most, directions },
        "packets take up to {most} longer {directions}, by a varying time",
        where DELAYS.contains(most), else "the time is outside 1 ns to 10 s";
    "hold": "far,200us" => Hold { side, period },
        "packets to {} are released all at once, every {period}", side.name(),
        where PERIODS.contains(period), else "the period is outside 20 us to 10 ms";
    "black-hole": "1400,forward" => BlackHole { bytes, directions },
        "packets of more than {bytes} bytes are dropped silently {directions}",
        where PACKETS.contains(bytes), else "the size is outside 576 to 65535";
    "traffic": "500Mb/s,forward" => Traffic { rate, direction, origin }
        as (rate, Course(direction, origin)),
        "other traffic of {rate} goes {}", goal(*direction, *origin),
        where RATES.contains(rate), else RATE;
    "receive-window": "far,256KiB" => ReceiveWindow { side, bytes },
        "receive buffers of {} end at {bytes}", side.name(),
        where BUFFERS.contains(bytes), else BUFFER;
    "send-buffer": "near,64KiB" => SendBuffer { side, bytes },
        "send buffers of {} end at {bytes}", side.name(),
        where BUFFERS.contains(bytes), else BUFFER;
    "mtu": "1280" => Mtu { bytes },
        "packets are at most {bytes} bytes long",
        where PACKETS.contains(bytes), else "the MTU is outside 576 to 65535";
    "delay": "20ms" => Delay { forward, reverse } as (RoundTrip(forward, reverse)),
        "packets take {forward} longer forward, {reverse} in reverse",
        where DELAYS.contains(forward.max(reverse)), else "the delay is outside 1 ns to 10 s";
    "link-down": "far,2s,500ms" => LinkDown { side, after, lasting },
        "the link of {} is down for {lasting}, after {after}", side.name();
    "stall": "far,200ms,every=1s" => Stall { side, lasting, rhythm }
        as (side, Stalls(lasting, rhythm)),
        "programs on {} stop for {lasting}, {rhythm}", side.name(),
        where !matches!(rhythm, Rhythm::Every(period) if period <= lasting),
        else "it lasts longer than its period";
    "shape": "near,500Mb/s" => Shape { side, rate },
        "the port of {} sends {rate}", side.name(),
        where RATES.contains(rate), else RATE;
    "queue": "near,2Gb/s,30KiB" => Queue { side, rate, bytes },
        "the port of {} sends {rate} and queues {bytes}", side.name(),
        where RATES.contains(rate) && ROOMS.contains(bytes),
        else "the rate is outside 100 kb/s to 300 Gb/s, or the room outside 2 kB to 1 GiB";
    "offloads": "near,off" => Offloads { side } as (side, Off),
        "the port of {} has its offloads off", side.name();
    "hog": "cpu=0,threads=3" => Hog { cpu, threads } as (Cpu(cpu), Threads(threads)),
        "{threads} threads of others keep CPU {cpu} busy",
        where THREADS.contains(threads), else "the threads are not 1 to 64";
    "cpus": "near,0" => Cpus { side, cpu },
        "programs on {} run on CPU {cpu} alone", side.name();
    "quota": "near,50%" => Quota { side, share },
        "programs on {} get {share} of one CPU's time", side.name();
    "application": "far,receiver,work=800ps/B" => Application { side, role, burden }
        as (side, Habit { role, burden }),
        "the {} on {} {}", bearer(*role), side.name(), effect(*burden);
    "environment": "near,LINERATE_PACING=500Mb/s" => Environment { side, name, value }
        as (side, Variable(name, value)),
        "programs on {} are started with {name}={value}", side.name();
}
