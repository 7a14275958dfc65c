//! The table of counters: for each driver, the names of its counters and their meanings.
//!
//! Names of drivers are those of `ethtool -i`, names of counters those of `ethtool -S`, without spaces at their ends
//! and with `*` for the number of a queue, a lane or a priority. If a counter is a sum and its parts are counters too,
//! the parts are benign, so that no drop is reported twice.

use super::Meaning;
use super::name::{fits, starred};

/// A meaning, and the names of the counters that have it.
type Row = (Meaning, &'static [&'static str]);

macro_rules! counters {
    ($([$($driver:literal)*] { $($meaning:ident: $($name:literal)+;)* })*) => {
        /// Rows of drivers with the meanings of their counters. A row without drivers applies to all drivers.
        const TABLE: &[(&[&str], &[Row])] = &[
            $((&[$($driver),*], &[$((Meaning::$meaning, &[$($name),+])),*])),*
        ];
    };
}

/// The meaning of a driver's counter: by the rows of that driver first, then by the rows of all drivers.
pub(super) fn of_driver(driver: &str, name: &str) -> Option<Meaning> {
    let name = starred(name);
    let is_it = |row: &&Row| row.1.iter().any(|pattern| fits(pattern, &name));
    let all = TABLE.iter().filter(|(drivers, _)| drivers.is_empty());
    let rows = of(driver).chain(all.flat_map(|(_, rows)| *rows));
    rows.into_iter().find(is_it).map(|row| row.0)
}

/// The meaning of a name that the kernel counts for every port, in its link statistics.
pub(super) fn of_kernel(name: &str) -> Option<Meaning> {
    let found = KERNEL.iter().find(|(_, names)| names.contains(&name));
    found.map(|(meaning, _)| *meaning)
}

/// Whether a driver has a counter with this meaning.
pub(super) fn has(driver: &str, meaning: Meaning) -> bool {
    of(driver).any(|row| row.0 == meaning)
}

fn of(driver: &str) -> impl Iterator<Item = &'static Row> {
    let own = TABLE.iter().filter(move |(drivers, _)| drivers.contains(&driver));
    own.flat_map(|(_, rows)| *rows)
}

/// Names of the kernel's link statistics, which some drivers repeat among their own counters.
//= Linux Documentation/networking/statistics.rst; include/uapi/linux/if_link.h, struct rtnl_link_stats64
const KERNEL: &[Row] = &[
    (Meaning::RingFull, &["rx_missed_errors", "rx_missed"]),
    (Meaning::BufferFull, &["rx_over_errors", "rx_fifo_errors"]),
    (Meaning::SendDropped, &["tx_dropped"]),
    (Meaning::Damaged, &["rx_crc_errors", "rx_frame_errors"]),
    (Meaning::WrongSize, &["rx_length_errors"]),
    (
        Meaning::Failed,
        &["rx_errors", "tx_errors", "rx_dropped", "tx_carrier_errors", "tx_fifo_errors"],
    ),
    (Meaning::Collided, &["collisions", "tx_aborted_errors", "tx_aborted", "tx_window_errors"]),
    (Meaning::Filtered, &["rx_nohandler"]),
    (Meaning::Benign, &["tx_heartbeat_errors"]),
];

