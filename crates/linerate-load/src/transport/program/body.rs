//! The ordinary program itself, which uses sockets and knows nothing of RDMA.
//!
//! It makes one connection by the calls of the C library, and waits only by `poll`. It reads orders from its standard
//! input and writes reports to its standard output. When its standard input is closed, it ends, whatever it is doing.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use linerate_sys::clock;
use linerate_sys::plain::{Failed, Socket};

use super::orders::{Meet, Orders, Token, Work};
use super::report::{Report, Reports};
use crate::pages::Pages;

/// Order to begin a step.
pub(super) const GO: u8 = b'g';
/// Order to end a step.
pub(super) const STOP: u8 = b's';
/// Longest time that a call waits.
const BLOCK: Duration = Duration::from_millis(100);
/// Longest time until a new connection must have sent the token.
const PROOF: Duration = Duration::from_millis(500);
/// Values of the first byte of messages and writes.
const PAYLOAD: u8 = 0;
const END: u8 = 1;

/// Why the program ends.
#[derive(Debug)]
pub(super) enum Quit {
    /// A call on the program's socket failed.
    Socket(Failed),
    /// Its standard input or output was closed, or the orders are invalid.
    Orders(io::Error),
}

impl From<Failed> for Quit {
    fn from(failed: Failed) -> Self {
        Self::Socket(failed)
    }
}

impl From<io::Error> for Quit {
    fn from(error: io::Error) -> Self {
        Self::Orders(error)
    }
}

/// Makes the error that the other end closed the connection.
fn closed() -> Quit {
    Quit::Socket(Failed { call: "recv", source: io::ErrorKind::UnexpectedEof.into() })
}

/// Executes the orders from `orders`, and writes reports to `out`. When `orders` is closed, `gone` is called.
pub(super) fn obey(
    orders: impl Read + Send + 'static,
    out: impl Write,
    gone: impl FnOnce() + Send + 'static,
) -> Result<(), Quit> {
    let mut reports = Reports::new(out);
    let result = work(orders, &mut reports, gone);
    if let Err(Quit::Socket(failed)) = &result {
        reports.tell(failed.into())?;
    }
    result
}

fn work(
    orders: impl Read + Send + 'static,
    reports: &mut Reports<impl Write>,
    gone: impl FnOnce() + Send + 'static,
) -> Result<(), Quit> {
    let mut orders = BufReader::new(orders);
    let mut line = String::new();
    orders.read_line(&mut line)?;
    let reported: Orders = line.parse().map_err(io::Error::other)?;
    let stop = Arc::new(AtomicBool::new(false));
    let steps = listen(orders, Arc::clone(&stop), gone)?;
    let mut end = End { socket: meet(&reported, reports)?, message: Pages::default(), stop };
    end.socket.set_nodelay()?;
    end.message.fill(reported.size as usize)?;
    reports.tell(Report::Connected(end.socket.is_tcp()))?;
    while steps.recv().is_ok() {
        match reported.work {
            Work::Ask => end.ask(reports),
            Work::Answer => end.answer(reports),
            Work::Send => end.send(reports),
            Work::Receive => end.receive(reports),
        }?;
        reports.end()?;
    }
    Ok(())
}

/// Starts the thread that reads orders. It sends a value to the returned channel for the beginning of each step.
fn listen(
    mut orders: impl Read + Send + 'static,
    stop: Arc<AtomicBool>,
    gone: impl FnOnce() + Send + 'static,
) -> io::Result<Receiver<()>> {
    let (begin, steps) = channel();
    let body = move || {
        let mut order = [0];
        while let Ok(1) = orders.read(&mut order) {
            stop.store(order[0] == STOP, Relaxed);
            if order[0] == GO && begin.send(()).is_err() {
                break;
            }
        }
        gone();
    };
    thread::Builder::new().name("orders".to_owned()).spawn(body)?;
    Ok(steps)
}

/// Makes the connection: the end that connects sends the token to prove that it belongs to the set.
fn meet(orders: &Orders, reports: &mut Reports<impl Write>) -> Result<Socket, Quit> {
    if orders.meet == Meet::Connect {
        let socket = Socket::connect(&orders.address)?;
        put(&socket, &orders.token)?;
        return Ok(socket);
    }
    let listener = Socket::listen(&orders.address)?;
    reports.tell(Report::Listening(listener.port()?))?;
    loop {
        let socket = listener.accept()?;
        if proves(&socket, &orders.token) {
            return Ok(socket);
        }
    }
}

