//! Runs all advised commands in a virtual machine that has the ports and settings that they name: as root, and as a
//! user without rights.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use linerate_lab::Program;
use linerate_lab::vm::{Card, Generation, Kernel, Node, Slot, Spec, Vm};
use linerate_test::skip;
use linerate_units::Bytes;

use super::super::CELLS;
use super::super::machines::machines;
use super::{Advised, all};

const SCRIPT: &str = include_str!("guest.sh");
const WITHIN: Duration = Duration::from_secs(1800);

/// Debian's packages with the advised programs, and with the libraries that these need.
const PACKAGES: [&str; 23] = [
    "dmidecode",
    "ethtool",
    "infiniband-diags",
    "iputils-ping",
    "iputils-tracepath",
    "libcpupower1",
    "libibmad5",
    "libibnetdisc5",
    "libibumad3",
    "libjson-c5",
    "libnvme1",
    "libopensm9",
    "libosmcomp5",
    "libosmvendor5",
    "libpci3",
    "libusb-1.0-0",
    "linux-cpupower",
    "mstflint",
    "nvme-cli",
    "opensm",
    "pciutils",
    "sudo",
    "usbutils",
];

/// Failures that are expected: words of a command, words of its error, and what the guest lacks.
const LACKING: [(&str, &str, &str); 34] = [
    ("ibstat ", "device can't be found", "no InfiniBand"),
    ("speed 1000 duplex half", "Invalid argument", "no such mode"),
    ("lsusb", "/sys/bus/usb", "no USB"),
    ("cpufreq/boost", "boost: ", "no CPU that changes its clock"),
    ("frequency-set", "Setting CPU", "no CPU that changes its clock"),
    ("frequency-set", "policy", "no CPU that changes its clock"),
    ("cpupower -c ", "cpu list", "fewer CPUs"),
    ("idle-set", "idle", "no CPU that rests"),
    ("turbostat", "msr", "no counters of clocks"),
    ("/online", "No such file", "fewer CPUs"),
    ("smt/control", "No such device", "no second threads of cores"),
    ("/nvme-subsystem/", "No such file", "no disk with several paths"),
    ("nvme list-subsys", "scan topology", "no disk with several paths"),
    ("mlx5_core/", "No such file", "no card of that driver"),
    ("/sys/class/infiniband/", "No such file", "no InfiniBand"),
    ("/sys/bus/pci/devices/", "No such file", "no card at that address"),
    (" -C ", "UMAD port", "no InfiniBand"),
    ("linerate fabric", "no InfiniBand device", "no InfiniBand"),
    ("/mode", "Permission denied", "no IP over InfiniBand"),
    ("mtu 65520", "device maximum", "no IP over InfiniBand"),
    ("vf 3", "not supported", "no virtual functions"),
    ("ethtool -m ", "not supported", "no transceiver"),
    ("--engine rdma", "no RDMA device", "no RDMA device"),
    ("rdma link show ", "Wrong device name", "no RDMA device"),
    ("dcb pfc show ", "not supported", "no port with PFC"),
    ("ethtool -l ", "not supported", "a card of one queue"),
    ("ethtool -L ", "not supported", "a card of one queue"),
    ("/rps_cpus", "Value too large", "fewer CPUs"),
    ("kmem.tcp.limit_in_bytes", "No such file", "no such control group"),
    ("rdma statistic show ", "Wrong device name", "no RDMA device"),
    ("/proc/net/bonding/", "No such file", "no bond"),
    ("nf_conntrack_max", "No such file", "no tracking of connections"),
    (" to ADDRESS ", "ADDRESS", "no address that the user puts"),
    // `grep` ends with 2 if a folder is missing, and still shows the matches in the others.
    ("grep -rs ethtool ", "/etc/network/", "not all of the folders"),
];

/// Commands that change nothing in the guest: its card negotiates pauses, and the undo of another advice has already
/// set this.
const IGNORED: [&str; 2] = ["sudo ethtool -A eth0 rx off", "sudo sysctl -w net.ipv4.tcp_sack=0"];

/// Programs of the makers of cards and of radios, and service managers, which the guest lacks, with their errors.
const FOREIGN: [(&str, &str); 6] = [
    ("opafabricinfo", "not found"),
    ("iw dev ", "not found"),
    ("opaportconfig", "not found"),
    ("systemctl", "not been booted with systemd"),
    ("multipath", "not found"),
    ("/etc/opa-fm/", "No such file"),
];

