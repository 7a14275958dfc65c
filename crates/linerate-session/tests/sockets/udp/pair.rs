//! Two ends whose datagrams are sent over sockets that the test made.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::rc::Rc;

use linerate_load::LoadError;
use linerate_load::transport::{ConfigureEach, Datagrams, Lines};
use linerate_plan::path::Side;
use linerate_plan::{SetPlan, StepPlan};
use linerate_record::{EndReadings, SetEnd};
use linerate_session::end::{LocalEnd, Running};
use linerate_test::{Turn, turn};
use rustix::net::{self, AddressFamily, SocketType, ipproto};

use super::relay::Relay;
use crate::support::{HERE, end};

pub(super) const NEAR: u64 = 0x1111_2222_3333_4444;
pub(super) const FAR: u64 = 0x5555_6666_7777_8888;

/// Passes sockets that the test has connected, one for each stream, to an end.
pub(super) struct Given(pub(super) Vec<Datagrams>);

impl Lines for Given {
    fn lines(&mut self, _: u32, _: u32, _: ConfigureEach<'_>) -> Result<Vec<OwnedFd>, LoadError> {
        panic!("datagrams need no connection here")
    }

    fn datagrams(
        &mut self,
        _: u32,
        _: u32,
        configure: &mut dyn FnMut(&OwnedFd) -> Result<(), LoadError>,
    ) -> Result<Datagrams, LoadError> {
        let given = self.0.remove(0);
        configure(&given.fd)?;
        Ok(given)
    }
}

pub(super) fn socket() -> UdpSocket {
    UdpSocket::bind((HERE, 0)).unwrap()
}

/// Makes a UDP-Lite socket. The kernel accepts the option for segmentation, but
/// does not segment the messages of this socket. It reports this as EIO when they
/// are sent, as on a route that encrypts. `None` if the kernel has no UDP-Lite.
pub(super) fn lite() -> Option<UdpSocket> {
    let made = net::socket(AddressFamily::INET, SocketType::DGRAM, Some(ipproto::UDPLITE));
    let fd = made.ok()?;
    net::bind(&fd, &SocketAddr::new(HERE, 0)).unwrap();
    Some(fd.into())
}

pub(super) fn given(socket: UdpSocket, side: Side) -> Datagrams {
    let (own, other) = match side {
        Side::Near => (NEAR, FAR),
        Side::Far => (FAR, NEAR),
    };
    Datagrams { fd: socket.into(), own, other }
}

/// Both ends of a path, and the turn during which no other test uses this machine.
pub(super) struct Pair {
    pub(super) near: LocalEnd,
    pub(super) far: LocalEnd,
    turn: Rc<Turn>,
}

impl Pair {
    pub(super) fn new() -> Self {
        Self { turn: Rc::new(turn()), near: end(Side::Near, "udp"), far: end(Side::Far, "udp") }
    }

    pub(super) fn turn(&self) -> Rc<Turn> {
        Rc::clone(&self.turn)
    }

    pub(super) fn connect(&mut self, plan: &SetPlan) -> [SetEnd; 2] {
        let streams = 0..plan.knobs.streams;
        let pairs = streams.map(|_| {
            let (near, far) = (socket(), socket());
            near.connect(far.local_addr().unwrap()).unwrap();
            far.connect(near.local_addr().unwrap()).unwrap();
            (given(near, Side::Near), given(far, Side::Far))
        });
        let (near, far) = pairs.unzip();
        self.over(plan, near, far)
    }

    /// Connects a set with one stream over these two sockets.
    pub(super) fn between(&mut self, plan: &SetPlan, ends: [UdpSocket; 2]) -> [SetEnd; 2] {
        let [near, far] = ends;
        near.connect(far.local_addr().unwrap()).unwrap();
        far.connect(near.local_addr().unwrap()).unwrap();
        let (near, far) = (given(near, Side::Near), given(far, Side::Far));
        self.over(plan, vec![near], vec![far])
    }

    /// Connects a set with one stream through a relay.
    pub(super) fn relayed(&mut self, plan: &SetPlan, relay: &Relay) -> [SetEnd; 2] {
        let (near, far) = relay.ends.each_ref().map(|s| s.try_clone().unwrap()).into();
        self.over(plan, vec![given(near, Side::Near)], vec![given(far, Side::Far)])
    }

    fn over(&mut self, plan: &SetPlan, near: Vec<Datagrams>, far: Vec<Datagrams>) -> [SetEnd; 2] {
        let offer = self.near.prepare(plan).unwrap();
        self.far.prepare(plan).unwrap();
        [
            self.near.connect(plan.id, &offer, &mut Given(near)).unwrap(),
            self.far.connect(plan.id, &offer, &mut Given(far)).unwrap(),
        ]
    }

    pub(super) fn start(&mut self, plan: &StepPlan) -> [Running; 2] {
        let mut far = self.far.arm(plan).unwrap();
        let mut near = self.near.arm(plan).unwrap();
        far.go();
        near.go();
        [near, far]
    }

    pub(super) fn run(&mut self, plan: &StepPlan) -> [EndReadings; 2] {
        self.start(plan).map(Running::finish)
    }
}
