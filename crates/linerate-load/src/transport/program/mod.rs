//! Transport `program`: at each end an ordinary process, which uses sockets and `poll` and nothing of linerate's
//! engine.
//!
//! It shows the goodput and latency of an unchanged program. If it is started with librdmacm's preload library, its
//! connection runs over RDMA, although the program uses only sockets. Each stream has a data connection of the session:
//! over it the far end sends the TCP port at which its program listens, and the token by which the connection of the
//! near end's program proves that it belongs to the set. The programs measure and count by themselves and report over
//! pipes (docs/decisions/rdma-and-fabric.md).

mod body;
mod handle;
mod orders;
mod report;
mod worker;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use linerate_plan::path::Side;
use linerate_plan::transport::{self, PRELOAD, TransportInfo};
use linerate_plan::{Pattern, SetPlan};
use linerate_record::SetEnd;
use linerate_units::Bytes;

use self::body::Quit;
use self::handle::Handle;
use self::orders::{Meet, Orders, Token, Work};
use self::report::Report;
use self::worker::Reporter;
use super::line::{Line, connections};
use super::{Connected, Lines, Prepared, Transport, at_port, message, streams, unmade};
use crate::{LoadError, Worker};

/// First argument with which this executable is started as the ordinary program.
pub(super) const VERB: &str = "socket-program";
/// Paths at which distributions install the preload library; the first that exists is used.
//= librdmacm1 44.0-2 (Debian), librdmacm (Fedora), rdma-core (Arch)
const LIBRARIES: [&str; 3] =
    [MULTIARCH, "/usr/lib64/rsocket/librspreload.so", "/usr/lib/rsocket/librspreload.so"];
#[cfg(target_arch = "aarch64")]
const MULTIARCH: &str = "/usr/lib/aarch64-linux-gnu/rsocket/librspreload.so";
#[cfg(not(target_arch = "aarch64"))]
const MULTIARCH: &str = "/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so";
/// Hint if the host lacks the preload library.
const INSTALL: &str = "install the library at both ends (Debian, Ubuntu: librdmacm1; Fedora: librdmacm; Arch: rdma-core)";
/// Hint if the connection does not run over RDMA.
const ROUTE: &str = "load rdma_ucm at both ends (sudo modprobe rdma_ucm), let both users open /dev/infiniband/rdma_cm, and use \
                     an address of an RDMA port";
/// Most streams of one set: each is a process.
const STREAMS_MAX: u32 = 8;
/// Size of a write in bytes if the plan leaves it open.
const SIZE: u64 = 64 << 10;
/// Memory of a process in bytes, without its buffer.
const PROCESS: u64 = 16 << 20;
/// Longest time until the programs must be connected.
const PATIENCE: Duration = Duration::from_secs(15);
/// Number of bytes with which the far end reports where its program listens: the TCP port (zero if it failed) and the
/// token.
const WHERE_BYTES: usize = 18;

/// Transport of an ordinary program.
pub(super) struct Program;

impl Transport for Program {
    fn info(&self) -> &'static TransportInfo {
        &transport::PROGRAM
    }

    fn bounds(&self, plan: &SetPlan) -> Result<(), String> {
        streams(plan, STREAMS_MAX)?;
        if matches!(plan.pattern, Pattern::PingPong { interval, .. } if interval.0 > 0) {
            return Err("an ordinary program has no rate of messages".to_owned());
        }
        if plan.knobs.nagle {
            return Err("an ordinary program has no Nagle's algorithm".to_owned());
        }
        message(Bytes(size(plan)))
    }

    fn room(&self, _: Side, plan: &SetPlan) -> Option<Bytes> {
        Some(Bytes(size(plan).saturating_add(PROCESS)))
    }

    fn descriptors(&self) -> u32 {
        // Per stream: the data connection and two pipes to the program.
        3
    }

    fn prepare(&self, side: Side, plan: &SetPlan) -> Result<Box<dyn Prepared>, LoadError> {
        Ok(unmade(side, plan, connect))
    }
}

/// Returns the size of a message or of a write, in bytes.
fn size(plan: &SetPlan) -> u64 {
    match plan.pattern {
        Pattern::PingPong { size, .. } => size.0,
        _ if plan.knobs.write_size.0 > 0 => plan.knobs.write_size.0,
        _ => SIZE,
    }
}

