//! Transport `connect`: each round trip makes a new TCP connection, sends a message, receives its answer, and closes
//! the connection.
//!
//! Each stream also has a data connection, which belongs to the session as those of TCP do. Over the data connection
//! the far end sends the TCP port at which it listens, and the near end sends the end mark of a step. Payload is that
//! of the answered messages; no goodput is derived from it.

mod answerer;
mod asker;
mod meeting;

use linerate_plan::path::Side;
use linerate_plan::transport::{self, TransportInfo};
use linerate_plan::{Pattern, SetPlan};
use linerate_record::SetEnd;

use self::answerer::ConnectAnswerer;
use self::asker::ConnectAsker;
use super::line::connections;
use super::{Connected, Lines, Prepared, Transport, streams, unmade};
use crate::pattern::echo::Echo;
use crate::pattern::round_trips;
use crate::{LoadError, Worker};

/// Most streams of one set.
const STREAMS_MAX: u32 = 64;
/// Largest message in bytes: with larger ones, the time would be that of the transfer and not of the connection.
const SIZE_MAX: u64 = 16 * 1024;

/// Transport that makes one connection per message.
pub(super) struct Connect;

impl Transport for Connect {
    fn info(&self) -> &'static TransportInfo {
        &transport::CONNECT
    }

    fn descriptors(&self) -> u32 {
        // Per stream: the data connection, the listening socket and one connection.
        3
    }

    fn bounds(&self, plan: &SetPlan) -> Result<(), String> {
        streams(plan, STREAMS_MAX)?;
        match plan.pattern {
            Pattern::PingPong { size, .. } if !(1..=SIZE_MAX).contains(&size.0) => {
                Err(format!("a message of {size}: a connection carries 1 B to 16 KiB"))
            }
            _ => Ok(()),
        }
    }

    fn prepare(&self, side: Side, plan: &SetPlan) -> Result<Box<dyn Prepared>, LoadError> {
        Ok(unmade(side, plan, connect))
    }
}

/// Makes the workers of one end of a set: finds the other end for each stream.
fn connect(side: Side, plan: &SetPlan, lines: &mut dyn Lines) -> Result<Connected, LoadError> {
    let Pattern::PingPong { size, interval } = plan.pattern else {
        return Err(stream_of_payload());
    };
    let mut workers: Vec<Box<dyn Worker>> = Vec::new();
    let connections = connections(plan, lines)?;
    let given_up = || lines.given_up();
    for line in connections {
        workers.push(match side {
            Side::Near => {
                let to = meeting::find(&line, &given_up)?;
                round_trips(ConnectAsker::new(line, to, size.0 as u32), interval, &plan.knobs)
            }
            Side::Far => {
                let door = meeting::open(&line, &given_up)?;
                let answerer = ConnectAnswerer::new(line, door, size.0 as u32);
                Box::new(Echo::new(answerer))
            }
        });
    }
    let end = SetEnd::default();
    Ok(Connected { workers, end })
}

