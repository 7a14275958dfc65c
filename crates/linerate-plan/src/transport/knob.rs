//! Settings of loads that a transport may lack.

use crate::{Handover, Knobs, Receive};

/// A setting of [`Knobs`] that only some transports have: the others refuse a plan that sets it.
///
/// Settings without a row here are of all transports (streams, sizes, CPUs, extra work), or are ignored where they mean
/// nothing (`nodelay`, `nagle`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Knob {
    /// [`Knobs::congestion`].
    Congestion,
    /// [`Knobs::mss`].
    Mss,
    /// [`Knobs::send_buffer`].
    SendBuffer,
    /// [`Knobs::recv_buffer`].
    RecvBuffer,
    /// [`Knobs::window_clamp`].
    WindowClamp,
    /// [`Knobs::pacing`].
    Pacing,
    /// [`Knobs::two_writes`].
    TwoWrites,
    /// [`Receive::Discard`].
    Discard,
    /// All of [`Handover`] but a copy.
    Uncopied,
    /// [`Knobs::open_loop`].
    OpenLoop,
    /// [`Knobs::busy_poll`].
    BusyPoll,
    /// [`Knobs::depth`].
    Depth,
}

impl Knob {
    /// All settings that a transport may lack.
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

    /// Whether a plan sets it, and its name in a refusal, after `has no`.
    pub(super) const fn asked(self, knobs: &Knobs) -> (bool, &'static str) {
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
