//! Tests with both ends of shared memory in one process, and with an end that breaks the protocol.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::thread;
use std::time::Duration;

use linerate_plan::path::{Direction, Side};
use linerate_plan::transport::{self, Setting};
use linerate_plan::{Knobs, Pattern, SetPlan};
use linerate_sys::memfd::{SharedBytes, SharedMemory};
use linerate_units::{Bytes, Nanos};
use proptest::prelude::*;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use rustix::process::{Uid, geteuid};

use super::meeting::Wait;
use super::pipe::{Reader, Writer};
use super::region::{Layout, Region};
use super::{RING, Shm, meeting};
use crate::LoadError;
use crate::pages::randomize;
use crate::transport::{ConfigureEach, Datagrams, Lines, SIZE_MAX, Transport, possible};

/// A set that counts as given up after `given_up` was called so many times.
struct Wanted(AtomicU32);

impl Wanted {
    const fn until(requested: u32) -> Self {
        Self(AtomicU32::new(requested))
    }
}

impl Lines for Wanted {
    fn lines(
        &mut self,
        _: u32,
        _: u32,
        _: ConfigureEach<'_>,
    ) -> Result<Vec<std::os::fd::OwnedFd>, LoadError> {
        panic!("shared memory needs no connections")
    }

    fn datagrams(
        &mut self,
        _: u32,
        _: u32,
        _: &mut dyn FnMut(&std::os::fd::OwnedFd) -> Result<(), LoadError>,
    ) -> Result<Datagrams, LoadError> {
        panic!("shared memory needs no datagrams")
    }

    fn given_up(&self) -> bool {
        let left = self.0.load(Relaxed);
        self.0.store(left.saturating_sub(1), Relaxed);
        left == 0
    }
}

/// A set that is never given up.
static WANTED: Wanted = Wanted::until(u32::MAX);

const SMALL: Layout = Layout { streams: 1, rings: 1, size: 4096 };

/// Both ends of one stream, each with its own mapping of the memory, as two processes have.
fn regions(busy: bool) -> [(Region, SharedBytes); 2] {
    let mut near = SharedMemory::create(SMALL.all()).unwrap();
    let fd = near.fd().try_clone_to_owned().unwrap();
    let mut far = SharedMemory::open(fd, SMALL.all()).unwrap();
    let end = |memory: &mut SharedMemory, side| {
        let region = Region::take(memory, &SMALL, side, 3, 0, busy);
        (region, SMALL.ring(memory))
    };
    [end(&mut near, Side::Near), end(&mut far, Side::Far)]
}

fn pair(busy: bool) -> (Writer, Reader) {
    let [(near, to), (far, from)] = regions(busy);
    (Writer::new(near, 0, to), Reader::new(far, 0, from))
}

/// A wait for a set that is never given up, longer than any test lasts.
fn patient() -> Wait<'static> {
    Wait::new(&WANTED, Duration::from_secs(600))
}

/// Sends all bytes in pieces of these sizes, then ends the step.
fn put_all(writer: &mut Writer, bytes: &[u8], pieces: &[usize]) {
    let (mut at, mut pieces) = (0, pieces.iter().cycle());
    writer.begin();
    while at < bytes.len() {
        let most = (*pieces.next().unwrap()).min(bytes.len() - at);
        at += writer.put(&bytes[at..at + most]).unwrap();
    }
    writer.end();
}

/// Receives in pieces of these sizes up to the end of the step, and returns the bytes.
fn get_all(reader: &mut Reader, pieces: &[usize]) -> Vec<u8> {
    let (mut got, mut pieces) = (Vec::new(), pieces.iter().cycle());
    reader.begin();
    while !reader.ended() {
        let mut room = vec![0; *pieces.next().unwrap()];
        let wanted = room.len() as u64;
        let bytes = reader.get(&mut room, wanted).unwrap();
        got.extend_from_slice(&room[..bytes]);
    }
    got
}

#[test]
fn every_byte_comes_once_and_in_order_in_each_step() {
    let mut sent = vec![0; 300_001];
    randomize(&mut sent).unwrap();
    for busy in [false, true] {
        for (out, back) in
            [(&[1, 4095, 7][..], &[64][..]), (&[65_536], &[10_000, 3]), (&[4096], &[4096])]
        {
            let (mut writer, mut reader) = pair(busy);
            for step in [&sent[..], &[], &sent[..1], &sent] {
                let got = thread::scope(|scope| {
                    let got = scope.spawn(|| get_all(&mut reader, back));
                    put_all(&mut writer, step, out);
                    got.join().unwrap()
                });
                assert!(got == step, "{} of {} bytes", got.len(), step.len());
            }
        }
    }
}

