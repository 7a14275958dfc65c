//! The lab of a demonstration, with linerate itself at both ends.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_lab::{
    Company, Fault, Host, Lab, LabError, Output, Path as LabPath, Program, Running, Signal, Spec,
};
use linerate_plan::path::Direction;
use linerate_record::End;
use linerate_session::store::{Loaded, Store};

/// Why a demonstration could not be shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    /// The lab could not be built, or broke down.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// `linerate serve` did not start in the lab.
    #[error("the serving end in the lab did not start: {0}")]
    Serve(String),
    /// The other client, which was planted, could not measure.
    #[error("the other client in the lab failed: {0}")]
    Company(std::process::ExitStatus),
    /// The load by which the truth is measured failed.
    #[error("the load that measures the truth failed: {0}")]
    Truth(std::process::ExitStatus),
    /// The measurement did not end.
    #[error("the load that measures the truth did not end")]
    Endless,
    /// The run in the lab left no record.
    #[error("the run in the lab left no record: {0}")]
    NoRecord(String),
    /// The load that measures the truth reported no goodput.
    #[error("the load that measures the truth reported no goodput")]
    NoGoodput,
    /// The user ended the demonstration.
    #[error("interrupted before anything was measured")]
    Interrupted,
    /// The path of this program is unknown.
    #[error("cannot find the program's own file")]
    Myself(#[source] std::io::Error),
}

/// TCP port of a second `linerate serve` on the far host.
const OTHER_PORT: &str = "5899";

/// Bytes that the other client must have moved before it counts as loading the path: its first probes move fewer.
const LOADED: u64 = 100_000_000;

/// The lab of a demonstration: two hosts and a router, with the planted faults.
pub(crate) struct Stage {
    lab: Lab,
    /// Set when the user presses Ctrl-C: the programs in the lab then get the signal too.
    stop: Arc<AtomicBool>,
    /// Whether programs connect to the far host by its IPv6 address.
    v6: bool,
    myself: std::path::PathBuf,
}

impl Stage {
    /// Builds a lab with a router and plants `faults`.
    pub(crate) fn build(faults: &[Fault], congestion: Option<String>) -> Result<Self, Problem> {
        Self::on_path(LabPath::default(), faults.to_vec(), congestion)
    }

    /// Builds a lab whose hosts are joined by `path`, and plants `faults`.
    pub(crate) fn on_path(
        path: LabPath,
        faults: Vec<Fault>,
        congestion: Option<String>,
    ) -> Result<Self, Problem> {
        let myself = std::env::current_exe().map_err(Problem::Myself)?;
        let spec = Spec { topology: path.topology, faults, congestion, mtu: path.mtu };
        Ok(Self { lab: Lab::build(&spec)?, stop: Arc::default(), v6: path.v6, myself })
    }

    /// Makes the programs in the lab end once `stop` is set.
    pub(crate) fn heed(mut self, stop: &Arc<AtomicBool>) -> Self {
        self.stop = Arc::clone(stop);
        self
    }

    /// Whether the user ended the demonstration.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Removes a planted fault.
    pub(crate) fn remove(&self, fault: &Fault) -> Result<(), Problem> {
        Ok(self.lab.remove(fault)?)
    }

    /// Bytes that the far host's port has received (forward) or sent (reverse) so far.
    pub(crate) fn counted(&self, direction: Direction) -> Result<u64, Problem> {
        let ports = self.lab.ports(Host::Far)?;
        let port = ports.iter().find(|p| p.name == "eth0");
        Ok(port.map_or(0, |p| match direction {
            Direction::Forward => p.rx_bytes,
            Direction::Reverse => p.tx_bytes,
        }))
    }

    /// Runs linerate on the near host and returns its record, which is saved in `folder`. No other program may write
    /// there. With `company`, another client loads the path during the run. The progress is shown if the run is
    /// `audible`.
    pub(crate) fn run(
        &self,
        args: &[String],
        company: Option<Company>,
        folder: &Path,
        audible: bool,
    ) -> Result<Loaded, Problem> {
        let mut server = self.serve(&[])?;
        let mut run = self.client(args).arg("--save").arg(folder);
        run = run.stdout(Output::Null).stderr(Output::Inherit);
        if !audible {
            run = run.arg("--quiet");
        }
        let company = company.map(|company| self.company(company)).transpose()?;
        let status = self.end_of(self.lab.spawn(Host::Near, &run)?)?;
        for mut other in company.into_iter().flatten() {
            match other.wait_for(Duration::ZERO)? {
                Some(status) if !status.success() => return Err(Problem::Company(status)),
                _ => other.kill()?,
            };
        }
        server.kill()?;
        let loaded = Store::new(folder).load("last").ok();
        let kept = loaded.filter(|loaded| match loaded.record.end {
            Some(End::Complete) => status.success(),
            Some(End::Interrupted) => self.is_stopped() && !loaded.record.steps.is_empty(),
            _ => false,
        });
        match kept {
            Some(loaded) => Ok(loaded),
            None if self.is_stopped() => Err(Problem::Interrupted),
            None => Err(Problem::NoRecord(status.to_string())),
        }
    }

    /// Waits until a program ends. Passes Ctrl-C on to it, because the programs in the lab have no terminal.
    fn end_of(&self, mut running: Running) -> Result<std::process::ExitStatus, Problem> {
        let mut reported = false;
        loop {
            if let Some(status) = running.wait_for(Duration::from_millis(50))? {
                return Ok(status);
            }
            if self.is_stopped() && !reported {
                running.signal(Signal::INT)?;
                reported = true;
            }
        }
    }

