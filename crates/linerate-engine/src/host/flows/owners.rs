//! Which processes hold a connection: theirs are the descriptors that lead to its inode.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use linerate_core::facts::Gap;
use linerate_core::model::Owner;
use linerate_core::parse::sysctl;

use super::super::facts::numbered;
use super::super::{Machine, gap};

/// Descriptors that are looked at, at most: more would take longer than a look may.
const MOST: usize = 1 << 18;

/// The processes that hold some connections.
pub(super) struct Found {
    owners: BTreeMap<u32, Vec<Owner>>,
    /// Why one may have no owner among them.
    hidden: Gap,
}

/// Those that hold one of them.
#[derive(Clone, Copy)]
pub(super) struct Holders<'a> {
    pub(super) owners: &'a [Owner],
    /// Why nobody is known to hold it.
    pub(super) gap: Option<&'a Gap>,
}

impl Found {
    pub(super) fn holders(&self, inode: u32) -> Holders<'_> {
        let owners = self.owners.get(&inode).map_or(&[][..], Vec::as_slice);
        Holders {
            owners,
            gap: owners.is_empty().then_some(&self.hidden),
        }
    }
}

/// Looks for the processes that hold `inodes`.
pub(super) fn of(machine: &dyn Machine, inodes: &BTreeSet<u32>) -> Found {
    let mut owners: BTreeMap<u32, Vec<Owner>> = BTreeMap::new();
    let (mut looked, mut denied) = (0, false);
    for pid in pids(machine) {
        let held = sockets(machine, pid, &mut looked);
        let refused = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        denied |= held.as_ref().is_err_and(refused);
        let held = held.unwrap_or_default();
        let mut held = held.intersection(inodes).peekable();
        if held.peek().is_none() {
            continue;
        }
        let name = name(machine, pid).unwrap_or_default();
        for inode in held {
            let name = name.clone();
            owners.entry(*inode).or_default().push(Owner { pid, name });
        }
    }
    Found {
        owners,
        hidden: hidden(denied, looked),
    }
}

/// Why a connection has no owner. The model knows the gap by its first word: of an unknown process no
/// thread is known either.
fn hidden(denied: bool, looked: usize) -> Gap {
    const WHAT: &str = "thread of the process that holds it";
    match (denied, looked > MOST) {
        (true, _) => gap(
            WHAT,
            "it may belong to another user, whose processes are not shown",
            "sudo linerate flows",
        ),
        (_, true) => gap(
            WHAT,
            &format!("more than {MOST} descriptors are open"),
            "ss -tp",
        ),
        _ => gap(WHAT, "no process that is visible here holds it", ""),
    }
}

/// The sockets of all processes with `name` in their names.
pub(super) fn sockets_of(machine: &dyn Machine, name: &str) -> BTreeSet<u32> {
    let mut looked = 0;
    let held = named(machine, name).flat_map(|pid| sockets(machine, pid, &mut looked));
    held.flatten().collect()
}

/// Whether there is a process with `name` in its name.
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

/// Inodes of the sockets that a process holds. `looked` counts descriptors.
fn sockets(machine: &dyn Machine, pid: u32, looked: &mut usize) -> io::Result<BTreeSet<u32>> {
    let folder = format!("/proc/{pid}/fd");
    let mut inodes = BTreeSet::new();
    for descriptor in machine.list(&folder)? {
        *looked += 1;
        if *looked > MOST {
            break;
        }
        // One that was closed meanwhile leads nowhere.
        let target = machine.target(&format!("{folder}/{descriptor}"));
        inodes.extend(target.ok().as_deref().and_then(inode));
    }
    Ok(inodes)
}

/// `socket:[12345]`.
fn inode(target: &str) -> Option<u32> {
    target
        .strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::inode;

    #[test]
    fn only_sockets_have_such_a_target() {
        assert_eq!(inode("socket:[12345]"), Some(12345));
        for other in [
            "pipe:[12345]",
            "socket:[]",
            "socket:[-1]",
            "socket:[1",
            "/socket:[1]",
        ] {
            assert_eq!(inode(other), None, "{other}");
        }
    }
}
