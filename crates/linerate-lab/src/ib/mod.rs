//! Simulated InfiniBand networks: ibsim simulates all nodes, and opensm manages them.
//!
//! The networks carry management datagrams and no data, and need neither privileges nor a device. Programs find the
//! network by two environment variables ([`Simulator::environment`]). Nothing is left behind: the programs end when the
//! handle is dropped, or with the thread that started them, even if it is killed.

mod child;
mod error;
mod network;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub use error::IbError;
pub use network::{Link, Network, PortName, Topology};

use crate::folder::Folder;
use crate::program::Program;
use child::{Waited, end, start, wait_until};

/// Prefix of the name of a simulator's folder.
const PREFIX: &str = "linerate-ib-";
/// File with the output of ibsim, including that of its console.
const LOG: &str = "ibsim.log";
/// The prompt of ibsim's console.
const PROMPT: &str = "sim> ";
/// Time for a program to become ready. On a machine under load it needs seconds.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Folders that are searched for libraries.
const LIBRARIES: [&str; 4] = ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64"];
/// The library that passes a program's management datagrams to ibsim. It is in one of these folders, or in a folder
/// inside one.
const PRELOAD: &str = "umad2sim/libumad2sim.so";

/// A subnet manager.
#[derive(Debug, Clone)]
pub struct Manager {
    /// The port that the manager serves.
    pub at: PortName,
    /// The manager's key: managers with different keys do not accept each other. `None` for the default key.
    pub key: Option<u64>,
}

impl Manager {
    /// A manager with the default key.
    pub fn at(port: PortName) -> Self {
        Self { at: port, key: None }
    }
}

/// A simulated network. Dropping it ends all of its programs.
#[derive(Debug)]
pub struct Simulator {
    network: Network,
    /// Name of the simulator's sockets.
    name: String,
    ibsim: Child,
    /// Input of ibsim's console. It stays open, because ibsim (0.10) spins when it is closed.
    console: ChildStdin,
    managers: Vec<Child>,
    folder: Folder,
}

