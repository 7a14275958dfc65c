//! Virtual machines with the distribution's stock kernel and this machine's own files, for features that namespaces
//! lack: NUMA nodes, PCIe slots, kernel modules, a clock of their own.
//!
//! The guest's root file system is this machine's, with a layer on top that receives all writes and is discarded. The
//! guest has its own `/tmp` and `/run`, and `/out` is a folder that guest and host share ([`Vm::shared`]). Processors
//! are emulated in software (QEMU's TCG), which works everywhere: facts and counts are real, speeds are not.
//!
//! No privilege is needed, and nothing is left behind: QEMU ends when the handle is dropped, and with the thread that
//! made it.

mod error;
mod initrd;
mod job;
mod kernel;
mod spec;
mod tool;

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub use error::VmError;
pub use kernel::Kernel;
pub use spec::{Cable, CableEnd, Card, DISKS, Generation, Node, SOFT_RDMA, Slot, Spec};

use crate::folder::Folder;
use crate::program::{Finished, Program};
use job::Stream;
use spec::joined;

const PID1: &str = include_str!("guest/pid1");
/// Prefix of the name of a machine's folder.
const PREFIX: &str = "linerate-vm-";
/// The shared folder inside the machine's folder; the guest sees it as `/out`.
const SHARED: &str = "out";
/// How often a machine is started in all, if it hangs during boot.
const STARTS: u32 = 3;
/// Time between checks of the guest's output.
const LOOK: Duration = Duration::from_millis(20);

/// A running virtual machine. Dropping it ends the machine.
#[derive(Debug)]
pub struct Vm {
    /// QEMU process. Its standard input is the guest's second serial line, which carries the command to run.
    qemu: Child,
    folder: Folder,
    jobs: u32,
}

impl Vm {
    /// Boots a machine, and waits until it accepts programs.
    ///
    /// Emulated processors sometimes wait for each other forever before the kernel prints anything (seen once
    /// in forty boots), so a machine that does not boot in time is started again.
    pub fn boot(spec: &Spec, kernel: &Kernel) -> Result<Self, VmError> {
        for _ in 1..STARTS {
            match Self::boot_once(spec, kernel) {
                Err(VmError::Late { .. }) => {}
                other => return other,
            }
        }
        Self::boot_once(spec, kernel)
    }

    fn boot_once(spec: &Spec, kernel: &Kernel) -> Result<Self, VmError> {
        let mut vm = Self::start(spec, kernel, None)?;
        let up = vm.shared().join("up");
        let during = "while it came up";
        vm.wait_for(&up, during, spec.boot_within, || Ok(()))?;
        Ok(vm)
    }

    /// Boots a machine for one program, usually a shell, whose terminal is this process's own, and
    /// waits for its end without limit. `Ctrl-A X` ends the machine.
    pub fn shell(spec: &Spec, kernel: &Kernel, program: &Program) -> Result<ExitStatus, VmError> {
        let mut vm = Self::start(spec, kernel, Some(program))?;
        let ended = vm.qemu.wait();
        ended.map_err(VmError::step("cannot wait for QEMU"))?;
        let status = vm.shared().join("status");
        vm.wait_for(&status, "in its shell", Duration::ZERO, || Ok(())).map(|text| status_of(&text))
    }

    /// Runs a program without input and returns its output. Its environment is the guest's own, with the additions of
    /// [`Program::env`]. If the program has not ended after `within`, the machine is ended.
    ///
    /// If a signal ends the program, the exit status is the one that a shell reports: 128 and the signal's number.
    pub fn run(&mut self, program: &Program, within: Duration) -> Result<Finished, VmError> {
        self.jobs += 1;
        let name = self.jobs.to_string();
        let folder = self.shared().join(&name);
        let failed =
            || VmError::step(format!("cannot hand over a program in {}", folder.display()));
        fs::create_dir(&folder).map_err(failed())?;
        fs::write(folder.join("run"), job::script(program)?).map_err(failed())?;
        let stream = |name, output| Stream::create(&folder.join(name), output).map_err(failed());
        let mut stdout = stream("stdout", program.stdout)?;
        let mut stderr = stream("stderr", program.stderr)?;
        if let Some(line) = &mut self.qemu.stdin {
            writeln!(line, "{name}").map_err(failed())?;
        }
        let mut pump = || {
            stdout.pump(&mut io::stdout())?;
            stderr.pump(&mut io::stderr())
        };
        let during = format!("while it ran `{}`", program.name());
        let status = self.wait_for(&folder.join("status"), &during, within, &mut pump)?;
        // Passes on output that was written between the last check and the end.
        pump().map_err(passing_on())?;
        Ok(Finished { status: status_of(&status), stdout: stdout.taken(), stderr: stderr.taken() })
    }

    /// Returns the folder that the guest sees as `/out`. It is removed with the machine.
    pub fn shared(&self) -> PathBuf {
        self.folder.path(SHARED)
    }

    /// Returns the process id of QEMU.
    pub fn pid(&self) -> u32 {
        self.qemu.id()
    }

