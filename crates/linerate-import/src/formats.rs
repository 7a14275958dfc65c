//! The table of formats.

use crate::columns::COLUMNS;
use crate::fi_pingpong::FI_PINGPONG;
use crate::format::Format;
use crate::netpipe::NETPIPE;
use crate::osu::OSU;
use crate::perftest;
use crate::ping::{IBPING, PING};
use crate::ping_windows::PING_WINDOWS;
use crate::sockperf::SOCKPERF;
use crate::ucx_perftest::UCX_PERFTEST;

/// Every format. The first that recognises a text reads it.
pub static FORMATS: &[&Format] = &[
    &perftest::JSON,
    &perftest::TABLE,
    &SOCKPERF,
    &OSU,
    &NETPIPE,
    &FI_PINGPONG,
    &UCX_PERFTEST,
    &PING,
    &PING_WINDOWS,
    &IBPING,
    // It reads what no other format knows, and stays the last.
    &COLUMNS,
];