fn machine() -> Spec {
    let node = Node { cpus: 2, memory: Bytes(768 << 20) };
    let card = |node| Slot {
        node: Some(node),
        speed: Generation::Four,
        lanes: 16,
        card: Some(Card::E1000e),
    };
    Spec { nodes: vec![node; 2], distance: 31, slots: vec![card(0), card(1)], ..Spec::default() }
}

/// One advice of those that differ only in numbers of five digits or more: running each takes seconds.
fn one_of_each(all: BTreeMap<Advised, String>) -> BTreeMap<Advised, String> {
    let mut seen = BTreeSet::new();
    let form = |command: &String| {
        let words = command.split(|c: char| !c.is_ascii_digit());
        let long = words.filter(|number| number.len() >= 5);
        long.fold(command.clone(), |text, number| text.replace(number, "N"))
    };
    let mut is_new =
        |advised: &Advised| seen.insert(advised.commands().map(form).collect::<Vec<_>>());
    all.into_iter().filter(|(advised, _)| is_new(advised)).collect()
}

/// Unpacks the files of the packages into a folder; `None` if the packages cannot be downloaded.
fn unpack(folder: &Path) -> Option<()> {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("linerate/packages");
    if !cache.exists() {
        let partial = cache.with_extension(format!("{}", std::process::id()));
        fs::create_dir_all(&partial).ok()?;
        let mut get = Command::new("apt-get");
        let get = get.args(["-qq", "-o", "Acquire::Retries=3", "download"]).args(PACKAGES);
        let fetched = get.current_dir(&partial).status().ok()?;
        fetched.success().then_some(())?;
        fs::rename(&partial, &cache).ok()?;
    }
    for package in fs::read_dir(&cache).ok()?.flatten() {
        let mut dpkg = Command::new("dpkg");
        let done = dpkg.arg("-x").arg(package.path()).arg(folder).status().ok()?;
        done.success().then_some(())?;
    }
    Some(())
}

/// Names of the ports in all cells and machines.
fn names() -> BTreeSet<String> {
    let hosts = CELLS.iter().flat_map(|cell| &cell.model.hosts);
    let mut all: BTreeSet<String> = BTreeSet::new();
    for facts in hosts.map(|host| &host.facts) {
        all.extend(facts.port.iter().map(|port| port.name.clone()));
        let route = facts.route.iter().flat_map(|route| &route.ports);
        all.extend(route.map(|nic| nic.name.clone()));
        let others = facts.route.iter().flat_map(|route| &route.others);
        all.extend(others.map(|other| other.name.clone()));
    }
    let loads = CELLS.iter().flat_map(|cell| &cell.model.directions);
    for made in loads.map(|direction| &direction.base.made) {
        let ends = [&made.sender, &made.receiver].into_iter();
        let ports = ends.filter_map(|end| end.rdma.as_ref()?.netdev.as_ref());
        all.extend(ports.map(|port| port.name.clone()));
    }
    for machine in machines() {
        all.extend(machine.network.nics.into_iter().map(|nic| nic.name));
    }
    all.remove("lo");
    all
}

/// Whether a command contains the name of a port, plain or quoted.
fn mentions(command: &str, name: &str) -> bool {
    let quoted = name.replace('\'', "'\\''");
    let is_end = |c: Option<char>| !c.is_some_and(|c| c.is_ascii_alphanumeric());
    command.match_indices(&quoted).any(|(at, found)| {
        let (before, after) = (&command[..at], &command[at + found.len()..]);
        is_end(before.chars().next_back()) && is_end(after.chars().next())
    })
}

/// IP addresses in commands: those of peers, and source addresses of routes.
fn hosts(advised: &Advised) -> Vec<String> {
    let words = advised.steps.iter().flat_map(|command| command.split([' ', '/', '%']));
    let addresses = words.filter(|word| word.parse::<std::net::IpAddr>().is_ok());
    addresses.map(str::to_owned).collect()
}

