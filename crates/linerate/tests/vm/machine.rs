//! Virtual machines themselves: what runs in them, and how they end.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use linerate_lab::Program;
use linerate_lab::vm::{Spec, VmError};

use super::guest::{Guest, boot, cache};

pub(crate) fn programs(guest: &mut Guest) {
    let shell = |text: &str| Program::new("sh").args(["-c", text]).current_dir("/");
    let done = guest.run(&shell("echo out; echo told >&2; exit 42"));
    assert_eq!((&*done.stdout, &*done.stderr), (&b"out\n"[..], &b"told\n"[..]));
    assert_eq!(done.status.code(), Some(42));
    let done = guest.run(&shell("kill -SEGV $$"));
    assert_eq!(done.status.code(), Some(139));
    let done = guest.run(&Program::new("no-such-program").current_dir("/"));
    assert_eq!(done.status.code(), Some(127));

    // Files in /out reach this machine, and other writes of the guest do not.
    let mark = "/etc/linerate-was-here";
    let done = guest.run(&shell(&format!("echo kept >/out/file; echo x >{mark}; cat {mark}")));
    assert_eq!(done.stdout, b"x\n");
    assert!(!Path::new(mark).exists());
    let file = guest.vm.shared().join("file");
    assert_eq!(std::fs::read(file).unwrap(), b"kept\n");
}

pub(crate) fn command(_: &mut Guest) {
    let linerate = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        let command = command.args(["lab", "vm"]).args(args).current_dir("/");
        command.env("XDG_CACHE_HOME", cache()).output().unwrap()
    };
    let script = "echo $((6 * 7)); echo told >&2; ls /sys/bus/pci/slots | wc -l; exit 5";
    let output = linerate(&["--", "sh", "-c", script]);
    let reported = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.stdout, b"42\n3\n", "{reported}");
    assert_eq!(output.status.code(), Some(3), "{reported}");
    for want in ["TCG", "told\n", "exit status: 5"] {
        assert!(reported.contains(want), "{want}: {reported}");
    }
    let output = linerate(&["--rdma", "--", "rdma", "link"]);
    let links = String::from_utf8_lossy(&output.stdout);
    for port in ["rxe0/1 state ACTIVE", "rxe1/1 state ACTIVE"] {
        assert!(links.contains(port), "{links}");
    }
    // Without a terminal a shell is refused.
    let output = linerate(&[]);
    let reported = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{reported}");
    assert!(reported.contains("needs a terminal") && reported.contains("hint: "), "{reported}");
}

pub(crate) fn ends(guest: &mut Guest) {
    let alive = |guest: &Guest| Path::new(&format!("/proc/{}", guest.vm.pid())).exists();
    assert!(alive(guest));
    let sleep = Program::new("sleep").arg("1000").current_dir("/");
    let late = guest.vm.run(&sleep, Duration::from_secs(1)).unwrap_err();
    assert!(matches!(late, VmError::Late { .. }), "{late}");
    assert!(late.to_string().contains("`sleep`"), "{late}");
    assert!(!alive(guest));

    let mut other = boot(&Spec::default()).unwrap();
    let folder = other.shared();
    let crash = Program::new("sh").args(["-c", "echo c >/proc/sysrq-trigger"]);
    let within = Duration::from_secs(120);
    let died = other.run(&crash.current_dir("/"), within).unwrap_err();
    assert!(matches!(died, VmError::Died { .. }), "{died}");
    assert!(died.to_string().contains("Kernel panic"), "{died}");
    assert!(folder.exists());
    drop(other);
    assert!(!folder.exists());
}
