//! One session, on its own thread: does what the near end asks, within limits and deadlines.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_core::plan::{SetPlan, Side, StepPlan};
use linerate_core::wire::codec::Bounds;
use linerate_core::wire::message::{Answer, Ask};
use rustix::event::{PollFd, PollFlags, poll};
use snow::TransportState;

use super::rooms::{Membership, Room};
use super::{Limits, Log};
use crate::change::Ledger;
use crate::end::{LocalEnd, Running};
use crate::host::{Machine, Toward};
use crate::load::{ENGINES, Lines, LoadError};
use crate::peer::channel::{Channel, ChannelError, timespec};
use crate::peer::{Stop, boot_id};

/// Time for a message of a few bytes to leave.
const SEND: Duration = Duration::from_secs(10);
/// Time for the readings of a step to leave.
const SEND_READINGS: Duration = Duration::from_secs(60);
/// Time for the next data connection of a set to arrive; they come one after the other.
const CONNECT: Duration = Duration::from_secs(20);
/// Time from one look at the control connection to the next while a step runs.
const LOOK: Duration = Duration::from_millis(100);
/// Time that a step may take beyond its plan.
const OVERTIME: Duration = Duration::from_secs(20);
/// Time that the near end may still be busy when this end has long ended its step.
const LAG: Duration = Duration::from_secs(30);

/// Someone who proved to hold the key.
pub(super) struct Guest {
    pub(super) stream: TcpStream,
    pub(super) from: IpAddr,
    pub(super) noise: TransportState,
    pub(super) membership: Membership,
    pub(super) machine: Arc<dyn Machine>,
    pub(super) changes: Option<Ledger>,
    pub(super) limits: Limits,
    pub(super) stop: Stop,
    pub(super) log: Log,
}

/// Why a session ended.
#[derive(Debug)]
enum Ended {
    Bye,
    Idle,
    Expired,
    Channel(ChannelError),
    Broke(String),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bye => f.write_str("the client left"),
            Self::Idle => f.write_str("the client asked for nothing for too long"),
            Self::Expired => f.write_str("the session reached its time limit"),
            Self::Channel(ChannelError::Stopped) => f.write_str("the server was stopped"),
            Self::Channel(e) => e.fmt(f),
            Self::Broke(what) => write!(f, "the client broke the protocol: {what}"),
        }
    }
}

impl From<ChannelError> for Ended {
    fn from(e: ChannelError) -> Self {
        match e {
            ChannelError::Wire(e) => Self::Broke(e.to_string()),
            other => Self::Channel(other),
        }
    }
}

/// Serves a guest until the session ends, for whatever reason.
pub(super) fn serve(guest: Guest) {
    let (from, log) = (guest.from, Arc::clone(&guest.log));
    let ended = match Session::open(guest) {
        Ok(mut session) => {
            log(&format!("{from}: session began"));
            session.run()
        }
        Err(ended) => ended,
    };
    log(&format!("{from}: session ended: {ended}"));
}

struct Session {
    channel: Channel,
    from: IpAddr,
    log: Log,
    end: LocalEnd,
    sets: HashMap<u32, Held>,
    membership: Membership,
    limits: Limits,
    stop: Stop,
    epoch: Instant,
    // Whether the session is over for want of time, or only idle.
    until: Instant,
}

/// A set that is held for the near end.
struct Held {
    streams: u32,
    connected: bool,
}

impl Session {
    /// Exchanges versions and names; the first message in each direction.
    fn open(guest: Guest) -> Result<Self, Ended> {
        let stop = Some(guest.stop.clone());
        let mut channel = Channel::new(guest.stream, guest.noise, Bounds::ASK.bytes, stop)
            .map_err(ChannelError::Io)?;
        let epoch = Instant::now();
        let first = Ask::decode(&channel.receive(epoch + guest.limits.proof)?);
        let Ok(Ask::Hello {
            engine,
            boot_id: near,
            ..
        }) = first
        else {
            return Err(Ended::Broke("no hello at the start".into()));
        };
        if !ENGINES.iter().any(|e| e.name() == engine) {
            let refused = Answer::Refused {
                what: format!("it has no engine `{engine}`"),
                hint: "update linerate on the far host".into(),
            };
            let bytes = refused.encode().map_err(ChannelError::Wire)?;
            channel.send(&bytes, Instant::now() + SEND)?;
            return Err(Ended::Broke(
                "it asked for an engine that is not there".into(),
            ));
        }
        let far = boot_id(&*guest.machine);
        let own = channel.stream().local_addr().ok().map(|own| own.ip());
        let toward = Toward::of(guest.from, own);
        let mut end = LocalEnd::new(Side::Far, &engine, guest.machine, toward);
        end.share_machine(!far.is_empty() && far == near);
        if let Some(ledger) = guest.changes {
            end.allow_changes(ledger);
        }
        let mut session = Self {
            channel,
            from: guest.from,
            log: guest.log,
            end,
            sets: HashMap::new(),
            membership: guest.membership,
            limits: guest.limits,
            stop: guest.stop,
            epoch,
            until: epoch + guest.limits.session,
        };
        session.answer(&Answer::Welcome {
            linerate: env!("CARGO_PKG_VERSION").into(),
            boot_id: far,
            session: session.membership.id(),
            secret: *session.membership.room().secret(),
        })?;
        Ok(session)
    }