/// The command that shows the settings that `command` changes.
fn probe(command: &str) -> Option<String> {
    let after = |start: &str| {
        let (_, rest) = command.split_once(start)?;
        rest.split([' ', ';', '=']).next().map(str::to_owned)
    };
    let of = |start: &str, show: &str| after(start).map(|word| show.replace("{}", &word));
    [
        of("sysctl -w ", "sysctl {}"),
        of("ethtool -K ", "ethtool -k {}"),
        of("ethtool -G ", "ethtool -g {}"),
        of("ethtool -C ", "ethtool -c {}"),
        of("ethtool -A ", "ethtool -a {}"),
        of("ethtool -s ", "ethtool {} | grep -E 'Speed|Duplex|Auto'"),
        of(
            "ip link set dev ",
            "ip -d link show dev {} | grep -oE 'mtu [0-9]+|qlen [0-9]+|xmit_hash_policy [^ ]+'",
        ),
        of("ip link set ", "ip link show dev {} | grep -oE 'mtu [0-9]+'"),
        of("ip route add ", "ip route show {}"),
        of(
            "tc qdisc replace dev ",
            "tc qdisc show dev {} | sed -E 's/(qdisc [a-z_]+) [0-9a-f]+:/\\1/'",
        ),
        of("tc qdisc change dev ", "tc -d qdisc show dev {}"),
        of(
            "tc qdisc del dev ",
            "tc qdisc show dev {} | sed -E 's/(qdisc [a-z_]+) [0-9a-f]+:/\\1/'",
        ),
        command.contains("taskset -acp").then(|| {
            let pid = command.rsplit(' ').next().unwrap_or_default();
            format!("taskset -cp {pid}")
        }),
        command
            .contains("smp_affinity_list")
            .then(|| "grep -H . /proc/irq/*/smp_affinity_list".to_owned()),
        command
            .contains("rps_cpus")
            .then(|| "grep -H . /sys/class/net/*/queues/rx-*/rps_cpus".to_owned()),
        command.contains("/online").then(|| "cat /sys/devices/system/cpu/online".to_owned()),
        of("cpu.max", "cat /sys/fs/cgroup/*/cpu.max"),
    ]
    .into_iter()
    .flatten()
    .next()
}

fn write(folder: &Path, advised: &[&Advised]) {
    let names = names();
    for (number, advised) in advised.iter().enumerate() {
        let folder = folder.join(number.to_string());
        fs::create_dir_all(&folder).unwrap();
        let lines = |lines: &[String]| {
            let ends = |line: &String| [line.as_str(), "\n"].concat();
            lines.iter().map(ends).collect::<Vec<_>>().concat()
        };
        let put = |name: &str, text: String| fs::write(folder.join(name), text).unwrap();
        let wanted = |name: &&String| advised.commands().any(|command| mentions(command, name));
        let ports: Vec<String> = names.iter().filter(wanted).cloned().collect();
        let mut probes: Vec<String> = advised.steps.iter().filter_map(|c| probe(c)).collect();
        probes.dedup();
        put("steps", lines(&advised.steps));
        put("undo", lines(&advised.undo));
        put("ports", lines(&ports));
        put("hosts", lines(&hosts(advised)));
        put("probes", lines(&probes));
    }
}

/// The result of one command: its exit status and its output.
struct Ran {
    number: usize,
    user: String,
    part: String,
    position: usize,
    status: u8,
    words: String,
}

fn results(text: &str) -> Vec<Ran> {
    let ran = |line: &str| {
        let mut fields = line.splitn(6, '\t').map(str::to_owned);
        let mut next = || fields.next().unwrap();
        Ran {
            number: next().parse().unwrap(),
            user: next(),
            part: next(),
            position: next().parse().unwrap(),
            status: next().parse().unwrap(),
            words: next(),
        }
    };
    text.lines().map(ran).collect()
}

impl Ran {
    /// The reason why the command ended so, if that is expected: it is done, or the guest lacks something. `None` if it
    /// failed.
    fn outcome(&self, command: &str) -> Option<String> {
        let words = self.words.as_str();
        if self.status == 0 {
            return Some("done".to_owned());
        }
        // The time limit ended a command that measures or serves.
        if [124, 137].contains(&self.status) && command.contains("linerate ") {
            return Some("runs".to_owned());
        }
        if self.user == "plain" && command.contains("sudo ") && words.contains("sudo: ") {
            return Some("refused by sudo".to_owned());
        }
        if command.contains("| grep ") && words.is_empty() {
            return Some("no line matches".to_owned());
        }
        let lacks = |program: &str, said: &str| command.contains(program) && words.contains(said);
        let foreign = FOREIGN.iter().find(|(program, said)| lacks(program, said));
        if let Some((program, _)) = foreign {
            return Some(format!("the guest lacks {program}"));
        }
        let lacking = LACKING.iter().find(|(part, said, _)| lacks(part, said));
        lacking.map(|(.., what)| format!("the guest has {what}"))
    }
}