    fn start(spec: &Spec, kernel: &Kernel, shell: Option<&Program>) -> Result<Self, VmError> {
        if !cfg!(target_arch = "x86_64") {
            let why = "only machines of the kind x86-64 can be emulated with the files of this one";
            return Err(VmError::impossible(why));
        }
        let folder = Folder::new(PREFIX).map_err(VmError::step("cannot make a folder"))?;
        folder.sub(SHARED).map_err(VmError::step("cannot make a folder"))?;
        let write = |name: &str, content: &[u8]| {
            let written = folder.write(name, content);
            written.map_err(VmError::step("cannot write a file of the virtual machine"))
        };
        write("initrd", &initrd::build(kernel)?)?;
        write("out/pid1", PID1.as_bytes())?;
        write("out/setup", spec.setup().as_bytes())?;
        if let Some(program) = shell {
            write("out/shell", &job::script(program)?)?;
        }
        let mut command = command(spec, kernel, &folder, shell.is_some())?;
        let qemu = command.spawn().map_err(VmError::step("cannot start QEMU"))?;
        Ok(Self { qemu, folder, jobs: 0 })
    }

    /// Waits until the guest has written a file, and reads it.
    fn wait_for(
        &mut self,
        file: &Path,
        during: &str,
        within: Duration,
        mut each: impl FnMut() -> io::Result<()>,
    ) -> Result<String, VmError> {
        let began = Instant::now();
        loop {
            // QEMU's end is checked before the file, because the guest may write the file just before it ends.
            let ended = self.qemu.try_wait();
            let ended = ended.map_err(VmError::step("cannot wait for QEMU"))?.is_some();
            each().map_err(passing_on())?;
            if let Ok(text) = fs::read_to_string(file) {
                return Ok(text);
            }
            let (during, console) =
                (during.to_owned(), self.folder.last_words(&["console", "qemu"]));
            if ended {
                return Err(VmError::Died { during, console });
            }
            if began.elapsed() >= within {
                self.end();
                return Err(VmError::Late { during, within, console });
            }
            std::thread::sleep(LOOK);
        }
    }

    fn end(&mut self) {
        // The process may have ended by itself, so errors are ignored.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        self.end();
    }
}

fn passing_on() -> impl FnOnce(io::Error) -> VmError {
    VmError::step("cannot pass on what a program wrote in the virtual machine")
}

/// Converts an exit code, as a shell reports it, to an exit status.
fn status_of(text: &str) -> ExitStatus {
    let code: u8 = text.trim().parse().unwrap_or(u8::MAX);
    ExitStatus::from_raw(i32::from(code) << 8)
}

/// Returns the command that starts QEMU.
fn command(
    spec: &Spec,
    kernel: &Kernel,
    folder: &Folder,
    terminal: bool,
) -> Result<Command, VmError> {
    let qemu = tool::find("qemu-system-x86_64", "qemu-system-x86")?;
    // `setpriv` makes QEMU end with the thread that starts it, even if that thread is killed.
    let mut command = Command::new(tool::find("setpriv", "util-linux")?);
    command.args(["--pdeathsig", "KILL", "--"]).arg(qemu);
    let log = folder.path("qemu");
    let log =
        File::create(&log).map_err(VmError::step(format!("cannot write {}", log.display())))?;
    command.stderr(log);
    let line = if terminal {
        "stdio,id=line,signal=off,mux=on"
    } else {
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        "stdio,id=line,signal=off"
    };
    let arguments = spec.arguments.join(" ");
    let arguments =
        format!("console=ttyS0 quiet panic=-1 tsc=reliable clocksource=tsc {arguments}");
    command
        // Devices that QEMU adds by default would be oddities of the guest: a disk controller and a display that belong
        // to no NUMA node.
        .args(["-M", "q35,sata=off,smbus=off", "-nodefaults", "-display", "none"])
        .args(["-accel", "tcg,thread=multi", "-cpu", "max", "-no-reboot"])
        .args(["-chardev", line, "-monitor", "none"])
        .arg("-serial")
        .arg(joined("file:", &folder.path("console"), ""))
        .args(["-serial", "chardev:line"])
        .arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(folder.path("initrd"))
        .args(["-append", &arguments]);
    for (tag, path, access) in [
        ("root", Path::new("/"), "readonly=on,multidevs=remap"),
        ("modules", &kernel.modules, "readonly=on"),
        ("out", &folder.path(SHARED), "readonly=off"),
    ] {
        let rest = format!(",mount_tag={tag},security_model=none,{access}");
        command.arg("-virtfs").arg(joined("local,path=", path, &rest));
    }
    // These arguments come last: QEMU would otherwise put devices without a named bus, like those above, on one of
    // these buses.
    command.args(spec.qemu()?);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_those_of_shells() {
        assert_eq!(status_of("0\n").code(), Some(0));
        assert_eq!(status_of("139\n").code(), Some(139));
        assert!(!status_of("").success() && !status_of("x").success());
    }
}
