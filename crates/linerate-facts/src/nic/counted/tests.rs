use super::*;

fn result_of(driver: &str, name: &str) -> &'static str {
    meaning(driver, name).map_or("unknown", Meaning::id)
}

#[test]
fn names_that_only_their_driver_explains() {
    for (driver, name, want) in [
        ("ixgbe", "rx_no_dma_resources", "ring-full"),
        ("ixgbe", "rx_missed_errors", "buffer-full"),
        ("ixgbe", "rx_flow_control_xoff", "pause-received"),
        ("ixgbe", "tx_flow_control_xoff", "pause-sent"),
        ("ixgbe", "alloc_rx_page_failed", "no-memory"),
        ("ixgbe", "tx_restart_queue", "waited"),
        ("ixgbe", "fdir_miss", "benign"),
        ("i40e", "port.rx_discards", "ring-full"),
        ("i40e", "port.rx_crc_errors", "damaged"),
        ("ice", "rx_unknown_protocol", "filtered"),
        ("igb", "rx_queue_3_drops", "ring-full"),
        ("igb", "rx_no_buffer_count", "waited"),
        ("e1000e", "alloc_rx_buff_failed", "no-memory"),
        ("mlx5_core", "rx_out_of_buffer", "ring-full"),
        ("mlx5_core", "rx_discards_phy", "buffer-full"),
        ("mlx5_core", "rx_steer_missed_packets", "filtered"),
        ("mlx5_core", "rx_pcs_symbol_err_phy", "benign"),
        ("mlx5_core", "outbound_pci_stalled_rd", "gauge"),
        ("mlx4_en", "rx0_dropped", "no-memory"),
        ("bnxt_en", "[3]: rx_discards", "ring-full"),
        ("bnxt_en", "rx_fcs_err_frames", "damaged"),
        ("tg3", "rxbds_empty", "waited"),
        ("bnx2x", "[0]: rx_discards", "benign"),
        ("qede", "0: rx_alloc_errors", "no-memory"),
        ("qede", "0_0: stopped_cnt", "waited"),
        ("qede", "mac_filter_discards", "filtered"),
        ("cxgb4", "rx_bg0_frames_dropped", "buffer-full"),
        ("sfc", "port_rx_nodesc_drops", "ring-full"),
        ("atlantic", "Queue[3] AllocFails", "no-memory"),
        ("atlantic", "TC0 Queue[3] InErrors", "failed"),
        ("r8169", "rx_missed", "ring-full"),
        ("r8152", "align_errors", "damaged"),
        ("hns3", "txq0_busy", "waited"),
        ("nfp", "mac.rx_mac_head_drop", "buffer-full"),
        ("enic", "rx_no_bufs", "ring-full"),
        ("be2net", "rxq0: rx_drops_no_frags", "ring-full"),
        ("be2net", "rx_address_filtered", "filtered"),
        ("liquidio", "rx-0-dropped_nomem", "no-memory"),
        ("ena", "bw_in_allowance_exceeded", "allowance"),
        ("ena", "conntrack_allowance_available", "gauge"),
        ("ena", "queue_0_tx_queue_stop", "waited"),
        ("gve", "rx_queue_drop_cnt[3]", "ring-full"),
        ("virtio_net", "rx_queue_0_xdp_drops", "filtered"),
        ("virtio_net", "rx_drops", "failed"),
        ("virtio_net", "rx0_drops", "benign"),
        ("vmxnet3", "pkts rx OOB", "ring-full"),
        ("vmxnet3", "ring full", "waited"),
        ("vmxnet3", "hdr err", "benign"),
        ("hv_netvsc", "tx_no_space", "send-dropped"),
        ("hv_netvsc", "rx_no_memory", "no-memory"),
        ("hv_netvsc", "tx_busy", "waited"),
        ("mana", "hc_rx_discards_no_wqe", "ring-full"),
        ("macb", "rx_resource_errors", "ring-full"),
        ("fec", "IEEE_rx_macerr", "buffer-full"),
        ("st_gmac", "mmc_rx_fifo_overflow", "buffer-full"),
        ("st_gmac", "mac_tx_in_pause", "benign"),
    ] {
        assert_eq!(result_of(driver, name), want, "{driver}: {name}");
    }
}

