//! The client: a session with a far end, as a [`Link`].

pub(crate) mod dial;
mod lines;
mod local;
mod pair;
mod step;
mod storage;
mod version;
pub(super) mod waiting;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use linerate_facts::metric::TCP_MIN_RTT;
use linerate_plan::path::Side;
use linerate_plan::transport::{BIND, FarEnd};
use linerate_plan::{Pattern, SetPlan, StepPlan};
use linerate_record::wire::message::{Answer, Ask};
use linerate_record::wire::preamble::{Access, BEATS, VERSIONS};
use linerate_record::{Host, Set, Step};
use linerate_units::Nanos;
use rustix::event::PollFlags;

use super::address::{Family, Target};
use super::channel::{Channel, ChannelError};
use super::error::SUSPENDED;
use super::keys::Key;
use super::server::Limits;
use super::{PeerError, boot_id, descriptors};
use crate::end::LocalEnd;
use crate::link::{Link, LinkError, Live, StepControl};
use crate::net;
use linerate_host::change::{Ledger, SETTINGS_GAP};
use linerate_host::socket::of_tcp;
use linerate_host::{Machine, Toward};
use linerate_judge::event::Silences;
use linerate_load::LoadError;
#[cfg(test)]
pub(super) use lines::Dialler as RawDialler;
use lines::Dialler;
use local::LocalServer;
pub use pair::{PairError, pair, verify};
pub use storage::Storage;
use version::understood;
pub use waiting::GIVEN_UP;
use waiting::{Waiting, for_streams};

/// Time without an answer after which a request is given up once the user wants to stop.
const STOPPED: Duration = Duration::from_secs(3);
/// Time that remains for a last answer if data connections could not be opened in time.
const GRACE: Duration = Duration::from_secs(2);
/// Time between two heartbeats during a step, which check that the far end still answers.
const BEAT: Duration = Duration::from_secs(1);
/// Time to send the last message of a session.
const BYE: Duration = Duration::from_millis(500);

/// Options of a session.
pub struct ClientOptions {
    /// Address of the far end.
    pub target: Target,
    /// Address family that is used; `None` for both.
    pub family: Option<Family>,
    /// Stored key of the far end; `None` if there is none.
    pub key: Option<Key>,
    /// Whether to accept a server that is open to anyone and does not prove its identity.
    pub open: bool,
    /// Name of the transport.
    pub engine: String,
    pub machine: Arc<dyn Machine>,
    /// Journal of changed host settings; `None` forbids changes on either host.
    pub changes: Option<Ledger>,
}

/// Data about a set that is connected.
#[derive(Debug, Clone, Copy)]
struct Joined {
    pattern: Pattern,
    /// Whether all payload that one end sends arrives at the other end.
    paired: bool,
    streams: u32,
}

/// A session with a far end.
pub struct Client {
    channel: Channel,
    end: LocalEnd,
    dialler: Dialler,
    waiting: Waiting,
    // Number of heartbeats that are not answered yet, and the time of the last one.
    beats: u32,
    beaten: Instant,
    // Sets that are connected.
    sets: HashMap<u32, Joined>,
    address: SocketAddr,
    access: Access,
    // The highest protocol version that both ends support.
    version: u16,
    // Whether this end's user allows changes of host settings.
    changes: bool,
    epoch: Instant,
    // Offset of the far clock from the near one, when it was last measured.
    clock: Option<step::Clock>,
    // Why no more requests are possible, and the hint; `None` while the session works.
    lost: Option<(String, String)>,
    // This field is last: the near end must close before the server of a local session is waited for.
    local: Option<LocalServer>,
}

impl Client {
    /// Opens a session with a server.
    pub fn connect(options: &ClientOptions) -> Result<Self, PeerError> {
        Self::connect_unless(options, &|| false)
    }

