//! `linerate demo ib-wrong-port`: a subnet manager that serves another port than the one with the cable, on a simulated
//! network, and the experiment that proves it.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use linerate_lab::ib::{IbError, Link, Manager, Network, PortName, Simulator, Topology};
use serde_json::Value;
use tempfile::TempDir;

use super::super::exit::{Exit, Failure};
use super::super::options::Options;
use super::super::{out, reach};
use linerate_show::{Document, Tone};

pub(super) const ID: &str = "ib-wrong-port";
pub(super) const WORDS: &str =
    "InfiniBand: the cable is in port 2 of the host whose subnet manager serves port 1";

/// The host whose port has no manager: `linerate fabric` runs there.
const VICTIM: &str = "CLB";

pub(super) fn run(json: bool, options: &Options) -> Result<Exit, Failure> {
    if json {
        let error = anyhow::anyhow!("`{ID}` has no JSON outcome");
        return Err(Failure::usage(error)
            .hint("linerate lab ib -- linerate fabric --json shows the network as JSON"));
    }
    let style = out::style(&options.global);
    out::print(&opening().text(style))?;
    let folder = reach::system(TempDir::new(), "cannot make a folder for the walk")?;
    let capture = folder.path().join("walk");
    let mut simulator = planted().map_err(Failure::not_measured)?;
    let page = reach::system(
        fabric(&simulator, "--capture", &capture).output(),
        "cannot run linerate fabric",
    )?;
    out::print(&words(&page)?)?;
    // The verdict uses the captured walk that was shown.
    let before = document(fabric(&simulator, "--root", &capture).arg("--json"))?;
    let cure = Manager::at(PortName::new(VICTIM, 1));
    simulator.manage(&cure).map_err(Failure::not_measured)?;
    let second = folder.path().join("again");
    let after = document(fabric(&simulator, "--capture", &second).arg("--json"))?;
    let named = names_the_port(&before);
    let states = [state(&before), state(&after)];
    let proved = states == ["initializing", "active"];
    let page = closing(named, &states);
    out::print(&format!("\n{}", page.text(style)))?;
    Ok(if named && proved { Exit::Done } else { Exit::Missed })
}

/// A simulated network whose subnet manager serves the wrong port.
fn planted() -> Result<Simulator, IbError> {
    let network = Network::new(Topology::TwoPorts, Link::default())?;
    let mut simulator = Simulator::start(network)?;
    simulator.manage(&Manager::at(PortName::new("SRV", 1)))?;
    Ok(simulator)
}

/// A command that runs `linerate fabric` on the victim, with one reading of the counters.
fn fabric(simulator: &Simulator, option: &str, file: &Path) -> Command {
    // If the path of this program is unknown, it is started by its name.
    let own = std::env::current_exe().unwrap_or_else(|_| "linerate".into());
    let mut command = Command::new(own);
    command
        .args(["fabric", "--interval", "0s", option])
        .arg(file)
        .envs(simulator.environment(VICTIM))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    command
}

fn words(output: &Output) -> Result<String, Failure> {
    if !output.status.success() {
        let error = anyhow::anyhow!("linerate fabric ended with {}", output.status);
        return Err(Failure::not_measured(error));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn document(command: &mut Command) -> Result<Value, Failure> {
    let output = reach::system(command.output(), "cannot run linerate fabric")?;
    serde_json::from_str(&words(&output)?).map_err(Failure::not_measured)
}

/// Whether the findings of the walk name the cause, and the port in which the cable ends.
fn names_the_port(walk: &Value) -> bool {
    let problems = walk["findings"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    problems
        .filter(|problem| problem["id"] == "wrong-port")
        .any(|problem| text(&problem["why"]).contains("SRV port 2"))
}

/// State of the victim's port in the JSON document of a walk.
fn state(walk: &Value) -> String {
    let own = &walk["own"];
    let ports = walk["ports"].as_array().into_iter().flatten();
    let mut of_own =
        ports.filter(|port| port["node"] == own["node"] && port["port"] == own["port"]);
    let state = of_own.next().and_then(|port| port["state"].as_str());
    state.unwrap_or("unknown").to_owned()
}

fn opening() -> Document {
    let mut doc = Document::new();
    let text = "Three hosts are simulated on this machine (ibsim, opensm): SRV has a cable to CLA in port 1 and one to \
                CLB in port 2. CLB cannot be reached. This is what `linerate fabric` sees from CLB.";
    doc.line(&[(Tone::Plain, text)], 0);
    doc.gap();
    doc
}

fn closing(named: bool, [before, after]: &[String; 2]) -> Document {
    let mut doc = Document::new();
    doc.heading("The planted truth");
    let text = "the subnet manager at SRV serves port 1; the cable of CLB is in port 2";
    doc.entry("Planted", &[(Tone::Plain, text)], 0);
    let (tone, text) = if named {
        (Tone::Good, "right: it named SRV port 2")
    } else {
        (Tone::Warning, "wrong: it did not name SRV port 2")
    };
    doc.entry("The verdict was", &[(tone, text)], 0);
    let text =
        format!("with a manager on this cable the port of CLB went from {before} to {after}");
    doc.entry("Experiment", &[(Tone::Plain, &text)], 0);
    let text = "ibsim runs programs at port 1 of a host only, so that manager ran at CLB. On real hosts it runs at \
                SRV, as the fix says.";
    doc.detail(&[(Tone::Dim, text)], 0);
    doc
}
