//! The virtual machine in which the cases run scripts.

use std::fs;
use std::path::Path;
use std::time::Duration;

use linerate_lab::vm::{Card, DISKS, Generation, Kernel, Node, Slot, Spec, Vm, VmError};
use linerate_lab::{Finished, Program};
use linerate_units::Bytes;
use serde_json::Value;

use super::document::document;

/// Longest time of a script. A busy machine needs a hundredth of it.
const WITHIN: Duration = Duration::from_secs(300);
/// Path of the built program in the guest, on a file system that only the guest has.
pub(crate) const PROGRAM: &str = "/run/linerate";

/// Functions that every script may use.
const WORDS: &str = r#"
# The card in a slot.
card() { echo "$(cat /sys/bus/pci/slots/$1/address).0"; }
# The port that a slot hangs on.
port() { basename "$(dirname "$(readlink -f "/sys/bus/pci/devices/$(card "$1")")")"; }
# plant FILE TEXT: another text stands in the file.
plant() {
  local text
  text=$(mktemp /run/plant.XXXXXX)
  printf '%s\n' "$2" >"$text"
  mount --bind "$text" "$1"
}
# link DEVICE WHICH SPEED LANES: the link of a device, current or max, is another one.
link() {
  plant "/sys/bus/pci/devices/$1/$2_link_speed" "$3 GT/s PCIe"
  plant "/sys/bus/pci/devices/$1/$2_link_width" "$4"
}
"#;

pub(crate) struct Guest {
    pub(crate) vm: Vm,
}

impl Guest {
    /// Boots the machine of these tests, with two NUMA nodes and five slots.
    pub(crate) fn boot() -> Result<Self, VmError> {
        Self::boot_as(&machine())
    }

    pub(crate) fn boot_as(spec: &Spec) -> Result<Self, VmError> {
        let mut guest = Self { vm: boot(spec)? };
        fs::copy(env!("CARGO_BIN_EXE_linerate"), guest.vm.shared().join("linerate")).unwrap();
        guest.ask(&format!("cp /out/linerate {PROGRAM}"));
        Ok(guest)
    }

    /// The stdout of a shell script. It runs in its own mount namespace, so that planted mounts disappear with it.
    pub(crate) fn ask(&mut self, script: &str) -> String {
        self.ask_apart(&["--mount"], script)
    }

    /// The stdout of a shell script that runs in its own namespaces, which are given as options of unshare.
    pub(crate) fn ask_apart(&mut self, namespaces: &[&str], script: &str) -> String {
        let script = format!("set -e\n{WORDS}\n{script}");
        let program = Program::new("unshare").args(namespaces);
        let program = program.args(["sh", "-c", &script]);
        let done = self.run(&program.current_dir("/"));
        let reported = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{script}\n{}: {reported}", done.status);
        String::from_utf8(done.stdout).unwrap()
    }

    pub(crate) fn run(&mut self, program: &Program) -> Finished {
        self.vm.run(program, WITHIN).unwrap()
    }

    /// The document of `linerate host` after a script has planted something.
    pub(crate) fn host(&mut self, script: &str) -> Value {
        document(&self.ask(&format!("{script}\n{PROGRAM} host --json")))
    }

    /// PCI address of the card in a slot.
    pub(crate) fn card(&mut self, slot: usize) -> String {
        self.ask(&format!("card {slot}")).trim().to_owned()
    }
}

pub(crate) fn boot(spec: &Spec) -> Result<Vm, VmError> {
    // The built program searches this folder too, if the cache is that of the user.
    let kernels = cache().join("linerate/kernels");
    Vm::boot(spec, &Kernel::find(&kernels)?)
}

pub(crate) fn cache() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn machine() -> Spec {
    let node = Node { cpus: 2, memory: Bytes(768 << 20) };
    let slot = |node, speed, lanes, card| Slot { node: Some(node), speed, lanes, card };
    Spec {
        nodes: vec![node; 2],
        distance: 31,
        slots: vec![
            slot(0, Generation::Three, 4, Some(Card::Nvme(Bytes(3 << 30)))),
            slot(1, Generation::Four, 16, Some(Card::E1000e)),
            slot(1, Generation::Two, 8, Some(Card::VirtioNet)),
            slot(0, Generation::One, 1, None),
            slot(0, Generation::Three, 4, Some(Card::E1000e)),
        ],
        setup: DISKS,
        ..Spec::default()
    }
}
