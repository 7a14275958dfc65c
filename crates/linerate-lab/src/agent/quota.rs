//! A control group with a limit of CPU time, in version 2 or 1 of the kernel's interface.
//!
//! The group is a folder of the machine, not of a namespace: a user who may not write there (as a rule an ordinary
//! user) cannot plant this fault. The lab's outer process, which outlives all others, removes the folder at the end.
//! If it was killed, the next lab that starts removes the folder.

use std::path::{Path, PathBuf};
use std::{fs, io};

use linerate_plan::path::Side;

use crate::error::LabError;
use crate::fault::{Fault, Share};

/// Folders in which control groups with a CPU limit can be made: the root of version 2, or the CPU controllers of
/// version 1.
const BASES: [&str; 3] = ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];
/// Prefix of the folders' names; the process id of the lab's outer process and the side follow.
const PREFIX: &str = "linerate-lab-";
/// Period of the CPU limit in microseconds: the kernel's default.
const PERIOD: u64 = 100_000;

/// The control group of the programs of one side, by its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group(PathBuf);

impl Group {
    /// Makes the group of a side, for the lab whose outer process has the process id `lab`.
    pub(super) fn make(lab: u32, side: Side, share: Share) -> Result<Self, LabError> {
        let name = format!("{PREFIX}{lab}-{}", side.name());
        let base = base().ok_or_else(|| {
            let why = "no control group for CPU time is mounted under /sys/fs/cgroup";
            LabError::not_plantable(&Fault::Quota { side, share }, why)
        })?;
        let path = base.join(name);
        let step = |e: io::Error| {
            let what = format!("cannot make the control group {}", path.display());
            LabError::step(format!("{what} (hint: run it as root)"), &e)
        };
        match fs::create_dir(&path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(step(e)),
            _ => {}
        }
        let group = Self(path.clone());
        let quota = PERIOD * u64::from(share.in_millionths()) / u64::from(Share::WHOLE);
        group.limit(Some(quota.max(1000))).map_err(step)?;
        Ok(group)
    }

    /// Sets the limit, in microseconds of CPU time in each period; `None` removes it.
    fn limit(&self, quota: Option<u64>) -> io::Result<()> {
        let second = self.0.join("cpu.max");
        if second.exists() {
            let quota = quota.map_or_else(|| "max".to_owned(), |quota| quota.to_string());
            return fs::write(second, format!("{quota} {PERIOD}"));
        }
        let quota = quota.map_or_else(|| "-1".to_owned(), |quota| quota.to_string());
        fs::write(self.0.join("cpu.cfs_quota_us"), quota)
    }

    /// Removes the limit, also for programs that still run in the group, and removes the group if no program does.
    pub(super) fn remove(&self) -> Result<(), LabError> {
        let done = self.limit(None);
        // The folder is busy as long as programs run in the group: then the end of the lab removes it.
        let _ = fs::remove_dir(&self.0);
        done.map_err(|e| {
            let path = self.0.display();
            LabError::step(format!("cannot take the limit from {path}"), &e)
        })
    }

    /// Runs `action` inside the group; programs that it starts stay there.
    pub(super) fn inside<T>(&self, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let before = self.present()?;
        move_into(&self.0)?;
        let done = action();
        move_into(&before)?;
        done
    }

    /// Returns the folder of the group in which this process is now, in this group's hierarchy.
    fn present(&self) -> io::Result<PathBuf> {
        let base = self.0.parent().unwrap_or(&self.0);
        let text = fs::read_to_string("/proc/self/cgroup")?;
        let own = text.lines().find_map(|line| path_in(line, base));
        own.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Returns the folder that a line of /proc/self/cgroup (`number:controllers:path`) names, if the line is about the
/// hierarchy at `base`.
fn path_in(line: &str, base: &Path) -> Option<PathBuf> {
    let mut parts = line.splitn(3, ':');
    let (number, controllers) = (parts.next()?, parts.next()?);
    let path = parts.next()?.trim_start_matches('/');
    let second = base == Path::new(BASES[0]);
    let own = if second { number == "0" } else { controllers.split(',').any(|name| name == "cpu") };
    own.then(|| base.join(path))
}

fn move_into(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), "0")
}

fn base() -> Option<PathBuf> {
    let limits = |base: &&Path| {
        let second = fs::read_to_string(base.join("cgroup.subtree_control"));
        let second = second.is_ok_and(|text| text.split_whitespace().any(|name| name == "cpu"));
        second || base.join("cpu.cfs_quota_us").exists() || base.join("cpu.shares").exists()
    };
    BASES.iter().map(Path::new).find(limits).map(Path::to_owned)
}

/// Removes the groups of this lab, and of labs whose outer process has ended. It runs in the outer process, whose
/// /proc shows all processes.
pub(super) fn clean(lab: u32) {
    for base in BASES {
        let Ok(entries) = fs::read_dir(base) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            let owner = owner.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
            let gone = |owner: u32| owner == lab || !Path::new(&format!("/proc/{owner}")).exists();
            if owner.is_some_and(gone) {
                // A group can be removed only if it is empty, and only by the user who made it.
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_in_its_hierarchy() {
        let first = Path::new(BASES[1]);
        assert_eq!(path_in("1:cpu:/", first), Some(first.to_owned()));
        assert_eq!(path_in("2:cpu,cpuacct:/a/b", first), Some(first.join("a/b")));
        assert_eq!(path_in("2:cpuacct:/a", first), None);
        assert_eq!(path_in("0::/a", first), None);
        let second = Path::new(BASES[0]);
        assert_eq!(path_in("0::/a", second), Some(second.join("a")));
        assert_eq!(path_in("1:cpu:/a", second), None);
        assert_eq!(path_in("", second), None);
    }
}
