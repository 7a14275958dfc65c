//! The table of formats.

use crate::columns::COLUMNS;
use crate::fi_pingpong::FI_PINGPONG;
use crate::facts;
use crate::format::Format;
use crate::netpipe::NETPIPE;
use crate::osu::OSU;
use crate::perftest;
use crate::ping::{IBPING, PING};
use crate::sockperf::SOCKPERF;
use crate::ucx_perftest::UCX_PERFTEST;

/// Every format. The first that recognises a text reads it.
pub static FORMATS: &[&Format] = &[&crate::iperf3::json::FORMAT];
pub static FORMATS: &[&Format] = &[
    &crate::disk::fio::JSON,
    &crate::disk::fio::TEXT,
    &crate::disk::marks::CRYSTAL,
    &crate::disk::marks::KDISK,
    &crate::disk::diskspd::DISKSPD,
    &crate::disk::hdparm::HDPARM,
    &crate::disk::dd::DD,
    &crate::disk::copies::ROBOCOPY,
    &crate::disk::copies::RSYNC,
pub static FORMATS: &[&Format] = &[
    &perftest::JSON,
    &perftest::TABLE,
    &SOCKPERF,
    &OSU,
    &NETPIPE,
    &FI_PINGPONG,
    &UCX_PERFTEST,
    &PING,
    &IBPING,
    &COLUMNS,
pub static FORMATS: &[&Format] = &[
    &facts::IBSTAT,
    &facts::IBSTATUS,
    &facts::IBV_DEVINFO,
    &facts::LSPCI,
    &facts::SETTINGS,
    &facts::FEATURES,
    &facts::PARAMETERS,
    &facts::COUNTERS,
    &facts::DRIVER,
    &facts::IP,
    &facts::IP_JSON,
    &facts::NUMACTL,
    &facts::LSCPU,
    &facts::LSCPU_LIST,
    &facts::INTERRUPTS,
    &facts::HARDWARE,
    &facts::ADVANCED,
    &facts::RDMA,
    &facts::ADAPTER,
    &facts::PCM_PCIE,
    &facts::PCM_MEMORY,
    &facts::DMESG,
];
pub static FORMATS: &[&Format] = &[&crate::iperf3::json::FORMAT, &crate::iperf3::text::FORMAT];

/// Whether an output goes on at a line: takes the text of the output so far, and the rest from that line on.
type GoesOn = fn(&str, &str) -> bool;

/// Formats whose output has lines at which another one of the same format could begin as well.
pub(crate) static GO_ON: &[(&Format, GoesOn)] =
    &[(&crate::iperf3::text::FORMAT, crate::iperf3::text::goes_on)];