    /// Opens a session with a server, unless `stopped` returns true before the server has answered.
    pub fn connect_unless(
        options: &ClientOptions,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Self, PeerError> {
        descriptors::raise(&Limits::default());
        let epoch = Instant::now();
        let (target, key) = (&options.target, options.key.as_ref());
        let (mut channel, reply, address) =
            dial::control(target, options.family, key, options.open, stopped)?;
        let near = boot_id(&*options.machine);
        let hello = Ask::Hello {
            linerate: env!("CARGO_PKG_VERSION").into(),
            engine: options.engine.clone(),
            boot_id: near.clone(),
        };
        let (session, secret, far) = match greet(&mut channel, &hello, stopped) {
            Ok(Answer::Welcome { session, secret, boot_id, .. }) => (session, secret, boot_id),
            Ok(Answer::Refused { what, hint }) => {
                return Err(PeerError::Refused { address, what, hint });
            }
            Ok(Answer::Bye { what }) => return Err(PeerError::Broken { address, what }),
            Ok(_) => {
                let what = "no welcome at the start".into();
                return Err(PeerError::Broken { address, what });
            }
            Err(e) => return Err(PeerError::broken(address, &e)),
        };
        let round_trip = of_tcp(channel.stream().as_fd(), TCP_MIN_RTT).map(Duration::from_micros);
        let mut end = near_end(options, address, &channel);
        end.share_machine(!far.is_empty() && far == near);
        Ok(Self {
            channel,
            end,
            dialler: Dialler {
                address,
                round_trip,
                session,
                secret,
                stop: Arc::default(),
                source: None,
                waiting: Waiting::default(),
            },
            waiting: Waiting::default(),
            beats: 0,
            beaten: epoch,
            sets: HashMap::new(),
            address,
            access: reply.access,
            version: VERSIONS.common(reply.versions).unwrap_or(VERSIONS.low),
            changes: options.changes.is_some(),
            epoch,
            clock: None,
            lost: None,
            local: None,
        })
    }

    /// Opens a session of this machine with itself. The session has its own server on loopback, and its own key.
    pub fn local(
        engine: &str,
        machine: Arc<dyn Machine>,
        changes: Option<Ledger>,
    ) -> Result<Self, PeerError> {
        let key = Key::generate();
        let local = LocalServer::start(key.clone(), Arc::clone(&machine), changes.clone())?;
        let mut client = Self::connect(&ClientOptions {
            target: Target { host: local.address.ip().to_string(), port: local.address.port() },
            family: None,
            key: Some(key),
            open: false,
            engine: engine.into(),
            machine,
            changes,
        })?;
        client.local = Some(local);
        Ok(client)
    }

    /// Makes waits for answers and for data connections end once `stop` is set.
    pub fn heed(&mut self, stop: &Arc<AtomicBool>) {
        self.dialler.stop = Arc::clone(stop);
    }

    /// Returns the address of the far end.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns whether the server proved that it holds the key, or is open to anyone.
    pub fn access(&self) -> Access {
        self.access
    }

    fn send(&mut self, ask: &Ask) -> Result<(), LinkError> {
        self.alive()?;
        let sent = ask
            .encode()
            .map_err(ChannelError::Wire)
            .and_then(|bytes| self.channel.send(&bytes, Instant::now() + GIVEN_UP));
        sent.map_err(|e| match e {
            // The message is larger than the protocol permits, so nothing was sent.
            ChannelError::Wire(e) => refused(e.to_string()),
            e => self.broke(&e, GIVEN_UP),
        })?;
        if !matches!(ask, Ask::Stop | Ask::Bye) {
            self.waiting.requested();
        }
        Ok(())
    }

    /// Waits for an answer until the far end has been silent for `patience`. If the user wants to stop, the wait ends
    /// once the far end has been silent for [`STOPPED`].
    fn receive(&mut self, patience: Duration) -> Result<Answer, LinkError> {
        loop {
            if let Some(answer) = self.receive_by(Instant::now() + net::HEED)? {
                return Ok(answer);
            }
            self.still(patience)?;
            if self.dialler.is_stopped() && self.silent() >= STOPPED {
                // The answer may still arrive later, and would then be taken for the answer to another request.
                let _ = self.lose("the user stopped the wait for an answer", "");
                return Err(LinkError::Interrupted);
            }
        }
    }

    /// Returns for how long the far end has not answered a request.
    fn silent(&self) -> Duration {
        self.waiting.silent(self.channel.heard())
    }

    /// Reports a silence of the far end to the user; fails if it has lasted for `patience`.
    fn still(&mut self, patience: Duration) -> Result<(), LinkError> {
        if self.waiting.is_over(self.channel.heard(), patience) {
            return Err(self.broke(&ChannelError::TimedOut, patience));
        }
        Ok(())
    }

    /// Sends a heartbeat to the far end during a step. None is sent if an answer is due, or if data was just received,
    /// or to an older far end, which does not know heartbeats.
    fn beat(&mut self) -> Result<(), LinkError> {
        let heard = self.channel.heard().max(self.beaten);
        if self.version < BEATS || self.beats > 0 || heard.elapsed() < BEAT {
            return Ok(());
        }
        self.send(&Ask::Ping)?;
        self.beaten = Instant::now();
        self.beats += 1;
        Ok(())
    }

    /// Returns the next answer; `None` if the answer is not complete by the deadline. The part received is kept.
    fn receive_by(&mut self, deadline: Instant) -> Result<Option<Answer>, LinkError> {
        self.alive()?;
        loop {
            let received = self.channel.receive(deadline);
            match received.and_then(|bytes| Ok(Answer::decode(&bytes)?)) {
                Ok(answer) => match self.heard(answer)? {
                    None => {}
                    answer => return Ok(answer),
                },
                Err(ChannelError::TimedOut) => return Ok(None),
                Err(e) => return Err(self.broke(&e, GIVEN_UP)),
            }
        }
    }

    /// Accepts an answer; returns `None` if it was the answer to a
    /// heartbeat. Answers arrive in the order of their requests.
    fn heard(&mut self, answer: Answer) -> Result<Option<Answer>, LinkError> {
        self.waiting.answered();
        match answer {
            Answer::Pong { .. } if self.beats > 0 => {
                self.beats -= 1;
                Ok(None)
            }
            Answer::Bye { what } => Err(self.lose(&what, "")),
            Answer::Refused { what, hint } => Err(LinkError::Refused {
                what: format!("the far end refused: {}", of_far(&what)),
                hint,
            }),
            answer => Ok(Some(answer)),
        }
    }

    fn request(&mut self, ask: &Ask) -> Result<Answer, LinkError> {
        self.send(ask)?;
        self.receive(GIVEN_UP)
    }

    fn alive(&self) -> Result<(), LinkError> {
        match self.lost.clone() {
            None => Ok(()),
            Some((what, hint)) => Err(LinkError::Lost { what, hint }),
        }
    }

    /// Notes that the far end is lost. The connection is not used after that, even if it still works: later answers of
    /// the far end could belong to any request.
    fn lose(&mut self, why: &str, hint: &str) -> LinkError {
        let what = format!("lost the far end {}: {why}", self.address);
        let hint = hint.to_owned();
        self.lost = Some((what.clone(), hint.clone()));
        LinkError::Lost { what, hint }
    }

    /// Notes that the connection failed, so that no more requests are
    /// possible. `patience` is the time for which this end waited.
    fn broke(&mut self, e: &ChannelError, patience: Duration) -> LinkError {
        let process = self.end.info().is_some_and(|t| t.far_end == FarEnd::Process);
        let hint = match (e, process) {
            // The far host's kernel still keeps the connection open; otherwise it would have been closed.
            (ChannelError::TimedOut, false) => SUSPENDED,
            (ChannelError::TimedOut, true) => {
                "the second process of linerate is stopped, or its host is overloaded: `ps -C linerate` shows its state"
            }
            (ChannelError::Closed | ChannelError::Io(_), false) => {
                "check that `linerate serve` still runs there, and read its log"
            }
            (ChannelError::Closed | ChannelError::Io(_), true) => {
                "the second process of linerate was ended: `dmesg` shows whether the kernel did it to get memory back"
            }
            _ => "",
        };
        let why = match e {
            ChannelError::TimedOut => format!("no answer for {} s", patience.as_secs()),
            e => e.to_string(),
        };
        self.lose(&why, hint)
    }

    fn out_of_turn(&mut self) -> LinkError {
        self.lose("it violated the protocol: an unexpected answer", "")
    }

    /// Returns whether the payload of a set flows only from the far end to this end.
    fn receives(&self, set: u32) -> bool {
        let pattern = self.sets.get(&set).map(|joined| joined.pattern);
        let Some(Pattern::Stream { direction }) = pattern else {
            return false;
        };
        direction.receiver() == Side::Near
    }

    /// Connects a prepared set from both ends at once.
    fn join(&mut self, plan: &SetPlan, far_offer: &Vec<u8>) -> Result<Set, LinkError> {
        let set = plan.id;
        let near_offer = self.end.prepare(plan).map_err(|e| load(&e))?;
        self.send(&Ask::Connect { set, offer: near_offer })?;
        let source = plan.knobs.options.word(BIND.key);
        self.dialler.source = source.map(str::to_owned);
        let near = match self.end.connect(set, far_offer, &mut self.dialler) {
            Ok(near) => near,
            // The session ends here, and the far end notices this.
            Err(_) if self.dialler.is_stopped() => return Err(LinkError::Interrupted),
            Err(e) => {
                // Requests that the far end stop waiting, and reads the answers to both requests. If the far end has
                // its own reason, that reason arrives first and is more precise.
                if e.is_late() {
                    // The far end was silent for all of that time, so only `GRACE` remains for its answers.
                    self.waiting.since(GIVEN_UP.saturating_sub(GRACE));
                }
                self.send(&Ask::Release { set })?;
                let far = self.receive(GIVEN_UP);
                self.receive(GIVEN_UP)?;
                return Err(match far {
                    Err(LinkError::Refused { what, hint }) if !what.contains("given up") => {
                        LinkError::Refused { what, hint }
                    }
                    _ => load(&e),
                });
            }
        };
        // The far end reports when all data connections have arrived. Until
        // now it was waiting for this end, so its silence counts from now.
        self.waiting.restart();
        match self.receive(for_streams(plan.knobs.streams))? {
            Answer::Connected { end: far } => {
                let options = &plan.knobs.options;
                let paired = self
                    .end
                    .info()
                    .is_some_and(|info| !info.is_alone() && !(info.may_lose_payload)(options));
                let pattern = plan.pattern;
                let streams = plan.knobs.streams;
                self.sets.insert(set, Joined { pattern, paired, streams });
                Ok(Set { plan: plan.clone(), ends: vec![near, far] })
            }
            _ => Err(self.out_of_turn()),
        }
    }
}

fn greet(
    channel: &mut Channel,
    hello: &Ask,
    stopped: &dyn Fn() -> bool,
) -> Result<Answer, ChannelError> {
    let deadline = Instant::now() + GIVEN_UP;
    channel.send(&hello.encode()?, deadline)?;
    net::wait_unless(channel.stream(), PollFlags::IN, deadline, stopped)?;
    let bytes = channel.receive(deadline)?;
    Ok(Answer::decode(&bytes)?)
}

/// Changes a text that the far end wrote about its own host, so that it is right when read at this end.
fn of_far(what: &str) -> String {
    match what.strip_prefix("this host ") {
        Some(rest) => format!("the far host {rest}"),
        None => what.to_owned(),
    }
}

fn refused(what: String) -> LinkError {
    LinkError::Refused { what, hint: String::new() }
}

fn load(e: &LoadError) -> LinkError {
    LinkError::Refused { what: e.to_string(), hint: e.hint().into() }
}

/// Makes the near end of a session with the server at `address`.
fn near_end(options: &ClientOptions, address: SocketAddr, channel: &Channel) -> LocalEnd {
    let own = channel.stream().local_addr().ok().map(|own| own.ip());
    let toward = Toward::of(address.ip(), own);
    let machine = Arc::clone(&options.machine);
    let mut end = LocalEnd::new(Side::Near, &options.engine, machine, toward);
    if let Some(ledger) = options.changes.clone() {
        end.allow_changes(ledger);
    }
    end
}

impl Link for Client {
    fn tell_silences(&mut self, tell: Option<Silences>) {
        self.dialler.waiting.tell(tell.clone());
        self.waiting.tell(tell);
    }

