//! Progress of a step.

use linerate_units::{Bytes, Nanos, Rate};

/// Progress of a step while it runs.
#[derive(Debug, Clone, Copy)]
pub struct Live {
    /// Payload per second over the last tick: the rate received by
    /// the near end if it receives, otherwise the rate that it sent.
    pub rate: Rate,
    /// Payload that this end has moved since the step began.
    pub moved: Bytes,
    /// Packets that were lost or reordered since the step began, as
    /// counted at this end; `None` if this end does not count them.
    pub setbacks: Option<u64>,
    /// Time since the step began.
    pub elapsed: Nanos,
}