#[test]
fn pauses_of_priorities_without_a_word_for_them_and_names_of_one_family() {
    for (driver, name, want) in [
        ("st_xgmac", "mmc_rx_fifo_overflow", "buffer-full"),
        ("st_mac100", "mmc_rx_crc_error", "damaged"),
        ("bnxt_en", "rx_pfc_ena_frames_pri0", "pause-received"),
        ("bnxt_en", "tx_pfc_ena_frames_pri0", "pause-sent"),
        ("bnxt_en", "rx_pfc_ena_frames_pri3", "priority-pause"),
        ("bnxt_en", "tx_pfc_ena_frames_pri7", "priority-pause"),
        ("bnxt_en", "rx_pfc_frames", "benign"),
        ("bnxt_en", "rx_pause_frames", "pause-received"),
        ("hns3", "mac_rx_pfc_pri0_pkt_num", "pause-received"),
        ("hns3", "mac_tx_pfc_pri0_pkt_num", "pause-sent"),
        ("hns3", "mac_tx_pfc_pri3_pkt_num", "priority-pause"),
        ("hns3", "mac_rx_pfc_pri3_xoff_time", "benign"),
        ("hns3", "mac_tx_pfc_pkt_num", "benign"),
    ] {
        assert_eq!(result_of(driver, name), want, "{driver}: {name}");
    }
}

#[test]
fn a_name_of_another_driver_has_no_meaning() {
    for name in [
        "rx_pfc_ena_frames_pri0",
        "rx_no_dma_resources",
        "pkts rx OOB",
        "tx_no_space",
        "rx_out_of_buffer",
    ] {
        assert_eq!(result_of("unheard", name), "unknown", "{name}");
    }
    assert_eq!(result_of("unheard", "rx_missed_errors"), "ring-full");
    assert_eq!(result_of("unheard", "rx_crc_errors"), "damaged");
}

#[test]
fn pauses_are_known_by_their_words() {
    for name in [
        "rx_pause",
        "rx_pause_ctrl_phy",
        "rx_prio0_pause",
        "rx_pb_0_pxoff",
        "rx_flow_control_xoff",
        "port.link_xoff_rx",
        "rx_pause_prio_0",
    ] {
        assert_eq!(meaning("", name), Some(Meaning::PauseReceived), "{name}");
    }
    for name in ["tx_pause", "tx_prio0_pause", "link_xoff_tx.nic"] {
        assert_eq!(meaning("", name), Some(Meaning::PauseSent), "{name}");
    }
    for name in ["rx_prio0_pause_duration", "rx_global_pause_duration", "rx_pause_duration_prio_0"]
    {
        assert_eq!(meaning("", name), Some(Meaning::PausedMicros), "{name}");
    }
    for name in [
        "rx_prio3_pause",
        "tx_prio1_pause",
        "port.rx_priority_7_xoff",
        "rx_pb_3_pxoff",
        "rx_pause_prio_3",
        "rx_pause_frames_class3",
    ] {
        assert_eq!(meaning("", name), Some(Meaning::PriorityPause), "{name}");
    }
    for name in [
        "rx_prio3_pause_duration",
        "rx_prio3_pause_transition",
        "tx_prio3_pause_duration",
        "rx_xoff_entered",
        "mac_rx_pause_xoff_time",
    ] {
        assert_eq!(meaning("", name), Some(Meaning::Benign), "{name}");
    }
    for name in [
        "tx_pause_storm_warning_events",
        "rx_flow_control_xon",
        "rx_xon_pause_rcvd",
        "rx_bytes",
        "pause",
    ] {
        assert_eq!(meaning("", name), None, "{name}");
    }
}

