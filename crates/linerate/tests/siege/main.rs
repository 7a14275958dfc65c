//! `linerate serve` under siege: clients of all kinds one after another, crowds, a lack of descriptors, stops. The
//! tests assert counts (descriptors, threads, memory, wake-ups) and no times.
//!
//! This program also acts as the clients that are killed and stopped. `LINERATE_TEST_CLIENTS=10000` starts that many
//! clients, and prints the server's descriptors and memory after each tenth of them.
#![expect(
    clippy::unwrap_used,
    reason = "a test without the harness, which the lint does not take for one"
)]

mod clients;
mod served;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use clients::{Besiegers, Door, connect, dial, iperf3, run_once};
use linerate_session::link::{Link, StepControl};
use linerate_session::peer::keys::Key;
use linerate_test::has;
use linerate_test::program::{self, outcome_of};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use served::{Served, eventually, steady};

/// Number of clients in a test.
const CLIENTS: usize = 300;
/// Number of connections of a crowd, if the limit of descriptors allows it.
const CROWD: usize = 10_000;
/// Descriptors that a server may hold for one client address, with a margin for connections that are just opened or
/// closed.
const HELD_OF_ONE: usize = 32 + 8;
/// Variation of the memory that the allocator keeps, in KiB. Of 10,000 clients 2,000 have sessions: if each leaked its
/// buffer of 64 KiB, the growth would be five times as large.
const GROWTH_KIB: u64 = 24 * 1024;
/// Memory that a server may allocate before its first client, in KiB. The program itself uses 10 MiB, which
/// `benches/own` measures on a release build. Tables that the loader relocates count too.
const IDLE_KIB: u64 = 3072;
/// The cases. Those whose names start with `long::` are run only by `./test.sh --long`.
const CASES: [(&str, fn()); 8] = [
    ("an_idle_server_is_small_and_sleeps", idle),
    ("long::clients_of_all_kinds_leave_nothing", all_kinds),
    ("long::clients_of_iperf3_of_all_kinds_leave_nothing", iperf3_kinds),
    ("long::a_crowd_from_one_address_keeps_no_other_out", crowd),
    ("a_lack_of_descriptors_is_survived", lack),
    ("who_is_one_too_many_is_told", busy),
    ("only_those_who_are_allowed_are_heard", allow),
    ("a_stop_is_told_and_ends_in_order", stop),
];
const HONEST: Ipv4Addr = Ipv4Addr::LOCALHOST;
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

fn main() {
    if let Ok(address) = std::env::var(clients::ROLE) {
        return clients::measure(address.parse().unwrap());
    }
    program::main(&CASES, |cases, tell| {
        for (name, case) in cases {
            tell(name, outcome_of(case));
        }
    });
}

fn idle() {
    let server = Served::start(&Key::generate(), &["--iperf3=0"]);
    let (resident, own) = (server.resident_kib(), server.own_kib());
    // The server must sleep after a session as it does before the first one.
    server.serves();
    // Some of the server's threads may not sleep yet.
    let before = steady(Duration::from_millis(200), || server.switches());
    thread::sleep(Duration::from_secs(5));
    assert_eq!(server.switches(), before, "it woke up in 5 s without work");
    println!(
        "  resident {resident} KiB, {own} of them made, before the first client, no wake-up in 5 s after it"
    );
    assert!(own < IDLE_KIB, "{own} KiB");
}

fn all_kinds() {
    let key = Key::generate();
    let server = Served::start(&key, &["--iperf3=0"]);
    let besiegers = Besiegers::new(server.address, Door::Own(&key));
    besiege(&server, besiegers, CLIENTS);
    // The log is limited to ten lines a second. The number of the next session shows how many sessions there were.
    thread::sleep(Duration::from_secs(1));
    server.serves();
    let number = |line: &String| {
        let (_, rest) = line.split_once(": session ")?;
        rest.split(' ').next()?.parse::<usize>().ok()
    };
    let most = || server.lines().iter().filter_map(number).max();
    // Ten sessions were opened only to check that the server serves; there must be more than these.
    assert!(eventually(|| most() > Some(10 + 10)), "{:?}", most());
    server.stopped();
}