fn stream_of_payload() -> LoadError {
    LoadError::Unsupported {
        what: "connections are timed one by one: they carry no stream of payload".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
    use std::sync::Arc;
    use std::time::Duration;

    use linerate_plan::Knobs;
    use linerate_plan::path::Direction;
    use linerate_units::{Bytes, Nanos};
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

    use super::super::possible;
    use super::*;
    use crate::pattern::closed_loop::ClosedLoop;
    use crate::transport::line::Line;
    use crate::{Advice, Op};

    fn plan(change: impl FnOnce(&mut SetPlan)) -> SetPlan {
        let mut plan = SetPlan {
            id: 0,
            pattern: Pattern::PingPong { size: Bytes(1), interval: Nanos(0) },
            knobs: Knobs::default(),
        };
        change(&mut plan);
        plan
    }

    fn messages(bytes: u64) -> impl FnOnce(&mut SetPlan) {
        move |plan| {
            plan.pattern = Pattern::PingPong { size: Bytes(bytes), interval: Nanos(0) };
        }
    }

    #[test]
    fn plans_are_bounded_on_both_sides_of_each_limit() {
        let direction = Direction::Forward;
        for (plan, good) in [
            (plan(|_| ()), true),
            (plan(|p| p.knobs.streams = 0), false),
            (plan(|p| p.knobs.streams = STREAMS_MAX), true),
            (plan(|p| p.knobs.streams = STREAMS_MAX + 1), false),
            (plan(messages(0)), false),
            (plan(messages(SIZE_MAX)), true),
            (plan(messages(SIZE_MAX + 1)), false),
            (plan(|p| p.pattern = Pattern::Stream { direction }), false),
            (plan(|p| p.knobs.open_loop = true), false),
            (plan(|p| p.knobs.busy_poll = true), false),
            (plan(|p| p.knobs.two_writes = true), false),
        ] {
            assert_eq!(possible(&Connect, &plan).is_ok(), good, "{plan:?}");
        }
    }

    /// Makes the two ends of a data connection, near and far.
    fn lines() -> [Line; 2] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        [near, far].map(|stream| Line::new(stream.into(), 0, 0).unwrap())
    }

    /// Connects from another address of this machine.
    fn stranger(to: SocketAddr) -> TcpStream {
        let fd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&fd, &SocketAddr::from(([127, 0, 0, 2], 0))).unwrap();
        connect(&fd, &to).unwrap();
        fd.into()
    }

    /// Lets a worker execute `ops` operations, and then waits until it has ended; returns the payload that it moved.
    fn work(mut worker: impl Worker, op: Op, ops: u32) -> u32 {
        let advice = Arc::new(Advice::new(1, 1));
        worker.begin(&advice).unwrap();
        let (mut done, wait) = (Vec::new(), Duration::from_millis(10));
        let moved = |done: &[crate::Done]| done.iter().map(|d| d.bytes).sum::<u32>();
        while moved(&done) < ops * 3 {
            worker.submit(&[op]).unwrap();
            worker.reap(1, wait, &mut done).unwrap();
        }
        while !worker.finish().unwrap() {
            worker.submit(&[op]).unwrap();
            worker.reap(1, wait, &mut done).unwrap();
        }
        moved(&done)
    }

    /// Makes the near end, with messages of 3 bytes.
    fn caller(line: Line, to: SocketAddr) -> ClosedLoop<ConnectAsker> {
        ClosedLoop::new(ConnectAsker::new(line, to, 3), Nanos(0), false)
    }

    fn wanted() -> bool {
        false
    }

    #[test]
    fn a_first_connection_is_waited_for_until_the_set_is_given_up() {
        for given_up in [true, false] {
            let [near, far] = lines();
            let door = std::thread::spawn(move || meeting::open(&far, &|| given_up));
            if !given_up {
                meeting::find(&near, &wanted).unwrap();
            }
            let opened = door.join().unwrap();
            assert_eq!(opened.is_err(), given_up);
            if let Err(e) = opened {
                assert!(e.to_string().contains("was given up"), "{e}");
            }
        }
        // The set is given up while the far end waits for the first connection. The near end gives up too, if the far
        // end sends no port.
        let [near, far] = lines();
        let requested = std::cell::Cell::new(0);
        let later = || requested.replace(requested.get() + 1) > 2;
        let why = meeting::open(&far, &later).unwrap_err().to_string();
        assert!(why.contains("was given up"), "{why}");
        let mut reported = [0; 2];
        assert_eq!(near.receive(&mut reported, true).unwrap(), 2);
        requested.set(0);
        let why = meeting::find(&near, &later).unwrap_err().to_string();
        assert!(why.contains("was given up"), "{why}");
    }

    #[test]
    fn connections_are_answered_and_those_from_elsewhere_are_closed() {
        let [near, far] = lines();
        let answerer = std::thread::spawn(move || {
            let door = meeting::open(&far, &wanted).unwrap();
            work(Echo::new(ConnectAnswerer::new(far, door, 3)), Op::Receive(3), 20)
        });
        let to = meeting::find(&near, &wanted).unwrap();
        let mut other = stranger(to);
        let _ = other.write_all(b"abc");
        let mut answer = Vec::new();
        let _ = other.read_to_end(&mut answer);
        assert!(answer.is_empty(), "{answer:?}");
        let mut silent = TcpStream::connect(to).unwrap();
        let made = work(caller(near, to), Op::Send(3), 20);
        assert_eq!((made, answerer.join().unwrap()), (60, 60));
        assert_eq!(silent.read(&mut [0]).unwrap(), 0, "one that says nothing");
    }

    #[test]
    fn where_no_connection_gets_through_that_is_told() {
        let [near, far] = lines();
        let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = closed.local_addr().unwrap().port();
        drop(closed);
        far.send(&port.to_be_bytes(), false).unwrap();
        let failed = meeting::find(&near, &wanted).unwrap_err();
        assert!(failed.to_string().contains("no TCP connection reaches"));
        assert!(failed.hint().contains("ip_local_port_range"));
    }

    #[test]
    fn a_connection_that_is_refused_is_lost_and_counts_where_its_time_does() {
        for (counts, lost) in [(true, 5..=u64::MAX), (false, 0..=0)] {
            let [near, _far] = lines();
            let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let to = closed.local_addr().unwrap();
            drop(closed);
            let mut caller = caller(near, to);
            let advice = Arc::new(Advice::new(1, 1));
            if counts {
                advice.count_from(1);
            }
            caller.begin(&advice).unwrap();
            for _ in 0..5 {
                caller.submit(&[Op::Send(3)]).unwrap();
                let mut done = Vec::new();
                caller.reap(1, Duration::ZERO, &mut done).unwrap();
                assert_eq!(done, []);
            }
            let timed = caller.timed();
            assert!(lost.contains(&timed.lost) && timed.trips.is_empty());
        }
    }

    #[test]
    fn a_far_end_that_is_gone_ends_the_step() {
        let [near, far] = lines();
        let to = SocketAddr::from(([127, 0, 0, 1], 1));
        drop(far);
        let mut caller = caller(near, to);
        caller.begin(&Arc::new(Advice::new(1, 1))).unwrap();
        caller.submit(&[Op::Send(3)]).unwrap();
        let ended = caller.reap(1, Duration::ZERO, &mut Vec::new());
        assert!(ended.unwrap_err().to_string().contains("closed"));
    }

    #[test]
    fn a_step_ends_beside_one_that_says_nothing() {
        let [near, far] = lines();
        let answerer = std::thread::spawn(move || {
            let door = meeting::open(&far, &wanted).unwrap();
            work(Echo::new(ConnectAnswerer::new(far, door, 3)), Op::Receive(3), 0)
        });
        let to = meeting::find(&near, &wanted).unwrap();
        let _silent = [(); 4].map(|()| TcpStream::connect(to).unwrap());
        let began = std::time::Instant::now();
        assert_eq!(work(caller(near, to), Op::Send(3), 0), 0);
        assert_eq!(answerer.join().unwrap(), 0);
        assert!(began.elapsed() < Duration::from_secs(2));
    }

    #[test]
    fn one_that_is_answered_and_not_closed_has_its_time() {
        let [near, far] = lines();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = listener.local_addr().unwrap();
        let host = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut message = [0; 3];
            stream.read_exact(&mut message).unwrap();
            stream.write_all(&message).unwrap();
            // The connection stays open until the near end has closed it.
            let _ = stream.read(&mut [0]);
        });
        let mut caller = caller(near, to);
        let advice = Arc::new(Advice::new(1, 1));
        caller.begin(&advice).unwrap();
        advice.count_from(linerate_sys::clock::now());
        let mut done = Vec::new();
        while done.is_empty() {
            caller.submit(&[Op::Send(3)]).unwrap();
            caller.reap(1, Duration::ZERO, &mut done).unwrap();
        }
        while !caller.finish().unwrap() {
            caller.reap(1, Duration::ZERO, &mut done).unwrap();
        }
        let timed = caller.timed();
        assert_eq!((timed.trips.len(), timed.lost), (1, 0));
        host.join().unwrap();
        drop(far);
    }
}
