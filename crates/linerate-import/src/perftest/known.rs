//! Lines of an output that have no figures and need no note.

/// Starts of lines that have no figures.
const KNOWN: &[&str] = &[
    "local address:",
    "remote address:",
    "GID:",
    "WARNING: BW peak won't be measured",
    "Waiting for client rdma_cm",
    "Please run the same command",
    "Connected:",
    "Completed:",
    "Requested mtu is higher than active mtu",
    "Changing to active mtu",
    "* Waiting for client to connect",
    "Device not recognized to implement inline feature",
    "Test with events",
    "#, usec",
];

/// Names of settings that are printed without a blank before the colon, or whose blanks were lost when they were
/// copied.
//= https://github.com/linux-rdma/perftest, src/perftest_parameters.c, ctx_print_test_info
const SETTINGS: &[&str] = &[
    "Dual-port",
    "Number of qps",
    "Connection type",
    "PCIe relax order",
    "Lock-free",
    "ibv_wr* API",
    "Using Enhanced Reorder",
    "Using DDP",
    "TX depth",
    "RX depth",
    "Post List",
    "CQE Poll Batch",
    "CQ Moderation",
    "Mtu",
    "Link type",
    "GID index",
    "Outstand reads",
    "Max inline data",
    "rdma_cm QPs",
    "Data ex. method",
];

/// Whether a line is known and has no figures.
pub(super) fn is_known(line: &str) -> bool {
    let is_setting = |name: &&str| {
        let rest = line.strip_prefix(*name);
        rest.is_some_and(|rest| rest.trim_start().starts_with(':'))
    };
    KNOWN.iter().any(|known| line.starts_with(known)) || SETTINGS.iter().any(is_setting)
}
