//! The lab with the program itself at both ends.

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
    /// The serving end in the lab did not come up.
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
    Untold,
    /// The user ended the demonstration.
    #[error("interrupted before anything was measured")]
    Interrupted,
    /// This program could not find itself.
    #[error("cannot find the program's own file")]
    Myself(#[source] std::io::Error),
}

/// Port of another server in the same host.
const OTHER_PORT: &str = "5899";

/// Bytes that a client has moved when its probes are done and it loads the path.
const LOADED: u64 = 100_000_000;

/// The lab of a demonstration: two hosts and a router, with the planted faults.
pub(crate) struct Stage {
    lab: Lab,
    /// Set by Ctrl-C: what runs in the lab is asked to end.
    stop: Arc<AtomicBool>,
    /// Whether far is reached by its IPv6 address.
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

    /// Ends what runs in the lab once `stop` is set.
    pub(crate) fn heed(mut self, stop: &Arc<AtomicBool>) -> Self {
        self.stop = Arc::clone(stop);
        self
    }

    /// Whether the user ended the demonstration.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Removes a fault.
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

    /// Runs the program from near to far and returns its record, which lies in `folder`. No other program may write
    /// there. Another client may measure in the meantime. The progress of the run is shown if it is `audible`.
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

    /// Waits for the end of a program, which gets the Ctrl-C of the user: the lab has no terminal of its own.
    fn end_of(&self, mut running: Running) -> Result<std::process::ExitStatus, Problem> {
        let mut told = false;
        loop {
            if let Some(status) = running.wait_for(Duration::from_millis(50))? {
                return Ok(status);
            }
            if self.is_stopped() && !told {
                running.signal(Signal::INT)?;
                told = true;
            }
        }
    }

    /// Starts another client, with a server of its own if the company is apart, and waits until the client
    /// loads the path. The client runs for longer than any demonstration.
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

    /// Starts a run with its own server; its record is not kept.
    pub(crate) fn load(&self, args: &[String]) -> Result<(Running, Running), Problem> {
        let server = self.serve(&[])?;
        let run = self.client(args).arg("--no-save").arg("--quiet");
        let run = run.stdout(Output::Null).stderr(Output::Null);
        Ok((self.lab.spawn(Host::Near, &run)?, server))
    }

    /// Runs the program with a server of its own, keeps no record, and returns the goodput of its document, in
    /// bits per second.
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
        let told = document.as_ref().and_then(|d| d.pointer(&place)?.as_f64());
        told.ok_or(Problem::Untold)
    }

    /// Starts iperf3 with one stream for some seconds, with its server.
    pub(crate) fn iperf3(&self, direction: Direction) -> Result<(Running, Running), Problem> {
        // The server of iperf3 says on standard output that it listens.
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

    /// Runs a command in the near host, with `far` or a server on the far one; `FAR` in it becomes the far
    /// host's address. An empty command is `linerate run`.
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

    /// The address of the far host. A machine without IPv6 has but one.
    fn far(&self) -> String {
        let addresses = self.lab.addresses(Host::Far);
        let v6 = addresses.v6.filter(|_| self.v6);
        v6.map_or_else(|| addresses.v4.to_string(), |v6| v6.to_string())
    }

    fn client(&self, args: &[String]) -> Program {
        let far = self.far();
        self.own().args(["run", &far, "--open"]).args(args)
    }

    /// This program, with its default options: the user's configuration is for other paths.
    fn own(&self) -> Program {
        Program::new(&self.myself).args(["--config", "/dev/null"])
    }

    /// Starts the serving end and waits until it listens.
    fn serve(&self, args: &[&str]) -> Result<Running, Problem> {
        self.listen(self.own().args(["serve", "--open"]).args(args))
    }

    /// Starts a server on far and waits until it says on standard error that it listens.
    fn listen(&self, program: Program) -> Result<Running, Problem> {
        let mut server = self.lab.spawn(Host::Far, &program.stdout(Output::Null))?;
        let Some(errors) = server.stderr.take() else {
            return Err(Problem::Serve("it has no output".to_owned()));
        };
        // The output is read on a thread: a silent server must not block this program forever.
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                // Only the first line is used; the pipe must still be emptied.
                let _ = tell.send(line);
            }
        });
        loop {
            match told.recv_timeout(Duration::from_secs(10)) {
                Ok(line) if line.starts_with("error") => return Err(Problem::Serve(line)),
                // Earlier lines, such as the warning that it runs as root, are printed while the port is still
                // closed.
                Ok(line) if line.contains("listening") => return Ok(server),
                Ok(_) => {}
                Err(_) => return Err(Problem::Serve("it does not listen".to_owned())),
            }
        }
    }
}
