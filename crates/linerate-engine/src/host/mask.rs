//! A capture that may be given away: names, addresses and serial numbers are taken out.

use linerate_core::facts::machine::CLOUD_TAGS;
use linerate_core::parse::{smbios, sysctl};

use super::{Answer, Captured};

const MASKED: &[u8] = b"masked\n";

impl Captured {
    /// Overwrites the host's name, names and memory addresses of processes, addresses in the names
    /// of ports, what is mounted beside cgroups, and serial numbers.
    pub fn mask(&mut self) {
        for (path, answers) in &mut self.files {
            for answer in answers {
                if let Answer::Reply(text) = answer {
                    mask(path, text);
                }
            }
        }
        for answer in self.lists.values_mut().flatten() {
            if let Answer::Reply(names) = answer {
                names.iter_mut().for_each(mask_name);
            }
        }
    }
}

fn mask(path: &str, text: &mut Vec<u8>) {
    match path {
        "/proc/sys/kernel/hostname" => *text = MASKED.to_vec(),
        "/proc/cpuinfo" => keep_lines(text, |line| !line.starts_with(b"Serial")),
        "/proc/self/mountinfo" => {
            keep_lines(text, |line| line.windows(9).any(|w| w == b" - cgroup"));
        }
        "/sys/class/dmi/id/chassis_asset_tag" => {
            let tag = sysctl::line(text);
            if CLOUD_TAGS.iter().all(|(known, _)| *known != tag) {
                *text = MASKED.to_vec();
            }
        }
        _ if path.starts_with("/sys/firmware/dmi/") => smbios::mask(text),
        _ if path.starts_with("/proc/") && path.ends_with("/stat") => mask_process(text),
        _ => {}
    }
}

fn keep_lines(text: &mut Vec<u8>, keep: impl Fn(&[u8]) -> bool) {
    let lines = text.split_inclusive(|&b| b == b'\n');
    *text = lines.filter(|line| keep(line)).collect::<Vec<_>>().concat();
}

/// The name of a process stands in brackets; behind it, by their numbers in proc(5), stand fields
/// that tell where its memory lies.
fn mask_process(text: &mut Vec<u8>) {
    let open = text.iter().position(|&b| b == b'(');
    let close = text.iter().rposition(|&b| b == b')');
    let (Some(open), Some(close)) = (open, close) else {
        return;
    };
    let fields = text[close + 1..].split(|&b| b == b' ').enumerate();
    let fields = fields.map(|(at, field)| match at + 2 {
        26..=30 | 45..=51 => b"0",
        _ => field,
    });
    let tail = fields.collect::<Vec<&[u8]>>().join(&b' ');
    let head = text.get(..=open).unwrap_or_default();
    *text = [head, b"masked)", &tail].concat();
}

/// `enx` and twelve digits: a port that is named after its address.
fn mask_name(name: &mut String) {
    let digits = name.strip_prefix("enx");
    if digits.is_some_and(|d| d.len() == 12 && d.bytes().all(|b| b.is_ascii_hexdigit())) {
        "enxmasked".clone_into(name);
    }
}

#[cfg(test)]
mod tests {
    use crate::host::testing::Fake;

    fn file(path: &str, text: &str) -> String {
        let mut fake = Fake::default().file(path, &[text]).0;
        fake.mask();
        match &fake.files[path][0] {
            super::Answer::Reply(text) => String::from_utf8(text.clone()).unwrap(),
            super::Answer::Failed(_) => unreachable!("a reply"),
        }
    }

    #[test]
    fn names_and_numbers_of_one_machine_go_and_the_rest_stays() {
        assert_eq!(file("/proc/sys/kernel/hostname", "brook\n"), "masked\n");
        assert_eq!(
            file("/proc/7/stat", "7 (secret) x) R 1\n"),
            "7 (masked) R 1\n"
        );
        let fields: Vec<String> = (3..=52).map(|n| n.to_string()).collect();
        let masked = file("/proc/7/stat", &format!("7 (a) {}\n", fields.join(" ")));
        assert!(masked.starts_with("7 (masked) 3 4 "), "{masked}");
        assert!(masked.contains(" 25 0 0 0 0 0 31 "), "{masked}");
        assert!(masked.ends_with(" 44 0 0 0 0 0 0 0 52\n"), "{masked}");
        assert_eq!(file("/proc/stat", "cpu0 1 2\n"), "cpu0 1 2\n");
        assert_eq!(
            file("/proc/cpuinfo", "Model : Pi\nSerial\t: 1000\n"),
            "Model : Pi\n"
        );
        let mounts = "1 1 0:1 / /mnt rw - nfs4 filer:/home rw\n1 1 0:2 / /cg rw - cgroup2 c rw\n";
        assert_eq!(
            file("/proc/self/mountinfo", mounts),
            "1 1 0:2 / /cg rw - cgroup2 c rw\n"
        );
        let tag = "/sys/class/dmi/id/chassis_asset_tag";
        assert_eq!(file(tag, "rack 7\n"), "masked\n");
        assert_eq!(file(tag, "OracleCloud.com\n"), "OracleCloud.com\n");
        let mut fake = Fake::default().list("/a", &["enx0123456789ab", "eth0"]).0;
        fake.mask();
        let names = vec!["enxmasked".to_owned(), "eth0".to_owned()];
        assert_eq!(fake.lists["/a"], [super::Answer::Reply(names)]);
    }
}