/// Returns whether a new connection sends the token in time.
fn proves(socket: &Socket, token: &Token) -> bool {
    let until = Instant::now() + PROOF;
    let mut reported = Token::default();
    let mut at = 0;
    while at < reported.len() && Instant::now() < until {
        match socket.readable(BLOCK) {
            Ok(false) => continue,
            Ok(true) => {}
            Err(_) => return false,
        }
        match socket.receive(&mut reported[at..]) {
            Ok(bytes) if bytes > 0 => at += bytes,
            _ => return false,
        }
    }
    reported == *token
}

/// Sends all bytes.
fn put(socket: &Socket, bytes: &[u8]) -> Result<(), Failed> {
    let mut at = 0;
    while at < bytes.len() {
        at += socket.send(&bytes[at..])?;
    }
    Ok(())
}

/// A program with its connection.
struct End {
    socket: Socket,
    message: Pages,
    stop: Arc<AtomicBool>,
}

impl End {
    /// Receives some bytes into the message at `from..to`; returns zero if none arrived within the block time.
    #[inline]
    fn some(&mut self, from: usize, to: usize) -> Result<usize, Quit> {
        if !self.socket.readable(BLOCK)? {
            return Ok(0);
        }
        let into = &mut self.message.bytes_mut()[from..to];
        match self.socket.receive(into)? {
            0 => Err(closed()),
            bytes => Ok(bytes),
        }
    }

    /// Sends the message with `first` as its first byte.
    #[inline]
    fn whole(&mut self, first: u8) -> Result<(), Failed> {
        self.message.bytes_mut()[0] = first;
        put(&self.socket, self.message.bytes())
    }

    fn size(&self) -> usize {
        self.message.bytes().len()
    }

    /// Sends messages, each when the previous one is answered, and measures their round trips.
    fn ask(&mut self, reports: &mut Reports<impl Write>) -> Result<(), Quit> {
        let size = self.size();
        while !self.stop.load(Relaxed) {
            let at = clock::now();
            self.whole(PAYLOAD)?;
            let mut received = 0;
            while received < size {
                received += self.some(received, size)?;
            }
            reports.trip(size as u64, at, clock::now())?;
        }
        Ok(self.whole(END)?)
    }

    /// Answers messages until the end of the step.
    fn answer(&mut self, reports: &mut Reports<impl Write>) -> Result<(), Quit> {
        let size = self.size();
        loop {
            let mut received = 0;
            while received < size {
                let bytes = self.some(received, size)?;
                if bytes == 0 {
                    reports.flush()?;
                }
                received += bytes;
            }
            if self.message.bytes()[0] == END {
                return Ok(());
            }
            put(&self.socket, self.message.bytes())?;
            reports.moved(size as u64)?;
        }
    }

    /// Sends payload as fast as the socket accepts it.
    fn send(&mut self, reports: &mut Reports<impl Write>) -> Result<(), Quit> {
        let size = self.size() as u64;
        while !self.stop.load(Relaxed) {
            self.whole(PAYLOAD)?;
            reports.moved(size)?;
        }
        Ok(self.whole(END)?)
    }

