//! Programs and kernel modules that the commands of an advice need and a machine may not have.

use super::Advice;

/// Programs, each with the Debian package that contains it.
const TOOLS: [(&str, &str); 19] = [
    ("cpupower", "linux-cpupower"),
    ("dcb", "iproute2"),
    ("dmidecode", "dmidecode"),
    ("ethtool", "ethtool"),
    ("ibportstate", "infiniband-diags"),
    ("ibstat", "infiniband-diags"),
    ("iblinkinfo", "infiniband-diags"),
    ("iw", "iw"),
    ("lspci", "pciutils"),
    ("lsusb", "usbutils"),
    ("mstflint", "mstflint"),
    ("multipath", "multipath-tools"),
    ("nstat", "iproute2"),
    ("numactl", "numactl"),
    ("nvme", "nvme-cli"),
    ("opensm", "opensm"),
    ("perfquery", "infiniband-diags"),
    ("sminfo", "infiniband-diags"),
    ("turbostat", "linux-cpupower"),
];

/// Words in commands, each with the kernel module that provides the named algorithm or queue.
const MODULES: [(&str, &str); 4] =
    [("bbr", "tcp_bbr"), ("cake", "sch_cake"), ("fq", "sch_fq"), ("fq_codel", "sch_fq_codel")];

impl Advice {
    /// What the commands of the advice need and a machine may not have: programs with their Debian packages, kernel
    /// modules.
    pub fn needs(&self) -> Vec<String> {
        let steps = self.steps.iter().chain(&self.undo);
        let lines: Vec<&str> = steps.map(|step| step.command.as_str()).collect();
        let called = |tool: &str| lines.iter().any(|line| calls(line).any(|call| call == tool));
        let programs = TOOLS.iter().filter(|(tool, _)| called(tool));
        let programs = programs.map(|(tool, package)| {
            if tool == package { (*tool).to_owned() } else { format!("{tool} (package {package})") }
        });
        let named = |word: &str| lines.iter().any(|line| line.split([' ', '=']).any(|w| w == word));
        let modules = MODULES.iter().filter(|(word, _)| named(word));
        programs.chain(modules.map(|(_, module)| format!("kernel module {module}"))).collect()
    }
}

/// The programs that a shell line runs.
fn calls(line: &str) -> impl Iterator<Item = &str> {
    let parts = line.split(['|', ';', '&', '(']);
    parts.filter_map(|part| {
        let mut words = part.split_whitespace();
        words.find(|word| !["sudo", "do", "if", "then"].contains(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_those_that_are_called() {
        let tools = |command: &str| {
            let advice = Advice::new("").on(None, command);
            advice.needs()
        };
        assert_eq!(tools("sudo ethtool -K eth0 rx-gro on"), ["ethtool"]);
        assert_eq!(tools("ethtool eth0 | tee link-before.txt"), ["ethtool"]);
        assert_eq!(
            tools("for n in 1 2; do sudo cpupower idle-set -d $n; done"),
            ["cpupower (package linux-cpupower)"]
        );
        assert_eq!(tools("sudo dmesg | grep -i ethtool"), [""; 0]);
        assert_eq!(
            tools("sudo ip link set $(ibstat -p) mtu 9000; iw dev x link"),
            ["ibstat (package infiniband-diags)", "iw"]
        );
        assert_eq!(
            tools("sudo tc qdisc replace dev eth0 root cake bandwidth 1mbit"),
            ["kernel module sch_cake"]
        );
        assert_eq!(tools(""), [""; 0]);
    }

    #[test]
    fn an_undo_needs_its_programs_too() {
        let advice = Advice::new("").undo_on(None, "sudo ethtool -s eth0 autoneg on");
        assert_eq!(advice.needs(), ["ethtool"]);
    }
}
