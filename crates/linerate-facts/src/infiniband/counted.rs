//! What the counters of RDMA devices mean.
//!
//! Drivers name their counters as they like, but no name means different things in two drivers: one table gives the
//! meaning of each name. A name that is not in the table has no meaning here, is not read during a load, and is never
//! judged.

/// What a counter of an RDMA port counts. The requester is the device whose program posted the request; the responder
/// is the device at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The responder reported a missing packet, and the requester retransmitted.
    MissingReported,
    /// The requester missed a packet of a response, and requested it again.
    ResponseMissing,
    /// The requester got no acknowledgement in time, and retransmitted.
    TimedOut,
    /// The requester retransmitted for any reason, needed or not.
    Retried,
    /// The responder received a request after a gap: a packet is lost or late.
    OutOfOrder,
    /// The responder had no receive request, and reported this to the requester.
    NotReadySent,
    /// The requester got the report that the responder had no receive request.
    NotReadyReceived,
    /// Packets received with the congestion mark of a switch (ECN).
    CongestionMarked,
    /// Congestion notifications that the port sent to the device that should slow down.
    CongestionSent,
    /// Congestion notifications that the port received, so that it should slow down.
    CongestionReceived,
    /// Packets that the port discarded.
    Discarded,
    /// Number of times that the link went down.
    LinkDowned,
    /// Symbols or packets that the wire damaged.
    Damaged,
}

/// Each meaning, with the names of the counters that have it.
//= torvalds/linux, Documentation/ABI/stable/sysfs-class-infiniband: files in `counters`
//= torvalds/linux, drivers/infiniband/hw/mlx5/counters.c: basic_q_cnts, out_of_seq_q_cnts, retrans_q_cnts, cong_cnts,
//= ext_ppcnt_cnts
//= torvalds/linux, drivers/infiniband/hw/mlx4/main.c: diag_basic, diag_ext
//= torvalds/linux, drivers/infiniband/hw/bnxt_re/hw_counters.c: bnxt_re_stat_descs
//= torvalds/linux, drivers/infiniband/hw/irdma/verbs.c: irdma_hw_stat_names
//= torvalds/linux, drivers/infiniband/sw/rxe/rxe_hw_counters.c: rxe_counter_descs; rxe_comp.c counts RXE_CNT_COMP_RETRY
//= for retransmissions of any reason, and says there that some timeouts are spurious
const TABLE: &[(Meaning, &[&str])] = &[
    (
        Meaning::MissingReported,
        &[
            "packet_seq_err",
            "rcvd_seq_err",
            "seq_err_naks_rcvd",
            "sq_num_oos",
            "Nak Sequence Error",
        ],
    ),
    (
        Meaning::ResponseMissing,
        &["implied_nak_seq_err", "missing_resp", "Nak Sequence Error Implied"],
    ),
    (Meaning::TimedOut, &["local_ack_timeout_err", "to_retransmits", "sq_num_to", "RTO"]),
    (Meaning::Retried, &["completer_retry_err"]),
    (
        Meaning::OutOfOrder,
        &[
            "out_of_sequence",
            "out_of_seq_request",
            "oos_drop_count",
            "rq_num_oos",
            "Rcvd Out of order packets",
        ],
    ),
    (Meaning::NotReadySent, &["out_of_buffer", "send_rnr_err", "rq_num_rnr", "RNR sent"]),
    (
        Meaning::NotReadyReceived,
        &["rnr_nak_retry_err", "rcvd_rnr_err", "rnr_naks_rcvd", "sq_num_rnr", "RNR received"],
    ),
    (Meaning::CongestionMarked, &["np_ecn_marked_roce_packets", "RxECNMrkd"]),
    (Meaning::CongestionSent, &["np_cnp_sent", "cnpSent"]),
    (Meaning::CongestionReceived, &["rp_cnp_handled", "cnpHandled"]),
    (Meaning::Discarded, &["port_xmit_discards", "rx_roce_discards"]),
    (Meaning::LinkDowned, &["link_downed"]),
    (
        Meaning::Damaged,
        &[
            "symbol_error",
            "port_rcv_errors",
            "local_link_integrity_errors",
            "excessive_buffer_overrun_errors",
            "rx_icrc_encapsulated",
        ],
    ),
];

impl Meaning {
    /// The meaning of a counter, by the name of its file in sysfs.
    pub fn of(name: &str) -> Option<Self> {
        let row = TABLE.iter().find(|(_, names)| names.contains(&name));
        row.map(|(meaning, _)| *meaning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_and_each_meaning_is_there_once() {
        let names: Vec<_> = TABLE.iter().flat_map(|(_, names)| *names).collect();
        for (number, name) in names.iter().enumerate() {
            assert!(!names[..number].contains(name), "{name}");
        }
        for (number, (meaning, _)) in TABLE.iter().enumerate() {
            assert!(TABLE[..number].iter().all(|(other, _)| other != meaning));
        }
    }

    #[test]
    fn names_of_each_driver_are_known_and_others_mean_nothing() {
        for (name, meaning) in [
            ("local_ack_timeout_err", Some(Meaning::TimedOut)),
            ("rcvd_seq_err", Some(Meaning::MissingReported)),
            ("completer_retry_err", Some(Meaning::Retried)),
            ("rnr_naks_rcvd", Some(Meaning::NotReadyReceived)),
            ("link_downed", Some(Meaning::LinkDowned)),
            ("port_xmit_wait", None),
            ("lifespan", None),
            ("ack_deferred", None),
            ("vport_out_of_sequence", None),
            ("", None),
        ] {
            assert_eq!(Meaning::of(name), meaning, "{name}");
        }
    }
}
