//! Cache for facts of this host. Clients need no key, so a client that starts one test after another must not make this
//! host read its facts each time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use linerate_facts::HostFacts;

use linerate_host::{self as host, Machine, Toward};

/// Time for which facts are cached. Tests use the facts to choose CPUs.
const FRESH: Duration = Duration::from_secs(60);
/// Number of clients whose facts are cached.
const KNOWN: usize = 16;

/// Cached facts of this host, with one entry for each path to a client.
#[derive(Default)]
pub(super) struct Facts(Mutex<Vec<Known>>);

struct Known {
    toward: Toward,
    read: Instant,
    facts: Arc<HostFacts>,
}

impl Facts {
    /// Returns the facts of `machine` for the path to a client.
    /// Facts that were read within [`FRESH`] are not read again.
    pub(super) fn toward(&self, machine: &dyn Machine, toward: Toward) -> Arc<HostFacts> {
        self.at(machine, toward, Instant::now())
    }

    fn at(&self, machine: &dyn Machine, toward: Toward, now: Instant) -> Arc<HostFacts> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|k| now.saturating_duration_since(k.read) < FRESH);
        if let Some(same) = known.iter().find(|k| k.toward == toward) {
            return Arc::clone(&same.facts);
        }
        let facts = Arc::new(host::facts(machine, toward));
        if known.len() == KNOWN {
            known.remove(0);
        }
        known.push(Known { toward, read: now, facts: Arc::clone(&facts) });
        facts
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::os::fd::BorrowedFd;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use linerate_host::{Query, SocketQuery};

    /// A machine that answers no query, and counts the queries.
    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Counting {
        fn nothing<T>(&self) -> io::Result<T> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Err(io::ErrorKind::NotFound.into())
        }
    }

    impl Machine for Counting {
        fn file(&self, _: &str) -> io::Result<Vec<u8>> {
            self.nothing()
        }
        fn list(&self, _: &str) -> io::Result<Vec<String>> {
            self.nothing()
        }
        fn query(&self, _: &Query) -> io::Result<Vec<u8>> {
            self.nothing()
        }
        fn socket(&self, _: &SocketQuery, _: BorrowedFd<'_>, _: &mut [u8]) -> io::Result<usize> {
            self.nothing()
        }
    }

    #[test]
    fn they_are_read_once_for_a_client_until_they_are_old() {
        let (facts, machine) = (Facts::default(), Counting::default());
        let toward = |last: u8| Toward::of([10, 0, 0, last].into(), None);
        let now = Instant::now();
        let read = |last, later: Duration| {
            let before = machine.0.load(Ordering::Relaxed);
            facts.at(&machine, toward(last), now + later);
            machine.0.load(Ordering::Relaxed) > before
        };
        assert!(read(1, Duration::ZERO));
        assert!(!read(1, Duration::ZERO));
        assert!(read(2, Duration::ZERO));
        assert!(!read(1, FRESH.mul_f64(0.999)));
        assert!(read(1, FRESH));
        // So many other clients are cached that the first one is removed from the cache.
        for last in 3..3 + KNOWN as u8 {
            assert!(read(last, FRESH));
        }
        assert!(read(1, FRESH));
    }
}