    /// Receives payload until the end of the step.
    fn receive(&mut self, reports: &mut Reports<impl Write>) -> Result<(), Quit> {
        let size = self.size();
        let mut at = 0;
        loop {
            let bytes = self.some(at, size)?;
            if bytes == 0 {
                reports.flush()?;
                continue;
            }
            at += bytes;
            let ends = self.message.bytes()[0] == END;
            if !ends {
                reports.moved(bytes as u64)?;
            }
            if at == size {
                if ends {
                    return Ok(());
                }
                at = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, PipeWriter, pipe};
    use std::net::{Ipv4Addr, SocketAddr};
    use std::thread::JoinHandle;

    use super::super::report::REPORT_BYTES;
    use super::*;

    /// A program that runs on a thread, and the pipes for its orders and reports.
    struct Running {
        orders: PipeWriter,
        reports: PipeReader,
        thread: JoinHandle<Result<(), Quit>>,
    }

    impl Running {
        fn start(orders: &Orders) -> Self {
            let ((orders_out, mut orders_in), (reports, out)) = (pipe().unwrap(), pipe().unwrap());
            writeln!(orders_in, "{orders}").unwrap();
            Self {
                orders: orders_in,
                reports,
                thread: thread::spawn(move || obey(orders_out, out, || ())),
            }
        }

        fn next(&mut self) -> Report {
            let mut raw = [0; REPORT_BYTES];
            self.reports.read_exact(&mut raw).unwrap();
            Report::decode(&raw).unwrap()
        }

        /// Returns the reports up to the end of a step, and the payload of the step.
        fn step(&mut self) -> (Vec<Report>, u64) {
            let mut all = Vec::new();
            loop {
                match self.next() {
                    Report::Ended(total) => return (all, total),
                    report => all.push(report),
                }
            }
        }
    }

    /// Starts two programs and connects them.
    fn pair(near: Work, far: Work, size: u32) -> [Running; 2] {
        let mut orders = Orders {
            meet: Meet::Listen,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            token: [5; 16],
            work: far,
            size,
        };
        let mut listening = Running::start(&orders);
        let Report::Listening(port) = listening.next() else { panic!("it does not listen") };
        orders.address.set_port(port);
        // A connection with a wrong token is closed.
        let stranger = Socket::connect(&orders.address).unwrap();
        put(&stranger, &[6; 16]).unwrap();
        let reported = Orders { meet: Meet::Connect, work: near, ..orders };
        let mut connecting = Running::start(&reported);
        for end in [&mut connecting, &mut listening] {
            assert_eq!(end.next(), Report::Connected(true));
        }
        [connecting, listening]
    }

    /// Runs a step for some time; returns the reports and the payload of both ends.
    fn step([near, far]: &mut [Running; 2], asks: usize) -> [(Vec<Report>, u64); 2] {
        for end in [&mut *near, &mut *far] {
            end.orders.write_all(&[GO]).unwrap();
        }
        thread::sleep(Duration::from_millis(50));
        [&mut *near, &mut *far][asks].orders.write_all(&[STOP]).unwrap();
        [near.step(), far.step()]
    }

    #[test]
    fn round_trips_are_timed_in_each_step() {
        let mut ends = pair(Work::Ask, Work::Answer, 64);
        for _ in 0..2 {
            let [(trips, requested), (answers, answered)] = step(&mut ends, 0);
            assert_eq!(requested, answered);
            assert_eq!(trips.len() as u64 * 64, requested);
            let timed = |report: &Report| matches!(report, Report::Trip { at, nanos } if *at > 0 && *nanos > 0);
            assert!(trips.iter().all(timed) && !trips.is_empty());
            assert!(answers.len() < trips.len().max(20), "few reports: {answers:?}");
        }
        let [near, far] = ends;
        drop((near.orders, far.orders));
        near.thread.join().unwrap().unwrap();
        far.thread.join().unwrap().unwrap();
    }

    #[test]
    fn payload_is_counted_to_the_byte_in_both_directions() {
        for (works, sender) in [((Work::Send, Work::Receive), 0), ((Work::Receive, Work::Send), 1)]
        {
            let mut ends = pair(works.0, works.1, 9000);
            for _ in 0..2 {
                let [(near, sent), (far, received)] = step(&mut ends, sender);
                assert_eq!(sent, received);
                assert!(sent > 0 && sent % 9000 == 0, "{sent}");
                for reports in [near, far] {
                    let bytes = |report: &Report| match report {
                        Report::Moved { bytes, .. } => *bytes,
                        other => panic!("{other:?}"),
                    };
                    assert_eq!(reports.iter().map(bytes).sum::<u64>(), sent);
                }
            }
        }
    }

    #[test]
    fn an_end_that_is_gone_is_reported() {
        let [near, mut far] = pair(Work::Ask, Work::Answer, 1);
        drop(near.orders);
        near.thread.join().unwrap().unwrap();
        far.orders.write_all(&[GO]).unwrap();
        let failed = Report::Failed { call: "recv", errno: 0 };
        assert_eq!(far.next(), failed);
        assert!(far.thread.join().unwrap().is_err());
    }

    #[test]
    fn nonsense_is_no_order_and_the_end_of_orders_is_told() {
        assert!(obey(&b"listen\n"[..], io::sink(), || ()).is_err());
        let (gone, reported) = channel();
        let steps = listen(&[GO][..], Arc::default(), move || gone.send(()).unwrap()).unwrap();
        assert_eq!(steps.recv(), Ok(()));
        reported.recv().unwrap();
    }
}