#[test]
fn a_step_ends_once_all_of_it_is_read() {
    let (mut writer, mut reader) = pair(false);
    assert_eq!(writer.put(&[1; 10]).unwrap(), 10);
    writer.end();
    reader.begin();
    let mut room = [0; 6];
    assert_eq!(reader.get(&mut room, 6).unwrap(), 6);
    assert!(!reader.ended());
    assert_eq!(reader.get(&mut room, 6).unwrap(), 4);
    assert_eq!(reader.get(&mut room, 6).unwrap(), 0);
    assert!(reader.ended());
}

#[test]
fn who_waits_learns_that_the_other_end_closed() {
    for closes in [Side::Near, Side::Far] {
        let (mut writer, mut reader) = pair(false);
        let brake =
            if closes == Side::Near { writer.region.clone() } else { reader.region.clone() };
        thread::scope(|scope| {
            let sent = scope.spawn(move || {
                loop {
                    if let Err(error) = writer.put(&[1; 8192]) {
                        return error.to_string();
                    }
                }
            });
            let got = scope.spawn(move || {
                // It reads without a wait once, and then only what the writer has woken it for.
                loop {
                    match reader.get(&mut [0; 16], 16) {
                        Ok(_) => thread::sleep(Duration::from_millis(1)),
                        Err(error) => return error.to_string(),
                    }
                }
            });
            thread::sleep(Duration::from_millis(20));
            brake.close();
            let (wrote, _) = (sent.join().unwrap(), got.join());
            let by = if closes == Side::Near { "this end" } else { "the other end" };
            assert_eq!(wrote, format!("{by} closed stream 0 of set 3 during a step"));
        });
    }
}

/// Fetches the memory that the host passes, and checks that both map the same memory.
fn meets(host: &meeting::Host) {
    let mut memory = SharedMemory::create(SMALL.all()).unwrap();
    let mut got = thread::scope(|scope| {
        scope.spawn(|| host.pass(&memory, &patient()).unwrap());
        meeting::fetch(&host.offer(), SMALL.all(), &patient()).unwrap()
    });
    memory.bytes(9).write(5, b"here");
    let mut read = [0; 4];
    got.bytes(9).read(5, &mut read);
    assert_eq!(&read, b"here");
}

#[test]
fn memory_is_passed_to_who_comes_with_the_token() {
    meets(&meeting::Host::new().unwrap());
}

/// Returns the address of the socket that an offer refers to.
fn named(offer: &[u8]) -> SocketAddr {
    let name = meeting::name(offer.try_into().unwrap());
    SocketAddr::from_abstract_name(name).unwrap()
}

#[test]
fn who_connects_and_goes_does_not_get_the_memory() {
    let host = meeting::Host::new().unwrap();
    for _ in 0..3 {
        UnixStream::connect_addr(&named(&host.offer())).unwrap();
    }
    meets(&host);
}

/// Returns the error of `pass` while processes of another user connect and close at once, again and again.
fn among_strangers(wait: &Wait<'_>) -> String {
    let memory = SharedMemory::create(SMALL.all()).unwrap();
    let other = Uid::from_raw(geteuid().as_raw() + 1);
    let host = meeting::Host::of(other).unwrap();
    let name = named(&host.offer());
    let over = AtomicBool::new(false);
    // The first stranger has connected before `pass` begins.
    let _first = UnixStream::connect_addr(&name).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                let _ = UnixStream::connect_addr(&name);
            }
        });
        let passed = host.pass(&memory, wait);
        over.store(true, Relaxed);
        // The stranger's `connect` may wait for room in the backlog; closing the socket ends that wait.
        drop(host);
        passed.unwrap_err().to_string()
    })
}

#[test]
fn strangers_get_no_memory_and_do_not_prolong_the_wait() {
    let why = among_strangers(&Wait::new(&WANTED, Duration::from_millis(50)));
    assert!(why.contains("did not fetch"), "{why}");
    let why = among_strangers(&Wait::new(&Wanted::until(100), Duration::from_secs(600)));
    assert!(why.contains("released its shared memory"), "{why}");
}

