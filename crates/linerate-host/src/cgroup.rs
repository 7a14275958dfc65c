//! Source `cgroup`: how often a CPU quota stopped this process.
//!
//! The kernel counts stops in the group that has the quota. A quota of a parent group (of a pod or a slice) also stops
//! this process, but only the parent's counters show it, so parent groups with a quota are read too.

use std::io;

use linerate_facts::Gap;
use linerate_facts::metric::{self, Metric};
use linerate_facts::parse::cgroup::{self, Place, Version};
use linerate_facts::parse::{Malformed, cpu_stat, sysctl};

use super::source::{Row, Source};
use super::{Machine, gap, invalid, read, unreadable};

pub(super) const MEMBERSHIP: &str = "/proc/self/cgroup";
pub(super) const MOUNTS: &str = "/proc/self/mountinfo";
const METRICS: &[Metric] =
    &[metric::CGROUP_PERIODS, metric::CGROUP_THROTTLED, metric::CGROUP_THROTTLED_TIME];

/// Reads `cpu.stat` of this process's cgroup and of its parents.
#[derive(Default)]
pub(super) struct Cgroup {
    /// Groups to read, the process's own first; they are searched again after each `take`.
    groups: Option<Vec<Group>>,
}

/// One cgroup to be read.
struct Group {
    subject: String,
    stat: String,
}

impl Source for Cgroup {
    fn observe(&mut self, row: &mut Row<'_>) -> Result<(), Gap> {
        let groups = match &mut self.groups {
            Some(groups) => groups,
            none => none.insert(groups(row.machine)?),
        };
        for (key, group) in (0..).zip(groups) {
            let stat = read(row.machine, &group.stat, cpu_stat::parse)
                .map_err(|error| unreadable("cgroup", &group.stat, &error, ""))?;
            let values =
                [stat.map(|s| s.periods), stat.map(|s| s.throttled), stat.map(|s| s.throttled_ns)];
            row.push(METRICS, key, || group.subject.clone(), &values);
        }
        Ok(())
    }

    fn taken(&mut self) {
        self.groups = None;
    }
}

/// Returns the groups whose quota can stop this process. Empty if no group on the path to the root has a quota.
fn groups(machine: &dyn Machine) -> Result<Vec<Group>, Gap> {
    let place = place(machine, "cpu")?;
    let mut found = Vec::new();
    for (path, folder) in place.own_and_above() {
        let stat = format!("{folder}/cpu.stat");
        let counts = match read(machine, &stat, cpu_stat::parse) {
            Ok(counts) => counts,
            // Kernels differ in whether the root group has `cpu.stat`, and whether other groups have it while the CPU
            // controller is off.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(unreadable("cgroup", &stat, &error, HINT)),
        };
        if counts.is_some() && (found.is_empty() || has_quota(machine, place.version, &folder)?) {
            found.push(Group { subject: path.to_owned(), stat });
        }
    }
    if found.is_empty() && !shows_root(machine, &place)? {
        let why = format!("{}{}/cpu.stat shows no throttling", place.mount, place.group);
        return Err(gap("cgroup", &why, HINT));
    }
    Ok(found)
}

/// Usual reason why a program cannot see the control group hierarchy.
pub(super) const UNSEEN: &str =
    "`ip netns exec` hides /sys/fs/cgroup, nsenter --net=/run/netns/NAME does not";

const HINT: &str = "echo +cpu | sudo tee /sys/fs/cgroup/cgroup.subtree_control";

/// Returns where this process's group of a controller is.
pub(super) fn place(machine: &dyn Machine, controller: &str) -> Result<Place, Gap> {
    let file = |path| machine.file(path).map_err(|error| unreadable("cgroup", path, &error, ""));
    let (membership, mounts) = (file(MEMBERSHIP)?, file(MOUNTS)?);
    let place = place_of(machine, controller, &membership, &mounts)
        .map_err(|error| unreadable("cgroup", MEMBERSHIP, &invalid(error), UNSEEN))?;
    place.ok_or_else(|| gap("cgroup", &format!("this kernel has no {controller} controller"), ""))
}

/// Largest number of ancestor processes that are checked.
const ANCESTORS: usize = 32;

/// Finds this process's control group of a controller, as this process sees the hierarchy or, if it is hidden from this
/// process, as an ancestor process sees it.
pub(super) fn place_of(
    machine: &dyn Machine,
    controller: &str,
    membership: &[u8],
    mounts: &[u8],
) -> Result<Option<Place>, Malformed> {
    let own = cgroup::place(controller, membership, mounts);
    own.or_else(|error| {
        let seen = by_ancestor(machine, controller, membership);
        seen.map(Some).ok_or(error)
    })
}

/// Finds this process's control group of a controller as an ancestor process sees it, if that process has the same
/// cgroup namespace. `ip netns exec` mounts /sys again for this process, without the control groups. Reading the mounts
/// of another process needs root's rights.
fn by_ancestor(machine: &dyn Machine, controller: &str, membership: &[u8]) -> Option<Place> {
    let space = |who: &str| machine.target(&format!("/proc/{who}/ns/cgroup")).ok();
    let own = space("self")?;
    let mut who = "self".to_owned();
    for _ in 0..ANCESTORS {
        let status = machine.file(&format!("/proc/{who}/status")).ok()?;
        who = sysctl::value_text(&status, "PPid")?;
        if space(&who)? != own {
            return None;
        }
        let mounts = machine.file(&format!("/proc/{who}/mountinfo")).ok()?;
        if let Ok(place) = cgroup::place(controller, membership, &mounts) {
            return place
                .map(|place| Place { mount: format!("/proc/{who}/root{}", place.mount), ..place });
        }
    }
    None
}

/// Returns whether a quota is set on the group at `folder`.
fn has_quota(machine: &dyn Machine, version: Version, folder: &str) -> Result<bool, Gap> {
    let (name, unlimited) = match version {
        Version::V1 => ("cpu.cfs_quota_us", "-1"),
        Version::V2 => ("cpu.max", "max"),
    };
    let path = format!("{folder}/{name}");
    match machine.file(&path) {
        Ok(text) => Ok(sysctl::words(&text).first().is_none_or(|quota| quota != unlimited)),
        // The root group of a hierarchy has neither a quota nor a file for one.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(unreadable("cgroup", &path, &error, "")),
    }
}

/// Returns whether all groups up to the real root of a v2 hierarchy are visible. Only the root group has no
/// `cgroup.type` but has `cgroup.controllers`. If no group on the path has a CPU controller, there is no quota.
fn shows_root(machine: &dyn Machine, place: &Place) -> Result<bool, Gap> {
    let there = |name: &str| {
        let path = format!("{}/{name}", place.mount);
        match machine.file(&path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(unreadable("cgroup", &path, &error, "")),
        }
    };
    Ok(place.version == Version::V2 && there("cgroup.controllers")? && !there("cgroup.type")?)
}
