//! Causes of long round trips.

pub(crate) mod idle_states;
pub(crate) mod interrupts;
pub(crate) mod nagle;
pub(crate) mod queue;
pub(crate) mod raised;
pub(crate) mod wakeup;
