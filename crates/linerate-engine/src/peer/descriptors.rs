//! The limit of open descriptors, which both ends raise: each stream is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::server::Limits;

/// Raises the soft limit to what a server with these limits may use, or to the hard limit: the
/// usual 1024 is less than what its sessions, or one client of it, may need. Returns what is in force.
pub(super) fn raise(limits: &Limits) -> usize {
    // Beside its streams a session has a few: control, arrivals, what the sampler reads.
    let wanted = (limits.sessions * (limits.plan.streams as usize + 32) + limits.pending) as u64;
    let now = getrlimit(Resource::Nofile);
    let allowed = now.maximum.map_or(wanted, |most| most.min(wanted));
    if now.current.is_some_and(|current| current < allowed) {
        let raised = Rlimit {
            current: Some(allowed),
            maximum: now.maximum,
        };
        // Without it the gate still copes: strangers make room, and it rests when there are none. A
        // client says which stream had no descriptor.
        let _ = setrlimit(Resource::Nofile, raised);
    }
    let in_force = getrlimit(Resource::Nofile).current;
    in_force.map_or(usize::MAX, |n| n as usize)
}
