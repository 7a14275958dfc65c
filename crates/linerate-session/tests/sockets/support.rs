//! Support for tests: two ends of a path over loopback, in one process.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use linerate_host::{Live, Machine};
use linerate_load::LoadError;
use linerate_load::transport::{ConfigureEach, Datagrams, Lines};
use linerate_plan::path::{Direction, Side};
use linerate_plan::{Knobs, Pattern, Purpose, SetPlan, StepPlan};
use linerate_record::{EndReadings, SetEnd, Total};
use linerate_session::end::{LocalEnd, Running};
use linerate_test::{Turn, ask, turn};
use linerate_units::{Bytes, Nanos};

type Configure<'a> = &'a mut dyn FnMut(&OwnedFd) -> Result<(), LoadError>;
type Made = Result<Vec<OwnedFd>, LoadError>;

/// Makes connections to this address. Options are set only after connecting, because std cannot set them before.
pub(crate) struct Dial(pub(crate) SocketAddr);

impl Lines for Dial {
    fn lines(&mut self, _: u32, streams: u32, set: ConfigureEach<'_>) -> Made {
        let mut line = |stream| ready("connect", stream, TcpStream::connect(self.0), set);
        (0..streams).map(&mut line).collect()
    }

    fn datagrams(&mut self, _: u32, _: u32, _: Configure<'_>) -> Result<Datagrams, LoadError> {
        panic!("a connection is wanted here")
    }
}

/// Accepts connections, in the order in which the other end makes them.
pub(crate) struct Accept(pub(crate) TcpListener);

impl Lines for Accept {
    fn lines(&mut self, _: u32, streams: u32, set: ConfigureEach<'_>) -> Made {
        let mut line = |stream| {
            let made = self.0.accept().map(|(stream, _)| stream);
            ready("accept", stream, made, set)
        };
        (0..streams).map(&mut line).collect()
    }

    fn datagrams(&mut self, _: u32, _: u32, _: Configure<'_>) -> Result<Datagrams, LoadError> {
        panic!("a connection is wanted here")
    }
}

fn ready(
    call: &'static str,
    stream: u32,
    made: std::io::Result<TcpStream>,
    set: ConfigureEach<'_>,
) -> Result<OwnedFd, LoadError> {
    let made = made.map_err(|source| LoadError::Call { call, stream, source })?;
    let fd = OwnedFd::from(made);
    set(stream, &fd)?;
    Ok(fd)
}

pub(crate) const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

pub(crate) fn end(side: Side, engine: &str) -> LocalEnd {
    LocalEnd::new(side, engine, Arc::new(Live::default()), HERE)
}

/// Both ends of a path, and the turn during which no other test uses this machine.
pub(crate) struct Pair {
    turn: Rc<Turn>,
    pub(crate) near: LocalEnd,
    pub(crate) far: LocalEnd,
}

impl Pair {
    pub(crate) fn new() -> Self {
        let machines = [Arc::new(Live::default()), Arc::new(Live::default())];
        Self::on(&Rc::new(turn()), machines.map(|m| m as Arc<dyn Machine>))
    }

    /// Makes both ends. Their readings are taken from these machines, that of the near end first.
    pub(crate) fn on(turn: &Rc<Turn>, machines: [Arc<dyn Machine>; 2]) -> Self {
        let [near, far] = machines;
        let mut near = LocalEnd::new(Side::Near, "tcp", near, HERE);
        let mut far = LocalEnd::new(Side::Far, "tcp", far, HERE);
        near.share_machine(true);
        far.share_machine(true);
        Self { turn: Rc::clone(turn), near, far }
    }

    pub(crate) fn turn(&self) -> Rc<Turn> {
        Rc::clone(&self.turn)
    }

    pub(crate) fn connect(&mut self, plan: &SetPlan) -> [SetEnd; 2] {
        let listener = TcpListener::bind((HERE, 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        let near_offer = self.near.prepare(plan).unwrap();
        let far_offer = self.far.prepare(plan).unwrap();
        let (near, far) = (&mut self.near, &mut self.far);
        thread::scope(|scope| {
            let far = scope.spawn(|| far.connect(plan.id, &near_offer, &mut Accept(listener)));
            let near = near.connect(plan.id, &far_offer, &mut Dial(addr));
            [near.unwrap(), far.join().unwrap().unwrap()]
        })
    }

    pub(crate) fn start(&mut self, plan: &StepPlan) -> [Running; 2] {
        let mut far = self.far.arm(plan).unwrap();
        let mut near = self.near.arm(plan).unwrap();
        far.go();
        near.go();
        [near, far]
    }

    /// Runs a step until payload moves in it: a step of a few milliseconds may end on a busy machine before both ends
    /// began. Returns `None` if no payload moved in any attempt.
    pub(crate) fn moves(&mut self, plan: &StepPlan) -> Option<[EndReadings; 2]> {
        ask(&self.turn(), || {
            let ends = self.run(plan);
            is_moved(assert_exact(&ends)).map(|()| ends)
        })
    }

    pub(crate) fn run(&mut self, plan: &StepPlan) -> [EndReadings; 2] {
        self.start(plan).map(Running::finish)
    }
}

fn is_moved(bytes: u64) -> Result<(), String> {
    let moved = bytes > 0;
    moved.then_some(()).ok_or_else(|| "no payload".to_owned())
}

/// Planted: a step in which no payload moves.
#[test]
fn a_step_without_payload_is_no_answer() {
    assert_eq!(is_moved(1), Ok(()));
    assert!(is_moved(0).is_err());
}

pub(crate) fn stream(id: u32, direction: Direction, knobs: Knobs) -> SetPlan {
    SetPlan { id, pattern: Pattern::Stream { direction }, knobs }
}

pub(crate) fn ping_pong(id: u32, size: u64, interval: Nanos) -> SetPlan {
    SetPlan {
        id,
        pattern: Pattern::PingPong { size: Bytes(size), interval },
        knobs: Knobs::default(),
    }
}

pub(crate) fn step(sets: &[u32], washout_ms: u64, measure_ms: u64, tick_ms: u64) -> StepPlan {
    StepPlan {
        index: 0,
        purpose: Purpose::Both,
        sets: sets.to_vec(),
        washout: Nanos::from_millis(washout_ms),
        measure: Nanos::from_millis(measure_ms),
        tick: Nanos::from_millis(tick_ms),
    }
}

/// Asserts for every stream that one end received exactly the bytes
/// that the other end sent. Returns the number of these bytes.
pub(crate) fn assert_exact(ends: &[EndReadings; 2]) -> u64 {
    let [near, far] = ends;
    assert_eq!(near.totals.len(), far.totals.len());
    for (n, f) in near.totals.iter().zip(&far.totals) {
        let why = || format!("{n:?} {f:?} {:?} {:?}", near.gaps, far.gaps);
        assert!(n.complete && f.complete, "{}", why());
        let same = (n.set, n.stream, n.sent, n.received) == (f.set, f.stream, f.received, f.sent);
        assert!(same, "{}", why());
    }
    near.totals.iter().map(|t: &Total| t.sent.max(t.received)).sum()
}

/// Waits until `what` returns true. The time limit is so long that only a broken program reaches it.
pub(crate) fn eventually(mut what: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if what() {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("it never happened");
}
