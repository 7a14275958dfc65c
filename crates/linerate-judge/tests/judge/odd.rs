//! Tests of the commands of all oddities: each is complete, can be typed as it is, and can be undone.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use linerate_facts::Inventory;
use linerate_facts::advice::{Advice, Effect};
use linerate_facts::finding::Finding;
use linerate_facts::nic::Nic;
use linerate_facts::odd::find;

use super::machines::{machines, port};

/// The ids that the page about `linerate host` explains.
fn documented() -> BTreeSet<&'static str> {
    let page = include_str!("../../../../docs/host.md");
    let (_, rest) = page.split_once("## Oddities").expect("a heading");
    let (table, _) = rest.split_once("An unknown fact is never odd.").expect("an end");
    let ids = table.lines().filter_map(|row| row.strip_prefix("| `"));
    ids.filter_map(|row| Some(row.split_once('`')?.0)).collect()
}

/// Whether a word is a placeholder that the reader has to replace.
fn is_placeholder(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase())
}

/// Whether a command changes nothing: it needs no root, or only shows something.
fn only_looks(command: &str) -> bool {
    const LOOKS: [&str; 13] = [
        "sudo cat ",
        "sudo cp /etc/opa-fm/opafm.xml opafm-before.xml",
        "sudo dmesg ",
        "sudo ethtool -m ",
        "sudo iblinkinfo ",
        "sudo linerate fabric ",
        "sudo lspci ",
        "sudo mstflint -d 0000:01:00.0 query",
        "sudo multipath -ll",
        "sudo nvme list-subsys",
        "sudo perfquery ",
        "sudo sminfo ",
        "sudo sminfo",
    ];
    let shows = LOOKS.iter().any(|look| command.starts_with(look));
    !command.contains("sudo ") || shows && !command.ends_with(" -R")
}

/// The files in a command that keep an old state.
fn files(command: &str) -> impl Iterator<Item = &str> {
    let words = command.split([' ', ';', ')', '"']);
    words.filter(|word| word.contains("-before."))
}

#[test]
fn what_changes_a_host_can_be_undone() {
    let mut changing = BTreeSet::new();
    for Finding { id, fix, .. } in machines().iter().flat_map(find) {
        for step in fix.steps.iter().filter(|step| !step.command.is_empty()) {
            let looks = step.effect == Effect::Look;
            assert_eq!(only_looks(&step.command), looks, "{id}: {step:?}");
        }
        if fix.is_lost_at_boot() {
            assert!(!fix.undo.is_empty(), "{id}: {fix:?}");
            changing.insert(id);
        }
        for file in fix.undo.iter().flat_map(|step| files(&step.command)) {
            let saved = format!(" {file}");
            let mut steps = fix.steps.iter();
            assert!(steps.any(|step| step.command.ends_with(&saved)), "{fix:?}");
        }
    }
    for id in ["port-speed", "duplex", "irq-remote", "unserved-port"] {
        assert!(changing.contains(id), "{id}: {changing:?}");
    }
}

/// The advice for a port that is slow because it does not negotiate.
fn negotiating(change: impl Fn(&mut Nic)) -> Advice {
    let mut slow = port(3, 1);
    "eth3".clone_into(&mut slow.name);
    slow.link.advertised = vec!["10000baseT/Full".to_owned()];
    slow.link.peer.clone_from(&slow.link.advertised);
    slow.link.autoneg = Some(false);
    change(&mut slow);
    let mut machine = Inventory::default();
    machine.network.nics = vec![slow];
    find(&machine).remove(0).fix
}

#[test]
fn an_old_link_is_restored_from_a_file_where_a_part_of_it_is_unknown() {
    let known = negotiating(|_| ());
    assert_eq!(known.steps.len(), 1, "{known:?}");
    assert_eq!(known.undo[0].command, "sudo ethtool -s eth3 autoneg off speed 1000 duplex full");
    let unknown: [fn(&mut Nic); 2] = [|nic| nic.link.autoneg = None, |nic| nic.link.duplex = None];
    for change in unknown {
        let advice = negotiating(change);
        assert_eq!(advice.steps[0].command, "ethtool eth3 | tee link-before.txt");
        let restored = |shown: &str| {
            let undo = advice.undo[0].command.replace("link-before.txt", "-");
            shell(&["-c", &format!("sudo() {{ echo \"$@\"; }}; {undo}")], shown)
        };
        let shown =
            "Settings for eth3:\n\tSpeed: 1000Mb/s\n\tDuplex: Full\n\tAuto-negotiation: off\n";
        let old = "ethtool -s eth3 autoneg off speed 1000 duplex full\n";
        assert_eq!(restored(shown), old);
        let on = shown.replace("off", "on");
        assert_eq!(restored(&on), "ethtool -s eth3 autoneg on\n");
        let dark = "\tSpeed: Unknown!\n\tDuplex: Unknown! (255)\n\tAuto-negotiation: off\n";
        assert_eq!(restored(dark), "ethtool -s eth3 autoneg off\n");
    }
}

/// The output of a shell that reads `input`.
fn shell(args: &[&str], input: &str) -> String {
    let mut shell = Command::new("sh");
    let pipes = [Stdio::piped(), Stdio::piped(), Stdio::piped()];
    let [stdin, stdout, stderr] = pipes;
    let shell = shell.args(args).stdin(stdin).stdout(stdout).stderr(stderr);
    let mut shell = shell.spawn().expect("a shell");
    let mut pipe = shell.stdin.take().expect("a pipe");
    pipe.write_all(input.as_bytes()).expect("it reads");
    drop(pipe);
    let output = shell.wait_with_output().expect("an end");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}\n{input}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn every_command_is_whole_and_parses() {
    let mut ids = BTreeSet::new();
    let mut script = String::new();
    for odd in machines().iter().flat_map(find) {
        ids.insert(odd.id);
        assert!(!odd.fix.what.is_empty() && !odd.fix.what.ends_with('.'), "{odd:?}");
        for step in odd.fix.steps.iter().chain(&odd.fix.undo) {
            let command = &step.command;
            assert!(!command.contains('\n') && command.len() < 4096, "{command}");
            // Text that `ibstat` prints, and a word of awk, are no placeholders.
            let words = command.replace("/Port GUID/", "").replace("END {", "");
            let words = words.replace('/', " ");
            let words = words.split([' ', '<', '>']);
            let mut values = words.filter_map(|word| word.rsplit('=').next());
            assert!(!values.any(is_placeholder), "{command}");
            // A shell must not run anything in a quoted name.
            let quoted = command.replace("'e$(reboot);'\\''x", "");
            assert!(!quoted.contains("reboot"), "{command}");
            script.push_str(command);
            script.push('\n');
        }
    }
    assert_eq!(ids, documented());
    shell(&["-n"], &script);
}
