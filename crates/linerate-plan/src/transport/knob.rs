//! Settings of loads that only some transports support.

use crate::{Handover, Knobs, Receive};

/// A setting of [`Knobs`] that only some transports support: the others refuse a plan that sets it.
///
/// All transports support the settings that have no row here (streams, sizes, CPUs, extra work), or ignore them where
/// they have no effect (`nodelay`, `nagle`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Knob {
    /// The congestion control, [`Knobs::congestion`].
    Congestion,
    /// The segment size, [`Knobs::mss`].
    Mss,
    /// The send buffer, [`Knobs::send_buffer`].
    SendBuffer,
    /// The receive buffer, [`Knobs::recv_buffer`].
    RecvBuffer,
    /// The bound of the window, [`Knobs::window_clamp`].
    WindowClamp,
    /// The pace of each stream, [`Knobs::pacing`].
    Pacing,
    /// Messages in two writes, [`Knobs::two_writes`].
    TwoWrites,
    /// Reception without a copy, [`Receive::Discard`].
    Discard,
    /// Any [`Handover`] except a copy.
    Uncopied,
    /// Round trips in open loop, [`Knobs::open_loop`].
    OpenLoop,
    /// Polling threads, [`Knobs::busy_poll`].
    BusyPoll,
    /// The number of operations in flight, [`Knobs::depth`].
    Depth,
}

impl Knob {
    /// All settings that only some transports support.
    pub const ALL: &[Self] = &[
        Self::Congestion,
        Self::Mss,
        Self::SendBuffer,
        Self::RecvBuffer,
        Self::WindowClamp,
        Self::Pacing,
        Self::TwoWrites,
        Self::Discard,
        Self::Uncopied,
        Self::OpenLoop,
        Self::BusyPoll,
        Self::Depth,
    ];

    /// Whether a plan sets this knob, and the name of the knob in a refusal, after `has no`.
    pub(super) const fn requested(self, knobs: &Knobs) -> (bool, &'static str) {
        match self {
            Self::Congestion => (knobs.congestion.is_some(), "congestion control"),
            Self::Mss => (knobs.mss.is_some(), "maximum segment size"),
            Self::SendBuffer => (knobs.send_buffer.is_some(), "send buffer"),
            Self::RecvBuffer => (knobs.recv_buffer.is_some(), "receive buffer"),
            Self::WindowClamp => (knobs.window_clamp.is_some(), "window"),
            Self::Pacing => (knobs.pacing.is_some(), "pace"),
            Self::TwoWrites => (knobs.two_writes, "message of two writes"),
            Self::Discard => {
                (matches!(knobs.receive, Receive::Discard), "way to drop payload unread")
            }
            Self::Uncopied => (!matches!(knobs.copy, Handover::Copy), "way but a copy"),
            Self::OpenLoop => (knobs.open_loop, "rate of messages"),
            Self::BusyPoll => (knobs.busy_poll, "busy poll"),
            Self::Depth => (knobs.depth > 0, "depth that can be chosen"),
        }
    }
}
