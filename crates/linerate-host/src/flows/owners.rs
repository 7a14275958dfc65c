//! The processes that own a connection: they have an open descriptor of its socket, which is identified by its inode.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use linerate_facts::Gap;
use linerate_facts::parse::sysctl;
use linerate_record::flow::Owner;

use super::super::facts::numbered;
use super::super::{Machine, gap};

/// Most descriptors that are read: reading more would take too long for an observation.
const FDS_MAX: usize = 1 << 18;

/// The processes that own the connections in question.
pub(super) struct Found {
    owners: BTreeMap<u32, Vec<Owner>>,
    /// The gap for a connection that has no known owner.
    hidden: Gap,
}

/// The processes that own one connection.
#[derive(Clone, Copy)]
pub(super) struct Holders<'a> {
    pub(super) owners: &'a [Owner],
    /// The gap for the unknown owner; `None` if an owner is known.
    pub(super) gap: Option<&'a Gap>,
}

impl Found {
    pub(super) fn holders(&self, inode: u32) -> Holders<'_> {
        let owners = self.owners.get(&inode).map_or(&[][..], Vec::as_slice);
        Holders { owners, gap: owners.is_empty().then_some(&self.hidden) }
    }
}

/// The open sockets of processes. Each descriptor is read only once, because there may be tens of thousands.
pub(super) struct Look<'a> {
    machine: &'a dyn Machine,
    /// Inodes of the sockets that each process has open, by process id.
    held: BTreeMap<u32, io::Result<BTreeSet<u32>>>,
    /// Number of descriptors that were read so far.
    looked: usize,
}

impl<'a> Look<'a> {
    pub(super) fn new(machine: &'a dyn Machine) -> Self {
        Self { machine, held: BTreeMap::new(), looked: 0 }
    }

    /// Returns the inodes of the sockets that a process has open.
    fn sockets(&mut self, pid: u32) -> &io::Result<BTreeSet<u32>> {
        let (machine, looked) = (self.machine, &mut self.looked);
        let look = || sockets(machine, pid, looked);
        self.held.entry(pid).or_insert_with(look)
    }

    /// Returns the inodes of the sockets of all processes whose name contains `name`.
    pub(super) fn sockets_of(&mut self, name: &str) -> BTreeSet<u32> {
        let pids: Vec<u32> = named(self.machine, name).collect();
        let mut all = BTreeSet::new();
        for pid in pids {
            all.extend(self.sockets(pid).iter().flatten());
        }
        all
    }

    /// Finds the processes that have the sockets `inodes` open.
    pub(super) fn holders_of(&mut self, inodes: &BTreeSet<u32>) -> Found {
        let mut owners: BTreeMap<u32, Vec<Owner>> = BTreeMap::new();
        let mut denied = false;
        for pid in pids(self.machine) {
            let held = self.sockets(pid);
            let refused = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
            denied |= held.as_ref().is_err_and(refused);
            let held = held.iter().flatten().filter(|held| inodes.contains(held));
            let held: Vec<u32> = held.copied().collect();
            if held.is_empty() {
                continue;
            }
            let name = name(self.machine, pid).unwrap_or_default();
            for inode in held {
                let name = name.clone();
                owners.entry(inode).or_default().push(Owner { pid, name });
            }
        }
        Found { owners, hidden: hidden(denied, self.looked) }
    }
}

/// Makes the gap for a connection without a known owner. The first word of its subject matters, because the model
/// searches for it: if the process is unknown, its threads are unknown too.
fn hidden(denied: bool, looked: usize) -> Gap {
    const WHAT: &str = "thread of the process that holds it";
    match (denied, looked > FDS_MAX) {
        (true, _) => gap(
            WHAT,
            "it may belong to another user, whose processes are not shown",
            "sudo linerate flows",
        ),
        (_, true) => gap(WHAT, &format!("more than {FDS_MAX} descriptors are open"), "ss -tp"),
        _ => gap(WHAT, "no process that is visible here holds it", ""),
    }
}

/// Returns whether there is a process whose name contains `name`.
pub fn is_running(machine: &dyn Machine, name: &str) -> bool {
    named(machine, name).next().is_some()
}

fn named<'a>(machine: &'a dyn Machine, wanted: &'a str) -> impl Iterator<Item = u32> + 'a {
    let is_it = move |pid: &u32| name(machine, *pid).is_some_and(|name| name.contains(wanted));
    pids(machine).into_iter().filter(is_it)
}

fn pids(machine: &dyn Machine) -> Vec<u32> {
    numbered(&machine.list("/proc").unwrap_or_default(), "")
}

fn name(machine: &dyn Machine, pid: u32) -> Option<String> {
    let text = machine.file(&format!("/proc/{pid}/comm")).ok()?;
    Some(sysctl::line(&text))
}

/// Returns the inodes of the sockets that a process has open. `looked` is the number of descriptors read so far.
fn sockets(machine: &dyn Machine, pid: u32, looked: &mut usize) -> io::Result<BTreeSet<u32>> {
    let folder = format!("/proc/{pid}/fd");
    let mut inodes = BTreeSet::new();
    for descriptor in machine.list(&folder)? {
        *looked += 1;
        if *looked > FDS_MAX {
            break;
        }
        // A descriptor that was closed in the meantime has no link target.
        let target = machine.target(&format!("{folder}/{descriptor}"));
        inodes.extend(target.ok().as_deref().and_then(inode));
    }
    Ok(inodes)
}

/// Returns the inode in a link target such as `socket:[12345]`.
fn inode(target: &str) -> Option<u32> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::inode;

    #[test]
    fn only_sockets_have_such_a_target() {
        assert_eq!(inode("socket:[12345]"), Some(12345));
        for other in ["pipe:[12345]", "socket:[]", "socket:[-1]", "socket:[1", "/socket:[1]"] {
            assert_eq!(inode(other), None, "{other}");
        }
    }
}
