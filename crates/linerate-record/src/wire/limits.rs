//! Limits that a server sets for plans: a client that was admitted may measure, but not exhaust the host.

use super::samples::{fits, read_of};
use linerate_plan::{Handover, Knobs, Pattern, SetPlan, StepPlan};
use linerate_units::{Bytes, Nanos, Rate};

/// Limits of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanLimits {
    /// Largest number of sets at the same time.
    pub sets: usize,
    /// Largest number of streams at the same time, of all sets together.
    pub streams: u32,
    /// Largest number of streams of all sessions together, as the host has room for.
    pub room_for_streams: u32,
    /// Largest number of threads at the same time, of all sets together.
    pub threads: u32,
    /// Longest step, wash-out included.
    pub step: Nanos,
    /// Largest number of samples of a step.
    pub samples: u64,
}

/// Largest number of streams of a load that each have their own thread and buffers. If there are more, all streams
/// share `THREADS_MAX` threads.
pub const THREADS_MAX: u32 = 64;
/// Largest operation or message in bytes: each thread has one or two buffers of this size.
pub const OPERATION_MAX: Bytes = Bytes(64 * 1024 * 1024);
/// Most memory for the buffers of one set.
const OPERATIONS_MAX: Bytes = Bytes(1 << 30);
/// Most memory for the buffers of all sets of a session. The maximum number of streams fits if the plan leaves the
/// sizes of operations open.
const ROOM_MAX: Bytes = Bytes(4 << 30);
/// What all sessions together may use, as a multiple of what one session may, and the share of that for the sessions
/// from one address. Whatever one address uses, half of one session's amount is left to others.
const ALL_SESSIONS_FACTOR: u64 = 2;
const ONE_ADDRESS_SHARE: f64 = 0.75;
/// Size of an operation where the plan leaves it open: the largest that an end chooses.
const OPERATION_OPEN: Bytes = Bytes(1 << 20);
/// Least memory for the buffers of an io_uring ring.
const RING_ROOM: Bytes = Bytes(512 * 1024);
/// Largest socket buffer that may be requested. The kernel has its own bound, which is lower.
const BUFFER_MAX: Bytes = Bytes(1 << 30);
/// Most extra work for each byte, in picoseconds: a thread that burns time must still notice a stop soon.
const EXTRA_WORK_MAX_PS: u64 = 1_000_000;

/// The resources that sets use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// Number of sets of connections.
    pub sets: usize,
    /// Number of streams; a stream that needs several descriptors counts as several.
    pub streams: u32,
    /// Number of threads.
    pub threads: u32,
    /// Memory for buffers.
    pub room: Bytes,
}

impl Taken {
    /// The resources of one set at this end. `each` is the buffer memory that its engine needs for each thread;
    /// `None` if the sizes of operations determine it.
    pub fn of(plan: &SetPlan, each: Option<Bytes>) -> Self {
        let each = each.unwrap_or_else(|| buffers(plan));
        Self {
            sets: 1,
            streams: plan.knobs.streams.saturating_mul(descriptors(plan)),
            threads: threads(plan),
            room: Bytes(each.0.saturating_mul(threads(plan).into())),
        }
    }

    /// The resources for an engine that holds `descriptors` descriptors for each stream.
    #[must_use]
    pub fn holding(self, descriptors: u32) -> Self {
        Self { streams: self.streams.saturating_mul(descriptors), ..self }
    }

    /// The sum of the resources of two groups of sets.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            sets: self.sets.saturating_add(other.sets),
            streams: self.streams.saturating_add(other.streams),
            threads: self.threads.saturating_add(other.threads),
            room: Bytes(self.room.0.saturating_add(other.room.0)),
        }
    }
}

/// Largest number of threads of a set at each end.
fn threads(plan: &SetPlan) -> u32 {
    match plan.pattern {
        Pattern::Stream { .. } => plan.knobs.streams.min(THREADS_MAX),
        Pattern::PingPong { .. } | Pattern::Operations { .. } => plan.knobs.streams,
    }
}

/// Buffer memory of each thread of a set, as far as the sizes of operations determine it.
fn buffers(plan: &SetPlan) -> Bytes {
    let operation = operation(plan);
    match plan.knobs.copy {
        // The kernel fills one buffer while another is read, and small buffers need to be many.
        Handover::IoUring => Bytes(operation.0.saturating_mul(2).max(RING_ROOM.0)),
        Handover::Copy | Handover::Zerocopy | Handover::Sendfile => operation,
    }
}

