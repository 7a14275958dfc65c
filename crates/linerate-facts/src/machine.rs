//! The kind of machine: physical, virtual or a container.

use linerate_units::Bytes;

/// A machine as a whole: its names, its kind and its limits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Machine {
    /// Name of the host.
    pub name: String,
    /// Release of the kernel.
    pub kernel: String,
    /// The maker of the machine, as its firmware reports it.
    pub vendor: String,
    /// The machine's model, as its firmware reports it: `PowerEdge R910`, `m5.large`.
    pub product: String,
    /// What the machine is: hardware, or a guest of a hypervisor.
    pub platform: Platform,
    /// The kind of container that this process runs in; `None` if there are no signs of one.
    pub container: Option<String>,
    /// CPU time that the quota of linerate's cgroup allows, in CPUs; `None` when there is no quota.
    pub cpu_quota: Option<f64>,
    /// CPUs that this process may run on; empty when unknown.
    pub cpus_allowed: Vec<u32>,
    /// Memory that linerate's cgroup allows; `None` when there is no limit.
    pub memory_limit: Option<Bytes>,
    /// The clock source that the kernel uses.
    pub clock_source: String,
}

/// What a machine is: hardware, or a guest of a hypervisor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Platform {
    /// Whether the machine is a guest of a hypervisor; `None` when unknown.
    pub guest: Option<bool>,
    /// Name of the hypervisor; empty when there is none or its name is unknown.
    pub hypervisor: &'static str,
    /// Name of the cloud; empty when there is none or its name is unknown.
    pub cloud: &'static str,
}

/// How the firmware describes the machine; fields are empty if there is no firmware description.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Firmware {
    /// Maker of the machine (`sys_vendor`).
    pub vendor: String,
    /// Model of the machine (`product_name`).
    pub product: String,
    /// Asset tag (`chassis_asset_tag`), by which some clouds identify themselves.
    pub tag: String,
}

/// Asset tags that a cloud gives to all of its machines, so that they identify no single machine.
pub const CLOUD_TAGS: [(&str, &str); 2] =
    [("7783-7084-3265-9085-8269-3286-77", "Azure"), ("OracleCloud.com", "Oracle Cloud")];

const CLOUDS: [(&str, &str); 8] = [
    ("Amazon EC2", "AWS"),
    ("Google", "Google Cloud"),
    ("Alibaba Cloud", "Alibaba Cloud"),
    ("DigitalOcean", "DigitalOcean"),
    ("Hetzner", "Hetzner Cloud"),
    ("Vultr", "Vultr"),
    ("Scaleway", "Scaleway"),
    ("OpenStack Foundation", "OpenStack"),
];

const HYPERVISORS: [(&str, &str); 6] = [
    ("QEMU", "QEMU"),
    ("VMware, Inc.", "VMware"),
    ("innotek GmbH", "VirtualBox"),
    ("Xen", "Xen"),
    ("Parallels International GmbH.", "Parallels"),
    ("Bochs", "Bochs"),
];

/// Clock sources that exist only under one hypervisor, with its name.
const CLOCKS: [(&str, &str); 4] = [
    ("kvm-clock", "KVM"),
    ("hyperv_clocksource_tsc_page", "Hyper-V"),
    ("hyperv_clocksource_msr", "Hyper-V"),
    ("xen", "Xen"),
];

impl Platform {
    /// What the machine is, from its firmware, its CPU and the kernel's clock sources. Where possible the CPU alone
    /// decides whether it is a guest: clouds also rent out whole machines, with the same firmware.
    pub fn of(firmware: &Firmware, cpu_says: Option<bool>, clocks: &[String]) -> Self {
        let Firmware { vendor, product, tag } = firmware;
        let by = |table: &[(&str, &'static str)], key: &str| {
            let found = table.iter().find(|(name, _)| *name == key);
            found.map_or("", |(_, is)| is)
        };
        let is_hyper_v = vendor == "Microsoft Corporation" && product == "Virtual Machine";
        let by_firmware = match by(&HYPERVISORS, vendor) {
            "" if is_hyper_v => "Hyper-V",
            "" if product == "KVM" => "KVM",
            name => name,
        };
        let mut by_clock = clocks.iter().map(|clock| by(&CLOCKS, clock));
        let hypervisor = by_clock.find(|name| !name.is_empty()).unwrap_or(by_firmware);
        let cloud = match by(&CLOUD_TAGS, tag) {
            "" => by(&CLOUDS, vendor),
            name => name,
        };
        Self {
            guest: cpu_says.or((!hypervisor.is_empty()).then_some(true)),
            hypervisor: if cpu_says == Some(false) { "" } else { hypervisor },
            cloud,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn firmware_names_and_the_cpu_decides() {
        const PC: &str = "Standard PC (Q35 + ICH9, 2009)";
        const DELL: [&str; 3] = ["Dell Inc.", "PowerEdge R910", ""];
        const AZURE: [&str; 3] = ["Microsoft Corporation", "Virtual Machine", CLOUD_TAGS[0].0];
        let (yes, no) = (Some(true), Some(false));
        for (firmware, cpu_says, guest, hypervisor, cloud) in [
            (DELL, no, no, "", ""),
            (DELL, None, None, "", ""),
            ([""; 3], yes, yes, "", ""),
            (["QEMU", PC, ""], yes, yes, "QEMU", ""),
            (["QEMU", "KVM Virtual Machine", ""], None, yes, "QEMU", ""),
            (["Red Hat", "KVM", ""], yes, yes, "KVM", ""),
            (["Amazon EC2", "m5.large", ""], yes, yes, "", "AWS"),
            (["Amazon EC2", "m5.metal", ""], no, no, "", "AWS"),
            (AZURE, yes, yes, "Hyper-V", "Azure"),
        ] {
            let [vendor, product, tag] = firmware.map(str::to_owned);
            let firmware = Firmware { vendor, product, tag };
            let want = Platform { guest, hypervisor, cloud };
            assert_eq!(Platform::of(&firmware, cpu_says, &[]), want, "{firmware:?}");
        }
    }

    #[test]
    fn a_clock_source_names_the_hypervisor_where_firmware_does_not() {
        let of = |cpu_says, clocks: &[&str]| {
            let clocks: Vec<String> = clocks.iter().map(|&c| c.to_owned()).collect();
            let found = Platform::of(&Firmware::default(), cpu_says, &clocks);
            (found.guest, found.hypervisor)
        };
        assert_eq!(of(Some(true), &["tsc", "kvm-clock"]), (Some(true), "KVM"));
        assert_eq!(of(None, &["xen", "tsc"]), (Some(true), "Xen"));
        assert_eq!(of(None, &["tsc", "hpet"]), (None, ""));
        assert_eq!(of(Some(false), &["kvm-clock"]), (Some(false), ""));
    }
}
