//! Tests which counters of drivers are kept, and with which meaning. In vmxnet3 the names of counters repeat for each
//! queue, below a row with the queue's number.

use linerate_facts::nic::counted;

use super::network;
use super::tests::{card, counters, driver, only};
use crate::testing::Fake;
use crate::{Query, Replay};

/// A driver, its counters, and the counters that are kept, each with its meaning.
type Case =
    (&'static str, &'static [(&'static str, u64)], &'static [(&'static str, u64, &'static str)]);

const CASES: &[Case] = &[
    (
        "ixgbe",
        &[
            ("rx_packets", 9),
            ("rx_no_dma_resources", 5),
            ("rx_flow_control_xoff", 4),
            ("tx_flow_control_xoff", 0),
            ("rx_flow_control_xon", 4),
            ("alloc_rx_page_failed", 3),
            ("fdir_miss", 90),
            ("tx_restart_queue", 2),
        ],
        &[
            ("rx_no_dma_resources", 5, "ring-full"),
            ("rx_flow_control_xoff", 4, "pause-received"),
            ("alloc_rx_page_failed", 3, "no-memory"),
            ("tx_restart_queue", 2, "waited"),
        ],
    ),
    (
        "mlx5_core",
        &[
            ("rx_out_of_buffer", 5),
            ("rx_steer_missed_packets", 6),
            ("rx_pcs_symbol_err_phy", 7),
            ("rx_prio3_pause", 2),
            ("rx_prio0_pause", 0),
            ("rx0_buff_alloc_err", 1),
            ("outbound_pci_stalled_wr", 0),
        ],
        &[
            ("rx_out_of_buffer", 5, "ring-full"),
            ("rx_steer_missed_packets", 6, "filtered"),
            ("rx_prio3_pause", 2, "priority-pause"),
            ("outbound_pci_stalled_wr", 0, "gauge"),
        ],
    ),
    (
        "igb",
        &[
            ("rx_queue_0_drops", 2),
            ("rx_queue_1_drops", 3),
            ("rx_queue_0_csum_err", 0),
            ("rx_no_buffer_count", 8),
        ],
        &[("rx_queue_*_drops", 5, "ring-full"), ("rx_no_buffer_count", 8, "waited")],
    ),
    (
        "i40e",
        &[
            ("port.rx_discards", 2),
            ("port.rx_crc_errors", 0),
            ("port.link_xoff_tx", 6),
            ("rx_unknown_protocol", 4),
            ("rx-3.packets", 90),
        ],
        &[
            ("port.rx_discards", 2, "ring-full"),
            ("port.link_xoff_tx", 6, "pause-sent"),
            ("rx_unknown_protocol", 4, "filtered"),
        ],
    ),
    (
        "bnxt_en",
        &[
            ("[0]: rx_discards", 1),
            ("[1]: rx_discards", 2),
            ("rx_pause_frames", 0),
            ("rx_pcs_symbol_err", 7),
        ],
        &[("[*]: rx_discards", 3, "ring-full")],
    ),
    (
        "hv_netvsc",
        &[
            ("tx_scattered", 9),
            ("tx_no_memory", 1),
            ("tx_no_space", 2),
            ("tx_busy", 3),
            ("rx_no_memory", 0),
            ("stop_queue", 4),
            ("vf_tx_dropped", 0),
        ],
        &[
            ("tx_no_memory", 1, "no-memory"),
            ("tx_no_space", 2, "send-dropped"),
            ("tx_busy", 3, "waited"),
            ("stop_queue", 4, "waited"),
        ],
    ),
    (
        "ena",
        &[
            ("bw_in_allowance_exceeded", 0),
            ("pps_allowance_exceeded", 4),
            ("conntrack_allowance_available", 70_000),
            ("queue_0_rx_page_alloc_fail", 0),
            ("queue_0_tx_queue_stop", 1),
            ("queue_1_tx_queue_stop", 1),
        ],
        &[
            ("bw_in_allowance_exceeded", 0, "allowance"),
            ("pps_allowance_exceeded", 4, "allowance"),
            ("conntrack_allowance_available", 70_000, "gauge"),
            ("queue_*_tx_queue_stop", 2, "waited"),
        ],
    ),
    (
        "gve",
        &[
            ("rx_queue_drop_cnt[0]", 3),
            ("rx_queue_drop_cnt[1]", 0),
            ("tx_stop[0]", 2),
            ("adminq_cmd_fail", 1),
        ],
        &[("rx_queue_drop_cnt[*]", 3, "ring-full"), ("tx_stop[*]", 2, "waited")],
    ),
    (
        "virtio_net",
        &[("rx_queue_0_xdp_drops", 3), ("tx_queue_0_tx_timeouts", 1)],
        &[("rx_queue_*_xdp_drops", 3, "filtered"), ("tx_queue_*_tx_timeouts", 1, "hung")],
    ),
    (
        "vmxnet3",
        &[
            ("Tx Queue#", 0),
            ("  ring full", 6),
            ("     giant hdr", 4),
            ("Rx Queue#", 0),
            ("  ucast pkts rx", 90),
            ("  pkts rx OOB", 2),
            ("     err", 0),
            ("Rx Queue#", 1),
            ("  ucast pkts rx", 90),
            ("  pkts rx OOB", 3),
            ("     err", 0),
            ("tx timeout count", 0),
        ],
        &[("ring full", 6, "waited"), ("pkts rx OOB", 5, "ring-full")],
    ),
    (
        "unheard",
        &[("rx_packets", 9), ("new_drops", 2), ("other_drops", 0)],
        &[("new_drops", 2, "unknown")],
    ),
];

/// Returns the counters that are kept of a driver's table, each with its value and its meaning.
fn kept(driver_name: &str, table: &[(&str, u64)]) -> Vec<(String, u64, &'static str)> {
    let mut fake = card().0;
    fake.queries.retain(|(query, _)| !matches!(query, Query::Driver(_) | Query::DriverCounters(_)));
    let fake = Fake(fake)
        .reply(Query::Driver(7), &[&driver(driver_name, "")])
        .reply(Query::DriverCounters(7), &[&counters(table)]);
    let nic = only(network(&Replay::new(fake.0)));
    let reported = nic.counters.iter();
    reported
        .map(|counter| {
            let meaning = counted::meaning(&nic.driver, &counter.name);
            let meaning = meaning.map_or("unknown", counted::Meaning::id);
            (counter.name.clone(), counter.value, meaning)
        })
        .collect()
}

#[test]
fn tables_are_read_by_the_names_of_their_drivers() {
    for (driver, table, want) in CASES {
        let want = want.iter().map(|(name, value, meaning)| ((*name).to_owned(), *value, *meaning));
        assert_eq!(kept(driver, table), want.collect::<Vec<_>>(), "{driver}");
    }
}
