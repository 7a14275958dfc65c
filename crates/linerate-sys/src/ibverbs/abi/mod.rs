//! Structures and constants of libibverbs, as its header declares them.
//!
//! Structures that only the library allocates are declared up to the last field that is read here. The layouts of all
//! other structures are checked when this file is compiled.
//= rdma-core 65.0, libibverbs/verbs.h; offsets of 44.0 and 65.0 were compared

#![expect(clippy::struct_field_names, reason = "fields have the names of the header")]

pub(super) mod extended;

use std::ffi::{c_int, c_uint, c_void};

/// `struct ibv_device` of libibverbs, which is only passed by reference.
#[repr(C)]
pub(super) struct Device {
    opaque: [u8; 0],
}

/// `struct ibv_pd` of libibverbs, which is only passed by reference.
#[repr(C)]
pub(super) struct Pd {
    opaque: [u8; 0],
}

/// `struct ibv_ah` of libibverbs, which is only passed by reference.
#[repr(C)]
pub(super) struct Ah {
    opaque: [u8; 0],
}

/// Function pointer of libibverbs that this crate never calls.
type Unused = *const c_void;

/// Layout of `struct ibv_context_ops`: functions of the device's provider, which inline functions of the header call.
#[repr(C)]
pub(super) struct ContextOps {
    unused: [Unused; 11],
    pub(super) poll_cq: Option<unsafe extern "C" fn(*mut Cq, c_int, *mut Wc) -> c_int>,
    pub(super) req_notify_cq: Option<unsafe extern "C" fn(*mut Cq, c_int) -> c_int>,
    unused_too: [Unused; 12],
    pub(super) post_send:
        Option<unsafe extern "C" fn(*mut Qp, *mut SendWr, *mut *mut SendWr) -> c_int>,
    pub(super) post_recv:
        Option<unsafe extern "C" fn(*mut Qp, *mut RecvWr, *mut *mut RecvWr) -> c_int>,
    unused_rest: [Unused; 5],
}

/// Layout of `struct ibv_context` of libibverbs.
#[repr(C)]
pub(super) struct Context {
    pub(super) device: *mut Device,
    pub(super) ops: ContextOps,
    pub(super) cmd_fd: c_int,
    pub(super) async_fd: c_int,
    pub(super) num_comp_vectors: c_int,
}

/// Layout of `struct ibv_comp_channel` of libibverbs, up to its descriptor.
#[repr(C)]
pub(super) struct CompChannel {
    pub(super) context: *mut Context,
    pub(super) fd: c_int,
}

/// Layout of `struct ibv_cq` of libibverbs, up to its number of entries.
#[repr(C)]
pub(super) struct Cq {
    pub(super) context: *mut Context,
    pub(super) channel: *mut CompChannel,
    pub(super) cq_context: *mut c_void,
    pub(super) handle: u32,
    pub(super) cqe: c_int,
}

/// Layout of `struct ibv_qp` of libibverbs, up to its number.
#[repr(C)]
pub(super) struct Qp {
    pub(super) context: *mut Context,
    pub(super) qp_context: *mut c_void,
    pub(super) pd: *mut Pd,
    pub(super) send_cq: *mut Cq,
    pub(super) recv_cq: *mut Cq,
    pub(super) srq: *mut c_void,
    pub(super) handle: u32,
    pub(super) qp_num: u32,
}

/// Layout of `struct ibv_mr` of libibverbs.
#[repr(C)]
pub(super) struct Mr {
    pub(super) context: *mut Context,
    pub(super) pd: *mut Pd,
    pub(super) addr: *mut c_void,
    pub(super) length: usize,
    pub(super) handle: u32,
    pub(super) lkey: u32,
    pub(super) rkey: u32,
}

/// Layout of `struct ibv_device_attr` of libibverbs.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct DeviceAttr {
    pub(super) fw_ver: [u8; 64],
    pub(super) node_guid: u64,
    pub(super) sys_image_guid: u64,
    pub(super) max_mr_size: u64,
    pub(super) page_size_cap: u64,
    pub(super) vendor_id: u32,
    pub(super) vendor_part_id: u32,
    pub(super) hw_ver: u32,
    pub(super) max_qp: c_int,
    pub(super) max_qp_wr: c_int,
    pub(super) device_cap_flags: c_uint,
    pub(super) max_sge: c_int,
    pub(super) max_sge_rd: c_int,
    pub(super) max_cq: c_int,
    pub(super) max_cqe: c_int,
    pub(super) max_mr: c_int,
    pub(super) max_pd: c_int,
    pub(super) max_qp_rd_atom: c_int,
    pub(super) max_ee_rd_atom: c_int,
    pub(super) max_res_rd_atom: c_int,
    pub(super) max_qp_init_rd_atom: c_int,
    pub(super) max_ee_init_rd_atom: c_int,
    pub(super) atomic_cap: c_int,
    pub(super) unused: [c_int; 14],
    pub(super) max_pkeys: u16,
    pub(super) local_ca_ack_delay: u8,
    pub(super) phys_port_cnt: u8,
}

