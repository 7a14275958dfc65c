//! The table of all formats.

use crate::columns::COLUMNS;
use crate::disk::{copies, dd, diskspd, fio, hdparm, iostat, marks, nfsiostat, progress};
use crate::fi_pingpong::FI_PINGPONG;
use crate::format::Format;
use crate::imb::IMB;
use crate::mpstat::MPSTAT;
use crate::mtr::MTR;
use crate::nccl::NCCL;
use crate::netpipe::NETPIPE;
use crate::network_quality::NETWORK_QUALITY;
use crate::nstat::{NETSTAT, NSTAT};
use crate::osu::OSU;
use crate::ping::{IBPING, PING};
use crate::ping_windows::PING_WINDOWS;
use crate::sockperf::SOCKPERF;
use crate::ss::SS;
use crate::ucx_perftest::UCX_PERFTEST;
use crate::wall_clock::WALL_CLOCK;
use crate::{facts, iperf2, iperf3, netperf, nuttcp, perftest, qperf};

/// Every format. The first one that recognises a text reads it.
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
    // Any table with a heading: it is tried after all formats of known programs.
    &COLUMNS,
];