    fn run(&mut self) -> Ended {
        let ended = loop {
            let done = self.ask(self.limits.idle).and_then(|ask| self.serve(ask));
            if let Err(ended) = done {
                break ended;
            }
        };
        if !matches!(ended, Ended::Bye | Ended::Channel(ChannelError::Closed)) {
            let what = ended.to_string();
            if let Ok(bye) = (Answer::Bye { what }).encode() {
                // Nothing is lost when it does not arrive.
                let _ = self.channel.send_last(&bye, Duration::from_millis(200));
            }
        }
        ended
    }

    fn serve(&mut self, ask: Ask) -> Result<(), Ended> {
        match ask {
            Ask::Facts => {
                let facts = Box::new(self.end.facts());
                self.answer(&Answer::Facts { facts })
            }
            Ask::Prepare { plan } => self.prepare(&plan),
            Ask::Connect { set, offer } => self.connect(set, &offer),
            Ask::Release { set } => {
                self.release(set);
                self.answer(&Answer::Released)
            }
            Ask::Ping => {
                let at = self.now();
                self.answer(&Answer::Pong { at })
            }
            Ask::Step { plan } => self.step(&plan),
            Ask::Bye => Err(Ended::Bye),
            Ask::Hello { .. } | Ask::Disarm | Ask::Go | Ask::Stop | Ask::Read => {
                Err(out_of_turn(&ask))
            }
        }
    }

    fn prepare(&mut self, plan: &SetPlan) -> Result<(), Ended> {
        if self.sets.contains_key(&plan.id) {
            return self.refuse(&format!("set {} is in use", plan.id));
        }
        let streams = self.sets.values().map(|s| s.streams).sum();
        if let Err(what) = self.limits.plan.set(plan, self.sets.len(), streams) {
            return self.refuse(&format!("the server does not allow {what}"));
        }
        match self.end.prepare(plan) {
            Ok(offer) => {
                let held = Held {
                    streams: plan.knobs.streams,
                    connected: false,
                };
                self.membership.room().expect(plan.id, held.streams);
                self.sets.insert(plan.id, held);
                self.log_change(plan);
                self.answer(&Answer::Offered { offer })
            }
            Err(e) => self.refuse_load(&e),
        }
    }

    /// Who serves hears of each setting that a trial changes here.
    fn log_change(&self, plan: &SetPlan) {
        if let Some(change) = plan.knobs.host.filter(|change| change.side == Side::Far) {
            let (from, id) = (self.from, change.setting.row().id);
            let value = change.value;
            (self.log)(&format!("{from}: a trial sets {id} to {value}, and back"));
        }
    }

    fn connect(&mut self, set: u32, offer: &Vec<u8>) -> Result<(), Ended> {
        let Some(held) = self.sets.get_mut(&set).filter(|s| !s.connected) else {
            return self.refuse(&format!("set {set} is not prepared"));
        };
        let mut waiter = Waiter {
            control: self.channel.stream(),
            room: self.membership.room(),
            stop: &self.stop,
            until: self.until,
        };
        match self.end.connect(set, offer, &mut waiter) {
            Ok(end) => {
                held.connected = true;
                self.answer(&Answer::Connected { end })
            }
            Err(e) => {
                self.release(set);
                self.refuse_load(&e)
            }
        }
    }

    fn release(&mut self, set: u32) {
        self.sets.remove(&set);
        self.membership.room().forget(set);
        self.end.release(set);
    }

    fn step(&mut self, plan: &StepPlan) -> Result<(), Ended> {
        let held = |id| self.sets.get(&id).filter(|s| s.connected);
        let connected = |id| held(id).map(|s| s.streams);
        if let Err(what) = self.limits.plan.step(plan, connected) {
            return self.refuse(&format!("the server does not allow {what}"));
        }
        let running = match self.end.arm(plan) {
            Ok(running) => running,
            Err(e) => {
                self.lose(plan);
                return self.refuse_load(&e);
            }
        };
        self.answer(&Answer::Armed)?;
        match self.ask(self.limits.idle)? {
            Ask::Go => self.load(plan, running),
            Ask::Disarm => {
                drop(running);
                self.lose(plan);
                self.answer(&Answer::Disarmed)
            }
            other => Err(out_of_turn(&other)),
        }
    }