/// Runs as the ordinary program if the arguments request that, and then returns how it ended; otherwise `None`.
pub fn started_as(mut arguments: impl Iterator<Item = OsString>) -> Option<io::Result<()>> {
    (arguments.nth(1)? == VERB && arguments.next().is_none()).then(|| {
        // When its orders end, the program must end too. It is killed, because it may be blocked in any call.
        let gone = || {
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
        };
        let result = body::obey(io::stdin(), io::stdout(), gone);
        result.map_err(|quit| match quit {
            Quit::Socket(failed) => failed.source,
            Quit::Orders(error) => error,
        })
    })
}

/// Connects one end of a set.
fn connect(side: Side, plan: &SetPlan, lines: &mut dyn Lines) -> Result<Connected, LoadError> {
    let mut workers: Vec<Box<dyn Worker>> = Vec::new();
    for line in connections(plan, lines)? {
        let met = meet(side, plan, line, &|| lines.given_up());
        let preload = plan.knobs.options.is_on(PRELOAD.key);
        workers.push(Box::new(met.map_err(|e| if preload { of_preload(e) } else { e })?));
    }
    let end = SetEnd { write_size: size(plan), read_size: size(plan), ..SetEnd::default() };
    Ok(Connected { workers, end })
}

/// Starts the program of one stream, and connects it to the program of the other end.
fn meet(
    side: Side,
    plan: &SetPlan,
    line: Line,
    given_up: &dyn Fn() -> bool,
) -> Result<Reporter, LoadError> {
    let until = Instant::now() + PATIENCE;
    let work = work(side, plan);
    let preload = plan.knobs.options.is_on(PRELOAD.key);
    let library = library(preload);
    let mut orders = Orders {
        meet: Meet::Connect,
        address: line.peer()?,
        token: Token::default(),
        work,
        size: size(plan) as u32,
    };
    let mut program = if side == Side::Near {
        let (port, token) = find(&line, until, given_up)?;
        orders.address = at_port(orders.address, port);
        orders.token = token;
        Handle::start(&orders, library?, &line)?
    } else {
        orders.meet = Meet::Listen;
        orders.address = at_port(line.local()?, 0);
        getrandom::fill(&mut orders.token)
            .map_err(|e| line.failed("getrandom", io::Error::other(e)))?;
        let listening = library.and_then(|library| {
            let program = Handle::start(&orders, library, &line)?;
            listening(program, &line, until, given_up)
        });
        let port = listening.as_ref().map_or(0, |(_, port)| *port);
        let mut reported = [0; WHERE_BYTES];
        reported[..2].copy_from_slice(&port.to_be_bytes());
        reported[2..].copy_from_slice(&orders.token);
        line.send_all(&reported, until, "the other end does not ask where the program listens")?;
        listening?.0
    };
    match program.within(until, given_up)? {
        Report::Connected(tcp) if tcp && preload => Err(LoadError::Failed {
            what: "the preload library left the connection to the kernel's TCP".to_owned(),
            hint: ROUTE,
        }),
        Report::Connected(_) => Ok(Reporter::new(program, work, orders.size, line)),
        report => Err(line.garbled(&format!("the program reports {report:?}"))),
    }
}

/// Waits until the far end's program listens; returns its TCP port.
fn listening(
    mut program: Handle,
    line: &Line,
    until: Instant,
    given_up: &dyn Fn() -> bool,
) -> Result<(Handle, u16), LoadError> {
    match program.within(until, given_up)? {
        Report::Listening(port) => Ok((program, port)),
        report => Err(line.garbled(&format!("the program reports {report:?}"))),
    }
}

/// Turns the error of a call that failed before the program was connected into one that explains what the preload
/// library needs.
fn of_preload(error: LoadError) -> LoadError {
    match error {
        LoadError::Call { call, source, .. } => LoadError::Failed {
            what: format!("{call} failed through the preload library: {source}"),
            hint: ROUTE,
        },
        other => other,
    }
}

