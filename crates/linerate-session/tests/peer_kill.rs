//! Tests with processes that are killed: clients at random moments, after which the server must hold no resources of
//! them, and a server in the middle of a step.
//!
//! This program starts itself again as the processes that are killed.
#![expect(
    clippy::unwrap_used,
    reason = "a test without the harness, which the lint does not take for one"
)]

use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use linerate_host::{Machine, Query, SocketQuery};
use linerate_plan::path::{Direction, Side};
use linerate_plan::{Knobs, Pattern, Purpose, SetPlan, StepPlan};
use linerate_session::link::{Link, LinkError, StepControl};
use linerate_session::peer::Stop;
use linerate_session::peer::address::Target;
use linerate_session::peer::client::{Client, ClientOptions};
use linerate_session::peer::keys::Key;
use linerate_session::peer::server::{Limits, Log, Server, ServerOptions};
use linerate_test::program::{self, outcome_of};
use linerate_test::skip;
use linerate_units::Nanos;

/// Test cases by name. Cases whose names start with `long::` run only with `./test.sh --long`.
const CASES: [(&str, fn()); 4] = [
    ("killed_clients_leave_nothing", killed_clients_leave_nothing),
    ("a_killed_server_is_noticed_in_mid_step", a_killed_server_is_noticed_in_mid_step),
    (
        "a_killed_process_that_shares_memory_is_noticed_at_every_step",
        a_killed_process_that_shares_memory_is_noticed_at_every_step,
    ),
    ("long::a_dead_link_is_noticed_by_both_ends", a_dead_link_is_noticed_by_both_ends),
];
const ROLE: &str = "LINERATE_TEST_ROLE";
/// Environment variable with the transport of a client that this program starts.
const ENGINE: &str = "LINERATE_TEST_ENGINE";
/// Number of server processes with shared memory that are killed. The n-th one is killed after n times 4 ms.
const SHARING: u64 = 24;
const CLIENTS: usize = 200;
const AT_ONCE: usize = 4;
const SEED: u64 = 0x1115_2026;

struct Blank;

impl Machine for Blank {
    fn file(&self, _: &str) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }
    fn list(&self, _: &str) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::NotFound.into())
    }
    fn query(&self, _: &Query) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn socket(&self, _: &SocketQuery, _: BorrowedFd<'_>, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn main() {
    match std::env::var(ROLE).as_deref() {
        Ok("server") => serve(),
        Ok("silence") => silence(),
        Ok(address) => measure(address.parse().unwrap()),
        Err(_) => program::main(&CASES, |cases, tell| {
            for (name, case) in cases {
                tell(name, outcome_of(case));
            }
        }),
    }
}

fn server(key: Key, log: Log) -> Server {
    Server::bind(ServerOptions {
        listen: vec!["127.0.0.1".parse().unwrap()],
        port: 0,
        key: Some(key),
        allow: Vec::new(),
        limits: Limits::default(),
        machine: Arc::new(Blank),
        changes: None,
        process: true,
        storage: None,
        log,
    })
    .unwrap()
}

fn connect(address: SocketAddr, key: Key) -> Client {
    connect_by("tcp", address, key)
}

fn connect_by(engine: &str, address: SocketAddr, key: Key) -> Client {
    let options = ClientOptions {
        target: Target { host: address.ip().to_string(), port: address.port() },
        family: None,
        key: Some(key),
        open: false,
        engine: engine.into(),
        machine: Arc::new(Blank),
        changes: None,
    };
    Client::connect(&options).unwrap()
}

fn set(id: u32, direction: Direction) -> SetPlan {
    SetPlan {
        id,
        pattern: Pattern::Stream { direction },
        knobs: Knobs { streams: 2, ..Knobs::default() },
    }
}

fn step(set: u32, millis: u64) -> StepPlan {
    StepPlan {
        index: 0,
        purpose: Purpose::Both,
        sets: vec![set],
        washout: Nanos(0),
        measure: Nanos::from_millis(millis),
        tick: Nanos::from_millis(10),
    }
}

/// Runs a client that measures until it is killed.
fn measure(address: SocketAddr) {
    let key = Key::from_environment().unwrap().unwrap();
    let engine = std::env::var(ENGINE);
    let mut client = connect_by(engine.as_deref().unwrap_or("tcp"), address, key);
    for id in 0.. {
        measured(&mut client, id).unwrap();
    }
}

/// Prepares, runs and releases a set.
fn measured(client: &mut Client, id: u32) -> Result<(), LinkError> {
    let direction = Direction::ALL[id as usize % 2];
    client.prepare(&set(id, direction))?;
    client.step(&step(id, 30), &mut |_| StepControl::Continue)?;
    client.release(id)
}