/// Layout of `struct ibv_port_attr` of libibverbs, with room for fields that later versions append.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct PortAttr {
    pub(super) state: c_int,
    pub(super) max_mtu: c_int,
    pub(super) active_mtu: c_int,
    pub(super) gid_tbl_len: c_int,
    pub(super) port_cap_flags: u32,
    pub(super) max_msg_sz: u32,
    pub(super) bad_pkey_cntr: u32,
    pub(super) qkey_viol_cntr: u32,
    pub(super) pkey_tbl_len: u16,
    pub(super) lid: u16,
    pub(super) sm_lid: u16,
    pub(super) lmc: u8,
    pub(super) max_vl_num: u8,
    pub(super) sm_sl: u8,
    pub(super) subnet_timeout: u8,
    pub(super) init_type_reply: u8,
    pub(super) active_width: u8,
    pub(super) active_speed: u8,
    pub(super) phys_state: u8,
    pub(super) link_layer: u8,
    pub(super) flags: u8,
    pub(super) port_cap_flags2: u16,
    pub(super) appended: [u32; 15],
}

/// Layout of `struct ibv_qp_cap` of libibverbs.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct QpCap {
    pub(super) max_send_wr: u32,
    pub(super) max_recv_wr: u32,
    pub(super) max_send_sge: u32,
    pub(super) max_recv_sge: u32,
    pub(super) max_inline_data: u32,
}

/// Layout of `struct ibv_qp_init_attr_ex` of libibverbs, which begins as `struct ibv_qp_init_attr` does.
#[repr(C)]
pub(super) struct QpInitAttr {
    pub(super) qp_context: *mut c_void,
    pub(super) send_cq: *mut Cq,
    pub(super) recv_cq: *mut Cq,
    pub(super) srq: *mut c_void,
    pub(super) cap: QpCap,
    pub(super) qp_type: c_int,
    pub(super) sq_sig_all: c_int,
    pub(super) comp_mask: u32,
    pub(super) pd: *mut Pd,
    pub(super) unused: [u64; 7],
    pub(super) send_ops_flags: u64,
}

/// Layout of `struct ibv_global_route` of libibverbs.
#[repr(C, align(8))]
#[derive(Clone, Copy, Default)]
pub(super) struct GlobalRoute {
    pub(super) dgid: [u8; 16],
    pub(super) flow_label: u32,
    pub(super) sgid_index: u8,
    pub(super) hop_limit: u8,
    pub(super) traffic_class: u8,
}

/// Layout of `struct ibv_ah_attr` of libibverbs.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct AhAttr {
    pub(super) grh: GlobalRoute,
    pub(super) dlid: u16,
    pub(super) sl: u8,
    pub(super) src_path_bits: u8,
    pub(super) static_rate: u8,
    pub(super) is_global: u8,
    pub(super) port_num: u8,
}

/// Layout of `struct ibv_qp_attr` of libibverbs.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct QpAttr {
    pub(super) qp_state: c_int,
    pub(super) cur_qp_state: c_int,
    pub(super) path_mtu: c_int,
    pub(super) path_mig_state: c_int,
    pub(super) qkey: u32,
    pub(super) rq_psn: u32,
    pub(super) sq_psn: u32,
    pub(super) dest_qp_num: u32,
    pub(super) qp_access_flags: c_uint,
    pub(super) cap: QpCap,
    pub(super) ah_attr: AhAttr,
    pub(super) alt_ah_attr: AhAttr,
    pub(super) pkey_index: u16,
    pub(super) alt_pkey_index: u16,
    pub(super) en_sqd_async_notify: u8,
    pub(super) sq_draining: u8,
    pub(super) max_rd_atomic: u8,
    pub(super) max_dest_rd_atomic: u8,
    pub(super) min_rnr_timer: u8,
    pub(super) port_num: u8,
    pub(super) timeout: u8,
    pub(super) retry_cnt: u8,
    pub(super) rnr_retry: u8,
    pub(super) alt_port_num: u8,
    pub(super) alt_timeout: u8,
    pub(super) rate_limit: u32,
}

