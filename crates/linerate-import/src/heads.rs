//! Completes parts of outputs, as `grep` and `cat` leave them. The command shows what a part is; its line is replaced
//! by the first line that the whole output would have.

use crate::reading::{command, program};
use std::borrow::Cow;

/// Longest part in lines.
const MOST_LINES: usize = 200;
/// Largest number of parts that get a first line.
const MOST_HEADS: usize = 1_000;
/// Name of a device if the command names none.
const NAMELESS: &str = "HCA";

/// Options of ethtool, with the first line of the output of each.
const ETHTOOL: &[(&[&str], &str)] = &[
    (&["-k", "--show-features", "--show-offload"], "Features for "),
    (&["-g", "--show-ring"], "Ring parameters for "),
    (&["-l", "--show-channels"], "Channel parameters for "),
    (&["-c", "--show-coalesce"], "Coalesce parameters for "),
    (&["-a", "--show-pause"], "Pause parameters for "),
    (&["-S", "--statistics"], "NIC statistics: "),
];

/// The text, in which each part that lacks its first line has one. The number of lines does not change.
pub(crate) fn with_heads(text: &str, is_known: impl Fn(&str) -> bool) -> Cow<'_, str> {
    const PROGRAMS: [&str; 6] =
        ["ethtool ", "ibstat", "perfquery ", "lscpu", "cat /", "sysctl -n "];
    if !PROGRAMS.iter().any(|program| text.contains(program)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let (mut done, mut heads) = (0, 0);
    let mut lines = text.split_inclusive('\n').scan(0, |at, line| {
        *at += line.len();
        Some((*at, line))
    });
    while let Some((end, line)) = lines.next() {
        let rest = &text[end..];
        let part = typed(line).filter(|_| !is_known(rest));
        let Some((head, value)) = part.and_then(|command| head(command, rest)) else {
            continue;
        };
        heads += 1;
        if heads > MOST_HEADS {
            break;
        }
        out.push_str(&text[done..end - line.len()]);
        out.push_str(&head);
        out.push('\n');
        done = end;
        if let Some(value) = value
            && let Some((end, _)) = lines.next()
        {
            out.push_str(&value);
            out.push('\n');
            done = end;
        }
    }
    out.push_str(&text[done..]);
    if done == 0 { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

/// The command in a line: after a prompt, or the whole line.
fn typed(line: &str) -> Option<&str> {
    let line = line.trim();
    let bare = |line: &&str| {
        let first = line.split(' ').next().unwrap_or_default();
        ["ethtool", "ibstat", "lscpu", "cat", "sysctl", "sudo"].contains(&first)
    };
    command(line).or(Some(line).filter(bare))
}

/// The first line for the part after a command. For a single value, also the line that replaces the value.
fn head(command: &str, rest: &str) -> Option<(String, Option<String>)> {
    // The command may be `sleep 600; perfquery 318 1 | grep Err`. A further command after the filter prints something
    // else.
    let (all, filter) = command.split_once('|').unwrap_or((command, ""));
    if filter.contains([';', '&']) {
        return None;
    }
    let one = all.split([';', '&']).next_back()?.trim();
    let one = one.strip_prefix("sudo ").unwrap_or(one);
    let mut words = one.split_whitespace();
    match words.next()? {
        "cat" => value(words.next().filter(|_| words.next().is_none())?, rest.lines().next()?),
        "sysctl" if words.next() == Some("-n") => {
            let name = words.next().filter(|name| name.starts_with("net."))?;
            setting(name, rest.lines().next()?)
        }
        _ => part(one, rest).map(|head| (head, None)),
    }
}

fn part(command: &str, rest: &str) -> Option<String> {
    let lines = || {
        let lines = rest.lines().take(MOST_LINES);
        lines.take_while(|line| !line.trim().is_empty() && typed(line).is_none())
    };
    // A line of prose is not a part of an output.
    lines().next().filter(|line| line.contains(':'))?;
    let mut words = command.split_whitespace().skip(1);
    match program(command)? {
        "ethtool" => {
            let first = words.next()?;
            if !first.starts_with('-') {
                return is_one(lines(), &["Speed:", "Duplex:"])
                    .then(|| format!("Settings for {first}:"));
            }
            let (_, start) = ETHTOOL.iter().find(|(names, _)| names.contains(&first))?;
            let end = if first.contains('S') || first.contains("statistics") { "" } else { ":" };
            Some(format!("{start}{}{end}", words.next()?))
        }
        "ibstat" => {
            let name = words.next().unwrap_or(NAMELESS);
            is_one(lines(), &["State:", "Rate:", "Port "]).then(|| format!("CA '{name}' port 1"))
        }
        "perfquery" => {
            let number = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
            let (lid, port) = (words.next()?, words.next()?);
            (number(lid) && number(port)).then(|| format!("# Port counters: Lid {lid} port {port}"))
        }
        "lscpu" => Some("Architecture: unknown".to_owned()),
        _ => None,
    }
}

/// Whether lines are about one device: no key occurs twice.
fn is_one<'a>(lines: impl Iterator<Item = &'a str>, keys: &[&str]) -> bool {
    let mut seen = vec![false; keys.len()];
    for line in lines {
        let found = keys.iter().position(|key| line.trim_start().starts_with(key));
        if let Some(at) = found
            && std::mem::replace(&mut seen[at], true)
        {
            return false;
        }
    }
    true
}

/// Lines for the value of a file of the kernel, as the program that reads this value would print it.
fn value(path: &str, value: &str) -> Option<(String, Option<String>)> {
    if let Some(name) = path.strip_prefix("/proc/sys/net/") {
        return setting(&format!("net.{}", name.replace('/', ".")), value);
    }
    let mut parts = path.strip_prefix("/sys/class/")?.split('/');
    let (class, name) = (parts.next()?, parts.next()?);
    let rest: Vec<&str> = parts.collect();
    let value = value.trim();
    match (class, &rest[..]) {
        ("net", ["speed"]) => {
            Some((format!("Settings for {name}:"), Some(format!("\tSpeed: {value}Mb/s"))))
        }
        ("infiniband", ["ports", number, what @ ("rate" | "state")]) => {
            let head = format!("Infiniband device '{name}' port {number} status:");
            Some((head, Some(format!("\t{what}: {value}"))))
        }
        _ => None,
    }
}

fn setting(name: &str, value: &str) -> Option<(String, Option<String>)> {
    let is_value = !value.trim().is_empty() && command(value).is_none();
    is_value.then(|| (String::new(), Some(format!("{name} = {}", value.trim()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str) -> String {
        with_heads(text, |rest| rest.starts_with("Settings for ")).into_owned()
    }

    #[test]
    fn a_part_has_the_first_line_of_its_output() {
        for (command, head, line) in [
            ("$ ethtool eth0 | grep Speed", "Settings for eth0:", "\tSpeed: 10Mb/s"),
            ("sudo ethtool eth0", "Settings for eth0:", "\tSpeed: 10Mb/s"),
            ("# ethtool -k eth0 | grep tcp", "Features for eth0:", "tcp-x: off"),
            ("$ ethtool -S eth0|grep drop", "NIC statistics: eth0", "  rx_drops: 1"),
            ("$ ibstat mlx5_1 | grep Rate", "CA 'mlx5_1' port 1", "Rate: 100"),
            ("$ ibstat | grep Rate", "CA 'HCA' port 1", "Rate: 100"),
            ("$ lscpu | grep CPU", "Architecture: unknown", "CPU(s): 8"),
            (
                "# sleep 9; perfquery 7 1 | grep Err",
                "# Port counters: Lid 7 port 1",
                "PortRcvErrors:..8",
            ),
        ] {
            let text = format!("a\n{command}\n{line}\nb\n");
            assert_eq!(with(&text), format!("a\n{head}\n{line}\nb\n"));
        }
    }

    #[test]
    fn a_value_is_that_of_the_file_or_the_setting() {
        for (command, value, lines) in [
            ("cat /proc/sys/net/ipv4/tcp_rmem", "4096\t8\t9", "\nnet.ipv4.tcp_rmem = 4096\t8\t9"),
            ("sysctl -n net.core.rmem_max", "212992", "\nnet.core.rmem_max = 212992"),
            ("cat /sys/class/net/eth0/speed", "100", "Settings for eth0:\n\tSpeed: 100Mb/s"),
            (
                "cat /sys/class/infiniband/mlx5_0/ports/2/rate",
                "40 Gb/sec (4X QDR)",
                "Infiniband device 'mlx5_0' port 2 status:\n\trate: 40 Gb/sec (4X QDR)",
            ),
        ] {
            assert_eq!(with(&format!("$ {command}\n{value}\nx")), format!("{lines}\nx"));
        }
    }

    #[test]
    fn whole_outputs_other_files_and_words_stay() {
        for same in [
            "$ ethtool eth0\nSettings for eth0:\n\tSpeed: 10Mb/s\n",
            "$ ethtool eth0\nno such device\n",
            "$ ethtool -k\n a: b\n",
            "$ ethtool --set-eee eth0\n a: b\n",
            "$ ibstat | grep -e State -e Rate\nState: Active\nRate: 10\nState: Down\nRate: 40\n",
            "$ cat /proc/sys/net/ipv4/tcp_rmem\n$ ls\n",
            "$ cat /sys/class/net/eth0/mtu\n9000\n",
            "$ cat /proc/sys/net/a /proc/sys/net/b\n1\n2\n",
            "cat /proc/sys/kernel/x\n1\n",
            "$ ethtool -S eth0 | grep drop; ethtool -S eth1 | grep drop\n  rx_drops: 1\n  rx_drops: 2\n",
            "$ ethtool eth0 | grep Speed && ethtool eth1 | grep Speed\n\tSpeed: 10Mb/s\n",
            "$ ethtool eth0",
            "$ sysctl -n net.core.rmem_max",
        ] {
            assert_eq!(with(same), same);
        }
    }
}
