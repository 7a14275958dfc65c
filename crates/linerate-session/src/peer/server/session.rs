//! A session, on its own thread: serves the near end's requests, within limits and deadlines.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_plan::path::Side;
use linerate_plan::transport::{FarEnd, file, of};
use linerate_plan::{SetPlan, StepPlan};
use linerate_record::EndReadings;
use linerate_record::wire::codec::Bounds;
use linerate_record::wire::limits::Taken;
use linerate_record::wire::message::{Answer, Ask};
use linerate_units::{Bytes, Nanos};
use snow::TransportState;

use super::Limits;
use super::rooms::Membership;
use super::waiter::Waiter;
use crate::end::{LocalEnd, Running};
use crate::peer::channel::{Channel, ChannelError};
use crate::peer::{Stop, boot_id};
use crate::strangers::Lines as LogLines;
use linerate_host::change::Ledger;
use linerate_host::{Machine, Subject, Toward};
use linerate_load::LoadError;
use linerate_load::transport::{NoLines, Transport, forget_files, transport};

/// Time between checks of the control connection while a step runs.
const LOOK: Duration = Duration::from_millis(100);
/// Time that a step may last beyond its planned end.
const OVERTIME: Duration = Duration::from_secs(20);
/// Additional time for the near end to request the readings, after the latest end of a step.
const LAG: Duration = Duration::from_secs(30);

/// An authenticated client: it has proved that it holds the key.
pub(super) struct Guest {
    pub(super) stream: TcpStream,
    pub(super) from: IpAddr,
    /// Name of the client, for the log.
    pub(super) name: String,
    pub(super) noise: TransportState,
    pub(super) membership: Membership,
    pub(super) machine: Arc<dyn Machine>,
    pub(super) changes: Option<Ledger>,
    pub(super) limits: Limits,
    /// Whether the client started this process, and may share memory with it.
    pub(super) process: bool,
    /// Folder in which the client may measure the disk; `None` forbids it.
    pub(super) storage: Option<String>,
    pub(super) stop: Stop,
    pub(super) lines: LogLines,
}

/// Why a session ended.
#[derive(Debug)]
enum Ended {
    Bye,
    /// The handshake succeeded, so both hold the same key, and the client left without a request.
    Checked,
    /// The client sent no request for this time, since the event that the text names.
    Idle(&'static str, Duration),
    /// The client did not read an answer for this time.
    Unread(Duration),
    Expired,
    Channel(ChannelError),
    Broke(String),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bye => f.write_str("the client left"),
            Self::Checked => f.write_str("the client checked the key, as `linerate pair` does"),
            Self::Idle(since, time) => {
                let time = Nanos::from(*time);
                write!(f, "the client sent no request for {time} {since}")
            }
            Self::Unread(time) => {
                let time = Nanos::from(*time);
                write!(f, "the client read no answer for {time}")
            }
            Self::Expired => f.write_str("the session reached its time limit"),
            Self::Channel(ChannelError::Stopped) => f.write_str("the server was stopped"),
            Self::Channel(e) => e.fmt(f),
            Self::Broke(what) => write!(f, "the client violated the protocol: {what}"),
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

/// Serves a client until its session ends, and logs why it ended.
pub(super) fn serve(guest: Guest) {
    let (name, lines, began) = (guest.name.clone(), guest.lines.clone(), Instant::now());
    let (ended, done) = match Session::open(guest) {
        Ok(mut session) => {
            lines.say(&format!("{name} began"));
            (session.run(), session.done)
        }
        Err(ended) => (ended, Done::default()),
    };
    let time = Nanos::from(began.elapsed());
    lines.say(&format!("{name} ended after {time}, {done}: {ended}"));
}

/// Returns the answer and the log line for a client that requests a transport which it may not use; `None` if it may
/// use the transport. Shared memory is only for the process that started this one.
fn unserved(engine: &str, process: bool, storage: Option<&str>) -> Option<(Answer, &'static str)> {
    let refused =
        |what: &str, hint: &str| Answer::Refused { what: what.to_owned(), hint: hint.to_owned() };
    match transport(engine).map(Transport::info) {
        None => Some((
            refused(&format!("it has no engine `{engine}`"), "update linerate on the far host"),
            "it asked for an unknown engine",
        )),
        Some(info) if info.far_end == FarEnd::Process && !process => Some((
            refused(
                &format!(
                    "it serves clients of a network, and engine `{engine}` works within one host only"
                ),
                "leave out the far end: linerate starts it by itself",
            ),
            "it asked for an engine that works within one host only",
        )),
        Some(info) if info.far_end == FarEnd::File && storage.is_some() => None,
        Some(info) if info.far_end == FarEnd::File => Some((
            refused(
                "it lets nobody measure a disk",
                "start it there with --storage and a folder on that disk",
            ),
            "it asked for a disk, and --storage was not given",
        )),
        // A transport that is not offered to users may still run between two ends, to measure this program itself.
        Some(info) if info.is_alone() && info.offered => Some((
            refused(
                &format!("engine `{engine}` has no far end: it measures the host that it runs on"),
                "leave out the far end",
            ),
            "it asked for an engine without a far end",
        )),
        Some(_) => None,
    }
}

/// Summary of a session, for the log.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    steps: u32,
    sent: u64,
    received: u64,
}

impl Done {
    fn add(&mut self, end: &EndReadings) {
        self.steps += 1;
        for total in &end.totals {
            self.sent = self.sent.saturating_add(total.sent);
            self.received = self.received.saturating_add(total.received);
        }
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sent, received) = (Bytes(self.sent), Bytes(self.received));
        let s = if self.steps == 1 { "" } else { "s" };
        write!(f, "{} step{s}, {sent} sent, {received} received", self.steps)
    }
}