impl Simulator {
    /// Starts a network without a manager.
    pub fn start(network: Network) -> Result<Self, IbError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("linerate-{}-{next}", std::process::id());
        let folder = Folder::new(PREFIX).map_err(IbError::step("cannot make a folder"))?;
        folder
            .write("net", network.to_string().as_bytes())
            .map_err(IbError::step("cannot write the network"))?;
        let mut command = child::command(child::find("ibsim")?)?;
        command
            .args(["-s", "net"])
            .current_dir(folder.path(""))
            .env("IBSIM_SOCKNAME", &name)
            .stdin(Stdio::piped());
        let mut ibsim = start("ibsim", &mut command, &folder.path(LOG))?;
        let Some(console) = ibsim.stdin.take() else {
            return Err(IbError::impossible("ibsim has no console"));
        };
        let mut simulator = Self { network, name, ibsim, console, managers: Vec::new(), folder };
        simulator.until_prompts(1)?;
        Ok(simulator)
    }

    /// Starts a manager, and waits until it has set up the network, or has become a standby manager.
    pub fn manage(&mut self, manager: &Manager) -> Result<(), IbError> {
        const SIGNS: [&str; 2] = ["SUBNET UP", "Entering STANDBY state"];
        let Manager { at, key } = manager;
        self.network.require_attachable(at)?;
        let number = self.managers.len().to_string();
        let own = self.folder.sub(&number).map_err(IbError::step("cannot make a folder"))?;
        let program = format!("opensm at {at}");
        let mut command = opensm(&own)?;
        command.envs(self.environment(&at.node));
        if let Some(key) = key {
            command.args(["--smkey", &key.to_string()]);
        }
        let (output, log) = (format!("{number}/output"), format!("{number}/log"));
        let child = start(&program, &mut command, &self.folder.path(&output))?;
        self.managers.push(child);
        let Some(child) = self.managers.last_mut() else {
            return Ok(());
        };
        let file = self.folder.path(&log);
        let is_ready = || {
            let text = fs::read_to_string(&file).unwrap_or_default();
            SIGNS.iter().any(|sign| text.contains(sign))
        };
        let waited = wait_until(child, READY_WITHIN, is_ready)?;
        judged(waited, program, || self.folder.last_words(&[&output, &log]))
    }

    /// Ends all managers. The LIDs and routes that they have set stay.
    pub fn end_managers(&mut self) {
        for mut manager in self.managers.drain(..) {
            // The manager may have ended by itself, so errors are ignored.
            let _ = end(&mut manager);
        }
    }

    /// Sends a command to ibsim's console, such as `Unlink "leaf1"[5]`, and returns its reply.
    pub fn command(&mut self, command: &str) -> Result<String, IbError> {
        /// Longest line that the console reads.
        const LONGEST: usize = 120;
        let refused = |answer: &str| IbError::Refused {
            command: command.to_owned(),
            answer: answer.to_owned(),
        };
        if command.len() > LONGEST || command.contains('\n') {
            return Err(refused("it is not one line of at most 120 bytes"));
        }
        let before = self.log().len();
        let prompts = self.log().matches(PROMPT).count();
        writeln!(self.console, "{command}").map_err(IbError::step("cannot reach ibsim"))?;
        self.until_prompts(prompts + 1)?;
        let log = self.log();
        let answer = log.get(before..).unwrap_or_default().replace(PROMPT, "");
        let answer = answer.trim();
        if answer.starts_with('#') || answer.contains("unknown - skipped") {
            return Err(refused(answer));
        }
        Ok(answer.to_owned())
    }

    /// Returns the environment variables by which a program finds the network and acts as a node of it.
    pub fn environment<'a>(&'a self, node: &'a str) -> [(&'static str, &'a str); 2] {
        [("IBSIM_SOCKNAME", &self.name), ("SIM_HOST", node)]
    }

    /// Runs a program at a node, with the input and the output of this process. Once `stop` is set, the program gets a
    /// signal to end, and is killed after a while.
    pub fn run(
        &self,
        node: &str,
        program: &Program,
        stop: &dyn Fn() -> bool,
    ) -> Result<ExitStatus, IbError> {
        self.network.require(node)?;
        let failed = || IbError::step(format!("cannot run `{}`", program.name()));
        let [name, arguments @ ..] = &program.argv[..] else {
            return Err(IbError::impossible("there is no command to run in it"));
        };
        let mut child = child::command(name)?
            .args(arguments)
            .envs(self.environment(node))
            .spawn()
            .map_err(failed())?;
        loop {
            if let Some(status) = child.try_wait().map_err(failed())? {
                return Ok(status);
            }
            if stop() {
                return end(&mut child).map_err(failed());
            }
            std::thread::sleep(child::LOOK);
        }
    }

    /// Returns the process id of ibsim.
    pub fn pid(&self) -> u32 {
        self.ibsim.id()
    }

    fn log(&self) -> String {
        let bytes = fs::read(self.folder.path(LOG)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until the console has printed its prompt `count` times.
    fn until_prompts(&mut self, count: usize) -> Result<(), IbError> {
        let log = self.folder.path(LOG);
        let is_ready = || {
            let text = fs::read(&log).unwrap_or_default();
            String::from_utf8_lossy(&text).matches(PROMPT).count() >= count
        };
        let waited = wait_until(&mut self.ibsim, READY_WITHIN, is_ready)?;
        judged(waited, "ibsim".to_owned(), || self.folder.last_words(&[LOG]))
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        // Managers detach from ibsim when they end, so they must end before it.
        self.end_managers();
        let _ = self.ibsim.kill();
        let _ = self.ibsim.wait();
    }
}

/// The command that starts opensm with its files in `folder`. It does not read the settings of this machine.
fn opensm(folder: &Path) -> Result<Command, IbError> {
    let mut command = child::command(child::find("env")?)?;
    let mut preload = std::ffi::OsString::from("LD_PRELOAD=");
    preload.push(library().ok_or(IbError::Missing { what: "libumad2sim.so" })?);
    command
        .arg(preload)
        .arg(child::find("opensm")?)
        // No periodic sweeps, no exit on errors, and each line of the log is written at once.
        .args(["-s", "0", "-d", "2", "-e", "-f", "log", "-F", "/dev/null"])
        .current_dir(folder)
        .env("OSM_TMP_DIR", ".")
        .env("OSM_CACHE_DIR", ".")
        .stdin(Stdio::null());
    Ok(command)
}

/// Returns the path of the library that passes management datagrams to ibsim. Folders of this architecture are searched
/// first.
fn library() -> Option<PathBuf> {
    let mut folders = Vec::new();
    for root in LIBRARIES.map(PathBuf::from) {
        let below = fs::read_dir(&root).into_iter().flatten().flatten();
        let mut below: Vec<PathBuf> = below.map(|entry| entry.path()).collect();
        let is_own = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(std::env::consts::ARCH)
        };
        below.sort_by_key(|path| !is_own(path));
        folders.push(root);
        folders.extend(below);
    }
    let mut files = folders.into_iter().map(|folder| folder.join(PRELOAD));
    files.find(|file| file.is_file())
}

fn judged(waited: Waited, program: String, output: impl FnOnce() -> String) -> Result<(), IbError> {
    match waited {
        Waited::Ready => Ok(()),
        Waited::Ended => Err(IbError::Died { program, output: output() }),
        Waited::Late => Err(IbError::Late { program, within: READY_WITHIN, output: output() }),
    }
}

/// Returns an error that names a missing program or library; `Ok` if this machine can simulate a network.
pub fn installed() -> Result<(), IbError> {
    for program in ["setpriv", "ibsim", "opensm"] {
        child::find(program)?;
    }
    let library = library().map(drop);
    library.ok_or(IbError::Missing { what: "libumad2sim.so" })
}
