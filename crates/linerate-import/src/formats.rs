//! The table of formats.

use crate::format::Format;

/// Every format. The first that recognises a text reads it.
pub static FORMATS: &[&Format] = &[
    &crate::iperf3::json::FORMAT,
    &crate::iperf3::text::FORMAT,
    &crate::iperf2::text::FORMAT,
    &crate::iperf2::csv::FORMAT,
    &crate::nuttcp::FORMAT,
    &crate::qperf::FORMAT,
    &crate::netperf::FORMAT,
];

/// Whether an output goes on at a line: takes the text of the output so far, and the rest from that line on.
type GoesOn = fn(&str, &str) -> bool;

/// Formats whose output has lines at which another one of the same format could begin as well.
pub(crate) static GO_ON: &[(&Format, GoesOn)] = &[
    (&crate::iperf3::text::FORMAT, crate::iperf3::text::goes_on),
    (&crate::iperf2::text::FORMAT, crate::iperf2::text::goes_on),
    (&crate::iperf2::csv::FORMAT, crate::iperf2::csv::goes_on),
    (&crate::nuttcp::FORMAT, crate::nuttcp::goes_on),
    (&crate::qperf::FORMAT, crate::qperf::goes_on),
];
