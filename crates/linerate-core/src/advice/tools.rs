//! Programs that commands of an advice need, and that a machine may lack.

use super::Advice;

/// Programs, each with the Debian package that has it.
const TOOLS: [(&str, &str); 17] = [
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
    ("nvme", "nvme-cli"),
    ("opensm", "opensm"),
    ("perfquery", "infiniband-diags"),
    ("sminfo", "infiniband-diags"),
];

impl Advice {
    /// The programs that its commands call and a machine may lack, each with its Debian package, in the order of the table.
    pub fn tools(&self) -> Vec<(&'static str, &'static str)> {
        let commands = self.steps.iter().chain(&self.undo);
        let called: Vec<&str> = commands.flat_map(|step| calls(&step.command)).collect();
        let needed = TOOLS.iter().filter(|(tool, _)| called.contains(tool));
        needed.copied().collect()
    }
}

/// The programs that a line of a shell calls.
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
            advice
                .tools()
                .into_iter()
                .map(|(tool, _)| tool)
                .collect::<Vec<_>>()
        };
        assert_eq!(tools("sudo ethtool -K eth0 rx-gro on"), ["ethtool"]);
        assert_eq!(tools("ethtool eth0 | tee link-before.txt"), ["ethtool"]);
        assert_eq!(
            tools("for n in 1 2; do sudo cpupower idle-set -d $n; done"),
            ["cpupower"]
        );
        assert_eq!(tools("sudo dmesg | grep -i ethtool"), [""; 0]);
        assert_eq!(
            tools("sudo ip link set $(ibstat -p) mtu 9000; iw dev x link"),
            ["ibstat", "iw"]
        );
        assert_eq!(tools(""), [""; 0]);
    }

    #[test]
    fn an_undo_needs_its_programs_too() {
        let advice = Advice::new("").undo_on(None, "sudo ethtool -s eth0 autoneg on");
        assert_eq!(advice.tools(), [("ethtool", "ethtool")]);
    }
}