fn iperf3_kinds() {
    if !has("iperf3") {
        return;
    }
    let key = Key::generate();
    let server = Served::start(&key, &["--iperf3=0"]);
    let besiegers = Besiegers::new(server.iperf3, Door::Iperf3);
    // iperf3's protocol has one test at a time: clients that are refused end soon.
    besiege(&server, besiegers, CLIENTS / 3);
    // The last client may still be in its test.
    assert!(eventually(|| {
        let honest = iperf3(server.iperf3).args(["-n", "1M"]).output().unwrap();
        honest.status.success()
    }));
    let lines = server.lines();
    // Of many similar log lines only some are written.
    let begun = |l: &String| l.contains("2 streams");
    assert!(lines.iter().any(begun), "no test began: {lines:?}");
    server.stopped();
}

/// Starts this many clients, or as many as `LINERATE_TEST_CLIENTS` sets; prints the server's resources after each
/// tenth.
fn besiege(server: &Served, mut besiegers: Besiegers<'_>, clients: usize) {
    let wanted = std::env::var("LINERATE_TEST_CLIENTS").ok();
    let count = wanted.map_or(clients, |text| text.parse().unwrap());
    println!("  seed {:#x}", besiegers.seed);
    // Whatever is opened or allocated once has been opened or allocated after the first tenth.
    let mut first = None;
    for tenth in 1..=10 {
        besiegers.send(count / 10);
        besiegers.leave();
        let (quiet, resident) =
            *first.get_or_insert_with(|| (server.settled(), server.resident_kib()));
        server.holds(quiet);
        let now = server.resident_kib();
        println!("  | {} | {quiet} | {now} KiB |", tenth * count / 10);
        assert!(now < resident + GROWTH_KIB, "resident {resident} KiB, then {now} KiB");
        server.serves();
    }
    println!("  {}", besiegers.sent());
}

/// Raises this program's limit of descriptors, and returns it.
fn descriptors() -> usize {
    let now = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: now.maximum, maximum: now.maximum };
    setrlimit(Resource::Nofile, raised).unwrap();
    now.maximum.map_or(CROWD, |n| n as usize)
}

fn crowd() {
    let many = CROWD.min(descriptors().saturating_sub(200));
    if many < CROWD {
        println!("  {many} connections: the limit of descriptors (ulimit -n) allows no more");
    }
    let key = Key::generate();
    let server = Served::start(&key, &[]);
    run_once(server.address, &key);
    let quiet = server.settled();
    let come = AtomicUsize::new(0);
    thread::scope(|scope| {
        let idle = scope.spawn(|| {
            let crowd = (0..many).map(|_| {
                come.fetch_add(1, Ordering::Relaxed);
                dial(OTHER, server.address).unwrap()
            });
            crowd.collect::<Vec<_>>()
        });
        // An honest client is served while the crowd connects, and while all of the crowd is connected.
        assert!(eventually(|| come.load(Ordering::Relaxed) > many / 4));
        run_once(server.address, &key);
        let idle = idle.join().unwrap();
        run_once(server.address, &key);
        let held = server.held().descriptors;
        println!(
            "  {} connections held open at the other end, {held} descriptors here",
            idle.len()
        );
        assert!(held <= quiet.descriptors + HELD_OF_ONE, "{held}, {quiet} before");
    });
    server.holds(quiet);
    server.stopped();
}

fn lack() {
    let key = Key::generate();
    let server = Served::start_with(&key, &[], Some(64));
    run_once(server.address, &key);
    let (quiet, over) = (server.settled(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut crowd = Vec::new();
            while !over.load(Ordering::Relaxed) {
                for last in 2..10 {
                    crowd.extend(dial(Ipv4Addr::new(127, 0, 0, last), server.address));
                }
                crowd.drain(..crowd.len().saturating_sub(400));
            }
        });
        let ran = std::panic::catch_unwind(|| run_once(server.address, &key));
        over.store(true, Ordering::Relaxed);
        assert!(ran.is_ok(), "{:?}", server.lines());
    });
    // This session uses all streams that one address may have: the next client is served once it has ended.
    let mut full = connect(server.address, &key).unwrap();
    let refused = (0..100).find_map(|id| full.prepare(&clients::set(id, 6)).err());
    let refused = refused.unwrap().to_string();
    assert!(refused.contains("streams at a time"), "{refused}");
    println!("  a session that takes all it may: {refused}");
    drop(full);
    server.holds(quiet);
    run_once(server.address, &key);
    server.holds(quiet);
    server.stopped();
}

