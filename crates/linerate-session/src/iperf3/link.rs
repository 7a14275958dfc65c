//! An iperf3 server as the far end: a step is one test.
//!
//! The near end is a [`LocalEnd`] with its sampler, as for any link. The far end's
//! readings are the sums that the server reports after the test; values that it
//! does not report are gaps. A test has one set of streams, all in one direction.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_facts::metric::PROCESS_CPU;
use linerate_plan::path::{Direction, Side};
use linerate_plan::{Pattern, SetPlan, StepPlan};
use linerate_record::iperf3::{Protocol, Results};
use linerate_record::{EndReadings, Host, Set, SetEnd, Step, Trouble};
use linerate_units::Nanos;

use crate::end::{LocalEnd, Running};
use crate::iperf3::client::{ClientError, Opened, Report, Test, Wanted, dialled, missing};
use crate::iperf3::counted::Streams;
use crate::iperf3::cpu::Used;
use crate::link::{Link, LinkError, Live, StepControl};
use linerate_host::sheet::Sheet;
use linerate_host::{Machine, Toward};
use linerate_plan::application::Role;

/// Time between calls of `watch`.
const LOOK: Duration = Duration::from_millis(100);
/// Time within which the server must send results. They wait behind all payload that is queued on the path.
const RESULTS: Duration = Duration::from_secs(30);
/// Time within which the server must send results if the user wants to stop.
const RESULTS_TO_STOP: Duration = Duration::from_secs(3);
/// After the end of a test, a receiver ends by itself once nothing has arrived for `QUIET`, and after `QUIET_AT_MOST`
/// at the latest. Both times are shorter than the time at which the sampler considers the receiver stuck.
const QUIET: Duration = Duration::from_secs(2);
const QUIET_AT_MOST: Duration = Duration::from_secs(14);

/// Options of a link to an iperf3 server.
pub struct Options {
    /// Addresses of the server; the first one that accepts a connection is used.
    pub servers: Vec<SocketAddr>,
    /// Protocol that carries the payload.
    pub protocol: Protocol,
    /// Washout: time at the start of a test that does not count.
    /// The server omits it if it is a whole number of seconds.
    pub washout: Nanos,
    /// Length of a test after its omitted part.
    pub time: Nanos,
    pub machine: Arc<dyn Machine>,
}

/// A link whose far end is an iperf3 server.
pub struct Iperf3 {
    options: Options,
    end: LocalEnd,
    server: SocketAddr,
    /// The first control connection, until the first test uses it.
    opened: Option<Opened>,
    /// Prepared sets by id: the plan of each set and, until its test has run, that test.
    sets: HashMap<u32, (SetPlan, Option<Test>)>,
    /// Addresses of both ends of each stream of the last test, this end first.
    ends: Vec<[SocketAddr; 2]>,
    stop: Arc<AtomicBool>,
    epoch: Instant,
    lost: Option<(String, String)>,
}

impl Iperf3 {
    /// Connects to a server, unless `stop` is set before.
    pub fn reach(options: Options, stop: &Arc<AtomicBool>) -> Result<Self, ClientError> {
        let epoch = Instant::now();
        let opened = dialled(&options.servers, &|| stop.load(Ordering::Relaxed))?;
        let (server, own) = (opened.server, opened.own);
        let engine = match options.protocol {
            Protocol::Udp => "udp",
            _ => "tcp",
        };
        let toward = Toward::of(server.ip(), Some(own.ip()));
        let machine = Arc::clone(&options.machine);
        let mut end = LocalEnd::new(Side::Near, engine, machine, toward);
        end.share_machine(own.ip() == server.ip());
        Ok(Self {
            options,
            end,
            server,
            opened: Some(opened),
            sets: HashMap::new(),
            ends: Vec::new(),
            stop: Arc::clone(stop),
            epoch,
            lost: None,
        })
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        self.server
    }

    /// Returns the addresses of both ends of each stream of the last test, this end first.
    pub fn streams(&self) -> &[[SocketAddr; 2]] {
        &self.ends
    }

    /// Returns the seconds that the server should omit. It is zero with datagrams: servers before 3.14 report the
    /// losses of an omitted part together with the measured ones, and datagrams have no slow start.
    fn omit(&self) -> u64 {
        let second = 1_000_000_000;
        let whole = self.options.washout.0.is_multiple_of(second);
        let wanted = whole && self.options.protocol == Protocol::Tcp;
        if wanted { self.options.washout.0 / second } else { 0 }
    }

