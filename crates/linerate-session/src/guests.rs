//! Clients that this process serves, by linerate's protocol or by iperf3's.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use linerate_sys::memory;

/// Number of clients that are being served. When the last one leaves, unused memory of the process is returned.
static PRESENT: AtomicUsize = AtomicUsize::new(0);

/// Guard for a client that is being served. Unused memory is returned to the kernel when the last client leaves, not
/// earlier, because returning memory would delay the other clients.
#[derive(Debug)]
pub(crate) struct Present(());

impl Present {
    /// Counts a client until the returned value is dropped.
    pub(crate) fn enter() -> Self {
        PRESENT.fetch_add(1, SeqCst);
        Self(())
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        if PRESENT.fetch_sub(1, SeqCst) == 1 {
            memory::give_back();
        }
    }
}