/// Runs a server until it is killed; prints its address first.
fn serve() {
    let key = Key::from_environment().unwrap().unwrap();
    let server = server(key, Arc::new(|_| ()));
    println!("{}", server.addresses()[0]);
    io::stdout().flush().unwrap();
    server.run(&Stop::new().unwrap()).unwrap();
}

fn child(role: &str, key: &Key) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .env(ROLE, role)
        .env("LINERATE_KEY", key.text())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[derive(Debug, PartialEq)]
struct Held {
    descriptors: usize,
    threads: usize,
}

fn held() -> Held {
    let count = |path: &str| fs::read_dir(path).unwrap().count();
    Held { descriptors: count("/proc/self/fd"), threads: count("/proc/self/task") }
}

fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn settles(wanted: &Held) -> Held {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let now = held();
        if now == *wanted || Instant::now() >= end {
            return now;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Returns pseudo-random numbers, the same ones in every run. //= Marsaglia, Xorshift RNGs, 2003
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn kill_clients(count: usize, address: SocketAddr, key: &Key, seed: &mut u64) {
    let mut left = count;
    while left > 0 {
        let batch = left.min(AT_ONCE);
        let clients: Vec<_> = (0..batch).map(|_| child(&address.to_string(), key)).collect();
        for mut client in clients {
            thread::sleep(Duration::from_micros(random(seed) % 60_000));
            client.kill().unwrap();
            client.wait().unwrap();
        }
        left -= batch;
    }
}

fn killed_clients_leave_nothing() {
    println!("killed_clients_leave_nothing: seed {SEED:#x}");
    let (key, mut seed) = (Key::generate(), SEED);
    let begun = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&begun);
    let log = move |line: &str| {
        counter.fetch_add(usize::from(line.contains("began")), Ordering::Relaxed);
    };
    let server = Arc::new(server(key.clone(), Arc::new(log)));
    let (address, ending) = (server.addresses()[0], Stop::new().unwrap());
    let gate = {
        let (server, requested) = (Arc::clone(&server), ending.clone());
        thread::spawn(move || server.run(&requested).unwrap())
    };
    // After this first session, everything is allocated that is allocated only once.
    drop(connect(address, key.clone()));
    while server.sessions() > 0 {
        thread::sleep(Duration::from_millis(10));
    }
    let before = settles(&Held { descriptors: held().descriptors, threads: 2 });
    kill_clients(CLIENTS / 4, address, &key, &mut seed);
    assert_eq!(settles(&before), before, "after {} clients", CLIENTS / 4);
    let resident = resident_kib();
    kill_clients(CLIENTS - CLIENTS / 4, address, &key, &mut seed);
    assert_eq!(settles(&before), before, "after {CLIENTS} clients");
    let begun = begun.load(Ordering::Relaxed);
    // How many clients had a session depends on how busy the machine is; without any, nothing was tested.
    assert!(begun > 0, "no client got as far as a session");
    let grown = resident_kib().saturating_sub(resident);
    // Each session has a buffer of at least 64 KiB; the memory that the allocator holds varies by about 5 MiB.
    assert!(grown < (64 * (CLIENTS - CLIENTS / 4)) as u64, "resident memory grew by {grown} KiB");
    println!("  {before:?} before and after; resident {resident} KiB, then {grown} KiB more");
    println!("  {begun} of {CLIENTS} clients had a session");

    let mut client = connect(address, key);
    client.prepare(&set(0, Direction::Forward)).unwrap();
    let step = client.step(&step(0, 50), &mut |_| StepControl::Continue).unwrap();
    assert_eq!(step.trouble, None);
    assert_eq!(step.ends[1].other_sessions, 0);
    drop(client);
    ending.request();
    gate.join().unwrap();
}

fn a_killed_server_is_noticed_in_mid_step() {
    for direction in Direction::ALL {
        let key = Key::generate();
        let mut server = child("server", &key);
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut client = connect(line.trim().parse().unwrap(), key);
        client.prepare(&set(0, direction)).unwrap();
        let (began, mut looks) = (Instant::now(), 0);
        let step = client.step(&step(0, 60_000), &mut |_| {
            looks += 1;
            if looks == 2 {
                server.kill().unwrap();
            }
            StepControl::Continue
        });
        server.wait().unwrap();
        let step = step.unwrap();
        // The client notices the killed server before the step's planned end.
        assert!(began.elapsed() < Duration::from_secs(60));
        assert_eq!(step.ends.len(), 1);
        assert!(!step.ends[0].tables.is_empty());
        assert_eq!(step.trouble.unwrap().side, Side::Far);
        assert!(matches!(client.release(0), Err(LinkError::Lost { .. })));
    }
}

fn sharing(role: &str, key: &Key) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(ROLE, role).env(ENGINE, "shm");
    let command = command.env("LINERATE_KEY", key.text());
    let streams = command.stdout(Stdio::piped()).stderr(Stdio::null());
    streams.spawn().unwrap()
}