/// Descriptors of each stream: a ring, or a file in memory, needs one in addition to the socket's.
fn descriptors(plan: &SetPlan) -> u32 {
    match plan.knobs.copy {
        Handover::IoUring | Handover::Sendfile => 2,
        Handover::Copy | Handover::Zerocopy => 1,
    }
}

/// Size of the largest operation of each stream of a set.
fn operation(plan: &SetPlan) -> Bytes {
    let open = |size: Bytes| {
        if size == Bytes(0) { OPERATION_OPEN } else { size }
    };
    match plan.pattern {
        Pattern::Stream { .. } | Pattern::Operations { .. } => {
            open(plan.knobs.write_size).max(open(plan.knobs.read_size))
        }
        Pattern::PingPong { size, .. } => size,
    }
}

impl Default for PlanLimits {
    fn default() -> Self {
        Self {
            sets: 32,
            // 10,000 streams in each direction, and as many for a trial; other bounds limit their cost.
            streams: 40_000,
            room_for_streams: u32::MAX,
            threads: 4096,
            // An hour, and a minute for the time before the measured part.
            step: Nanos::from_secs(3660),
            samples: 20_000,
        }
    }
}

impl PlanLimits {
    /// The limits on a host that has room for `room_for_streams` streams of all sessions together.
    #[must_use]
    pub fn within(self, room_for_streams: u32) -> Self {
        let one_address = (f64::from(room_for_streams) * ONE_ADDRESS_SHARE) as u32;
        Self { streams: self.streams.min(one_address), room_for_streams, ..self }
    }

    /// Whether a set may be prepared in addition to the sets that use `beside`. `own` are the set's resources
    /// ([`Taken::of`]). The error is a lowercase fragment that names the exceeded limit.
    pub fn set(&self, plan: &SetPlan, own: Taken, beside: Taken) -> Result<(), String> {
        let knobs = &plan.knobs;
        if beside.sets >= self.sets {
            return Err(format!("more than {} sets at a time", self.sets));
        }
        if knobs.streams == 0 {
            return Err("a set without streams".into());
        }
        if own.streams > self.streams.saturating_sub(beside.streams) {
            return Err(format!("more than {} streams at a time", self.streams));
        }
        if own.threads > self.threads.saturating_sub(beside.threads) {
            return Err(format!("more than {} threads at a time", self.threads));
        }
        let message = match plan.pattern {
            Pattern::Stream { .. } | Pattern::Operations { .. } => Bytes(1),
            Pattern::PingPong { size, .. } => size,
        };
        if message == Bytes(0) {
            return Err("a ping-pong without payload".into());
        }
        let largest = message.max(knobs.write_size).max(knobs.read_size);
        if largest > OPERATION_MAX {
            return Err(format!("an operation of more than {OPERATION_MAX}"));
        }
        if own.room > OPERATIONS_MAX {
            let each = Bytes(own.room.0 / u64::from(own.threads.max(1)));
            return Err(format!(
                "{} streams with operations of {each}: more than {OPERATIONS_MAX} together",
                knobs.streams
            ));
        }
        if beside.and(own).room > ROOM_MAX {
            return Err(format!("operations of more than {ROOM_MAX} in all sets of a session"));
        }
        let buffers = [knobs.send_buffer, knobs.recv_buffer, knobs.window_clamp];
        if buffers.into_iter().flatten().any(|b| b > BUFFER_MAX) {
            return Err(format!("a buffer of more than {BUFFER_MAX}"));
        }
        if knobs.pacing == Some(Rate(0)) {
            return Err("a pacing rate of zero".into());
        }
        let work = &knobs.extra_work;
        if work.sender_ps_per_byte.max(work.receiver_ps_per_byte) > EXTRA_WORK_MAX_PS {
            return Err("extra work of more than 1 us per byte".into());
        }
        named(knobs)
    }

    /// Whether all sessions together may use `all`, and those from one address `of_one_address`.
    pub fn together(&self, all: Taken, of_one_address: Taken) -> Result<(), String> {
        self.share(1.0, all).map_err(|what| format!("more than {what} in all sessions"))?;
        self.share(ONE_ADDRESS_SHARE, of_one_address)
            .map_err(|what| format!("more than {what} in all sessions from one address"))
    }

    /// Whether `taken` fits into this share of what all sessions may use; the error names the limit that it exceeds.
    fn share(&self, share: f64, taken: Taken) -> Result<(), String> {
        let part = |all: u64| (all as f64 * share) as u64;
        let streams = ALL_SESSIONS_FACTOR * u64::from(self.streams);
        let streams = part(streams.min(self.room_for_streams.into()));
        let threads = part(ALL_SESSIONS_FACTOR * u64::from(self.threads));
        let room = Bytes(part(ALL_SESSIONS_FACTOR * ROOM_MAX.0));
        if u64::from(taken.streams) > streams {
            return Err(format!("{streams} streams at a time"));
        }
        if u64::from(taken.threads) > threads {
            return Err(format!("{threads} threads at a time"));
        }
        if taken.room > room {
            return Err(format!("{room} of operations"));
        }
        Ok(())
    }