/// Layout of `struct ibv_sge` of libibverbs.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Sge {
    pub(super) addr: u64,
    pub(super) length: u32,
    pub(super) lkey: u32,
}

/// Layout of `struct ibv_send_wr` of libibverbs. The union `wr` is declared as words: `remote` for reads, writes and
/// atomic operations, followed by what each kind needs.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct SendWr {
    pub(super) wr_id: u64,
    pub(super) next: *mut SendWr,
    pub(super) sg_list: *mut Sge,
    pub(super) num_sge: c_int,
    pub(super) opcode: c_int,
    pub(super) send_flags: c_uint,
    pub(super) imm_data: u32,
    pub(super) kind: WrKind,
    pub(super) unused: [u64; 7],
}

/// Layout of the union `wr` in `struct ibv_send_wr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) union WrKind {
    pub(super) rdma: WrRdma,
    pub(super) atomic: WrAtomic,
    pub(super) ud: WrUd,
}

/// Layout of `wr.rdma` in `struct ibv_send_wr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct WrRdma {
    pub(super) remote_addr: u64,
    pub(super) rkey: u32,
}

/// Layout of `wr.atomic` in `struct ibv_send_wr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct WrAtomic {
    pub(super) remote_addr: u64,
    pub(super) compare_add: u64,
    pub(super) swap: u64,
    pub(super) rkey: u32,
}

/// Layout of `wr.ud` in `struct ibv_send_wr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct WrUd {
    pub(super) ah: *mut Ah,
    pub(super) remote_qpn: u32,
    pub(super) remote_qkey: u32,
}

/// Layout of `struct ibv_recv_wr` of libibverbs.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RecvWr {
    pub(super) wr_id: u64,
    pub(super) next: *mut RecvWr,
    pub(super) sg_list: *mut Sge,
    pub(super) num_sge: c_int,
}

/// Layout of `struct ibv_wc` of libibverbs.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Wc {
    pub(super) wr_id: u64,
    pub(super) status: c_int,
    pub(super) opcode: c_int,
    pub(super) vendor_err: u32,
    pub(super) byte_len: u32,
    pub(super) imm_data: u32,
    pub(super) qp_num: u32,
    pub(super) src_qp: u32,
    pub(super) wc_flags: c_uint,
    pub(super) pkey_index: u16,
    pub(super) slid: u16,
    pub(super) sl: u8,
    pub(super) dlid_path_bits: u8,
}

/// Values of `enum ibv_qp_state` of libibverbs.
pub(super) mod state {
    use std::ffi::c_int;
    pub(in super::super) const INIT: c_int = 1;
    pub(in super::super) const RTR: c_int = 2;
    pub(in super::super) const RTS: c_int = 3;
}

/// Values of `enum ibv_qp_attr_mask` of libibverbs.
pub(super) mod mask {
    use std::ffi::c_int;
    pub(in super::super) const STATE: c_int = 1;
    pub(in super::super) const ACCESS_FLAGS: c_int = 1 << 3;
    pub(in super::super) const PKEY_INDEX: c_int = 1 << 4;
    pub(in super::super) const PORT: c_int = 1 << 5;
    pub(in super::super) const QKEY: c_int = 1 << 6;
    pub(in super::super) const AV: c_int = 1 << 7;
    pub(in super::super) const PATH_MTU: c_int = 1 << 8;
    pub(in super::super) const TIMEOUT: c_int = 1 << 9;
    pub(in super::super) const RETRY_CNT: c_int = 1 << 10;
    pub(in super::super) const RNR_RETRY: c_int = 1 << 11;
    pub(in super::super) const RQ_PSN: c_int = 1 << 12;
    pub(in super::super) const MAX_QP_RD_ATOMIC: c_int = 1 << 13;
    pub(in super::super) const MIN_RNR_TIMER: c_int = 1 << 15;
    pub(in super::super) const SQ_PSN: c_int = 1 << 16;
    pub(in super::super) const MAX_DEST_RD_ATOMIC: c_int = 1 << 17;
    pub(in super::super) const DEST_QPN: c_int = 1 << 20;
}

