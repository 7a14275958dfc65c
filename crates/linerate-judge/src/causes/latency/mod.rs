//! Causes of long round trips, on the idle path or under load.

pub(crate) mod idle_states;
pub(crate) mod interrupts;
pub(crate) mod nagle;
pub(crate) mod queue;
pub(crate) mod raised;
pub(crate) mod wakeup;
