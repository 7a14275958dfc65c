//! The interface of libibverbs with which programs build requests by functions of the provider (`ibv_wr_*`), not as
//! lists in memory. A provider may lack it.
//!
//! In its structures, fields follow a mutex of the C library, whose size depends on the architecture.
//= rdma-core 44.0, libibverbs/verbs.h; offsets were compared with those of gcc for x86-64

use std::ffi::{c_int, c_uint, c_void};
use std::mem::{offset_of, size_of};

use super::{Ah, Context, Qp, QpInitAttr, Unused};

/// Layout of `struct ibv_qp` of libibverbs.
#[repr(C)]
struct WholeQp {
    head: Qp,
    state: c_int,
    qp_type: c_int,
    mutex: libc::pthread_mutex_t,
    cond: libc::pthread_cond_t,
    events_completed: u32,
}

/// Function that begins a request.
pub(in super::super) type Begin = unsafe extern "C" fn(*mut QpEx);
/// Function that begins a request with an immediate value in network byte order.
pub(in super::super) type BeginImmediate = unsafe extern "C" fn(*mut QpEx, u32);
/// Function that begins a request to the other end's memory. Its parameters are the key and the address of that memory.
pub(in super::super) type BeginRemote = unsafe extern "C" fn(*mut QpEx, u32, u64);
/// As [`BeginRemote`], with an immediate value in network byte order as the last parameter.
pub(in super::super) type BeginRemoteImmediate = unsafe extern "C" fn(*mut QpEx, u32, u64, u32);
/// As [`BeginRemote`], with the number to add as the last parameter.
pub(in super::super) type BeginAdd = unsafe extern "C" fn(*mut QpEx, u32, u64, u64);
/// Function that sets the destination of a datagram. Its parameters are the address, the queue pair and its key.
pub(in super::super) type SetAddress = unsafe extern "C" fn(*mut QpEx, *mut Ah, u32, u32);
/// Function that copies payload into a request. Its parameters are the address and the length of the payload.
pub(in super::super) type SetInline = unsafe extern "C" fn(*mut QpEx, *mut c_void, usize);
/// Function that sets payload in registered memory. Its parameters are the key, the address and the length.
pub(in super::super) type SetPayload = unsafe extern "C" fn(*mut QpEx, u32, u64, u32);
/// Function that posts the requests that were built.
pub(in super::super) type Complete = unsafe extern "C" fn(*mut QpEx) -> c_int;

/// Layout of `struct ibv_qp_ex` of libibverbs, up to the last function that is used here.
#[repr(C)]
pub(in super::super) struct QpEx {
    base: WholeQp,
    comp_mask: u64,
    pub(in super::super) wr_id: u64,
    pub(in super::super) wr_flags: c_uint,
    wr_atomic_cmp_swp: Unused,
    pub(in super::super) wr_atomic_fetch_add: Option<BeginAdd>,
    wr_bind_mw: Unused,
    wr_local_inv: Unused,
    pub(in super::super) wr_rdma_read: Option<BeginRemote>,
    pub(in super::super) wr_rdma_write: Option<BeginRemote>,
    pub(in super::super) wr_rdma_write_imm: Option<BeginRemoteImmediate>,
    pub(in super::super) wr_send: Option<Begin>,
    pub(in super::super) wr_send_imm: Option<BeginImmediate>,
    wr_send_inv: Unused,
    wr_send_tso: Unused,
    pub(in super::super) wr_set_ud_addr: Option<SetAddress>,
    wr_set_xrc_srqn: Unused,
    pub(in super::super) wr_set_inline_data: Option<SetInline>,
    wr_set_inline_data_list: Unused,
    pub(in super::super) wr_set_sge: Option<SetPayload>,
    wr_set_sge_list: Unused,
    pub(in super::super) wr_start: Option<Begin>,
    pub(in super::super) wr_complete: Option<Complete>,
}

/// Layout of `struct ibv_context` of libibverbs.
#[repr(C)]
struct WholeContext {
    head: Context,
    mutex: libc::pthread_mutex_t,
    abi_compat: *mut c_void,
}

/// Function of the provider that makes a queue pair with these attributes; null if it fails.
pub(in super::super) type Create = unsafe extern "C" fn(*mut Context, *mut QpInitAttr) -> *mut Qp;

/// The last fields of `struct verbs_context`. Later versions add fields at its beginning.
#[repr(C)]
struct Extended {
    create_qp_ex: Option<Create>,
    unused: [Unused; 4],
    placeholder: u64,
    sz: usize,
    context: WholeContext,
}

/// Value of `abi_compat` in a context that is part of a `struct verbs_context`.
const IS_EXTENDED: usize = usize::MAX;