/// Values of `enum ibv_access_flags` of libibverbs.
pub(super) mod access {
    use std::ffi::c_uint;
    pub(in super::super) const LOCAL_WRITE: c_uint = 1;
    pub(in super::super) const REMOTE_WRITE: c_uint = 1 << 1;
    pub(in super::super) const REMOTE_READ: c_uint = 1 << 2;
    pub(in super::super) const REMOTE_ATOMIC: c_uint = 1 << 3;
}

/// Values of `enum ibv_wr_opcode` of libibverbs.
pub(super) mod opcode {
    use std::ffi::c_int;
    pub(in super::super) const RDMA_WRITE: c_int = 0;
    pub(in super::super) const RDMA_WRITE_WITH_IMM: c_int = 1;
    pub(in super::super) const SEND: c_int = 2;
    pub(in super::super) const SEND_WITH_IMM: c_int = 3;
    pub(in super::super) const RDMA_READ: c_int = 4;
    pub(in super::super) const ATOMIC_FETCH_AND_ADD: c_int = 6;
}

/// Values of `enum ibv_send_flags` of libibverbs.
pub(super) mod flag {
    use std::ffi::c_uint;
    pub(in super::super) const SIGNALED: c_uint = 1 << 1;
    pub(in super::super) const INLINE: c_uint = 1 << 3;
}

/// Checks of the layouts that the structures have in C.
mod layout {
    use std::mem::{offset_of, size_of};

    use super::{
        AhAttr, CompChannel, Context, ContextOps, Cq, DeviceAttr, GlobalRoute, Mr, PortAttr, Qp,
        QpAttr, QpCap, QpInitAttr, RecvWr, SendWr, Sge, Wc, WrAtomic, WrRdma, WrUd,
    };

    // None of these layouts depends on the size of a mutex, so they apply to all 64-bit architectures.
    const _: () = assert!(cfg!(target_pointer_width = "64"));

    macro_rules! at {
        ($($kind:ident . $field:ident = $offset:literal),* $(,)?) => {
            $(const _: () = assert!(offset_of!($kind, $field) == $offset);)*
        };
    }

    macro_rules! size {
        ($($kind:ident = $size:literal),* $(,)?) => {
            $(const _: () = assert!(size_of::<$kind>() == $size);)*
        };
    }

    size! {
        ContextOps = 256, DeviceAttr = 232, PortAttr = 112, QpCap = 20, QpInitAttr = 136, GlobalRoute = 24,
        AhAttr = 32, QpAttr = 144, Sge = 16, SendWr = 128, RecvWr = 32, Wc = 48, Mr = 48,
    }
    at! {
        ContextOps.poll_cq = 88, ContextOps.req_notify_cq = 96, ContextOps.post_send = 200,
        ContextOps.post_recv = 208, Context.ops = 8, Context.cmd_fd = 264, Context.async_fd = 268,
        Context.num_comp_vectors = 272, CompChannel.fd = 8, Cq.cqe = 28, Qp.qp_num = 52, Mr.lkey = 36,
        Mr.rkey = 40, DeviceAttr.max_qp = 108, DeviceAttr.max_qp_wr = 112, DeviceAttr.max_cqe = 132,
        DeviceAttr.max_qp_rd_atom = 144, DeviceAttr.max_qp_init_rd_atom = 156, DeviceAttr.atomic_cap = 164,
        DeviceAttr.phys_port_cnt = 227, PortAttr.lid = 34, PortAttr.phys_state = 45, PortAttr.link_layer = 46,
        QpInitAttr.cap = 32, QpInitAttr.qp_type = 52, QpInitAttr.comp_mask = 60,
        QpInitAttr.pd = 64, QpInitAttr.send_ops_flags = 128, GlobalRoute.sgid_index = 20, AhAttr.dlid = 24,
        AhAttr.is_global = 29, AhAttr.port_num = 30, QpAttr.cap = 36, QpAttr.ah_attr = 56,
        QpAttr.pkey_index = 120, QpAttr.max_rd_atomic = 126, QpAttr.port_num = 129, QpAttr.rnr_retry = 132,
        QpAttr.rate_limit = 136, SendWr.imm_data = 36, SendWr.kind = 40, WrRdma.rkey = 8, WrAtomic.rkey = 24,
        WrUd.remote_qkey = 12, Wc.byte_len = 20, Wc.wc_flags = 36,
    }
}