    fn now(&self) -> Nanos {
        self.epoch.elapsed().into()
    }

    fn hosts(&mut self) -> Result<Vec<Host>, LinkError> {
        let near = self.end.facts();
        let Answer::Facts { facts: mut far } = self.request(&Ask::Facts)? else {
            return Err(self.out_of_turn());
        };
        if !self.changes {
            // The far end may allow changes that this end's user did not allow, so its list is cleared.
            far.changeable.clear();
            far.gaps.retain(|gap| gap.what != SETTINGS_GAP);
        }
        let host = |side, facts| Host { side, facts };
        Ok(vec![host(Side::Near, near), host(Side::Far, *far)])
    }

    fn prepare(&mut self, plan: &SetPlan) -> Result<Set, LinkError> {
        understood(plan, self.version)?;
        let plan_of_set = Box::new(plan.clone());
        let ask = Ask::Prepare { plan: plan_of_set };
        let Answer::Offered { offer } = self.request(&ask)? else {
            return Err(self.out_of_turn());
        };
        let joined = self.join(plan, &offer);
        let stays = !matches!(joined, Ok(_) | Err(LinkError::Interrupted));
        if stays && self.lost.is_none() {
            // A failure of this release is ignored, because the first error is more important.
            let _ = self.release(plan.id);
        }
        joined
    }

    fn step(
        &mut self,
        plan: &StepPlan,
        watch: &mut dyn FnMut(Live) -> StepControl,
    ) -> Result<Step, LinkError> {
        step::run(self, plan, watch)
    }

    fn release(&mut self, set: u32) -> Result<(), LinkError> {
        self.end.release(set);
        self.sets.remove(&set);
        match self.request(&Ask::Release { set })? {
            Answer::Released => Ok(()),
            _ => Err(self.out_of_turn()),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.lost.is_none()
            && let Ok(bye) = Ask::Bye.encode()
        {
            // If this message is lost, the far end still notices that the connection is closed.
            let _ = self.channel.send_last(&bye, BYE);
        }
    }
}

/// Opens a control connection and sends nothing more on it.
#[cfg(test)]
pub(super) fn hold(target: &Target, key: &Key) -> Result<Channel, PeerError> {
    Ok(dial::control(target, None, Some(key), false, &|| false)?.0)
}