    /// Starts another client and waits until it loads the path. It has its own server if the company is `apart`. The
    /// client runs longer than any demonstration.
    fn company(&self, company: Company) -> Result<Vec<Running>, Problem> {
        let Company { host, direction, .. } = company;
        let port = if company.apart { &["--port", OTHER_PORT][..] } else { &[] };
        let server = company.apart.then(|| self.serve(port)).transpose()?;
        let run = self
            .client(&["--time", "60min", "--direction", direction.name()].map(str::to_owned))
            .args(port)
            .args(["--no-save", "--quiet"]);
        let run = run.stdout(Output::Null).stderr(Output::Null);
        let mut client = self.lab.spawn(host, &run)?;
        while self.counted(direction)? < LOADED {
            if let Some(status) = client.wait_for(Duration::from_millis(50))? {
                return Err(Problem::Company(status));
            }
        }
        Ok([client].into_iter().chain(server).collect())
    }

    /// Starts a run from near to far, and its server; the record is not saved.
    pub(crate) fn load(&self, args: &[String]) -> Result<(Running, Running), Problem> {
        let server = self.serve(&[])?;
        let run = self.client(args).arg("--no-save").arg("--quiet");
        let run = run.stdout(Output::Null).stderr(Output::Null);
        Ok((self.lab.spawn(Host::Near, &run)?, server))
    }

    /// Runs linerate from near to far without saving a record, and returns the goodput in its JSON document, in bits
    /// per second.
    pub(crate) fn goodput(&self, args: &[String], direction: Direction) -> Result<f64, Problem> {
        let mut server = self.serve(&[])?;
        let run = self.client(args).args(["--no-save", "--quiet", "--json"]);
        let finished = self.lab.spawn(Host::Near, &run)?.finish()?;
        server.kill()?;
        if !finished.status.success() {
            return Err(Problem::Truth(finished.status));
        }
        let document: Option<serde_json::Value> = serde_json::from_slice(&finished.stdout).ok();
        let place = format!("/directions/{}/goodput_bps", direction.name());
        let reported = document.as_ref().and_then(|d| d.pointer(&place)?.as_f64());
        reported.ok_or(Problem::NoGoodput)
    }

    /// Starts an iperf3 client with one stream for 4 s, and its server.
    pub(crate) fn iperf3(&self, direction: Direction) -> Result<(Running, Running), Problem> {
        // iperf3 reports on standard output that it listens; the shell redirects it to standard error, which is read.
        let shell =
            Program::new("sh").args(["-c", "exec iperf3 --server --one-off --forceflush >&2"]);
        let server = self.listen(shell)?;
        let way: &[&str] = match direction {
            Direction::Forward => &[],
            Direction::Reverse => &["--reverse"],
        };
        let client = Program::new("iperf3")
            .args(["--client", &self.far(), "--time", "4"])
            .args(way)
            .stdout(Output::Null)
            .stderr(Output::Null);
        Ok((self.lab.spawn(Host::Near, &client)?, server))
    }

    /// Runs a command on the near host while `far_command`, or `linerate serve`, runs on the far host. `FAR` in the
    /// command is replaced by the far host's address. An empty command is `linerate run`.
    pub(crate) fn command(
        &self,
        far_command: Option<&str>,
        command: &[String],
    ) -> Result<std::process::ExitStatus, Problem> {
        let far = self.far();
        let program = match command {
            [] => self.client(&[]),
            [name, arguments @ ..] => {
                let filled = |word: &String| {
                    if word == "FAR" { far.clone() } else { word.clone() }
                };
                Program::new(name).args(arguments.iter().map(filled))
            }
        };
        let mut server = match far_command {
            None => self.serve(&[])?,
            Some(text) => {
                let shell = Program::new("sh").args(["-c", text]);
                self.lab.spawn(Host::Far, &shell.stdout(Output::Null).stderr(Output::Inherit))?
            }
        };
        let program = program.stdout(Output::Inherit).stderr(Output::Inherit);
        let status = self.end_of(self.lab.spawn(Host::Near, &program)?)?;
        server.kill()?;
        Ok(status)
    }

    /// The address of the far host; always IPv4 if this machine has no IPv6.
    fn far(&self) -> String {
        let addresses = self.lab.addresses(Host::Far);
        let v6 = addresses.v6.filter(|_| self.v6);
        v6.map_or_else(|| addresses.v4.to_string(), |v6| v6.to_string())
    }

    fn client(&self, args: &[String]) -> Program {
        let far = self.far();
        self.own().args(["run", &far, "--open"]).args(args)
    }

    /// linerate with its default options: the user's configuration file is for other paths.
    fn own(&self) -> Program {
        Program::new(&self.myself).args(["--config", "/dev/null"])
    }

    /// Starts `linerate serve` on the far host and waits until it listens.
    fn serve(&self, args: &[&str]) -> Result<Running, Problem> {
        self.listen(self.own().args(["serve", "--open"]).args(args))
    }

    /// Starts a server on the far host and waits until it reports on standard error that it listens.
    fn listen(&self, program: Program) -> Result<Running, Problem> {
        let mut server = self.lab.spawn(Host::Far, &program.stdout(Output::Null))?;
        let Some(errors) = server.stderr.take() else {
            return Err(Problem::Serve("it has no output".to_owned()));
        };
        // Another thread reads the output, so that a silent server cannot block this program forever.
        let (tell, reported) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                // Nobody receives the lines after `listening`, but the pipe must still be emptied.
                let _ = tell.send(line);
            }
        });
        loop {
            match reported.recv_timeout(Duration::from_secs(10)) {
                Ok(line) if line.starts_with("error") => return Err(Problem::Serve(line)),
                // Earlier lines, such as the warning that the server runs as root, are printed before the port is open.
                Ok(line) if line.contains("listening") => return Ok(server),
                Ok(_) => {}
                Err(_) => return Err(Problem::Serve("it does not listen".to_owned())),
            }
        }
    }
}