#[test]
fn queues_are_summed_and_other_numbers_stay() {
    for (name, want) in [
        ("rx-3.rx_drops", "rx-*.rx_drops"),
        ("queue_0_rx_drops", "queue_*_rx_drops"),
        ("rx_queue_15_drops", "rx_queue_*_drops"),
        ("[3]: rx_discards", "[*]: rx_discards"),
        ("rx0_packets", "rx*_packets"),
        ("0_1: xmit_pkts", "*_*: xmit_pkts"),
        ("TC0 Queue[3] InErrors", "TC* Queue[*] InErrors"),
        ("rx_queue_drop_cnt[12]", "rx_queue_drop_cnt[*]"),
        ("  pkts rx OOB", "pkts rx OOB"),
        ("rxq#0_dropped", "rxq#*_dropped"),
        ("rx_prio3_pause", "rx_prio3_pause"),
        ("rx_err_lane_0_phy", "rx_err_lane_0_phy"),
        ("rx_bg0_frames_dropped", "rx_bg0_frames_dropped"),
        ("os2bmc_rx_by_bmc", "os2bmc_rx_by_bmc"),
        ("1st", "1st"),
        ("", ""),
    ] {
        assert_eq!(name::starred(name), want);
    }
    let counter = |name: &str, value| Counter { name: name.to_owned(), value };
    let all = vec![
        counter("rx_queue_0_drops", 3),
        counter("tx", 1),
        counter("rx_queue_1_drops", u64::MAX),
        counter("rx_queue_2_drops", 4),
    ];
    let want = [counter("rx_queue_*_drops", u64::MAX), counter("tx", 1)];
    assert_eq!(grouped(all), want);
}

#[test]
fn what_is_kept_is_trouble_or_may_be() {
    let kept = |driver: &str, name: &str, value| {
        let name = name.to_owned();
        is_kept(driver, &Counter { name, value })
    };
    assert!(kept("ixgbe", "rx_no_dma_resources", 1));
    assert!(!kept("ixgbe", "rx_no_dma_resources", 0));
    assert!(!kept("ixgbe", "rx_flow_control_xoff", 0));
    assert!(kept("ena", "bw_in_allowance_exceeded", 0));
    assert!(kept("ena", "conntrack_allowance_available", 0));
    assert!(kept("unheard", "some_drops", 1) && !kept("unheard", "some_drops", 0));
    assert!(!kept("unheard", "rx_packets", 1));
    assert!(!kept("mlx5_core", "rx_pcs_symbol_err_phy", 9));
}

#[test]
fn every_trouble_has_something_to_do_and_nothing_else_has() {
    for (trouble, meaning) in [
        (true, Meaning::RingFull),
        (true, Meaning::Allowance),
        (true, Meaning::PauseReceived),
        (false, Meaning::Filtered),
        (false, Meaning::Waited),
        (false, Meaning::Gauge),
        (false, Meaning::Benign),
    ] {
        assert_eq!(meaning.is_trouble(), trouble, "{}", meaning.id());
    }
    assert!(Meaning::RingFull.fix("eth0").contains("-G eth0 rx"));
    assert!(counts_allowances("ena") && !counts_allowances("gve"));
}

proptest::proptest! {
    #[test]
    fn arbitrary_names_never_panic(driver: String, name: String) {
        let _ = (meaning(&driver, &name), sounds_bad(&name), name::starred(&name));
    }
}

#[test]
fn the_packets_that_a_driver_received_are_those_of_all_kinds() {
    let of = |names: &[&str]| {
        let counter = |(value, name): (u64, &&str)| Counter { name: (*name).to_owned(), value };
        received(&(1..).zip(names).map(counter).collect::<Vec<_>>())
    };
    let all = ["RX Unicast Frames", "RX Broadcast Frames", "RX Multicast Frames"];
    assert_eq!(of(&all), Some(6));
    assert_eq!(of(&all[..2]), None, "a part is missing");
    assert_eq!(of(&["rx_bytes", "rx_packets"]), Some(2));
    assert_eq!(of(&["rx_queue_0_packets"]), None);
}

#[test]
fn names_of_unknown_drivers_have_their_likely_meaning() {
    for (name, meaning) in [
        ("RxFcsErr", Some(Meaning::Damaged)),
        ("rx_pcs_symbol_err_phy", None),
        ("rx_missed_errors", Some(Meaning::RingFull)),
        ("rx_no_dma_resource_errs", Some(Meaning::RingFull)),
        ("TxFcsErr", None),
        ("rx_bytes", None),
        ("RxGood", None),
    ] {
        assert_eq!(likely("", name), meaning, "{name}");
    }
    assert_eq!(likely("virtio_net", "RxFcsErr"), None, "its names are known");
}