#[test]
fn a_host_whose_backlog_is_full_is_not_waited_for_without_an_end() {
    let offer = meeting::Host::new().unwrap().offer();
    let (name, flags) = (meeting::name(offer.as_slice().try_into().unwrap()), SocketFlags::CLOEXEC);
    let listener = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
    bind(&listener, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
    // The backlog has room for one connection only.
    listen(&listener, 0).unwrap();
    let _waits = UnixStream::connect_addr(&named(&offer)).unwrap();
    let fetch = |wait: &Wait<'_>| {
        let got = meeting::fetch(&offer, SMALL.all(), wait);
        got.unwrap_err().to_string()
    };
    let why = fetch(&Wait::new(&WANTED, Duration::from_millis(50)));
    assert!(why.contains("did not fetch"), "{why}");
    let why = fetch(&Wait::new(&Wanted::until(3), Duration::from_secs(600)));
    assert!(why.contains("released its shared memory"), "{why}");
}

#[test]
fn an_offer_that_cannot_be_meant_is_refused_in_words() {
    let fetch = |offer: &[u8], len| {
        let got = meeting::fetch(&offer.to_vec(), len, &patient());
        got.unwrap_err().to_string()
    };
    for offer in [&[][..], &[1; 15], &[1; 17], &[1; 5000]] {
        assert!(fetch(offer, 1).contains("cannot be read"));
    }
    // No socket with this name exists.
    assert!(fetch(&[7; 16], 1).contains("connect failed"));
    // The memory of the far end is smaller than agreed: an access beyond its end would kill this process.
    let memory = SharedMemory::create(SMALL.all()).unwrap();
    let host = meeting::Host::new().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| host.pass(&memory, &patient()).unwrap());
        let why = fetch(&host.offer(), SMALL.all() + 4096);
        assert!(why.contains("another size"), "{why}");
    });
}

#[test]
fn nobody_is_waited_for_once_the_set_is_given_up() {
    let memory = SharedMemory::create(SMALL.all()).unwrap();
    let host = meeting::Host::new().unwrap();
    let why = host.pass(&memory, &Wait::new(&Wanted::until(0), Duration::from_secs(600)));
    let why = why.unwrap_err();
    assert!(why.to_string().contains("released its shared memory"), "{why}");
}

proptest! {
    #[test]
    fn whatever_the_other_end_writes_nothing_outside_is_touched(
        words in prop::collection::vec(any::<u64>(), 4),
        near in prop::collection::vec(0u64..10_000, 4),
        asleep: u32,
        len in 1usize..10_000,
    ) {
        for words in [words, near] {
            let (mut writer, mut reader) = pair(false);
            writer.offer(&[1; 100]).unwrap();
            let (near, ring) = (writer.region.clone(), Region::ring(0));
            for (at, word) in [ring.head, ring.end, ring.steps, ring.tail].into_iter().zip(words) {
                near.number(at).store(word, Relaxed);
            }
            near.pretend_asleep(asleep);
            // An access outside the ring panics.
            let mut room = vec![0; len];
            if let Ok(got) = reader.take(&mut room) {
                prop_assert!(got <= len.min(4096));
            }
            let _ = reader.ends();
            if let Ok(put) = writer.offer(&room) {
                prop_assert!(put <= len.min(4096));
            }
        }
    }
}

#[test]
fn positions_that_cannot_be_are_told() {
    for (word, by) in [(0, "its writer"), (3, "its reader")] {
        let (mut writer, mut reader) = pair(false);
        let ring = Region::ring(0);
        let at = [ring.head, ring.end, ring.steps, ring.tail][word];
        writer.region.number(at).store(4097, Relaxed);
        let reported = if word == 0 {
            reader.take(&mut [0; 8]).unwrap_err()
        } else {
            writer.offer(&[0; 4096]).unwrap();
            writer.offer(&[0; 8]).unwrap_err()
        };
        let reported = reported.to_string();
        assert!(reported.contains(by) && reported.contains("impossible"), "{reported}");
    }
}

fn plan(pattern: Pattern, change: impl FnOnce(&mut Knobs)) -> SetPlan {
    let mut knobs = Knobs::default();
    change(&mut knobs);
    SetPlan { id: 0, pattern, knobs }
}

fn stream(direction: Direction) -> Pattern {
    Pattern::Stream { direction }
}