/// Returns the task of the program at one end.
fn work(side: Side, plan: &SetPlan) -> Work {
    match plan.pattern {
        Pattern::PingPong { .. } if side == Side::Near => Work::Ask,
        Pattern::PingPong { .. } => Work::Answer,
        Pattern::Stream { direction } if direction.sender() == side => Work::Send,
        // Plans with operations are refused by `possible`: the transport's row does not list this pattern.
        _ => Work::Receive,
    }
}

/// Returns the path of the preload library on this host; `None` if it is not requested.
fn library(preload: bool) -> Result<Option<&'static Path>, LoadError> {
    if !preload {
        return Ok(None);
    }
    let mut all = LIBRARIES.into_iter().map(Path::new);
    let found = all.find(|path| path.is_file());
    found.map(Some).ok_or_else(|| LoadError::Failed {
        what: "this host has no librspreload, librdmacm's socket preload".to_owned(),
        hint: INSTALL,
    })
}

/// Receives the TCP port and the token of the far end's program.
fn find(
    line: &Line,
    until: Instant,
    given_up: &dyn Fn() -> bool,
) -> Result<(u16, Token), LoadError> {
    let late = "the other end's program does not listen";
    let reported: [u8; WHERE_BYTES] = line.receive_all(until, given_up, late)?;
    let mut token = Token::default();
    token.copy_from_slice(&reported[2..]);
    match u16::from_be_bytes([reported[0], reported[1]]) {
        0 => Err(line.garbled("the other end's program could not be started")),
        port => Ok((port, token)),
    }
}

#[cfg(test)]
mod tests {
    use linerate_plan::Knobs;
    use linerate_plan::path::Direction;
    use linerate_units::Nanos;

    use super::super::possible;
    use super::*;

    fn plan(pattern: Pattern, knobs: Knobs) -> SetPlan {
        let id = 0;
        SetPlan { id, pattern, knobs }
    }

    fn pings(size: u64, interval: u64) -> Pattern {
        let (size, interval) = (Bytes(size), Nanos(interval));
        Pattern::PingPong { size, interval }
    }

    #[test]
    fn what_an_ordinary_program_cannot_do_is_refused() {
        let stream = Pattern::Stream { direction: Direction::Forward };
        let set = |change: fn(&mut Knobs)| {
            let mut knobs = Knobs::default();
            change(&mut knobs);
            knobs
        };
        for (plan, good) in [
            (plan(pings(1, 0), set(|_| ())), true),
            (plan(pings(16 << 20, 0), set(|_| ())), true),
            (plan(pings((16 << 20) + 1, 0), set(|_| ())), false),
            (plan(pings(0, 0), set(|_| ())), false),
            (plan(pings(1, 1), set(|_| ())), false),
            (plan(pings(1, 0), set(|knobs| knobs.busy_poll = true)), false),
            (plan(pings(1, 0), set(|knobs| knobs.nagle = true)), false),
            (plan(stream, set(|knobs| knobs.streams = 8)), true),
            (plan(stream, set(|knobs| knobs.streams = 9)), false),
            (plan(stream, set(|knobs| knobs.mss = Some(1000))), false),
            (plan(stream, set(|_| ())), true),
        ] {
            assert_eq!(possible(&Program, &plan).is_ok(), good, "{plan:?}");
        }
    }

    #[test]
    fn ends_do_what_fits_each_other() {
        let all = |pattern| {
            let plan = plan(pattern, Knobs::default());
            [Side::Near, Side::Far].map(|side| work(side, &plan))
        };
        assert_eq!(all(pings(1, 0)), [Work::Ask, Work::Answer]);
        let stream = |direction| Pattern::Stream { direction };
        let [forward, reverse] = [Direction::Forward, Direction::Reverse].map(stream).map(all);
        assert_eq!(forward, [Work::Send, Work::Receive]);
        assert_eq!(reverse, [Work::Receive, Work::Send]);
    }

    #[test]
    fn only_its_own_argument_makes_this_program_an_ordinary_one() {
        for arguments in [&["linerate"][..], &["linerate", "run"], &["linerate", VERB, "x"]] {
            let arguments = arguments.iter().map(OsString::from);
            assert!(started_as(arguments).is_none());
        }
    }
}
