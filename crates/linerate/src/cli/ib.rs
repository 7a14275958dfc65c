//! `linerate lab ib`: runs a command in a simulated InfiniBand network.

use std::sync::atomic::Ordering;

use anyhow::anyhow;
use clap::Parser;
use linerate_lab::Program;
use linerate_lab::ib::{IbError, Link, Manager, Network, PortName, Simulator, Topology};

use super::exit::{Exit, Failure, of_command};
use super::{reach, signal};

// `linerate lab ib`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Shape of the network: two-ports (host SRV has a cable to CLA in port 1 and one to CLB in port 2), star:HOSTS,
    /// or fat-tree:LEAVES,HOSTS,SPINES with HOSTS hosts at each leaf
    #[arg(long, value_name = "SHAPE", default_value = "two-ports")]
    topology: Topology,

    /// The most that each link may use: lanes and speed, such as 4xEDR or 1xSDR
    #[arg(long, value_name = "LINK", default_value_t)]
    link: Link,

    /// Port that the subnet manager serves, or none; may be repeated [default: port 1 of the first host]
    #[arg(long = "sm", value_name = "NODE:PORT")]
    managers: Vec<Served>,

    /// Host that the command runs as [default: the last one]
    #[arg(long = "as", value_name = "NODE")]
    node: Option<String>,

    /// Command for ibsim's console before the command runs, such as 'Unlink "leaf1"[2]'; may be repeated
    #[arg(long = "fault", value_name = "COMMAND")]
    faults: Vec<String>,

    /// Command [default: linerate fabric]
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The port that a manager serves; `None` for no manager.
#[derive(Debug, Clone)]
struct Served(Option<PortName>);

impl std::str::FromStr for Served {
    type Err = IbError;

    fn from_str(text: &str) -> Result<Self, IbError> {
        match text {
            "none" => Ok(Self(None)),
            text => text.parse().map(|port| Self(Some(port))),
        }
    }
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let stop = reach::system(signal::interrupted(), "cannot watch for Ctrl-C")?;
    let network = Network::new(args.topology, args.link).map_err(failed)?;
    let (usual, last) = network.usual();
    let mut simulator = Simulator::start(network).map_err(failed)?;
    let managers: Vec<PortName> = match &args.managers[..] {
        [] => vec![usual],
        some if some.len() > 1 && some.iter().any(|served| served.0.is_none()) => {
            return Err(Failure::usage(anyhow!("--sm none excludes any other --sm")));
        }
        some => some.iter().filter_map(|served| served.0.clone()).collect(),
    };
    for at in managers {
        simulator.manage(&Manager::at(at)).map_err(failed)?;
    }
    for fault in &args.faults {
        simulator.command(fault).map_err(failed)?;
    }
    let program = match &args.command[..] {
        [] => {
            let own = reach::system(std::env::current_exe(), "cannot find this program's file")?;
            Program::new(own).arg("fabric")
        }
        [name, arguments @ ..] => Program::new(name).args(arguments),
    };
    let node = args.node.as_deref().unwrap_or(&last);
    let status = simulator.run(node, &program, &|| stop.load(Ordering::Relaxed)).map_err(failed)?;
    Ok(of_command("the simulated network", status))
}

/// The failure for an error of the lab: a network that is impossible is a usage error, others are failures to measure.
fn failed(error: IbError) -> Failure {
    match error {
        IbError::Impossible { .. } | IbError::Refused { .. } => Failure::usage(error),
        other => Failure::not_measured(other),
    }
}
