//! A disk that is overwritten: only one that the user names twice, and that nothing else uses.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use linerate_facts::parse::mounts::{self, Mount};
use rustix::fs::{OFlags, major, minor};
use rustix::io::Errno;

use super::target::failed;
use crate::LoadError;

const STOP_USE: &str =
    "unmount it, and stop what uses it (`lsblk` shows both), or name another disk";

/// Disks that this program writes, by number. Each is opened once: nobody else can use it until the program ends.
static CLAIMED: Mutex<Vec<(u64, File)>> = Mutex::new(Vec::new());

/// A disk or one of its partitions.
#[derive(Debug, Default)]
struct Part {
    /// Major and minor number, as in `8:1`.
    number: String,
    /// Devices of the kernel that are made of it.
    holders: Vec<String>,
}

/// Opens a disk to be overwritten past the page cache, if nothing uses it or one of its partitions.
pub(super) fn claim(path: &str, about: &Metadata) -> Result<File, LoadError> {
    let mut all = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
    let open = |file: &File| file.try_clone().map_err(|e| failed("cannot be opened", path, &e));
    if let Some((_, file)) = all.iter().find(|(number, _)| *number == about.rdev()) {
        return open(file);
    }
    let parts = parts(&number(about)).map_err(|e| failed("cannot be looked up in /sys", path, &e));
    let (mounts, swaps) = (std::fs::read("/proc/self/mountinfo"), read("/proc/swaps"));
    let mounts = mounts.and_then(|text| mounts::parse(&text).map_err(io::Error::other));
    let mounts = mounts.map_err(|e| failed("may be mounted: /proc/self/mountinfo", path, &e))?;
    let swaps = swaps.map_err(|e| failed("may be swap: /proc/swaps", path, &e))?;
    if let Some(user) = user(&parts?, &mounts, &swaps, &|source| {
        std::fs::metadata(source).ok().map(|about| number(&about))
    }) {
        let what = format!("{path} is not overwritten: {user}");
        return Err(LoadError::Failed { what, hint: STOP_USE });
    }
    let flags = (OFlags::EXCL | OFlags::DIRECT).bits() as i32;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
    let file = file.map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::BUSY) => LoadError::Failed {
            what: format!("{path} is not overwritten: something uses it ({error})"),
            hint: STOP_USE,
        },
        _ => failed("cannot be written", path, &error),
    })?;
    let opened = open(&file);
    all.push((about.rdev(), file));
    opened
}

fn number(about: &Metadata) -> String {
    format!("{}:{}", major(about.rdev()), minor(about.rdev()))
}

fn read(path: &str) -> io::Result<String> {
    match std::fs::read_to_string(path) {
        // A kernel without swap.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        text => text,
    }
}

/// The disk with this number and its partitions.
fn parts(number: &str) -> io::Result<Vec<Part>> {
    let folder = Path::new("/sys/dev/block").join(number).canonicalize()?;
    let mut parts = vec![part(&folder)?];
    for entry in std::fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.join("partition").exists() {
            parts.push(part(&path)?);
        }
    }
    Ok(parts)
}

fn part(folder: &Path) -> io::Result<Part> {
    let number = std::fs::read_to_string(folder.join("dev"))?.trim().to_owned();
    let holders = std::fs::read_dir(folder.join("holders"))?;
    let holders = holders.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    Ok(Part { number, holders: holders.collect::<io::Result<_>>()? })
}

/// What uses one of the parts of a disk, in words. `number` returns the number of a device by its path: some file systems
/// are mounted under a number that is no disk's.
fn user(
    parts: &[Part],
    mounts: &[Mount],
    swaps: &str,
    number: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    let is_part = |number: &str| parts.iter().any(|part| part.number == number);
    let is_named = |path: &str| path.starts_with('/') && number(path).is_some_and(|n| is_part(&n));
    if let Some(holder) = parts.iter().flat_map(|part| &part.holders).next() {
        return Some(format!("{holder} is made of it"));
    }
    let mounted = mounts.iter().find(|mount| is_part(&mount.number) || is_named(&mount.source));
    if let Some(mount) = mounted {
        return Some(format!("it is mounted at {}", mount.point));
    }
    let mut swaps = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    swaps.any(is_named).then(|| "it is swap space".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(holders: &[&str], mounts: &str, swaps: &str) -> Option<String> {
        let part = |number: &str, holders: &[&str]| Part {
            number: number.to_owned(),
            holders: holders.iter().map(|&name| name.to_owned()).collect(),
        };
        let parts = [part("8:0", &[]), part("8:1", holders)];
        let mounts = mounts::parse(mounts.as_bytes()).unwrap();
        let swaps = format!("Filename Type Size Used Priority\n{swaps}");
        user(&parts, &mounts, &swaps, &|path| match path {
            "/dev/sda1" => Some("8:1".to_owned()),
            "/dev/sdb1" => Some("8:17".to_owned()),
            _ => None,
        })
    }

    #[test]
    fn a_disk_that_is_used_is_told_from_one_that_is_not() {
        let mount = |number, source| format!("36 35 {number} / /mnt rw - ext4 {source} rw\n");
        assert_eq!(found(&[], "", ""), None);
        assert_eq!(found(&["dm-0"], "", "").unwrap(), "dm-0 is made of it");
        let mounted = Some("it is mounted at /mnt".to_owned());
        assert_eq!(found(&[], &mount("8:1", "/dev/root"), ""), mounted);
        assert_eq!(found(&[], &mount("0:31", "/dev/sda1"), ""), mounted);
        assert_eq!(found(&[], &mount("8:17", "/dev/sdb1"), ""), None);
        let swap = Some("it is swap space".to_owned());
        assert_eq!(found(&[], "", "/dev/sda1 partition 1024 0 -2\n"), swap);
        assert_eq!(found(&[], "", "/dev/sdb1 partition 1024 0 -2\n/swap file 1 0 -3\n"), None);
    }
}
