//! Reads file systems mounted from other hosts: `mount`, `nfsstat -m`, `/proc/mounts`.

use linerate_facts::block::{FileSystem, MOUNT_OPTIONS};

use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section, Start};
use crate::reading::{MOST, command, head};

pub(crate) static MOUNTS: Format = Format {
    id: "mounts",
    label: "mount, nfsstat -m, /proc/mounts",
    versions: "util-linux 2, nfs-utils 1 and 2",
    evidence: "run here: mount of util-linux 2.38; published: nfsstat -m: form by the source of nfs-utils 2.6",
    unknown: "What the server of the files allows, and what the mount carries.",
    starts,
    read,
    ..Format::FACTS
};

/// Kinds of file systems on other hosts whose options are read.
const KINDS: [&str; 4] = ["nfs", "nfs4", "cifs", "smb3"];
/// Largest number of words that are read of a line.
const MOST_WORDS: usize = 16;

fn starts(Start { text, line, next }: Start<'_>) -> bool {
    let is_far = mounted(line).is_some_and(|fs| KINDS.contains(&fs.kind.as_str()));
    // A complete list begins with file systems of the host itself.
    let has_far = || {
        head(text)
            .lines()
            .take_while(|line| mounted(line).is_some())
            .any(|line| line.contains(" nfs") || line.contains(" cifs "))
    };
    is_far || point(line).is_some() && flags(next).is_some() || mounted(line).is_some() && has_far()
}

/// Reads `nas:/a on /mnt/a type nfs4 (rw,vers=4.2)` or `nas:/a /mnt/a nfs4 rw,vers=4.2 0 0`.
fn mounted(line: &str) -> Option<FileSystem> {
    // This quick test excludes most lines.
    if !line.contains('/') {
        return None;
    }
    let words: Vec<&str> = line.split_whitespace().take(MOST_WORDS).collect();
    let (point, kind, options) = match words.as_slice() {
        [_, "on", point, "type", kind, options, ..] => (point, kind, options.strip_prefix('(')?),
        // findmnt prints `/mnt/a nas:/a nfs4 rw,vers=4.2`, with characters of a tree.
        [point, from, kind, options] if from.contains(":/") => (point, kind, *options),
        [_, point, kind, options] | [_, point, kind, options, _, _] => (point, kind, *options),
        _ => return None,
    };
    let is_kind = kind.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    let is_options = ["rw", "ro", "defaults", "_netdev", "noatime", "vers"]
        .iter()
        .any(|first| options.starts_with(first));
    let point = point.trim_start_matches(['├', '└', '─', '│', '|', '`', '-']);
    (point.starts_with('/') && is_kind && (is_options || KINDS.contains(kind))).then(|| {
        FileSystem {
            point: point.to_owned(),
            kind: (*kind).to_owned(),
            device: String::new(),
            options: telling(options.trim_end_matches(')')),
        }
    })
}

/// The mount point in a line such as `/mnt/a from nas:/a`.
fn point(line: &str) -> Option<&str> {
    let (point, from) = line.trim().split_once(" from ")?;
    (point.starts_with('/') && from.contains(":/")).then_some(point)
}

/// The options in a line such as ` Flags: rw,vers=4.2,rsize=1048576`.
fn flags(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("Flags:").map(str::trim)
}

/// The options on which the speed depends. Names and addresses are left out.
fn telling(options: &str) -> Vec<String> {
    let tells = |option: &&str| {
        let name = option.split('=').next().unwrap_or_default();
        MOUNT_OPTIONS.contains(&name)
    };
    options.split(',').filter(tells).map(str::to_owned).collect()
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let is_other = |line: &str| {
        let known = mounted(line).is_some() || point(line).is_some() || flags(line).is_some();
        command(line).is_some() || !(known || line.trim().is_empty())
    };
    let mut reading = Reading::until(section, is_other);
    let mut waiting = None;
    for line in std::mem::take(&mut reading.lines) {
        let found = match (mounted(line.text), flags(line.text)) {
            (Some(found), _) => found,
            (None, Some(options)) => {
                let Some(point) = waiting.take() else {
                    reading.strange(line);
                    continue;
                };
                FileSystem {
                    point,
                    kind: kind(options).to_owned(),
                    device: String::new(),
                    options: telling(options),
                }
            }
            (None, None) => {
                waiting = point(line.text).map(str::to_owned);
                continue;
            }
        };
        let filesystems = &mut reading.facts.storage.filesystems;
        if KINDS.contains(&found.kind.as_str()) && filesystems.len() < MOST {
            filesystems.push(found);
        }
    }
    reading.found("mount")
}

/// The kind of file system, from the version of NFS in the options.
fn kind(options: &str) -> &'static str {
    let is_old = options.split(',').any(|option| option == "vers=3" || option == "vers=2");
    if is_old { "nfs" } else { "nfs4" }
}

#[cfg(test)]
mod tests {
    use super::super::super::samples::{merged, of, words};

    #[test]
    fn options_of_far_file_systems_are_facts_without_addresses() {
        let (all, notes) = of(&["mounts/mount.txt"]);
        assert_eq!(words(&notes), [""; 0]);
        let far: Vec<&str> = all.storage.filesystems.iter().map(|fs| fs.point.as_str()).collect();
        assert_eq!(far, ["/mnt/data", "/mnt/share"]);
        let options = all.storage.filesystems[0].options.join(" ");
        assert_eq!(options, "vers=4.2 rsize=1048576 wsize=1048576 proto=tcp nconnect=4 sec=sys");
    }

    #[test]
    fn each_way_to_list_a_mount_has_the_same_options() {
        let options = "rw,relatime,vers=3,rsize=32768,wsize=32768,hard,proto=tcp,addr=192.0.2.1";
        for text in [
            format!("nas:/a on /mnt/a type nfs ({options})\n"),
            format!("nas:/a /mnt/a nfs {options} 0 0\n"),
            format!("/mnt/a from nas:/a\n Flags:\t{options}\n"),
            format!("└─/mnt/a nas:/a nfs {options}\n"),
        ] {
            let (all, _) = merged(&[&text]);
            let [one] = all.storage.filesystems.as_slice() else {
                panic!("{text}");
            };
            assert_eq!((one.point.as_str(), one.kind.as_str()), ("/mnt/a", "nfs"), "{text}");
            assert_eq!(one.options, ["vers=3", "rsize=32768", "wsize=32768", "proto=tcp"]);
        }
    }

    #[test]
    fn prose_is_no_mount() {
        for text in [
            "it is mounted on /mnt type nfs\n",
            "data from nas:/a\n",
            "/dev/sda1 on / type ext4 (rw,relatime)\n",
        ] {
            assert!(crate::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
