//! The table of formats.

use crate::columns::COLUMNS;
use crate::disk::{copies, dd, diskspd, fio, hdparm, iostat, marks, nfsiostat, progress};
use crate::fi_pingpong::FI_PINGPONG;
use crate::format::Format;
use crate::imb::{self, IMB};
use crate::mpstat::MPSTAT;
use crate::mtr::{self, MTR};
use crate::nccl::{self, NCCL};
use crate::netpipe::NETPIPE;
use crate::network_quality::{self, NETWORK_QUALITY};
use crate::nstat::{NETSTAT, NSTAT};
use crate::osu::OSU;
use crate::ping::{self, IBPING, PING};
use crate::ping_windows::{self, PING_WINDOWS};
use crate::sockperf::{self, SOCKPERF};
use crate::ss::SS;
use crate::ucx_perftest::UCX_PERFTEST;
use crate::wall_clock::{self, WALL_CLOCK};
use crate::{facts, iperf2, iperf3, netperf, nuttcp, perftest, qperf};

/// Every format. The first that recognises a text reads it.
pub static FORMATS: &[&Format] = &[
    &iperf3::json::FORMAT,
    &iperf3::text::FORMAT,
    &iperf2::text::FORMAT,
    &iperf2::csv::FORMAT,
    &nuttcp::FORMAT,
    &qperf::FORMAT,
    &netperf::FORMAT,
    &perftest::JSON,
    &perftest::TABLE,
    &SOCKPERF,
    &OSU,
    &IMB,
    &NCCL,
    &NETPIPE,
    &FI_PINGPONG,
    &UCX_PERFTEST,
    &WALL_CLOCK,
    &PING,
    &PING_WINDOWS,
    &NETWORK_QUALITY,
    &MTR,
    &IBPING,
    &SS,
    &NSTAT,
    &NETSTAT,
    &MPSTAT,
    &fio::JSON,
    &fio::TEXT,
    &marks::CRYSTAL,
    &marks::KDISK,
    &diskspd::DISKSPD,
    &hdparm::HDPARM,
    &dd::DD,
    &copies::ROBOCOPY,
    &copies::RSYNC,
    &progress::SCP,
    &iostat::IOSTAT,
    &nfsiostat::NFSIOSTAT,
    &facts::IBSTAT,
    &facts::IBSTATUS,
    &facts::IBV_DEVINFO,
    &facts::PERFQUERY,
    &facts::IBQUERYERRORS,
    &facts::MLXLINK,
    &facts::LSPCI,
    &facts::SETTINGS,
    &facts::FEATURES,
    &facts::PARAMETERS,
    &facts::COUNTERS,
    &facts::DRIVER,
    &facts::IP,
    &facts::IP_JSON,
    &facts::IFCONFIG,
    &facts::NUMACTL,
    &facts::LSCPU,
    &facts::NPROC,
    &facts::LSCPU_LIST,
    &facts::INTERRUPTS,
    &facts::HARDWARE,
    &facts::ADVANCED,
    &facts::RDMA,
    &facts::ADAPTER,
    &facts::PCM_PCIE,
    &facts::PCM_MEMORY,
    &facts::DMESG,
    &facts::SYSCTL,
    &facts::MULTIPATH,
    &facts::MOUNTS,
    &facts::NVME,
    &facts::LSBLK,
    &facts::LSUSB,
    // Any table with a head: after all that have a name.
    &COLUMNS,
];

/// Whether an output goes on at a line: takes the text of the output so far, and the rest from that line on.
type GoesOn = fn(&str, &str) -> bool;

/// Formats whose output has lines at which another one of the same format could begin as well.
pub(crate) static GO_ON: &[(&Format, GoesOn)] = &[
    (&iperf3::text::FORMAT, iperf3::text::goes_on),
    (&iperf2::text::FORMAT, iperf2::text::goes_on),
    (&iperf2::csv::FORMAT, iperf2::csv::goes_on),
    (&nuttcp::FORMAT, nuttcp::goes_on),
    (&qperf::FORMAT, qperf::goes_on),
    (&IBPING, ping::goes_on),
    (&PING_WINDOWS, ping_windows::goes_on),
    (&MTR, mtr::goes_on),
    (&NETWORK_QUALITY, network_quality::goes_on),
    (&perftest::TABLE, perftest::goes_on),
    (&SOCKPERF, sockperf::goes_on),
    (&SS, |_, _| true),
    (&NSTAT, |_, _| true),
    (&NETSTAT, |_, _| true),
    (&MPSTAT, |_, _| true),
    (&dd::DD, dd::goes_on),
    (&IMB, imb::goes_on),
    (&WALL_CLOCK, wall_clock::goes_on),
    (&NCCL, nccl::goes_on),
];

/// Formats of which a first line may occur again within an output. Their readers find the end of an output, and of
/// the next one of the same format, by themselves.
pub(crate) static FIND_OWN_END: &[&Format] = &[
    &fio::TEXT,
    &marks::CRYSTAL,
    &marks::KDISK,
    &diskspd::DISKSPD,
    &copies::ROBOCOPY,
    &copies::RSYNC,
    &progress::SCP,
    &iostat::IOSTAT,
    &nfsiostat::NFSIOSTAT,
];