    /// Whether a step may be armed. `connected` returns the number of streams of a set, or `None` if it is not
    /// connected.
    pub fn step(
        &self,
        plan: &StepPlan,
        connected: impl Fn(u32) -> Option<u32>,
    ) -> Result<(), String> {
        if plan.sets.is_empty() {
            return Err("a step without sets".into());
        }
        let mut streams = 0;
        for (i, set) in plan.sets.iter().enumerate() {
            if plan.sets[..i].contains(set) {
                return Err(format!("set {set} twice in one step"));
            }
            let Some(more) = connected(*set) else {
                return Err(format!("a step on set {set}, which is not connected"));
            };
            streams += u64::from(read_of(more));
        }
        let length = plan.washout.0.saturating_add(plan.measure.0);
        if length > self.step.0 {
            return Err(format!("a step of more than {}", self.step));
        }
        if plan.tick.0 == 0 || length / plan.tick.0 > self.samples {
            return Err(format!("more than {} samples in a step", self.samples));
        }
        if !fits(length, plan.tick.0, streams) {
            return Err(format!(
                "samples of {streams} streams every {} for {}: their readings are too many for an answer",
                plan.tick,
                Nanos(length)
            ));
        }
        Ok(())
    }
}

/// Checks that names in a set are well-formed, and its values within bounds.
fn named(knobs: &Knobs) -> Result<(), String> {
    // //= linux/include/net/tcp.h, TCP_CA_NAME_MAX
    let name_ok = |name: &String| {
        (1..16).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    };
    if knobs.congestion.as_ref().is_some_and(|n| !name_ok(n)) {
        return Err("a malformed name of a congestion control".into());
    }
    knobs.host.map_or(Ok(()), |change| change.check())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::samples::{TICK, tick};
    use linerate_plan::Purpose;
    use linerate_plan::change::{HostChange, Setting};
    use linerate_plan::path::{Direction, Side};

    fn stream(knobs: Knobs) -> SetPlan {
        let direction = Direction::Forward;
        SetPlan { id: 0, pattern: Pattern::Stream { direction }, knobs }
    }

    fn pings(size: u64) -> SetPlan {
        SetPlan {
            id: 0,
            pattern: Pattern::PingPong { size: Bytes(size), interval: Nanos(0) },
            knobs: Knobs::default(),
        }
    }

    fn step(millis: u64, tick: u64, sets: &[u32]) -> StepPlan {
        StepPlan {
            index: 0,
            purpose: Purpose::Both,
            sets: sets.to_vec(),
            washout: Nanos(0),
            measure: Nanos::from_millis(millis),
            tick: Nanos(tick),
        }
    }

    fn taken(sets: usize, streams: u32) -> Taken {
        Taken { sets, streams, ..Taken::default() }
    }

    /// Whether a set may be prepared in addition to others, with buffers as large as its operations.
    fn beside(plan: &SetPlan, beside: Taken) -> Result<(), String> {
        PlanLimits::default().set(plan, Taken::of(plan, None), beside)
    }

    fn alone(plan: &SetPlan) -> Result<(), String> {
        beside(plan, Taken::default())
    }

    #[test]
    fn the_buffers_of_all_sets_are_bounded_together() {
        let large = stream(Knobs {
            streams: 64,
            write_size: Bytes(OPERATIONS_MAX.0 / 64),
            ..Knobs::default()
        });
        let mut held = Taken::default();
        for _ in 0..4 {
            assert!(beside(&large, held).is_ok(), "{held:?}");
            held = held.and(Taken::of(&large, None));
        }
        assert_eq!((held.sets, held.streams, held.room), (4, 256, ROOM_MAX));
        assert!(beside(&large, held).is_err());
        assert!(beside(&pings(1), held).is_err());
        held.room.0 -= 1;
        assert!(beside(&pings(1), held).is_ok());
        let ring = stream(Knobs { copy: Handover::IoUring, ..Knobs::default() });
        let open = Taken::of(&ring, None);
        assert_eq!((open.streams, open.room.0), (2, 2 * OPERATION_OPEN.0));
        let small = stream(Knobs {
            copy: Handover::IoUring,
            write_size: Bytes(8192),
            read_size: Bytes(8192),
            ..Knobs::default()
        });
        assert_eq!(Taken::of(&small, None).room, RING_ROOM);
    }

    #[test]
    fn what_an_engine_makes_counts_instead_of_its_operations() {
        let small = stream(Knobs {
            streams: 64,
            write_size: Bytes(64),
            read_size: Bytes(64),
            ..Knobs::default()
        });
        let (limits, mib) = (PlanLimits::default(), 1 << 20);
        assert_eq!(Taken::of(&small, None).room, Bytes(64 * 64));
        for (each, good) in [(16 * mib, true), (16 * mib + 1, false)] {
            let own = Taken::of(&small, Some(Bytes(each)));
            assert_eq!(own.room, Bytes(64 * each));
            let taken = limits.set(&small, own, Taken::default());
            assert_eq!(taken.is_ok(), good, "{taken:?}");
        }
        // Before the number of sets reaches its limit, their buffers do, whatever their operations are.
        let own = Taken::of(&small, Some(Bytes(2 * mib + mib / 8)));
        let mut held = Taken::default();
        while limits.set(&small, own, held).is_ok() {
            held = held.and(own);
        }
        assert!(held.sets < limits.sets && held.room <= ROOM_MAX, "{held:?}");
    }

    #[test]
    fn a_stream_counts_for_each_of_its_descriptors() {
        let streams = |copy| stream(Knobs { streams: 10, copy, ..Knobs::default() });
        let held = |copy| Taken::of(&streams(copy), None).streams;
        assert_eq!((held(Handover::Copy), held(Handover::IoUring)), (10, 20));
        let connects = Taken::of(&streams(Handover::Copy), None).holding(3);
        assert_eq!(connects.streams, 30);
    }

    #[test]
    fn a_host_with_room_for_few_streams_leaves_some_to_other_addresses() {
        let limits = PlanLimits::default();
        assert_eq!(limits.within(u32::MAX), limits);
        assert_eq!(limits.within(80_000).streams, limits.streams);
        let few = limits.within(24);
        assert_eq!(few.streams, 18);
        let streams = |streams| taken(1, streams);
        assert!(few.together(streams(24), streams(18)).is_ok());
        assert!(few.together(streams(25), streams(1)).is_err());
        assert!(few.together(streams(19), streams(19)).is_err());
        assert_eq!(limits.within(0).streams, 0);
    }

    #[test]
    fn sessions_are_bounded_together_and_of_one_address() {
        let limits = PlanLimits::default();
        let streams = |streams| taken(1, streams);
        assert_eq!(limits.together(streams(80_000), streams(60_000)), Ok(()));
        let all = limits.together(streams(80_001), streams(1)).unwrap_err();
        assert_eq!(all, "more than 80000 streams at a time in all sessions");
        let one = limits.together(streams(60_001), streams(60_001));
        assert!(one.unwrap_err().ends_with("from one address"));
        let threads = |threads| Taken { threads, ..Taken::default() };
        assert!(limits.together(threads(8192), threads(6144)).is_ok());
        assert!(limits.together(threads(8192), threads(6145)).is_err());
        let room = |gib: u64| Taken { room: Bytes(gib << 30), ..Taken::default() };
        assert!(limits.together(room(8), room(6)).is_ok());
        assert!(limits.together(room(9), room(0)).is_err());
    }

    #[test]
    fn settings_of_a_host_are_bounded() {
        let change = |value| {
            let host = Some(HostChange { side: Side::Far, setting: Setting::TcpRmem, value });
            let knobs = Knobs { host, ..Knobs::default() };
            alone(&stream(knobs))
        };
        assert!(change(4096).is_ok() && change(1 << 30).is_ok());
        assert!(change(4095).is_err() && change((1 << 30) + 1).is_err());
    }

    #[test]
    fn sets_and_streams_are_counted() {
        let set = |streams| stream(Knobs { streams, ..Knobs::default() });
        assert!(beside(&set(1024), taken(31, 0)).is_ok());
        assert!(beside(&set(1), taken(32, 0)).is_err());
        assert!(alone(&set(10_000)).is_ok());
        assert!(alone(&set(40_001)).is_err());
        assert!(beside(&set(8), taken(0, 39_992)).is_ok());
        assert!(beside(&set(8), taken(0, 39_993)).is_err());
        assert!(beside(&set(u32::MAX), taken(0, u32::MAX)).is_err());
        assert!(alone(&set(0)).is_err());
    }

    #[test]
    fn operations_are_bounded() {
        assert!(alone(&pings(OPERATION_MAX.0)).is_ok());
        assert!(alone(&pings(OPERATION_MAX.0 + 1)).is_err());
        assert!(alone(&pings(0)).is_err());
        let write = |n| stream(Knobs { write_size: Bytes(n), ..Knobs::default() });
        assert!(alone(&write(OPERATION_MAX.0)).is_ok());
        assert!(alone(&write(OPERATION_MAX.0 + 1)).is_err());
    }

    #[test]
    fn extra_work_and_names_are_bounded() {
        let work = |ps| {
            let mut knobs = Knobs::default();
            knobs.extra_work.receiver_ps_per_byte = ps;
            stream(knobs)
        };
        assert!(alone(&work(EXTRA_WORK_MAX_PS)).is_ok());
        assert!(alone(&work(EXTRA_WORK_MAX_PS + 1)).is_err());
        let congestion =
            |name: &str| stream(Knobs { congestion: Some(name.into()), ..Knobs::default() });
        assert!(alone(&congestion("bbr")).is_ok());
        assert!(alone(&congestion(&"b".repeat(15))).is_ok());
        for name in ["", "b b", &"b".repeat(16)] {
            assert!(alone(&congestion(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn steps_are_bounded() {
        let limits = PlanLimits::default();
        let known = |set| (set < 3).then_some(1);
        assert!(limits.step(&step(3_660_000, 1_000_000_000, &[0, 2]), known).is_ok());
        assert!(limits.step(&step(3_660_001, 1_000_000_000, &[0]), known).is_err());
        assert!(limits.step(&step(1_000, 50_000, &[0]), known).is_ok());
        assert!(limits.step(&step(1_000, 49_000, &[0]), known).is_err());
        assert!(limits.step(&step(1, 0, &[0]), known).is_err());
        assert!(limits.step(&step(1, 1_000, &[]), known).is_err());
        assert!(limits.step(&step(1, 1_000, &[3]), known).is_err());
        assert!(limits.step(&step(1, 1_000, &[1, 1]), known).is_err());
    }

    #[test]
    fn samples_are_as_close_as_an_answer_allows() {
        let of = |secs, streams| tick(Nanos::from_secs(secs), streams);
        assert_eq!(of(10, 1), TICK);
        assert_eq!(of(120, 1), TICK);
        assert_eq!(of(121, 1), Nanos::from_millis(200));
        assert_eq!(of(600, 64), Nanos::from_secs(1));
        assert_eq!(of(3600, 1), Nanos::from_secs(5));
        assert_eq!(of(3600, 1024), Nanos::from_secs(100));
        assert_eq!(tick(Nanos(0), 1), TICK);
    }

    proptest::proptest! {
        #[test]
        fn a_server_takes_every_tick_that_is_chosen(millis in 1u64..3_600_000, streams in 1u32..=40_000) {
            let mut plan = step(millis, 1, &[0]);
            plan.tick = tick(plan.measure, u64::from(read_of(streams)));
            let taken = PlanLimits::default().step(&plan, |_| Some(streams));
            proptest::prop_assert_eq!(taken, Ok(()));
        }
    }

    #[test]
    fn threads_are_counted() {
        let streams = |streams| stream(Knobs { streams, ..Knobs::default() });
        let trips = |n| SetPlan { pattern: pings(1).pattern, ..streams(n) };
        let held = |set: SetPlan| Taken::of(&set, None);
        assert_eq!(held(streams(64)).threads, 64);
        assert_eq!(held(streams(10_000)).threads, 64);
        assert!(beside(&streams(10_000), held(trips(4032))).is_ok());
        assert!(beside(&streams(10_000), held(trips(4033))).is_err());
        assert!(alone(&trips(4096)).is_ok() && alone(&trips(4097)).is_err());
    }

    #[test]
    fn what_many_streams_cost_together_is_bounded() {
        let limits = PlanLimits::default();
        let write =
            |streams, size| stream(Knobs { streams, write_size: Bytes(size), ..Knobs::default() });
        // 64 threads have a buffer each: 1 GiB together.
        let large = OPERATIONS_MAX.0 / 64;
        assert!(alone(&write(10_000, large)).is_ok());
        assert!(alone(&write(10_000, large + 1)).is_err());
        let ping = |streams| SetPlan { knobs: write(streams, 1).knobs, ..pings(large) };
        assert!(alone(&ping(64)).is_ok());
        assert!(alone(&ping(65)).is_err());
        let step = step(10_000, 100_000_000, &[0, 1]);
        let fits = |streams: &u64| fits(10_000_000_000, 100_000_000, 2 * streams);
        let most = (256..=10_000).take_while(fits).last().unwrap() as u32;
        assert!(limits.step(&step, |_| Some(most)).is_ok());
        assert!(limits.step(&step, |_| Some(most + 1)).is_err());
    }
}