counters! {
    //= Linux drivers/net/ethernet/intel/ixgbe/ixgbe_ethtool.c, ixgbevf/ethtool.c; Intel 82599 datasheet: QPRDC
    ["ixgbe" "ixgbevf"] {
        RingFull: "rx_no_dma_resources";
        BufferFull: "rx_missed_errors";
        NoMemory: "alloc_rx_page_failed" "alloc_rx_buff_failed";
        Hung: "tx_timeout_count";
        WrongSize: "rx_long_length_errors" "rx_short_length_errors";
        BadChecksum: "rx_csum_offload_errors";
        Waited: "tx_busy" "tx_restart_queue" "rx_no_buffer_count";
        Benign: "fdir_miss" "fdir_overflow" "tx_hwtstamp_timeouts" "tx_hwtstamp_skipped";
    }
    //= Linux drivers/net/ethernet/intel/i40e/i40e_ethtool.c, iavf/iavf_ethtool.c, ice/ice_ethtool.c
    ["i40e" "iavf" "ice"] {
        RingFull: "rx_discards" "port.rx_discards";
    }
    ["ice"] {
        RingFull: "rx_dropped";
    }
    ["i40e" "iavf" "ice"] {
        BufferFull: "rx_dropped.nic";
        SendDropped: "tx_discards";
        NoMemory: "rx_alloc_fail" "rx_pg_alloc_fail";
        Damaged: "port.rx_crc_errors" "rx_crc_errors.nic";
        WrongSize: "port.rx_length_errors" "port.rx_undersize" "port.rx_oversize" "port.rx_jabber"
            "port.rx_fragments" "rx_length_errors.nic" "rx_undersize.nic" "rx_oversize.nic" "rx_jabber.nic"
            "rx_fragments.nic";
        BadChecksum: "port.rx_csum_bad" "rx_csum_bad.nic";
        Failed: "port.tx_errors" "tx_errors.nic";
        Hung: "port.tx_timeout" "tx_timeout.nic";
        Waited: "tx_busy" "tx_stopped" "tx_restart";
        Filtered: "rx_unknown_protocol" "veb.rx_unknown_protocol";
        Benign: "port.tx_dropped_link_down" "tx_dropped_link_down.nic" "port.tx_hwtstamp_timeouts"
            "port.tx_hwtstamp_skipped" "tx_hwtstamp_timeouts" "tx_hwtstamp_skipped" "tx_hwtstamp_discarded"
            "port.arq_overflows";
    }
    //= Linux drivers/net/ethernet/intel/igb/igb_ethtool.c, igc/igc_ethtool.c, e1000e/ethtool.c, e1000/e1000_ethtool.c
    //= Intel 82576 datasheet: RNBC counts packets that wait in the card for a descriptor, MPC those that are lost
    ["igb" "igc" "igbvf"] {
        RingFull: "rx_queue_*_drops";
    }
    ["igb" "igc" "igbvf" "e1000e" "e1000"] {
        BufferFull: "rx_missed_errors";
    }
    ["igb" "igc" "igbvf"] {
        NoMemory: "rx_queue_*_alloc_failed";
    }
    ["e1000e" "e1000"] {
        NoMemory: "alloc_rx_buff_failed" "rx_dma_failed" "tx_dma_failed";
    }
    ["igb" "igc" "igbvf" "e1000e" "e1000"] {
        Damaged: "rx_align_errors";
        WrongSize: "rx_long_length_errors" "rx_short_length_errors";
        BadChecksum: "rx_csum_offload_errors" "rx_queue_*_csum_err";
        Collided: "tx_single_coll_ok" "tx_multi_coll_ok" "tx_abort_late_coll";
        Hung: "tx_timeout_count";
        Waited: "rx_no_buffer_count" "tx_restart_queue" "tx_queue_*_restart" "tx_deferred_ok";
        Benign: "dropped_smbus" "tx_hwtstamp_timeouts" "tx_hwtstamp_skipped" "qbv_config_change_errors"
            "corr_ecc_errors";
    }
    //= Linux Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst
    ["mlx5_core"] {
        RingFull: "rx_out_of_buffer";
        BufferFull: "rx_discards_phy" "outbound_pci_buffer_overflow" "dev_internal_queue_oob";
        SendDropped: "tx_discards_phy" "tx_queue_dropped" "tx_tls_drop_no_sync_data" "tx_tls_drop_bypass_req";
        NoMemory: "rx_buff_alloc_err" "rx_xsk_buff_alloc_err";
        Damaged: "rx_crc_errors_phy" "rx_symbol_err_phy";
        WrongSize: "rx_in_range_len_errors_phy" "rx_out_of_range_len_phy" "rx_oversize_pkts_phy"
            "rx_undersize_pkts_phy" "rx_fragments_phy" "rx_jabbers_phy" "rx_oversize_pkts_sw_drop"
            "rx_oversize_pkts_buffer";
        Failed: "rx_wqe_err" "tx_cqe_err" "tx_errors_phy";
        Filtered: "rx_steer_missed_packets" "rx_if_down_packets" "rx_unsupported_op_phy" "rx_xdp_drop"
            "rx_xsk_xdp_drop";
        Waited: "tx_queue_stopped" "tx_queue_wake" "tx*_stopped" "tx*_wake" "rx_xdp_tx_full" "tx_xdp_full"
            "rx_buffer_passed_thres_phy" "outbound_pci_stalled_rd_events" "outbound_pci_stalled_wr_events";
        Gauge: "outbound_pci_stalled_rd" "outbound_pci_stalled_wr";
        // Each priority and each queue is a part of a sum above. Symbols and bits are counted before they are
        // corrected.
        Benign: "rx_prio*_discards" "rx_prio*_buf_discard" "rx_prio*_cong_discard" "rx*_buff_alloc_err" "rx*_wqe_err"
            "rx*_oversize_pkts_sw_drop" "rx*_xdp_drop" "rx*_xdp_tx_full" "tx*_xdp_full" "tx*_dropped" "tx*_cqe_err"
            "rx*_xsk_buff_alloc_err" "rx*_xsk_xdp_drop" "tx*_tls_drop_no_sync_data" "tx*_tls_drop_bypass_req"
            "rx_pcs_symbol_err_phy" "rx_corrected_bits_phy" "rx_err_lane_*_phy" "rx_arfs_err" "rx*_arfs_err"
            "rx_cache_full" "rx*_cache_full" "rx_pp_recycle_cache_full" "rx_pp_recycle_ring_full"
            "rx*_pp_recycle_cache_full" "rx*_pp_recycle_ring_full" "rx_pause_ctrl_phy_transition";
    }
    //= Linux drivers/net/ethernet/mellanox/mlx4/en_ethtool.c, en_rx.c
    ["mlx4_en"] {
        NoMemory: "rx*_dropped";
        WrongSize: "rx_jabbers" "rx_in_range_length_error" "rx_out_range_length_error";
        Hung: "tx_timeout";
        Waited: "queue_stopped" "wake_queue" "rx_xdp_tx_full" "rx*_xdp_tx_full";
        Filtered: "rx_xdp_drop";
        Benign: "rx*_xdp_drop" "rx*_xdp_redirect_fail" "rx_xdp_redirect_fail";
    }
    //= Linux drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c
    ["bnxt_en"] {
        RingFull: "[*]: rx_discards" "[*]: rx_drops" "rx_total_ring_discards";
        BufferFull: "rx_stat_discard";
        SendDropped: "[*]: tx_discards" "[*]: tx_drops" "tx_stat_discard" "tx_total_ring_discards";
        NoMemory: "rx_total_oom_discards" "[*]: rx_oom_discards";
        Damaged: "rx_fcs_err_frames" "rx_align_err_frames" "rx_fec_uncorrectable_blocks";
        WrongSize: "rx_ovrsz_frames" "rx_jbr_frames" "rx_mtu_err_frames" "rx_undrsz_frames" "rx_runt_frames";
        BadChecksum: "rx_total_l4_csum_errors";
        Failed: "[*]: rx_errors" "[*]: tx_errors" "[*]: rx_buf_errors" "rx_stat_err" "tx_stat_error" "tx_err"
            "tx_fcs_err_frames" "tx_fifo_underruns" "rx_total_buf_errors";
        PauseReceived: "rx_pfc_ena_frames_pri0";
        PauseSent: "tx_pfc_ena_frames_pri0";
        PausedMicros: "pfc_pri0_rx_duration_us";
        PriorityPause: "rx_pfc_ena_frames_pri*" "tx_pfc_ena_frames_pri*";
        Waited: "rx_buffer_passed_threshold";
        Benign: "rx_pcs_symbol_err" "rx_corrected_bits" "rx_fec_corrected_blocks" "rx_discard_bytes_cos*"
            "rx_discard_packets_cos*" "[*]: rx_l4_csum_errors" "[*]: missed_irqs" "[*]: rx_resets"
            "[*]: rx_tpa_errors" "rx_total_netpoll_discards" "rx_total_discard_pkts" "tx_total_discard_pkts"
            "total_missed_irqs" "rx_pfc_frames" "tx_pfc_frames";
    }
    //= Linux drivers/net/ethernet/broadcom/tg3.c
    ["tg3"] {
        RingFull: "rx_discards";
        SendDropped: "tx_discards";
        Damaged: "rx_fcs_errors" "rx_align_errors";
        WrongSize: "rx_frame_too_long_errors" "rx_jabbers" "rx_undersize_packets" "rx_in_length_errors"
            "rx_out_length_errors" "rx_fragments";
        Failed: "tx_mac_errors" "tx_carrier_sense_errors";
        Collided: "tx_collisions" "tx_excessive_collisions" "tx_late_collisions";
        PauseReceived: "rx_xoff_pause_rcvd";
        PauseSent: "tx_xoff_sent";
        Waited: "rxbds_empty" "mbuf_lwm_thresh_hit" "dma_writeq_full" "dma_write_prioq_full" "dma_readq_full"
            "dma_read_prioq_full" "tx_comp_queue_full" "tx_deferred";
        Benign: "rx_xon_pause_rcvd" "rx_xoff_entered";
    }
    //= Linux drivers/net/ethernet/broadcom/bnx2x/bnx2x_ethtool.c
    ["bnx2x"] {
        RingFull: "rx_discards";
        BufferFull: "rx_brb_discard" "rx_brb_truncate";
        NoMemory: "rx_skb_alloc_discard";
        Damaged: "rx_align_errors";
        WrongSize: "rx_undersize_packets" "rx_oversize_packets" "rx_fragments" "rx_jabbers";
        BadChecksum: "rx_phy_ip_err_discards" "rx_csum_offload_errors";
        Failed: "tx_mac_errors" "unrecoverable_errors";
        Collided: "tx_total_collisions";
        Filtered: "rx_filtered_packets" "rx_mf_tag_discard" "driver_filtered_tx_pkt";
        Waited: "tx_exhaustion_events" "[*]: tx_exhaustion_events" "tx_deferred";
        Benign: "[*]: rx_discards" "[*]: rx_phy_ip_err_discards" "[*]: rx_skb_alloc_discard"
            "[*]: rx_csum_offload_errors" "rx_error_bytes" "tx_error_bytes" "recoverable_errors";
    }
    //= Linux drivers/net/ethernet/qlogic/qede/qede_ethtool.c
    ["qede"] {
        RingFull: "no_buff_discards";
        BufferFull: "brb_truncates" "brb_discards";
        SendDropped: "tx_err_drop_pkts";
        NoMemory: "*: rx_alloc_errors" "*_*: tx_mem_alloc_err";
        Damaged: "rx_align_errors" "rx_carrier_errors";
        WrongSize: "rx_oversize_packets" "rx_jabbers" "rx_undersize_packets" "rx_fragments" "packet_too_big_discard";
        Failed: "*: rx_hw_errors";
        Collided: "tx_total_collisions";
        Filtered: "mftag_filter_discards" "mac_filter_discards" "gft_filter_drop" "ttl0_discard" "*: xdp_no_pass";
        Waited: "*_*: stopped_cnt";
    }
    //= Linux drivers/net/ethernet/chelsio/cxgb4/cxgb4_ethtool.c; the names behind `Loopback` are of an inner port
    ["cxgb4"] {
        BufferFull: "rx_bg*_frames_dropped" "rx_bg*_frames_trunc";
        SendDropped: "tx_frames_dropped" "tx_tls_drop_no_sync_data" "tx_tls_drop_bypass_req";
        Damaged: "rx_fcs_errors" "rx_symbol_errors";
        WrongSize: "rx_frames_too_long" "rx_jabber_errors" "rx_length_errors" "rx_runt_frames";
        Failed: "tx_error_frames";
        Waited: "db_full" "db_drop";
        Benign: "write_coal_fail" "error_frames" "frames_dropped" "bg*_frames_dropped" "bg*_frames_trunc";
    }
    //= Linux drivers/net/ethernet/sfc/ef10.c, ethtool_common.c, nic_common.h
    ["sfc" "sfc_ef100"] {
        RingFull: "port_rx_nodesc_drops" "rx_nodesc_trunc";
        BufferFull: "port_rx_overflow" "rx_overflow" "port_rx_pm_discard_*" "port_rx_pm_discard_bb_overflow"
            "port_rx_pm_discard_vfifo_full" "port_rx_pm_trunc_bb_overflow" "port_rx_pm_trunc_vfifo_full"
            "port_rx_dp_di_dropped_packets";
        SendDropped: "tx_overflow";
        NoMemory: "rx_noskb_drops";
        Damaged: "port_rx_bad" "port_rx_align_error" "port_rx_symbol_error" "rx_eth_crc_err" "fec_uncorrected_errors";
        WrongSize: "port_rx_length_error" "port_rx_bad_gtjumbo" "port_rx_bad_lt64" "rx_frm_trunc";
        BadChecksum: "rx_ip_hdr_chksum_err" "rx_tcp_udp_chksum_err" "rx_inner_ip_hdr_chksum_err"
            "rx_inner_tcp_udp_chksum_err" "rx_outer_ip_hdr_chksum_err" "rx_outer_tcp_udp_chksum_err";
        Filtered: "rx_tobe_disc" "rx_mcast_mismatch" "rx_xdp_drops" "port_rx_dp_q_disabled_packets"
            "port_rx_pm_discard_mapping";
        Benign: "fec_corrected_errors" "fec_corrected_symbols_lane*" "rfs_failed" "ctpio_missing_dbell_fail"
            "ctpio_overflow_fail" "ctpio_underflow_fail" "ctpio_timeout_fail" "ctpio_noncontig_wr_fail"
            "ctpio_frm_clobber_fail" "ctpio_invalid_wr_fail";
    }
    //= Linux drivers/net/ethernet/aquantia/atlantic/aq_ethtool.c
    ["atlantic"] {
        BufferFull: "InDroppedDma";
        Damaged: "InErrors";
        NoMemory: "Queue[*] AllocFails" "Queue[*] SkbAllocFails" "TC* Queue[*] AllocFails"
            "TC* Queue[*] SkbAllocFails";
        Failed: "Queue[*] InErrors" "TC* Queue[*] InErrors";
        Waited: "Queue[*] Restarts" "TC* Queue[*] Restarts";
        Filtered: "Queue[*] XdpDrop" "TC* Queue[*] XdpDrop";
    }
    //= Linux drivers/net/ethernet/realtek/r8169_main.c, drivers/net/usb/r8152.c
    ["r8169" "r8152"] {
        Damaged: "align_errors";
        Collided: "tx_single_collisions" "tx_multi_collisions";
        Failed: "tx_underrun";
    }
    //= Linux drivers/net/usb/lan78xx.c, lan78xx_gstrings; drivers/net/ethernet/microchip/lan743x_ethtool.c
    ["lan78xx" "lan743x"] {
        BufferFull: "RX Dropped Frames";
        Damaged: "RX FCS Errors" "RX Alignment Errors";
        WrongSize: "Rx Fragment Errors" "RX Jabber Errors" "RX Undersize Frame Errors" "RX Oversize Frame Errors";
        Failed: "TX FCS Errors" "TX Carrier Errors" "TX Excess Deferral Errors";
        Collided: "TX Single Collisions" "TX Multiple Collisions" "TX Excessive Collision" "TX Late Collisions";
        Benign: "TX Bad Byte Count";
    }
    //= Linux drivers/net/ethernet/hisilicon/hns3/hns3_ethtool.c, hns3pf/hclge_main.c
    ["hns3"] {
        SendDropped: "txq*_dropped" "txq#*_dropped";
        NoMemory: "rxq*_dropped" "rxq#*_dropped" "rxq*_frag_alloc_err" "rxq#*_frag_alloc_err";
        Damaged: "mac_rx_fcs_err_pkt_num";
        WrongSize: "mac_rx_undersize_pkt_num" "mac_rx_oversize_pkt_num" "mac_rx_jabber_pkt_num"
            "mac_rx_fragment_pkt_num" "mac_rx_undermin_pkt_num" "rxq*_err_pkt_len" "rxq#*_err_pkt_len";
        BadChecksum: "rxq*_l3l4_csum_err" "rxq#*_l3l4_csum_err";
        Failed: "mac_tx_err_all_pkt_num" "rxq*_l2_err" "rxq#*_l2_err" "rxq*_err_bd_num" "rxq#*_err_bd_num"
            "txq*_vlan_err" "txq*_l4_proto_err" "txq*_l2l3l4_err" "txq*_tso_err" "txq*_map_sg_err";
        PauseReceived: "mac_rx_pfc_pri0_pkt_num";
        PauseSent: "mac_tx_pfc_pri0_pkt_num";
        PriorityPause: "mac_rx_pfc_pri*_pkt_num" "mac_tx_pfc_pri*_pkt_num";
        Waited: "txq*_busy" "txq*_wake" "txq#*_busy" "txq#*_wake" "txq*_spare_full";
        Benign: "mac_rx_pause_xoff_time" "mac_tx_pause_xoff_time" "mac_rx_pfc_pri*_xoff_time"
            "mac_tx_pfc_pri*_xoff_time" "mac_rx_pfc_pkt_num" "mac_tx_pfc_pkt_num";
    }
    //= Linux drivers/net/ethernet/netronome/nfp/nfp_net_ethtool.c
    ["nfp"] {
        RingFull: "dev_rx_discards";
        BufferFull: "mac.rx_drop_events" "mac.rx_mac_head_drop";
        SendDropped: "dev_tx_discards" "mac.tx_queue_drop" "tx_tls_drop_no_sync_data";
        NoMemory: "rx_replace_buf_alloc_fail";
        Damaged: "mac.rx_frame_check_sequence_errors" "mac.rx_alignment_errors";
        WrongSize: "mac.rx_frame_too_long_errors" "mac.rx_range_length_errors" "mac.rx_undersize_pkts"
            "mac.rx_jabbers" "mac.rx_fragments" "mac.rx_oversize_pkts";
        BadChecksum: "hw_rx_csum_err";
        Failed: "dev_rx_errors" "dev_tx_errors" "mac.rx_errors" "mac.tx_errors";
        Waited: "rvec_*_tx_busy";
    }
    //= Linux drivers/net/ethernet/cisco/enic/enic_ethtool.c
    ["enic"] {
        RingFull: "rx_no_bufs";
        SendDropped: "tx_drops";
        NoMemory: "dma_map_error";
    }
    //= Linux drivers/net/ethernet/emulex/benet/be_ethtool.c
    ["be2net"] {
        RingFull: "rxq*: rx_drops_no_frags";
        BufferFull: "rx_drops_no_pbuf" "rx_drops_no_erx_descr" "rx_input_fifo_overflow_drop"
            "rxpp_fifo_overflow_drop" "pmem_fifo_overflow_drop" "eth_red_drops";
        SendDropped: "txq*: tx_drv_drops";
        NoMemory: "rxq*: rx_drops_no_skbs" "rxq*: rx_post_fail" "dma_map_errors";
        Damaged: "rx_alignment_symbol_errors";
        WrongSize: "rx_in_range_errors" "rx_out_range_errors" "rx_frame_too_long" "rx_drops_mtu" "rx_dropped_runt"
            "rx_dropped_too_small" "rx_dropped_too_short" "rx_dropped_header_too_small" "rx_dropped_tcp_length"
            "rx_drops_too_many_frags" "jabber_events";
        BadChecksum: "rx_ip_checksum_errs" "rx_tcp_checksum_errs" "rx_udp_checksum_errs";
        Failed: "rxq*: rx_compl_err" "txq*: tx_hdr_parse_err" "txq*: tx_dma_err" "txq*: tx_spoof_check_err"
            "txq*: tx_tso_err" "txq*: tx_qinq_err" "txq*: tx_internal_parity_err" "txq*: tx_sge_err";
        Filtered: "rx_address_filtered";
        Waited: "txq*: tx_stops";
    }
    //= Linux drivers/net/ethernet/cavium/liquidio/lio_ethtool.c
    ["liquidio" "liquidio_vf"] {
        RingFull: "rx-*-dropped_toomany" "rx-*-fw_dropped";
        BufferFull: "mac_rx_dma_drop" "mac_rx_fifo_err";
        SendDropped: "tx-*-dropped" "tx_err_drop";
        NoMemory: "rx-*-dropped_nomem" "rx-*-buffer_alloc_failure";
        Damaged: "mac_rx_fcs_err";
        WrongSize: "rx_jabber_err";
        Collided: "mac_tx_total_collisions";
        Failed: "mac_tx_fifo_err" "tx_err_pko" "tx_err_pki" "tx_tso_err" "rx_frame_err" "rx_l2_err";
        Waited: "tx-*-iq_busy" "tx-*-txq_restart";
        Benign: "rx-*-dropped" "tx_err_link" "rx_err_link";
    }
    //= Linux Documentation/networking/device_drivers/ethernet/amazon/ena.rst; drivers/net/ethernet/amazon/ena/ena_ethtool.c
    ["ena"] {
        Allowance: "bw_in_allowance_exceeded" "bw_out_allowance_exceeded" "pps_allowance_exceeded"
            "conntrack_allowance_exceeded" "linklocal_allowance_exceeded";
        Gauge: "conntrack_allowance_available" "ena_srd_mode" "ena_srd_resource_utilization";
        RingFull: "rx_drops" "rx_overruns";
        NoMemory: "queue_*_rx_page_alloc_fail" "queue_*_rx_skb_alloc_fail" "queue_*_rx_dma_mapping_err"
            "queue_*_tx_dma_mapping_err" "queue_*_rx_empty_rx_ring";
        BadChecksum: "queue_*_rx_csum_bad" "queue_*_rx_bad_csum";
        Failed: "queue_*_rx_bad_desc_num" "queue_*_rx_bad_req_id" "queue_*_tx_bad_req_id"
            "queue_*_tx_prepare_ctx_err" "queue_*_tx_linearize_failed" "queue_*_tx_missed_tx";
        Hung: "tx_timeout" "wd_expired";
        Waited: "queue_*_tx_queue_stop" "queue_*_tx_queue_wakeup";
        Filtered: "queue_*_rx_xdp_drop";
        Benign: "ena_admin_q_out_of_space" "ena_admin_q_aborted_cmd" "admin_q_pause" "queue_*_tx_linearize";
    }
    //= Linux drivers/net/ethernet/google/gve/gve_ethtool.c; Documentation of the gVNIC: rx_queue_drop_cnt
    ["gve"] {
        RingFull: "rx_queue_drop_cnt[*]" "rx_no_buffers_posted[*]";
        SendDropped: "tx_dropped";
        NoMemory: "rx_skb_alloc_fail" "rx_buf_alloc_fail" "page_alloc_fail" "dma_mapping_error"
            "tx_dma_mapping_error[*]";
        WrongSize: "rx_drops_packet_over_mru[*]";
        BadChecksum: "rx_drops_invalid_checksum[*]";
        Failed: "rx_desc_err_dropped_pkt";
        Hung: "tx_timeouts";
        Waited: "tx_stop[*]" "tx_wake[*]";
        Filtered: "rx_xdp_drop[*]";
        Benign: "adminq_cmd_fail" "adminq_timeouts" "rx_dropped_pkt[*]" "rx_skb_alloc_fail[*]" "rx_buf_alloc_fail[*]";
    }
    //= Linux drivers/net/virtio_net.c: drops counts packets that receive_buf gave up
    ["virtio_net"] {
        Failed: "rx_drops" "rx_queue_*_drops";
        Hung: "tx_tx_timeouts" "tx_queue_*_tx_timeouts";
        Waited: "tx_stop" "tx_wake" "tx_queue_*_stop" "tx_queue_*_wake";
        Filtered: "rx_xdp_drops" "tx_xdp_tx_drops" "rx_queue_*_xdp_drops" "tx_queue_*_xdp_tx_drops";
        Benign: "rx*_drops" "rx*_xdp_drops" "tx*_xdp_tx_drops" "tx*_tx_timeouts";
    }
    //= Linux drivers/net/vmxnet3/vmxnet3_ethtool.c: OOB is pktsRxOutOfBuf; the indented names are parts of the totals
    ["vmxnet3"] {
        RingFull: "pkts rx OOB";
        SendDropped: "pkts tx discard" "drv dropped tx total";
        NoMemory: "rx buf alloc fail";
        Failed: "pkts rx err" "pkts tx err" "drv dropped rx total";
        Hung: "tx timeout count";
        Waited: "ring full";
        Filtered: "xdp drops";
        Benign: "too many frags" "giant hdr" "hdr err" "tso" "err" "fcs";
    }
    //= Linux drivers/net/hyperv/netvsc_drv.c, netvsc.c: a busy packet is retried, one without space is dropped
    ["hv_netvsc"] {
        SendDropped: "tx_no_space" "vf_tx_dropped";
        NoMemory: "tx_no_memory" "rx_no_memory";
        WrongSize: "tx_too_big";
        Failed: "vlan_error";
        Waited: "tx_busy" "tx_send_full" "rx_comp_busy" "stop_queue" "wake_queue";
        Filtered: "rx_queue_*_xdp_drop";
    }
    //= Linux drivers/net/xen-netfront.c
    ["vif"] {
        Benign: "rx_gso_checksum_fixup";
    }
    //= Linux drivers/net/ethernet/microsoft/mana/mana_ethtool.c
    ["mana"] {
        RingFull: "hc_rx_discards_no_wqe" "rx_discards_no_wqe";
        BufferFull: "hc_rx_pkt_drop_phy";
        SendDropped: "hc_tx_pkt_drop_phy";
        NoMemory: "tx_*_mana_map_err";
        WrongSize: "hc_tx_err_mtu_violation";
        Failed: "hc_tx_err_gf_disabled" "hc_tx_err_inval_vportoffset_pkt" "hc_tx_err_inval_vport_offset_pkt"
            "hc_tx_err_vlan_enforcement" "hc_tx_err_eth_type_enforcement" "hc_tx_err_sa_enforcement"
            "hc_tx_err_sqpdid_enforcement" "hc_tx_err_cqpdid_enforcement" "hc_tx_err_inval_oob" "hc_tx_err_gdma"
            "tx_cq_err";
        Waited: "stop_queue" "wake_queue";
        Filtered: "hc_rx_err_vport_disabled" "hc_tx_err_vport_disabled" "rx_*_xdp_drop";
        Benign: "rx_coalesced_err";
    }
    //= Linux drivers/net/ethernet/cadence/macb.h: gem_statistics
    ["macb"] {
        RingFull: "rx_resource_errors";
        BufferFull: "rx_overruns";
        Damaged: "rx_frame_check_sequence_errors" "rx_symbol_errors" "rx_alignment_errors";
        WrongSize: "rx_undersized_frames" "rx_oversize_frames" "rx_jabbers" "rx_length_field_frame_errors";
        BadChecksum: "rx_ip_header_checksum_errors" "rx_tcp_checksum_errors" "rx_udp_checksum_errors";
        Failed: "tx_underrun" "tx_carrier_sense_errors" "q*_rx_dropped";
        SendDropped: "q*_tx_dropped";
        Collided: "tx_single_collision_frames" "tx_multiple_collision_frames" "tx_excessive_collisions"
            "tx_late_collisions";
        Waited: "tx_deferred_frames";
    }
    //= Linux drivers/net/ethernet/freescale/fec_main.c; NXP i.MX 6 reference manual, ENET: IEEE_R_MACERR counts overruns of the FIFO
    ["fec"] {
        BufferFull: "IEEE_rx_macerr";
        Damaged: "IEEE_rx_crc" "IEEE_rx_align";
        WrongSize: "rx_undersize" "rx_oversize" "rx_fragment" "rx_jabber";
        Failed: "IEEE_tx_macerr" "IEEE_tx_cserr" "tx_crc_errors";
        Collided: "tx_collision" "IEEE_tx_1col" "IEEE_tx_mcol" "IEEE_tx_lcol" "IEEE_tx_excol";
        PauseReceived: "IEEE_rx_fdxfc";
        PauseSent: "IEEE_tx_fdxfc";
        Benign: "IEEE_tx_drop" "IEEE_tx_sqe";
    }
    //= Linux drivers/net/ethernet/stmicro/stmmac/stmmac_ethtool.c, common.h
    ["st_gmac" "st_xgmac" "st_mac100"] {
        RingFull: "rx_missed_cntr";
        BufferFull: "rx_overflow_cntr" "mmc_rx_fifo_overflow" "overflow_error" "rx_gmac_overflow";
        Damaged: "mmc_rx_crc_error" "mmc_rx_align_error" "rx_crc_errors";
        WrongSize: "mmc_rx_run_error" "mmc_rx_jabber_error" "mmc_rx_length_error" "mmc_rx_watchdog_error";
        BadChecksum: "ip_hdr_err" "ip_payload_err" "ipc_csum_error";
        Failed: "mmc_tx_underflow_error" "mmc_tx_carrier_error" "fatal_bus_error_irq";
        Collided: "mmc_tx_singlecol_g" "mmc_tx_multicol_g" "mmc_tx_latecol" "mmc_tx_exesscol";
        Filtered: "sa_filter_fail" "da_rx_filter_fail" "sa_rx_filter_fail";
        Waited: "rx_buf_unav_irq" "mmc_tx_deferred";
        Benign: "mac_tx_in_pause" "mac_tx_frame_ctrl_pause" "mtl_tx_status_fifo_full" "mtl_tx_fifo_not_empty"
            "mtl_tx_fifo_read_ctrl_write" "mtl_tx_fifo_read_ctrl_wait" "mtl_tx_fifo_read_ctrl_read"
            "mtl_tx_fifo_read_ctrl_idle" "mmtl_fifo_ctrl" "mtl_rx_fifo_fill_level_full"
            "mtl_rx_fifo_fill_above_thresh" "mtl_rx_fifo_fill_below_thresh" "mtl_rx_fifo_fill_level_empty"
            "mtl_rx_fifo_read_ctrl_flush" "mtl_rx_fifo_read_ctrl_read_data" "mtl_rx_fifo_read_ctrl_status"
            "mtl_rx_fifo_read_ctrl_idle" "mtl_rx_fifo_ctrl_active" "mac_rx_frame_ctrl_fifo" "phy_eee_wakeup_error_n"
            "timestamp_dropped" "l3_l4_filter_no_match" "rx_overflow_irq";
    }
    // Names that the drivers of several clouds share.
    [] {
        Allowance: "bw_in_allowance_exceeded" "bw_out_allowance_exceeded" "pps_allowance_exceeded"
            "conntrack_allowance_exceeded" "linklocal_allowance_exceeded";
        Gauge: "conntrack_allowance_available";
    }
}
