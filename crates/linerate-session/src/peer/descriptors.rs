//! The limit of open descriptors, which both ends raise because each stream needs one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::server::Limits;

/// Number of a session's descriptors except those of its streams: control connection, arrivals, files that the
/// sampler reads.
const BESIDE: usize = 32;

/// Raises the soft limit to the number that a server with these limits may need, or to the hard limit. The usual 1024
/// may be too few for its sessions, or for one client. Returns the limit in force.
pub(super) fn raise(limits: &Limits) -> usize {
    let wanted = limits.sessions * (limits.plan.streams as usize + BESIDE) + limits.pending;
    let wanted = wanted as u64;
    let now = getrlimit(Resource::Nofile);
    let allowed = now.maximum.map_or(wanted, |most| most.min(wanted));
    if now.current.is_some_and(|current| current < allowed) {
        let raised = Rlimit { current: Some(allowed), maximum: now.maximum };
        // If this fails, the gate still works: unauthenticated connections are dropped for sessions, and it pauses
        // when there are none. A client reports the stream that got no descriptor.
        let _ = setrlimit(Resource::Nofile, raised);
    }
    let in_force = getrlimit(Resource::Nofile).current;
    in_force.map_or(usize::MAX, |n| n as usize)
}

/// Returns the number of descriptors that this process may still open; its limit if the number of open ones is
/// unknown.
pub(crate) fn left() -> u64 {
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let held = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    most.saturating_sub(held as u64)
}

/// Returns the number of streams that these descriptors allow, without those for unauthenticated connections and for
/// the other needs of sessions.
pub(super) fn streams(descriptors: usize, limits: &Limits) -> u32 {
    let left = descriptors.saturating_sub(limits.pending);
    let beside = limits.sessions.saturating_mul(BESIDE).min(left / 2);
    u32::try_from(left - beside).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_and_sessions_have_their_part_of_few_descriptors_and_of_many() {
        let limits = Limits::default();
        assert_eq!((limits.sessions, limits.pending), (32, 128));
        for (descriptors, room) in [
            (0, 0),
            (128, 0),
            (130, 1),
            (1024, 448),
            (2176, 1024),
            (131_072, 129_920),
            (usize::MAX, u32::MAX),
        ] {
            assert_eq!(streams(descriptors, &limits), room, "{descriptors}");
        }
    }
}