fn linerate(args: &[&str]) -> (Option<i32>, String) {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    let output = command.args(args).env("HOME", home.path()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn busy() {
    let key = Key::generate();
    let server = Served::start(&key, &["--max-clients", "1"]);
    let first = connect(server.address, &key).unwrap();
    let error = connect(server.address, &key).err().unwrap();
    assert!(error.to_string().contains("is busy"), "{error}");
    assert!(error.hint().contains("--max-clients"), "{}", error.hint());
    drop(first);
    server.serves();
    server.logged("refused, the maximum number of sessions is open");
    server.stopped();
    // The built program as a client, as a user sees it.
    let server = Served::start(&key, &["--max-clients", "1", "--open"]);
    let port = server.address.port().to_string();
    let mut first = clients::connect_open(server.address).unwrap();
    let run = ["run", "127.0.0.1", "--port", &port, "--open", "--no-save", "--quiet"];
    let (code, words) = linerate(&run);
    assert_eq!(code, Some(3), "{words}");
    assert!(words.contains("is busy") && words.contains("hint: "), "{words}");
    first.prepare(&clients::set(0, 1)).unwrap();
    server.stopped();
    for wrong in ["0", "1025", "-1", "many"] {
        let (code, words) = linerate(&["serve", "--max-clients", wrong]);
        assert_eq!(code, Some(2), "{words}");
        assert!(words.contains("allowed: 1 to 1024"), "{words}");
    }
}

fn allow() {
    let key = Key::generate();
    let server = Served::start(&key, &["--allow", "127.0.0.1", "--allow", "10.0.0.0/8"]);
    run_once(server.address, &key);
    let mut other = dial(OTHER, server.address).unwrap();
    assert_eq!(other.read(&mut [0]).unwrap(), 0, "it is heard");
    server.logged("127.0.0.2: refused, its network is not allowed");
    server.stopped();
    server.logged("1 from networks that are not allowed");

    let server = Served::start(&key, &["--allow", "127.0.0.2/32"]);
    let error = connect(server.address, &key).err().unwrap();
    assert!(error.hint().contains("--allow"), "{error}: {}", error.hint());
    server.stopped();
    let (code, words) = linerate(&["serve", "--allow", "brook"]);
    assert_eq!(code, Some(2), "{words}");
    assert!(words.contains("`brook` is not a network"), "{words}");
}

fn stop() {
    let key = Key::generate();
    let server = Served::start(&key, &["--iperf3=0"]);
    let mut stranger = TcpStream::connect((HONEST, server.address.port())).unwrap();
    stranger.write_all(b"LINE").unwrap();
    let mut idle = connect(server.address, &key).unwrap();
    let mut busy = connect(server.address, &key).unwrap();
    busy.prepare(&clients::set(0, 2)).unwrap();
    let mut looks = 0;
    let step = busy.step(&clients::step(0, 60_000), &mut |_| {
        looks += 1;
        if looks == 2 {
            server.end();
        }
        StepControl::Continue
    });
    let trouble = step.unwrap().trouble.unwrap();
    assert!(trouble.what.contains("lost the far end"), "{trouble:?}");
    assert_eq!(stranger.read(&mut [0; 8]).unwrap_or(0), 0);
    let reported = idle.prepare(&clients::set(0, 1)).unwrap_err();
    assert!(reported.to_string().contains("the server was stopped"), "{reported}");
    // The server ends with exit code 0, after the line of the last session.
    server.ends();
    let result_of = |l: &&String| l.contains(": the server was stopped");
    assert!(
        eventually(|| server.lines().iter().filter(result_of).count() == 2),
        "{:?}",
        server.lines()
    );
}
