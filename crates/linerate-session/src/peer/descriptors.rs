//! The limit of open file descriptors. Both ends raise it, because each stream needs a descriptor.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::server::Limits;

/// Number of file descriptors of a session in addition to those of its streams: the control connection, the event for
/// arrived data connections, and files that the sampler reads.
const OTHER_FDS: usize = 32;

/// Raises the soft limit of file descriptors to the number that a server with these
/// limits may need, or to the hard limit if that is lower. The usual 1024 may be too
/// few for the server's sessions, or for one client. Returns the limit in force.
pub(super) fn raise(limits: &Limits) -> usize {
    let wanted = limits.sessions * (limits.plan.streams as usize + OTHER_FDS) + limits.pending;
    let wanted = wanted as u64;
    let now = getrlimit(Resource::Nofile);
    let allowed = now.maximum.map_or(wanted, |most| most.min(wanted));
    if now.current.is_some_and(|current| current < allowed) {
        let raised = Rlimit { current: Some(allowed), maximum: now.maximum };
        // If this fails, the gate still works: it drops unauthenticated connections to make room for sessions, and
        // pauses if there are none. A client reports the stream that got no descriptor.
        let _ = setrlimit(Resource::Nofile, raised);
    }
    let in_force = getrlimit(Resource::Nofile).current;
    in_force.map_or(usize::MAX, |n| n as usize)
}

/// Returns the number of file descriptors that this process may still
/// open. If the number of open ones is unknown, returns the whole limit.
pub(crate) fn left() -> u64 {
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let held = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    most.saturating_sub(held as u64)
}

/// Returns the number of streams for which these file descriptors suffice, after those for unauthenticated connections
/// and for the other needs of sessions.
pub(super) fn streams(descriptors: usize, limits: &Limits) -> u32 {
    let left = descriptors.saturating_sub(limits.pending);
    let beside = limits.sessions.saturating_mul(OTHER_FDS).min(left / 2);
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