    /// Agrees with the server on a test with this set of streams. Returns the test, and the near end of the set.
    fn agree(&mut self, plan: &SetPlan) -> Result<(Test, SetEnd), ClientError> {
        let Pattern::Stream { direction } = plan.pattern else {
            let what = "a test with an iperf3 server is a stream of payload".to_owned();
            return Err(ClientError::Unsupported(what));
        };
        let opened = match self.opened.take() {
            Some(opened) => opened,
            None => dialled(&[self.server], &|| self.stop.load(Ordering::Relaxed))?,
        };
        // The facts of this host are read before the test is agreed on:
        // reading takes time, and later the server would wait for it.
        self.end.facts();
        let wanted = Wanted {
            protocol: self.options.protocol,
            direction,
            plan,
            omit: self.omit(),
            time: self.options.time,
        };
        let (test, connected) = Test::open(opened, &wanted, &self.stop)?;
        let near = self.end.seat(plan, connected)?;
        Ok((test, near))
    }

    /// Returns the test of a set. If this test has already run,
    /// agrees with the server on another test with the same set.
    fn test(&mut self, set: u32) -> Result<Test, LinkError> {
        let Some((plan, test)) = self.sets.get_mut(&set) else {
            let what = format!("set {set} is not prepared");
            return Err(LinkError::Refused { what, hint: String::new() });
        };
        if let Some(test) = test.take() {
            return Ok(test);
        }
        let plan = plan.clone();
        self.end.release(set);
        let (test, _) = self.agree(&plan).map_err(|e| self.fails(&e))?;
        Ok(test)
    }

    fn alive(&self) -> Result<(), LinkError> {
        match self.lost.clone() {
            None => Ok(()),
            Some((what, hint)) => Err(LinkError::Lost { what, hint }),
        }
    }

    /// Stores the error that ended the test, so that the link is lost. Returns it as a link error.
    fn fails(&mut self, error: &ClientError) -> LinkError {
        if let ClientError::Interrupted = error {
            return LinkError::Interrupted;
        }
        let (what, hint) = (error.to_string(), error.hint());
        self.lost = Some((what.clone(), hint.clone()));
        LinkError::Lost { what, hint }
    }
}

impl Link for Iperf3 {
    fn now(&self) -> Nanos {
        self.epoch.elapsed().into()
    }

    fn hosts(&mut self) -> Result<Vec<Host>, LinkError> {
        Ok(vec![Host { side: Side::Near, facts: self.end.facts() }])
    }

    fn prepare(&mut self, plan: &SetPlan) -> Result<Set, LinkError> {
        self.alive()?;
        let (test, near) = self.agree(plan).map_err(|e| self.fails(&e))?;
        // A sending server writes with the size that was requested.
        let size = test.datagram.filter(|_| test.direction == Direction::Reverse);
        let far = SetEnd { write_size: size.map_or(0, u64::from), ..SetEnd::default() };
        self.sets.insert(plan.id, (plan.clone(), Some(test)));
        Ok(Set { plan: plan.clone(), ends: vec![near, far] })
    }

    fn step(
        &mut self,
        plan: &StepPlan,
        watch: &mut dyn FnMut(Live) -> StepControl,
    ) -> Result<Step, LinkError> {
        self.alive()?;
        let [set] = plan.sets[..] else {
            return Err(LinkError::Refused {
                what: format!("{} sets at once: an iperf3 test has one", plan.sets.len()),
                hint: String::new(),
            });
        };
        let mut test = self.test(set)?;
        let mut running = self.end.arm(plan).map_err(|e| self.fails(&e.into()))?;
        test.begin().map_err(|e| self.fails(&e))?;
        self.ends.clone_from(&test.ends);
        let used = Used::now(&*self.options.machine);
        let began = self.epoch.elapsed();
        running.go();
        let mut course = Course {
            test: test.heedless(),
            plan,
            set,
            began: Instant::now(),
            watch,
            stopped: false,
        };
        let broken = course.drive(&mut running);
        let lasted = course.began.elapsed();
        let (near, far, broken) = course.conclude(running, broken, lasted, |cpu| {
            let used = used?;
            let now = Used::now(&*self.options.machine)?;
            cpu.replace(now.nanos_since(&used));
            now.since(&used)
        });
        let stopped = course.stopped.then(|| trouble(Side::Near, "stopped"));
        let broken = broken.map(|error| {
            let words = error.to_string();
            self.fails(&error);
            trouble(Side::Far, &words)
        });
        Ok(Step {
            plan: plan.clone(),
            began: began.into(),
            ends: vec![near, far],
            clock: None,
            took: Nanos(0),
            trouble: broken.or(stopped),
        })
    }

    fn release(&mut self, set: u32) -> Result<(), LinkError> {
        self.sets.remove(&set);
        self.end.release(set);
        self.alive()
    }
}

fn trouble(side: Side, what: &str) -> Trouble {
    Trouble { side, what: what.into() }
}

/// A test in progress.
struct Course<'a> {
    test: Test,
    plan: &'a StepPlan,
    set: u32,
    began: Instant,
    watch: &'a mut dyn FnMut(Live) -> StepControl,
    stopped: bool,
}

/// Destination for the CPU time of this process during a test, in nanoseconds.
type CpuOf<'a> = &'a mut Option<u64>;

