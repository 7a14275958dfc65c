//! The table of formats.

use crate::facts;
use crate::format::Format;

/// Every format. The first that recognises a text reads it.
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