/// Whether the undo restored the settings, and whether the steps had changed them; `None` if they cannot be read.
fn restored(folder: &Path) -> Option<(bool, bool)> {
    let [before, during, after] = ["before", "during", "after"].map(|name| {
        let text = fs::read_to_string(folder.join(name)).unwrap_or_default();
        Some(text).filter(|text| !text.is_empty())
    });
    let (before, after) = (before?, after?);
    Some((before == after, Some(before) != during))
}

/// The table of all commands with their outcomes, and the failures.
fn table(shared: &Path, advised: &[(&Advised, &str)]) -> (String, Vec<String>) {
    let text = fs::read_to_string(shared.join("results")).unwrap();
    let (mut lines, mut wrong) = (BTreeSet::new(), Vec::new());
    let mut failed = BTreeSet::new();
    let ran = results(&text);
    for ran in &ran {
        let (advised, of) = advised[ran.number];
        let commands = if ran.part == "steps" { &advised.steps } else { &advised.undo };
        let command = &commands[ran.position];
        let outcome = ran.outcome(command).unwrap_or_else(|| {
            let Ran { user, status, words, .. } = ran;
            wrong.push(format!("{of}, {user}: {command}: {status}: {words}"));
            "WRONG".to_owned()
        });
        if ran.user == "root" && ran.status != 0 {
            failed.insert(ran.number);
        }
        lines.insert(format!("{command}\t{}\t{outcome}", ran.user));
    }
    let (mut read, mut changed) = (0, 0);
    for (number, (advised, of)) in advised.iter().enumerate() {
        let folder = shared.join("advice").join(number.to_string());
        let Some((is_old, was_other)) = restored(&folder).filter(|_| !failed.contains(&number))
        else {
            continue;
        };
        read += 1;
        changed += usize::from(was_other);
        if !is_old && !advised.undo.is_empty() {
            wrong.push(format!("{of}: not undone: {:?}", advised.undo));
        }
        let is_ignored = advised.steps.iter().any(|step| IGNORED.contains(&step.as_str()));
        if !was_other && !advised.undo.is_empty() && !is_ignored {
            wrong.push(format!("{of}: changed nothing: {:?}", advised.steps));
        }
    }
    let mut table = String::new();
    for line in &lines {
        let _ = writeln!(table, "{line}");
    }
    let _ = writeln!(table, "read back after the undo: {read}, other before it: {changed}");
    // The guest must have been able to read the settings of several advices.
    assert!(read > 15, "{table}");
    let all: BTreeSet<usize> = ran.iter().map(|ran| ran.number).collect();
    assert_eq!(all.len(), advised.len(), "each was run");
    (table, wrong)
}

mod long {
    use super::*;

    #[test]
    fn every_advised_command_runs_as_it_stands() {
        let all = one_of_each(all());
        let advised: Vec<(&Advised, &str)> = all.iter().map(|(a, of)| (a, of.as_str())).collect();
        let kernels = Path::new(env!("CARGO_TARGET_TMPDIR")).join("linerate/kernels");
        let booted = Kernel::find(&kernels).and_then(|kernel| Vm::boot(&machine(), &kernel));
        let mut vm = match booted {
            Ok(vm) => vm,
            Err(error) => return skip("qemu", &format!("this needs a virtual machine: {error}")),
        };
        let shared = vm.shared();
        let packages = shared.join("packages");
        fs::create_dir(&packages).unwrap();
        if unpack(&packages).is_none() {
            return skip("packages", "Debian's packages of the advised programs are out of reach");
        }
        fs::copy(env!("CARGO_BIN_EXE_linerate"), shared.join("linerate")).unwrap();
        let commands: Vec<&Advised> = advised.iter().map(|(advised, _)| *advised).collect();
        write(&shared.join("advice"), &commands);
        fs::write(shared.join("script"), SCRIPT).unwrap();
        let program = Program::new("bash").arg("/out/script").current_dir("/");
        let done = vm.run(&program, WITHIN).unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let (table, wrong) = table(&shared, &advised);
        println!("{table}");
        let log = fs::read_to_string(shared.join("log")).unwrap_or_default();
        assert!(wrong.is_empty(), "{}\n{log}", wrong.join("\n"));
    }
}
