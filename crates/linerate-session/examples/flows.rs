//! Prints the time that it takes to list all connections of a host, and whether this program's memory grows:
//! `cargo run --release -p linerate-session --example flows -- 10000`
//!
//! Opens the given number of sockets over loopback (both ends of half as many connections) and lists them in 50 rounds.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use linerate_host::{Flows, Live, Machine, Wanted};
use rustix::process::{Resource, Rlimit, setrlimit};

const ROUNDS: u32 = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sockets: u64 = std::env::args().nth(1).as_deref().unwrap_or("10000").parse()?;
    let room = Some(sockets + 100);
    let limit = Rlimit { current: room, maximum: room };
    setrlimit(Resource::Nofile, limit)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let mut open = Vec::new();
    for _ in 0..sockets / 2 {
        open.push((TcpStream::connect(address)?, listener.accept()?.0));
    }
    let machine = Arc::new(Live::new());
    let mut flows = Flows::new(machine.clone(), Wanted::All, 10);
    let mut costs = Vec::new();
    let mut memory = Vec::new();
    for round in 0..ROUNDS {
        let began = Instant::now();
        flows.round(u64::from(round) * 1_000_000_000)?;
        costs.push(began.elapsed());
        memory.push(resident(&*machine).unwrap_or_default());
    }
    costs.sort_unstable();
    let middle = costs[costs.len() / 2];
    let most = costs[costs.len() - 1];
    println!("{} sockets", flows.finish().connections);
    println!("one round: {middle:.1?} median, {most:.1?} at most");
    println!(
        "memory: {} kB after the first round, {} kB after the last",
        memory[1],
        memory[memory.len() - 1]
    );
    Ok(())
}

/// Returns the resident memory of this process, in kB.
fn resident(machine: &dyn Machine) -> Option<u64> {
    let text = machine.file("/proc/self/status").ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
