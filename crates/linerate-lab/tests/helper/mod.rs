//! The helpers: this test program, started again inside a lab.

use std::env;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use linerate_lab::{Host, Lab, Program, Running};

const PORT: u16 = 7700;

/// Acts as a helper if `--helper` is given; returns whether it did.
pub(crate) fn main() -> bool {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["--helper", "echo"] => serve(),
        ["--helper", "owner"] => crate::cases::own_a_lab(),
        ["--helper", "round-trip", address] => measure(address),
        _ => return false,
    }
    true
}

fn program() -> Program {
    Program::new(env::current_exe().expect("this program's path")).arg("--helper")
}

/// Starts a server on far that sends each byte back.
pub(crate) fn echo(lab: &Lab) -> Running {
    lab.spawn(Host::Far, &program().arg("echo")).expect("a server")
}

/// The median round trip from near to far, in milliseconds: the shorter one of IPv4 and IPv6. Both must work.
pub(crate) fn round_trip(lab: &Lab) -> f64 {
    let addresses = lab.addresses(Host::Far);
    let v4 = SocketAddr::from((addresses.v4, PORT));
    let v6 = addresses.v6.map(|v6| SocketAddr::from((v6, PORT)));
    let times = std::iter::once(v4).chain(v6).map(|address| {
        let client = program().args(["round-trip", &address.to_string()]);
        let done = lab.spawn(Host::Near, &client).expect("a client");
        let done = done.finish().expect("its end");
        let text = String::from_utf8_lossy(&done.stdout).trim().to_owned();
        text.parse::<f64>().expect("a time")
    });
    times.reduce(f64::min).expect("an address")
}

fn serve() {
    let any: SocketAddr = format!("[::]:{PORT}").parse().expect("an address");
    let listener = TcpListener::bind(any).expect("a listener");
    loop {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        let mut byte = [0];
        while stream.read_exact(&mut byte).is_ok() {
            stream.write_all(&byte).expect("an answer");
        }
    }
}

fn measure(address: &str) {
    let mut stream = connect(address);
    stream.set_nodelay(true).expect("no delay");
    let mut times: Vec<f64> = (0..30)
        .map(|_| {
            let start = Instant::now();
            stream.write_all(&[1]).expect("sent");
            stream.read_exact(&mut [0]).expect("an answer");
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{}", times[times.len() / 2]);
}

/// Connects to the server; tries again, because the server may not listen yet.
fn connect(address: &str) -> TcpStream {
    for _ in 0..500 {
        if let Ok(stream) = TcpStream::connect(address) {
            return stream;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("no answer from {address}");
}
