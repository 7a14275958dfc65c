//! Causes of TCP: windows, buffers, segments, congestion control.

pub(crate) mod buffer_bound;
pub(crate) mod congestion_control;
pub(crate) mod pacing;
pub(crate) mod receive_window;
pub(crate) mod sack_discarded;
pub(crate) mod segment_size;
pub(crate) mod send_buffer;
pub(crate) mod socket_memory;
