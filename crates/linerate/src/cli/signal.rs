//! Ctrl-C: the first asks to end in order, the second ends at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::exit::Exit;

/// A flag that is set by Ctrl-C or SIGTERM. A second one ends the program at once: whoever sends
/// it does not want to wait.
pub(crate) fn interrupted() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Before the flag is set by this very signal, so that only the next one finds it set.
        flag::register_conditional_shutdown(signal, Exit::NotMeasured as i32, Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}
