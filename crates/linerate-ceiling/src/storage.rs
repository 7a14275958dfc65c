//! Storage: operations per second from the number in flight, and the number of paths that are used.

use super::Bounds;

/// How a multipath layer uses several paths to storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// One path carries everything; the others are used only when it fails.
    Failover,
    /// All paths carry data in turn.
    RoundRobin,
}

impl Policy {
    /// Names of the policies as users type them.
    pub const NAMES: [(&'static str, Self); 2] =
        [("failover", Self::Failover), ("round-robin", Self::RoundRobin)];

    /// Number of paths that carry data if `there` paths exist.
    pub const fn used(self, there: u32) -> u32 {
        match self {
            Self::Failover => 1,
            Self::RoundRobin => there,
        }
    }
}

/// Operations per second if `depth` operations are in flight and each takes `seconds`.
//= Little, A proof for the queuing formula L = lambda W, Operations Research 9 (1961)
pub fn operations(depth: u32, seconds: f64) -> Bounds {
    Bounds::exact(f64::from(depth) / seconds.max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_follow_from_depth_and_latency() {
        assert_eq!(operations(32, 0.000_25), Bounds::exact(128_000.0));
        assert!(operations(1, 0.0).high().is_finite());
    }

    #[test]
    fn one_path_or_all_of_them_count() {
        assert_eq!(Policy::Failover.used(4), 1);
        assert_eq!(Policy::RoundRobin.used(4), 4);
    }
}