    /// A step that was not run takes its sets with it.
    fn lose(&mut self, plan: &StepPlan) {
        for set in &plan.sets {
            self.release(*set);
        }
    }

    /// Runs an armed step. When this returns early, the step is aborted by being dropped.
    fn load(&mut self, plan: &StepPlan, mut running: Running) -> Result<(), Ended> {
        let length = plan.washout.duration() + plan.measure.duration();
        let load = self.membership.load();
        running.go();
        let began = self.now();
        let deadline = Instant::now() + length + OVERTIME;
        self.answer(&Answer::Going { began })?;
        let mut asked = false;
        while !running.done(LOOK) {
            if self.stop.requested() {
                return Err(ChannelError::Stopped.into());
            }
            if let Some(message) = self.channel.try_receive()? {
                match decode(&message)? {
                    Ask::Stop => running.stop(),
                    Ask::Read => asked = true,
                    Ask::Bye => return Err(Ended::Bye),
                    other => return Err(out_of_turn(&other)),
                }
            }
            if Instant::now() >= deadline {
                running.abort();
                break;
            }
        }
        let mut end = running.finish();
        end.other_sessions = load.others();
        drop(load);
        while !asked {
            match self.ask(LAG)? {
                // It crossed our end of the step.
                Ask::Stop => {}
                Ask::Read => asked = true,
                Ask::Bye => return Err(Ended::Bye),
                other => return Err(out_of_turn(&other)),
            }
        }
        match (Answer::Readings { end }).encode() {
            Ok(bytes) => Ok(self.channel.send(&bytes, Instant::now() + SEND_READINGS)?),
            Err(e) => self.refuse(&format!("the far readings are too many to send: {e}")),
        }
    }

    fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    fn ask(&mut self, time: Duration) -> Result<Ask, Ended> {
        let deadline = self.until.min(Instant::now() + time);
        match self.channel.receive(deadline) {
            Ok(bytes) => decode(&bytes),
            Err(ChannelError::TimedOut) if Instant::now() >= self.until => Err(Ended::Expired),
            Err(ChannelError::TimedOut) => Err(Ended::Idle),
            Err(e) => Err(e.into()),
        }
    }

    fn answer(&mut self, answer: &Answer) -> Result<(), Ended> {
        let bytes = answer.encode().map_err(ChannelError::Wire)?;
        Ok(self.channel.send(&bytes, Instant::now() + SEND)?)
    }

    fn refuse_load(&mut self, e: &LoadError) -> Result<(), Ended> {
        self.answer(&Answer::Refused {
            what: e.to_string(),
            hint: e.hint().into(),
        })
    }

    fn refuse(&mut self, what: &str) -> Result<(), Ended> {
        self.answer(&Answer::Refused {
            what: what.into(),
            hint: String::new(),
        })
    }
}

fn decode(bytes: &[u8]) -> Result<Ask, Ended> {
    Ask::decode(bytes).map_err(|e| Ended::Broke(e.to_string()))
}

fn out_of_turn(ask: &Ask) -> Ended {
    Ended::Broke(format!("`{}` out of turn", ask.name()))
}

/// Waits for data connections to come through the gate.
struct Waiter<'a> {
    control: &'a TcpStream,
    room: &'a Arc<Room>,
    stop: &'a Stop,
    // The session's own end.
    until: Instant,
}

impl Waiter<'_> {
    fn fetch(&self, set: u32, stream: u32) -> Result<OwnedFd, &'static str> {
        let deadline = self.until.min(Instant::now() + CONNECT);
        loop {
            self.room.clear();
            if let Some(connection) = self.room.fetch(set, stream) {
                return Ok(connection.into());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err("did not arrive in time");
            }
            let mut fds = [
                PollFd::new(self.room, PollFlags::IN),
                PollFd::new(self.control, PollFlags::IN),
                PollFd::new(self.stop, PollFlags::IN),
            ];
            match poll(&mut fds, Some(&timespec(left))) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Err("could not be waited for"),
            }
            if !fds[2].revents().is_empty() {
                return Err("was given up: the server was stopped");
            }
            // The near end says nothing while it connects, unless it gave up or is gone; but what
            // has arrived by then is worth a last look.
            if !fds[1].revents().is_empty() && fds[0].revents().is_empty() {
                return Err("was given up by the near end");
            }
        }
    }
}

impl Lines for Waiter<'_> {
    fn line(
        &mut self,
        set: u32,
        stream: u32,
        configure: &mut dyn FnMut(&OwnedFd) -> Result<(), LoadError>,
    ) -> Result<OwnedFd, LoadError> {
        let line = self.fetch(set, stream).map_err(|why| LoadError::Protocol {
            what: format!("data connection {stream} of set {set} {why}"),
        })?;
        configure(&line)?;
        Ok(line)
    }
}