/// Returns the address at which a server with shared memory listens.
fn listens(server: &mut Child) -> SocketAddr {
    let mut line = String::new();
    let mut lines = BufReader::new(server.stdout.take().unwrap());
    lines.read_line(&mut line).unwrap();
    line.trim().parse().unwrap()
}

/// At whatever point a server with shared memory is killed, its client
/// returns an error. If a client is killed, its server returns the memory.
fn a_killed_process_that_shares_memory_is_noticed_at_every_step() {
    let before = held();
    for kill in 0..SHARING {
        let key = Key::generate();
        let mut server = sharing("server", &key);
        let mut client = connect_by("shm", listens(&mut server), key);
        let wait = Duration::from_millis(4 * kill);
        let killer = thread::spawn(move || {
            thread::sleep(wait);
            server.kill().unwrap();
            server.wait().unwrap();
        });
        let lost = (0..).find_map(|id| measured(&mut client, id).err());
        let why = lost.unwrap().to_string();
        let words = ["lost the far end", "shared memory", "connect failed", "recvmsg failed"];
        assert!(words.iter().any(|w| why.contains(w)), "after {wait:?}: {why}");
        killer.join().unwrap();
    }
    // If a client is killed, the server returns the shared memory.
    let key = Key::generate();
    let server = Arc::new(server(key.clone(), Arc::new(|_| ())));
    let (address, ending) = (server.addresses()[0], Stop::new().unwrap());
    let gate = {
        let (server, requested) = (Arc::clone(&server), ending.clone());
        thread::spawn(move || server.run(&requested).unwrap())
    };
    for kill in 0..SHARING / 2 {
        let mut client = Command::new(std::env::current_exe().unwrap());
        let client = client.env(ROLE, address.to_string()).env(ENGINE, "shm");
        let client = client.env("LINERATE_KEY", key.text()).stderr(Stdio::null());
        let mut client = client.spawn().unwrap();
        thread::sleep(Duration::from_millis(8 * kill));
        client.kill().unwrap();
        client.wait().unwrap();
    }
    let end = Instant::now() + Duration::from_secs(20);
    while server.sessions() > 0 && Instant::now() < end {
        thread::sleep(Duration::from_millis(10));
    }
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!maps.contains("linerate-shm"), "memory is left behind");
    ending.request();
    gate.join().unwrap();
    drop((server, ending));
    assert_eq!(settles(&before), before);
}

/// When a link goes down, no connection is reset, so each end must notice this by itself.
fn a_dead_link_is_noticed_by_both_ends() {
    let own = std::env::current_exe().unwrap();
    let network = |program: &std::ffi::OsStr| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net"]).arg(program);
        command
    };
    let possible = network("ip".as_ref()).arg("link").output();
    if !possible.is_ok_and(|o| o.status.success()) {
        let why = "no network namespaces here (needs unshare and ip)";
        return skip("namespaces", why);
    }
    let status = network(own.as_os_str()).env(ROLE, "silence").status();
    assert!(status.unwrap().success());
}

fn link(state: &str) {
    let status = Command::new("ip").args(["link", "set", "lo", state]).status();
    assert!(status.unwrap().success());
}

/// Runs both ends in one network namespace, whose only link goes down in the middle of a step.
fn silence() {
    for direction in Direction::ALL {
        link("up");
        let key = Key::generate();
        let server = Arc::new(server(key.clone(), Arc::new(|line| println!("  {line}"))));
        let ending = Stop::new().unwrap();
        let gate = {
            let (server, requested) = (Arc::clone(&server), ending.clone());
            thread::spawn(move || server.run(&requested).unwrap())
        };
        let mut client = connect(server.addresses()[0], key);
        client.prepare(&set(0, direction)).unwrap();
        let (mut down, mut looks) = (Instant::now(), 0);
        let step = client.step(&step(0, 90_000), &mut |_| {
            looks += 1;
            if looks == 3 {
                link("down");
                down = Instant::now();
            }
            StepControl::Continue
        });
        let near = down.elapsed();
        while server.sessions() > 0 && down.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(10));
        }
        let far = down.elapsed();
        println!("  {direction:?}: near noticed after {near:?}, far after {far:?} at most");
        assert!(far < Duration::from_secs(60), "it was not noticed");
        assert_eq!(step.unwrap().trouble.unwrap().side, Side::Far);
        ending.request();
        gate.join().unwrap();
    }
}