fn trips(size: u64, interval: u64) -> Pattern {
    Pattern::PingPong { size: Bytes(size), interval: Nanos(interval) }
}

#[test]
fn plans_are_bounded_on_both_sides_of_each_limit() {
    let ring =
        |bytes| move |k: &mut Knobs| k.options.set(transport::RING.key, Setting::Number(bytes));
    let forward = stream(Direction::Forward);
    for (plan, good) in [
        (plan(forward, |_| ()), true),
        (plan(forward, |k| k.streams = 0), false),
        (plan(forward, |k| k.streams = 64), true),
        (plan(forward, |k| k.streams = 65), false),
        (plan(forward, |k| k.write_size = Bytes(SIZE_MAX)), true),
        (plan(forward, |k| k.write_size = Bytes(SIZE_MAX + 1)), false),
        (plan(forward, |k| k.read_size = Bytes(SIZE_MAX + 1)), false),
        (plan(forward, ring(4095)), false),
        (plan(forward, ring(4096)), true),
        (plan(forward, ring(12_288)), false),
        (plan(forward, ring(16 << 20)), true),
        (plan(forward, ring(32 << 20)), false),
        (plan(trips(0, 0), |_| ()), false),
        (plan(trips(1, 0), |_| ()), true),
        (plan(trips(SIZE_MAX, 0), |_| ()), true),
        (plan(trips(SIZE_MAX + 1, 0), |_| ()), false),
        (plan(trips(1, 0), |k| k.open_loop = true), false),
        (plan(trips(1, 1), |k| k.open_loop = true), true),
        (plan(forward, |k| k.mss = Some(1000)), false),
        (plan(forward, |k| k.recv_buffer = Some(Bytes(1))), false),
    ] {
        assert_eq!(possible(&Shm, &plan).is_ok(), good, "{plan:?}");
    }
}

#[test]
fn a_ring_holds_two_messages_as_far_as_there_is_room() {
    for (size, several, ring) in [
        (1, false, 4096),
        (2048, false, 4096),
        (2049, false, 8192),
        (1, true, 65_536),
        (RING / 2, true, RING),
        (SIZE_MAX, false, RING),
        (u64::MAX, false, RING),
    ] {
        assert_eq!(super::ring_of(size, several), ring, "{size}");
    }
}

#[test]
fn memory_that_is_not_free_is_not_touched() {
    let made = |len, free| {
        let free = Some((Bytes(free), "memory.max of /x".to_owned()));
        super::memory(len, free).map_err(|e| e.to_string())
    };
    assert!(made(15 << 12, 16 << 12).is_ok());
    let why = made((15 << 12) + 1, 16 << 12).unwrap_err();
    assert!(why.ends_with("are free (memory.max of /x)"), "{why}");
    assert!(why.contains("of shared memory cannot be had"), "{why}");
    assert!(super::memory(1 << 12, None).is_ok());
}

#[test]
fn a_server_counts_rings_and_buffers() {
    let room = |plan: &SetPlan| Shm.room(Side::Far, plan).unwrap().0;
    let one = room(&plan(stream(Direction::Forward), |_| ()));
    assert!((RING..3 * RING).contains(&one), "{one}");
    assert!(room(&plan(trips(SIZE_MAX, 0), |_| ())) > 2 * (SIZE_MAX + RING));
    assert!(room(&plan(trips(64, 0), |_| ())) < 1 << 20);
}

#[test]
fn room_of_an_absurd_plan_is_more_than_there_is() {
    for pattern in [stream(Direction::Forward), trips(u64::MAX, 0), trips(1 << 63, 0)] {
        for bytes in [1, 1 << 63, u64::MAX] {
            let plan = plan(pattern, |k| {
                k.streams = u32::MAX;
                k.write_size = Bytes(u64::MAX);
                k.options.set(transport::RING.key, Setting::Number(bytes));
            });
            assert_eq!(Shm.room(Side::Far, &plan), Some(Bytes(u64::MAX)));
            assert!(super::layout(&plan).all() >= u32::MAX as usize * 4096);
        }
    }
    let huge = plan(stream(Direction::Forward), |k| {
        k.streams = u32::MAX;
        k.options.set(transport::RING.key, Setting::Number(1 << 40));
    });
    assert_eq!(super::layout(&huge).all(), usize::MAX);
}