struct Session {
    channel: Channel,
    name: String,
    lines: LogLines,
    done: Done,
    end: LocalEnd,
    /// The folder whose disk is measured; `None` for a session about a path.
    folder: Option<Subject>,
    sets: HashMap<u32, Held>,
    membership: Membership,
    limits: Limits,
    stop: Stop,
    epoch: Instant,
    // Time at which the session must end.
    until: Instant,
}

/// A set that the near end has prepared.
struct Held {
    plan: SetPlan,
    taken: Taken,
    connected: bool,
}

impl Session {
    /// Exchanges versions and names, in the first message of each direction.
    fn open(guest: Guest) -> Result<Self, Ended> {
        let stop = Some(guest.stop.clone());
        let mut channel = Channel::new(guest.stream, guest.noise, Bounds::ASK.bytes, stop)
            .map_err(ChannelError::Io)?;
        let epoch = Instant::now();
        let first = Ask::decode(&channel.receive(epoch + guest.limits.proof)?);
        let (engine, near) = match first {
            Ok(Ask::Hello { engine, boot_id, .. }) => (engine, boot_id),
            Ok(Ask::Bye) => return Err(Ended::Checked),
            _ => return Err(Ended::Broke("no hello at the start".into())),
        };
        if let Some((refused, ended)) = unserved(&engine, guest.process, guest.storage.as_deref()) {
            let bytes = refused.encode().map_err(ChannelError::Wire)?;
            channel.send(&bytes, Instant::now() + guest.limits.answer)?;
            return Err(Ended::Broke(ended.into()));
        }
        let far = boot_id(&*guest.machine);
        let own = channel.stream().local_addr().ok().map(|own| own.ip());
        let toward = Toward::of(guest.from, own);
        let folder = guest.storage.filter(|_| of(&engine).far_end == FarEnd::File);
        // The only end of a disk is the near one of its record.
        let mut end = match folder.clone().map(Subject::File) {
            Some(file) => LocalEnd::new(Side::Near, &engine, guest.machine, file),
            None => LocalEnd::new(Side::Far, &engine, guest.machine, toward),
        };
        end.share_machine(!far.is_empty() && far == near);
        if let Some(ledger) = guest.changes {
            end.allow_changes(ledger);
        }
        let mut session = Self {
            channel,
            name: guest.name,
            lines: guest.lines,
            done: Done::default(),
            end,
            folder: folder.map(Subject::File),
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
            let done =
                self.ask("after the last answer", self.limits.idle).and_then(|ask| self.serve(ask));
            if let Err(ended) = done {
                break ended;
            }
        };
        if !matches!(ended, Ended::Bye | Ended::Channel(ChannelError::Closed)) {
            let what = ended.to_string();
            if let Ok(bye) = (Answer::Bye { what }).encode() {
                // The message is not essential, so an error is ignored.
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
            Ask::Ping => self.pong(),
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
        let (beside, limits) = (self.taken(), self.limits.plan);
        let own = Taken::of(plan, self.end.room(plan)).holding(self.end.descriptors());
        if let Some(what) = self.folder.as_ref().and_then(|_| too_large(plan)) {
            return self.not_allowed(&what, "use a smaller --size".to_owned());
        }
        if let Err(what) = limits.set(plan, own, beside) {
            let hint = self.hint(beside.and(own));
            return self.not_allowed(&what, hint);
        }
        if let Err(what) = self.membership.take(beside.and(own), &limits) {
            let hint = "others are measuring there too: try again when they have ended";
            return self.not_allowed(&what, hint.into());
        }
        match self.end.prepare(plan) {
            Ok(offer) => {
                let held = Held { plan: plan.clone(), taken: own, connected: false };
                self.membership.room().expect(plan.id, plan.knobs.streams);
                self.sets.insert(plan.id, held);
                self.log_change(plan);
                self.answer(&Answer::Offered { offer })
            }
            Err(e) => {
                self.give_back();
                self.refuse_load(&e)
            }
        }
    }

    /// Returns the resources that all sets of this session use.
    fn taken(&self) -> Taken {
        let held = self.sets.values();
        held.fold(Taken::default(), |taken, held| taken.and(held.taken))
    }

    /// Returns a hint which limit to raise if a set exceeds it; empty if no change helps.
    fn hint(&self, wanted: Taken) -> String {
        match self.limits.descriptors {
            Some(descriptors) if wanted.streams > self.limits.plan.streams => format!(
                "use fewer --streams, or raise the far host's limit of open files, {descriptors} \
                 (LimitNOFILE= of a service, `ulimit -Hn` of a shell)"
            ),
            _ => String::new(),
        }
    }

    /// Refuses a set that exceeds a limit, and logs the refusal.
    fn not_allowed(&mut self, what: &str, hint: String) -> Result<(), Ended> {
        self.lines.say(&format!("{}: refused {what}", self.name));
        let what = format!("the server does not allow {what}");
        self.answer(&Answer::Refused { what, hint })
    }

    /// Frees the resources of a finished set for other sessions.
    fn give_back(&self) {
        // A smaller demand than before never exceeds a limit.
        let _ = self.membership.take(self.taken(), &self.limits.plan);
    }

    /// Logs the setting of this host that a trial changes, if there is one.
    fn log_change(&self, plan: &SetPlan) {
        if let Some(change) = plan.knobs.host.filter(|change| change.side == Side::Far) {
            let (name, id) = (&self.name, change.setting.row().id);
            let value = change.value;
            let line = format!("{name}: an experiment sets {id} to {value} and restores it");
            self.lines.say(&line);
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
        let connected = match &self.folder {
            Some(folder) => self.end.connect(set, offer, &mut NoLines(folder)),
            None => self.end.connect(set, offer, &mut waiter),
        };
        match connected {
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
        self.give_back();
    }

    fn step(&mut self, plan: &StepPlan) -> Result<(), Ended> {
        let held = |id| self.sets.get(&id).filter(|s| s.connected);
        let connected = |id| held(id).map(|s| s.plan.knobs.streams);
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
        match self.ask("after a step was armed", self.limits.idle)? {
            Ask::Go => self.load(plan, running),
            Ask::Disarm => {
                drop(running);
                self.lose(plan);
                self.answer(&Answer::Disarmed)
            }
            other => Err(out_of_turn(&other)),
        }
    }

    /// Releases the sets of a step that could not run.
    fn lose(&mut self, plan: &StepPlan) {
        for set in &plan.sets {
            self.release(*set);
        }
    }

    /// Runs an armed step and sends its readings. On an early return, `running` is dropped, which aborts the step.
    fn load(&mut self, plan: &StepPlan, mut running: Running) -> Result<(), Ended> {
        let length = plan.washout.duration() + plan.measure.duration();
        let load = self.membership.load();
        running.go();
        let began = self.now();
        // When the session's time is over, the step ends too.
        let planned = Instant::now() + length + OVERTIME;
        let deadline = planned.min(self.until);
        self.answer(&Answer::Going { began })?;
        let mut requested = false;
        while !running.done(LOOK) {
            if self.stop.requested() {
                return Err(ChannelError::Stopped.into());
            }
            if let Some(message) = self.channel.try_receive()? {
                match decode(&message)? {
                    Ask::Stop => running.stop(),
                    Ask::Read => requested = true,
                    Ask::Ping => self.pong()?,
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
        self.done.add(&end);
        while !requested {
            // If this end has ended early, the near end still continues as planned.
            let left = planned.saturating_duration_since(Instant::now()) + LAG;
            match self.ask("after this end had ended its step", left)? {
                // The near end sent this message before it knew that the step had ended at this end.
                Ask::Stop => {}
                Ask::Read => requested = true,
                Ask::Ping => self.pong()?,
                Ask::Bye => return Err(Ended::Bye),
                other => return Err(out_of_turn(&other)),
            }
        }
        match (Answer::Readings { end }).encode() {
            Ok(bytes) => self.send(&bytes, self.limits.readings),
            Err(e) => self.refuse(&format!("the far end has too many readings to send: {e}")),
        }
    }

    fn pong(&mut self) -> Result<(), Ended> {
        let at = self.now();
        self.answer(&Answer::Pong { at })
    }

    fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    fn ask(&mut self, since: &'static str, time: Duration) -> Result<Ask, Ended> {
        let deadline = self.until.min(Instant::now() + time);
        match self.channel.receive(deadline) {
            Ok(bytes) => decode(&bytes),
            Err(ChannelError::TimedOut) if Instant::now() >= self.until => Err(Ended::Expired),
            Err(ChannelError::TimedOut) => Err(Ended::Idle(since, time)),
            Err(e) => Err(e.into()),
        }
    }

    fn answer(&mut self, answer: &Answer) -> Result<(), Ended> {
        let bytes = answer.encode().map_err(ChannelError::Wire)?;
        self.send(&bytes, self.limits.answer)
    }

    fn send(&mut self, bytes: &[u8], time: Duration) -> Result<(), Ended> {
        let sent = self.channel.send(bytes, Instant::now() + time);
        sent.map_err(|e| match e {
            ChannelError::TimedOut => Ended::Unread(time),
            other => other.into(),
        })
    }

    fn refuse_load(&mut self, e: &LoadError) -> Result<(), Ended> {
        self.answer(&Answer::Refused { what: e.to_string(), hint: e.hint().into() })
    }

    fn refuse(&mut self, what: &str) -> Result<(), Ended> {
        self.answer(&Answer::Refused { what: what.into(), hint: String::new() })
    }
}

impl Drop for Session {
    /// Gives back the space of the file in which the client measured the disk.
    fn drop(&mut self) {
        if self.folder.is_some() {
            forget_files();
        }
    }
}

/// Largest file that a client may make in the folder of the server.
const LARGEST: Bytes = Bytes(16 << 30);

/// The file of a set, in words, if it is larger than a client may make it.
fn too_large(plan: &SetPlan) -> Option<String> {
    let size = Bytes(plan.knobs.options.number(file::FILE_SIZE.key).unwrap_or(0));
    (size > LARGEST).then(|| format!("a file of {size} (at most {LARGEST})"))
}

fn decode(bytes: &[u8]) -> Result<Ask, Ended> {
    Ask::decode(bytes).map_err(|e| Ended::Broke(e.to_string()))
}

fn out_of_turn(ask: &Ask) -> Ended {
    Ended::Broke(format!("unexpected `{}`", ask.name()))
}