impl Course<'_> {
    fn sends(&self) -> bool {
        self.test.direction == Direction::Forward
    }

    /// Runs the test until its time is up or the user stops it; returns the error if it broke earlier.
    fn drive(&mut self, running: &mut Running) -> Option<ClientError> {
        let time = self.plan.washout.duration() + self.plan.measure.duration();
        loop {
            let left = time.saturating_sub(self.began.elapsed());
            // The sampler ends the senders after its last row. Receivers continue until no more payload arrives.
            let all_ended =
                if self.sends() { running.done(LOOK) } else { running.done(LOOK.min(left)) };
            let failed = running.failed();
            if failed.is_none() && (all_ended || left.is_zero() && !self.sends()) {
                return None;
            }
            let broken = self.test.broken(failed);
            if broken.is_some() || self.stops(running) {
                running.stop();
                while self.sends() && !running.done(LOOK) {}
                return broken;
            }
        }
    }

    /// Passes the progress to the callback; returns whether the user wants to stop.
    fn stops(&mut self, running: &Running) -> bool {
        self.stopped |= (self.watch)(running.live()) == StepControl::Stop;
        self.stopped
    }

    /// Receives the server's results, if the server still answers. Returns the readings of the near and of the far end,
    /// and the error if the test is not complete.
    fn conclude(
        &mut self,
        running: Running,
        broken: Option<ClientError>,
        lasted: Duration,
        cpu: impl FnOnce(CpuOf<'_>) -> Option<linerate_record::iperf3::Cpu>,
    ) -> (EndReadings, EndReadings, Option<ClientError>) {
        let broken = broken.or_else(|| self.end(&running).err());
        self.test.bare.finish();
        let mut near = running.finish();
        let mut nanos = None;
        let cpu = cpu(&mut nanos);
        near.tables.extend(nanos.and_then(|used| process(used, lasted)));
        if broken.is_some() {
            return (near, missing(self.test.direction), broken);
        }
        let ours = self.ours(&near, cpu, lasted);
        let patience = if self.stopped { RESULTS_TO_STOP } else { RESULTS };
        match self.test.exchange(&ours, patience) {
            Ok(results) => {
                let far = self.report(&results, &near, lasted).readings();
                (near, far, None)
            }
            Err(error) => (near, missing(self.test.direction), Some(error)),
        }
    }

    /// Sends the server the end of the test, and waits until the server requests results. Receivers continue in the
    /// meantime, because otherwise the server could block in its sends.
    fn end(&mut self, running: &Running) -> Result<(), ClientError> {
        self.test.end()?;
        let (said, mut quiet) = (Instant::now(), Instant::now());
        let moved = |running: &Running| running.moved().iter().sum::<u64>();
        let mut before = moved(running);
        loop {
            if self.test.requested(LOOK)? {
                return Ok(());
            }
            let now = moved(running);
            if now != before {
                (before, quiet) = (now, Instant::now());
            }
            if quiet.elapsed() >= QUIET || said.elapsed() >= QUIET_AT_MOST {
                self.test.bare.finish();
            }
            let patience = if self.stops(running) { RESULTS_TO_STOP } else { RESULTS };
            if said.elapsed() >= patience {
                return Err(self.test.silent(patience));
            }
        }
    }

    /// Returns this end's results, which are sent to the server.
    fn ours(
        &self,
        near: &EndReadings,
        cpu: Option<linerate_record::iperf3::Cpu>,
        lasted: Duration,
    ) -> Results {
        let role = if self.sends() { Role::Sender } else { Role::Receiver };
        let streams = Streams {
            set: self.set,
            role,
            datagram: self.test.datagram,
            omit: Nanos::from_secs(self.test.omit),
        };
        let seconds = (lasted.as_secs_f64() - self.test.omit as f64).max(0.0);
        Results { cpu, congestion: None, streams: streams.results(near, 0, seconds) }
    }

    fn report<'r>(
        &self,
        results: &'r Results,
        near: &'r EndReadings,
        lasted: Duration,
    ) -> Report<'r> {
        Report {
            results,
            set: self.set,
            direction: self.test.direction,
            streams: near.totals.len() as u32,
            datagram: self.test.datagram,
            omit: self.test.omit as f64,
            lasted: lasted.as_secs_f64(),
            near: &near.totals,
        }
    }
}

/// Returns a table of this process's CPU time during a test.
fn process(used: u64, lasted: Duration) -> Option<linerate_record::Table> {
    let mut sheet = Sheet::new(PROCESS_CPU.source, String::new());
    let end = u64::try_from(lasted.as_nanos()).unwrap_or(u64::MAX);
    for (at, used) in [(0, 0), (end, used)] {
        // The value is always present, so there is no gap to report.
        sheet.push(at, [(PROCESS_CPU, i64::try_from(used).ok())]);
    }
    sheet.take()
}