/// Returns the provider's function that makes queue pairs with this interface; `None` if the provider has none.
///
/// # Safety
/// The library made the context, and it is open.
pub(in super::super) unsafe fn creator(context: *mut Context) -> Option<Create> {
    let whole = context.cast::<WholeContext>();
    // SAFETY: the library makes whole contexts.
    if unsafe { (*whole).abi_compat } as usize != IS_EXTENDED {
        return None;
    }
    // `sz` is the size from the first field that the library has to the end of the structure.
    let extended = whole.wrapping_byte_sub(offset_of!(Extended, context)).cast::<Extended>();
    // SAFETY: the context is part of a larger structure, and the field with its size precedes the context.
    let size = unsafe { (*extended).sz };
    if size < size_of::<Extended>() {
        return None;
    }
    // SAFETY: the structure has the field, as its size shows.
    unsafe { (*extended).create_qp_ex }
}

/// Values of `enum ibv_qp_init_attr_mask` of libibverbs.
pub(in super::super) mod attr {
    pub(in super::super::super) const PD: u32 = 1;
    pub(in super::super::super) const SEND_OPS: u32 = 1 << 6;
}

/// Values of `enum ibv_qp_create_send_ops_flags` of libibverbs.
pub(in super::super) mod send_ops {
    pub(in super::super::super) const WRITE: u64 = 1;
    pub(in super::super::super) const WRITE_WITH_IMM: u64 = 1 << 1;
    pub(in super::super::super) const SEND: u64 = 1 << 2;
    pub(in super::super::super) const SEND_WITH_IMM: u64 = 1 << 3;
    pub(in super::super::super) const READ: u64 = 1 << 4;
    pub(in super::super::super) const FETCH_AND_ADD: u64 = 1 << 6;
}

/// Checks of the layouts that the structures have in C. Offsets behind
/// a mutex or a condition variable are relative to their sizes.
const _: () = {
    let qp = size_of::<libc::pthread_mutex_t>() + size_of::<libc::pthread_cond_t>() + 72;
    assert!(size_of::<WholeQp>() == qp && offset_of!(WholeQp, mutex) == 64);
    assert!(offset_of!(QpEx, wr_id) == qp + 8 && offset_of!(QpEx, wr_flags) == qp + 16);
    assert!(offset_of!(QpEx, wr_atomic_fetch_add) == qp + 32);
    assert!(offset_of!(QpEx, wr_rdma_write) == qp + 64 && offset_of!(QpEx, wr_send) == qp + 80);
    assert!(offset_of!(QpEx, wr_set_ud_addr) == qp + 112);
    assert!(offset_of!(QpEx, wr_set_inline_data) == qp + 128);
    assert!(offset_of!(QpEx, wr_set_sge) == qp + 144 && offset_of!(QpEx, wr_complete) == qp + 168);
    assert!(offset_of!(WholeContext, mutex) == 280);
    let compat = 280 + size_of::<libc::pthread_mutex_t>();
    assert!(offset_of!(WholeContext, abi_compat) == compat);
    assert!(offset_of!(Extended, sz) == 48 && offset_of!(Extended, context) == 56);
};

/// Checks of the layouts on x86-64, as the C compiler of this architecture reports them.
#[cfg(target_arch = "x86_64")]
const _: () = {
    assert!(size_of::<WholeQp>() == 160 && size_of::<WholeContext>() == 328);
    assert!(offset_of!(QpEx, wr_complete) == 328);
};

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn create(_: *mut Context, _: *mut QpInitAttr) -> *mut Qp {
        std::ptr::null_mut()
    }

    #[test]
    fn only_a_context_that_is_large_enough_has_the_function() {
        let size = size_of::<Extended>();
        for (compat, sz, create_qp_ex, has) in [
            (IS_EXTENDED, size, Some(create as Create), true),
            (IS_EXTENDED, size + 256, Some(create as Create), true),
            (IS_EXTENDED, size - 1, Some(create as Create), false),
            (IS_EXTENDED, size, None, false),
            (0, size, Some(create as Create), false),
        ] {
            // SAFETY: zeros are values of all fields.
            let mut extended: Box<Extended> = Box::new(unsafe { std::mem::zeroed() });
            extended.create_qp_ex = create_qp_ex;
            extended.sz = sz;
            extended.context.abi_compat = std::ptr::without_provenance_mut(compat);
            let at = &raw mut *extended;
            // SAFETY: the context is a part of a structure that lives.
            let found = unsafe { creator((&raw mut (*at).context).cast()) };
            assert_eq!(found.is_some(), has, "{compat} {sz}");
        }
    }
}
