//! The server under siege, which is its own process, and the resources that it holds.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, fs, thread};

use linerate_session::peer::keys::Key;
use linerate_test::free_ports;
use rustix::process::{Pid, Signal, kill_process};

use super::clients::connect;

/// Time limit of waits, long enough for everything that should happen.
const LONG: Duration = Duration::from_secs(30);

pub(crate) fn eventually(mut what: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + LONG;
    while !what() {
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Kinds of netlink sockets that a server uses: routing, generic and socket diagnosis.
const KINDS_OF_NETLINK: usize = 3;

/// The netlink sockets of this machine, in the form of links in /proc/PID/fd.
fn netlink() -> HashSet<String> {
    let sockets = fs::read_to_string("/proc/net/netlink").unwrap();
    let inodes = sockets.lines().skip(1).filter_map(|line| line.split_whitespace().last());
    inodes.map(|inode| format!("socket:[{inode}]")).collect()
}

/// A reading that three samples in a row agree on, `apart` from each other: the machine may have stood still between
/// two of them.
pub(crate) fn steady<T: PartialEq + Copy>(apart: Duration, look: impl Fn() -> T) -> T {
    let (mut seen, mut alike) = (look(), 1);
    assert!(eventually(|| {
        thread::sleep(apart);
        let before = std::mem::replace(&mut seen, look());
        alike = if seen == before { alike + 1 } else { 1 };
        alike == 3
    }));
    seen
}

/// Resources that a process holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Held {
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} descriptors, {} threads", self.descriptors, self.threads)
    }
}

/// A running `linerate serve`; it is killed when this value is dropped.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    /// Address for iperf3 clients, if the options enable it.
    pub(crate) iperf3: SocketAddr,
    key: Key,
    child: Mutex<Child>,
    pid: Pid,
    lines: Arc<Mutex<Vec<String>>>,
    _home: tempfile::TempDir,
}

impl Served {
    /// Starts a server with these options; `--iperf3=0` chooses a free port.
    pub(crate) fn start(key: &Key, options: &[&str]) -> Self {
        Self::start_with(key, options, None)
    }

    /// Starts a server with these options and this limit of descriptors.
    pub(crate) fn start_with(key: &Key, options: &[&str], descriptors: Option<u32>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let [port, iperf3] = free_ports();
        let limit = descriptors.map_or(String::new(), |n| format!("ulimit -n {n}; "));
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{limit}exec \"$0\" \"$@\"")]);
        command.arg(env!("CARGO_BIN_EXE_linerate"));
        command.args(["serve", "--listen", "127.0.0.1", "--port", &port.to_string()]);
        for option in options {
            command.arg(option.replace("--iperf3=0", &format!("--iperf3={iperf3}")));
        }
        command.env("HOME", home.path()).env("LINERATE_KEY", key.text());
        let mut child = command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (reported, sink) = (BufReader::new(child.stderr.take().unwrap()), Arc::clone(&lines));
        thread::spawn(move || {
            for line in reported.lines().map_while(Result::ok) {
                sink.lock().unwrap().push(line);
            }
        });
        let served = Self {
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            iperf3: SocketAddr::from(([127, 0, 0, 1], iperf3)),
            key: key.clone(),
            pid: Pid::from_child(&child),
            child: Mutex::new(child),
            lines,
            _home: home,
        };
        served.logged("listening on");
        served
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// Waits for a log line that contains `part`.
    pub(crate) fn logged(&self, part: &str) {
        let seen = || self.lines().iter().any(|line| line.contains(part));
        assert!(eventually(seen), "no `{part}` in {:?}", self.lines());
    }

    /// Checks that the server admits a client with the key; clients that have just left may still hold their places.
    pub(crate) fn serves(&self) {
        assert!(eventually(|| connect(self.address, &self.key).is_ok()));
    }

    fn proc(&self, what: &str) -> String {
        format!("/proc/{}/{what}", self.pid.as_raw_nonzero())
    }

    /// The descriptors and threads of the server, without its netlink sockets. It keeps one of these for each kind of
    /// query, and opens a new one after a query that the kernel refused, so their number depends on the last query.
    pub(crate) fn held(&self) -> Held {
        let open = self.open();
        let kernel = netlink();
        let asks = open.iter().filter(|link| kernel.contains(*link)).count();
        assert!(asks <= KINDS_OF_NETLINK, "{asks} sockets of netlink");
        Held {
            descriptors: open.len() - asks,
            threads: fs::read_dir(self.proc("task")).unwrap().count(),
        }
    }

    /// The targets of the server's descriptors, as links in /proc name them.
    pub(crate) fn open(&self) -> Vec<String> {
        let all = fs::read_dir(self.proc("fd")).unwrap();
        let link = |entry: fs::DirEntry| fs::read_link(entry.path()).ok();
        let links = all.filter_map(|entry| link(entry.unwrap()));
        links.map(|l| l.display().to_string()).collect()
    }

    /// The resources that the server holds once all sessions have ended.
    pub(crate) fn settled(&self) -> Held {
        steady(Duration::from_millis(500), || self.held())
    }

    /// Waits until the server holds exactly these resources.
    pub(crate) fn holds(&self, wanted: Held) {
        let settled = eventually(|| self.held() == wanted);
        assert!(settled, "{wanted} wanted, {} held: {:?}", self.held(), self.open());
    }

    pub(crate) fn resident_kib(&self) -> u64 {
        self.memory_kib("VmRSS:")
    }

    /// Resident memory that the server allocated itself, in KiB. Resident pages of the program's file are not counted:
    /// the kernel decides on their number, and a test build has more of them.
    pub(crate) fn own_kib(&self) -> u64 {
        self.memory_kib("RssAnon:")
    }

    fn memory_kib(&self, what: &str) -> u64 {
        let text = fs::read_to_string(self.proc("status")).unwrap();
        number(&text, what)
    }

    /// Number of times that the server's threads went to sleep by themselves: once for each wake-up.
    pub(crate) fn switches(&self) -> u64 {
        let threads = fs::read_dir(self.proc("task")).unwrap();
        // A thread that has ended in the meantime wakes up no more.
        let alive = threads.filter_map(|thread| {
            let status = thread.unwrap().path().join("status");
            fs::read_to_string(status).ok()
        });
        alive.map(|text| number(&text, "voluntary_ctxt_switches:")).sum()
    }

    /// Sends SIGTERM to the server.
    pub(crate) fn end(&self) {
        kill_process(self.pid, Signal::TERM).unwrap();
    }

    /// Ends the server by SIGTERM, and checks that it ends in order.
    pub(crate) fn stopped(&self) {
        self.end();
        self.ends();
    }

    /// Checks that the server, which got one SIGTERM, ends in order: a second signal would end it at once.
    pub(crate) fn ends(&self) {
        let mut child = self.child.lock().unwrap();
        let mut code = None;
        assert!(eventually(|| {
            code = child.try_wait().unwrap();
            code.is_some()
        }));
        assert_eq!(code.unwrap().code(), Some(0), "{:?}", self.lines());
        self.logged("connections: ");
    }
}

fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().split_whitespace().next().unwrap().parse().unwrap()
}

impl Drop for Served {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = child.kill();
        let _ = child.wait();
    }
}
