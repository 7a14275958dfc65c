//! `linerate lab vm`: runs a command or a shell in a virtual machine that sees this machine's files.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use linerate_lab::vm::{Card, Generation, Kernel, Node, SOFT_RDMA, Slot, Spec, Vm};
use linerate_lab::{Output, Program};
use linerate_units::Bytes;

use super::config::user_folder;
use super::exit::{Exit, Failure, of_command, tell};

/// Longest time that a command in the virtual machine may take.
const WITHIN: Duration = Duration::from_secs(60 * 60);

/// Runs a command in a virtual machine, or a shell; with `rdma` the machine has Soft-RoCE devices.
pub(super) fn run(rdma: bool, command: &[String]) -> Result<Exit, Failure> {
    let interactive = io::stdin().is_terminal() && io::stdout().is_terminal();
    if command.is_empty() && !interactive {
        let error = anyhow::anyhow!("a shell in a virtual machine needs a terminal");
        return Err(Failure::usage(error).hint("give a command: linerate lab vm -- COMMAND"));
    }
    let cache = cache().ok_or_else(|| {
        let error = anyhow::anyhow!("there is no directory for kernels");
        Failure::not_measured(error).hint("set HOME or XDG_CACHE_HOME to an absolute path")
    })?;
    let kernel = Kernel::find(&cache).map_err(Failure::not_measured)?;
    let note =
        "processors emulated in software (QEMU's TCG): facts and counts are right, speeds are not";
    tell(&format!("note: Linux {}, {note}\n", kernel.version));
    let status = match command {
        [] => shell(&machine(rdma), &kernel),
        [name, arguments @ ..] => {
            let program = Program::new(name).args(arguments);
            one(&machine(rdma), &kernel, &program)
        }
    }?;
    Ok(of_command("the virtual machine", status))
}

fn one(machine: &Spec, kernel: &Kernel, program: &Program) -> Result<ExitStatus, Failure> {
    let program = program.clone();
    let program = program.stdout(Output::Inherit).stderr(Output::Inherit);
    let mut vm = Vm::boot(machine, kernel).map_err(Failure::not_measured)?;
    let finished = vm.run(&program, WITHIN).map_err(Failure::not_measured)?;
    Ok(finished.status)
}

fn shell(machine: &Spec, kernel: &Kernel) -> Result<ExitStatus, Failure> {
    tell("note: a shell starts in some seconds; exit ends the machine, so does Ctrl-A X\n");
    let mut program = Program::new("bash").current_dir("/root");
    // A serial line transfers neither the terminal's type nor its size.
    if let Some(kind) = std::env::var_os("TERM") {
        program = program.env("TERM", kind);
    }
    if let Some((width, height)) = terminal_size::terminal_size() {
        let size = [("COLUMNS", width.0), ("LINES", height.0)];
        for (name, value) in size {
            program = program.env(name, value.to_string());
        }
    }
    Vm::shell(machine, kernel, &program).map_err(Failure::not_measured)
}

/// The virtual machine: two NUMA nodes, and three cards, each in its own slot.
fn machine(rdma: bool) -> Spec {
    let node = Node { cpus: 2, memory: Bytes(1 << 30) };
    let slot = |node, card| Slot {
        node: Some(node),
        speed: Generation::Three,
        lanes: 4,
        card: Some(card),
    };
    Spec {
        nodes: vec![node; 2],
        slots: vec![
            slot(0, Card::Nvme(Bytes(1 << 30))),
            slot(0, Card::E1000e),
            slot(1, Card::VirtioNet),
        ],
        setup: if rdma { SOFT_RDMA } else { "" },
        ..Spec::default()
    }
}

/// The directory of fetched kernels: `$XDG_CACHE_HOME/linerate/kernels`, or `~/.cache/linerate/kernels`.
fn cache() -> Option<PathBuf> {
    Some(user_folder("XDG_CACHE_HOME", ".cache")?.join("linerate/kernels"))
}
