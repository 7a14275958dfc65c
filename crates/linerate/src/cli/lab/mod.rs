//! `linerate lab`: runs commands on a test network of two hosts and a router, in a virtual machine, or in a simulated
//! InfiniBand network, all on this machine.

use std::fmt::Write as _;

use clap::{Parser, Subcommand};
use linerate_lab::Fault;

use super::exit::{Exit, Failure, of_command};
use super::{ib, out, reach, signal, vm};
use crate::demo::Stage;

// `linerate lab`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the faults and how to write them
    List,
    /// Build a lab and run a command on its near host; the far host runs `linerate serve --open`
    Run {
        /// Fault to plant, such as path-rate:100Mb/s,deep; may be repeated
        #[arg(long = "fault", value_name = "FAULT")]
        faults: Vec<Fault>,

        /// Congestion control at both hosts, such as cubic or bbr [default: the system's]
        #[arg(long, value_name = "NAME")]
        congestion: Option<String>,

        /// Shell command for the far host, such as 'iperf3 -s' [default: linerate serve --open]
        #[arg(long, value_name = "COMMAND")]
        far: Option<String>,

        /// Command; FAR in it is replaced by the address of the far host [default: linerate run FAR]
        #[arg(trailing_var_arg = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Boot a virtual machine with Debian's kernel and this machine's files, for a shell or a command
    ///
    /// The machine has two NUMA nodes, an NVMe disk and two network ports in PCIe slots. Its processors
    /// are emulated in software: facts and counts are right, speeds are not. It sees the files of this
    /// machine, but its own /tmp and /run; all its writes are lost when it ends. A command may take an
    /// hour.
    ///
    /// Needs Debian's packages qemu-system-x86, busybox-static and kmod. If no kernel is installed,
    /// Debian's is downloaded with apt-get into $XDG_CACHE_HOME/linerate/kernels.
    Vm {
        /// Add two Soft-RoCE devices with a wire between them: rxe0 at 10.9.0.1, rxe1 at 10.9.0.2
        #[arg(long)]
        rdma: bool,
        /// Command with its arguments [default: a shell on this terminal]
        #[arg(trailing_var_arg = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Simulate an InfiniBand network, and run a command as one of its hosts
    ///
    /// ibsim plays all hosts and switches, and opensm is the subnet manager. `linerate fabric` finds this network
    /// by itself. Programs of infiniband-diags find it with `ibsim-run`. It carries management packets and no data.
    /// It needs no right and no device; it needs Debian's packages ibsim-utils, libumad2sim0 and opensm.
    Ib(ib::Args),
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failure> {
    match &args.what {
        What::List => list(),
        What::Run { faults, congestion, far, command } => {
            run_in(faults, congestion.clone(), far.as_deref(), command)
        }
        What::Vm { rdma, command } => vm::run(*rdma, command),
        What::Ib(args) => ib::run(args),
    }
}

fn list() -> Result<Exit, Failure> {
    let faults: Vec<Fault> = Fault::EXAMPLES.iter().filter_map(|e| e.parse().ok()).collect();
    let column = Fault::EXAMPLES.iter().map(|e| e.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (example, fault) in Fault::EXAMPLES.iter().zip(faults) {
        let _ = writeln!(text, "{example:column$}  {fault}");
    }
    out::print(&text)?;
    Ok(Exit::Done)
}

fn run_in(
    faults: &[Fault],
    congestion: Option<String>,
    far: Option<&str>,
    command: &[String],
) -> Result<Exit, Failure> {
    let stage = Stage::build(faults, congestion).map_err(Failure::not_measured)?;
    let stop = reach::system(signal::interrupted(), "cannot watch for Ctrl-C")?;
    let stage = stage.heed(&stop);
    let status = stage.command(far, command).map_err(Failure::not_measured)?;
    Ok(of_command("the lab", status))
}

#[cfg(test)]
mod tests {
    use linerate_lab::CELLS;

    use super::*;
    use linerate_test::kept;

    /// Text before each of the two tables of docs/lab.md.
    const HEAD: &str = include_str!("head.md");
    const CELLS_HEAD: &str = include_str!("cells.md");

    fn document() -> String {
        let mut text = format!("{HEAD}\n| written | what it is |\n|---|---|\n");
        for example in Fault::EXAMPLES {
            let fault: Fault = example.parse().unwrap();
            let _ = writeln!(text, "| `{example}` | {fault} |");
        }
        let _ = write!(text, "\n{CELLS_HEAD}\n");
        text.push_str("| cell | planted | expected | true as well |\n|---|---|---|---|\n");
        for cell in CELLS {
            let (id, words, neighbours) = (cell.id, cell.words, cell.neighbours.join(", "));
            let _ = writeln!(text, "| {id} | {words} | {} | {neighbours} |", cell.expected);
        }
        text
    }

    #[test]
    fn the_document_lists_what_there_is() {
        kept::check("docs/lab.md", &document());
    }

    #[test]
    fn every_example_is_a_fault_and_is_written_as_it_is_read() {
        for example in Fault::EXAMPLES {
            let fault: Fault = example.parse().unwrap();
            let parsed: Fault = fault.code().parse().unwrap();
            assert_eq!(fault, parsed);
            assert!(!fault.to_string().is_empty());
        }
    }
}
