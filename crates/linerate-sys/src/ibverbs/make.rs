//! Functions that make completion queues and queue pairs.

use std::ffi::c_int;
use std::ptr::{self, NonNull};

use super::abi::extended::{attr, creator, send_ops};
use super::abi::{CompChannel, Cq, Qp, QpCap, QpInitAttr};
use super::calls::Builder;
use super::device::Device;
use super::endpoint::{QueuePlan, Service};
use super::region::Region;
use super::{Owned, Refused};

/// Makes the completion channel, by which a device wakes a thread.
pub(super) fn channel(device: &Device) -> Result<Owned<CompChannel>, Refused> {
    let library = device.library;
    // SAFETY: the context is open, and the channel is destroyed after its queues.
    unsafe {
        let made = (library.ibv_create_comp_channel)(device.context.as_ptr());
        Owned::take("ibv_create_comp_channel", made, library.ibv_destroy_comp_channel)
    }
}

/// Makes a completion queue with room for `most` completions. Interrupt `vector` of the device reports them.
pub(super) fn completions(
    device: &Device,
    most: u32,
    channel: *mut CompChannel,
    vector: u32,
) -> Result<Owned<Cq>, Refused> {
    let library = device.library;
    let most = c_int::try_from(most).unwrap_or(c_int::MAX);
    // SAFETY: the context is open, and the channel is null or exists longer than the queue.
    unsafe {
        let context = device.context.as_ptr();
        let vectors = (*context).num_comp_vectors.max(1).cast_unsigned();
        let vector = (vector % vectors).cast_signed();
        let made = (library.ibv_create_cq)(context, most, ptr::null_mut(), channel, vector);
        Owned::take("ibv_create_cq", made, library.ibv_destroy_cq)
    }
}

/// A new queue pair, and what was granted for it.
pub(super) struct Made {
    pub(super) qp: Owned<Qp>,
    /// The queue pair in the form that the provider's functions for requests need; `None` if it has no such functions.
    pub(super) calls: Option<Builder>,
    /// Number of inline payload bytes that were granted.
    pub(super) inline: u32,
}

/// Makes a queue pair. If the device refuses it, tries again with less inline payload.
pub(super) fn queue_pair(
    region: &Region,
    plan: &QueuePlan,
    queues: [&Owned<Cq>; 2],
) -> Result<Made, Refused> {
    // A device does not report which number it refuses. Only the size of inline payload can be reduced without a loss.
    let mut result = made(region, plan, queues, plan.inline);
    for inline in smaller(plan.inline) {
        if result.is_ok() {
            break;
        }
        result = made(region, plan, queues, inline);
    }
    result
}

/// Returns the sizes of inline payload that are tried, one after the other, if a device refuses `requested` bytes.
//= torvalds/linux, drivers/infiniband/hw/bnxt_re/qplib_fp.h: BNXT_QPLIB_SWQE_MAX_INLINE_LENGTH, 96
//= torvalds/linux, drivers/infiniband/hw/irdma/i40iw_hw.h: I40IW_MAX_INLINE_DATA_SIZE, 48
fn smaller(requested: u32) -> impl Iterator<Item = u32> {
    let sizes = [2048, 1024, 512, 256, 128, 96, 64, 48, 32, 16, 0];
    sizes.into_iter().filter(move |size| *size < requested)
}

/// Makes a queue pair with room for `inline` bytes of inline payload.
fn made(
    region: &Region,
    plan: &QueuePlan,
    queues: [&Owned<Cq>; 2],
    inline: u32,
) -> Result<Made, Refused> {
    let mut attr = attributes(region, plan, queues, inline);
    let (qp, calls) = if let Some((qp, calls)) = with_calls(region, plan, &mut attr) {
        (qp, Some(calls))
    } else {
        attr = attributes(region, plan, queues, inline);
        (plain(region, &mut attr)?, None)
    };
    // The library has stored the granted size, which may be larger than the requested one.
    let inline = attr.cap.max_inline_data.min(plan.inline);
    Ok(Made { qp, calls, inline })
}

fn attributes(
    region: &Region,
    plan: &QueuePlan,
    [sent, received]: [&Owned<Cq>; 2],
    inline: u32,
) -> QpInitAttr {
    let (qp_type, send_ops_flags) = match plan.service {
        Service::Rc => (2, UNRELIABLE | send_ops::READ | send_ops::FETCH_AND_ADD),
        Service::Uc => (3, UNRELIABLE),
        Service::Ud => (4, DATAGRAMS),
    };
    QpInitAttr {
        qp_context: ptr::null_mut(),
        send_cq: sent.as_ptr(),
        recv_cq: received.as_ptr(),
        srq: ptr::null_mut(),
        cap: QpCap {
            max_send_wr: plan.depth,
            max_recv_wr: plan.receives,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: inline,
        },
        qp_type,
        sq_sig_all: 0,
        comp_mask: attr::PD | attr::SEND_OPS,
        pd: region.pd.as_ptr(),
        unused: [0; 7],
        send_ops_flags,
    }
}

/// Operations of unreliable datagrams, and of unreliable connections.
const DATAGRAMS: u64 = send_ops::SEND | send_ops::SEND_WITH_IMM;
const UNRELIABLE: u64 = DATAGRAMS | send_ops::WRITE | send_ops::WRITE_WITH_IMM;

/// Makes a queue pair with functions that build requests; `None` if they are not requested or the provider has none.
fn with_calls(
    region: &Region,
    plan: &QueuePlan,
    attr: &mut QpInitAttr,
) -> Option<(Owned<Qp>, Builder)> {
    let device = &region.device;
    let convert = device.library.ibv_qp_to_qp_ex.filter(|_| plan.calls)?;
    // SAFETY: the context is open. The protection domain and the queues exist, and outlive the queue pair because of
    // the order of the fields of `Endpoint`.
    unsafe {
        let context = device.context.as_ptr();
        let made = creator(context)?(context, attr);
        let qp = Owned::take("create_qp_ex", made, device.library.ibv_destroy_qp).ok()?;
        let calls = NonNull::new(convert(qp.as_ptr())).map(Builder)?;
        Some((qp, calls))
    }
}

/// Makes a queue pair without such functions: lists of requests are posted to it.
fn plain(region: &Region, attr: &mut QpInitAttr) -> Result<Owned<Qp>, Refused> {
    let library = region.device.library;
    // SAFETY: as in `with_calls`.
    unsafe {
        let made = (library.ibv_create_qp)(region.pd.as_ptr(), attr);
        Owned::take("ibv_create_qp", made, library.ibv_destroy_qp)
    }
}

#[cfg(test)]
mod tests {
    use super::smaller;

    #[test]
    fn a_device_that_refuses_is_asked_for_less_down_to_nothing() {
        let all = |requested| smaller(requested).collect::<Vec<_>>();
        assert_eq!(all(220), [128, 96, 64, 48, 32, 16, 0]);
        assert_eq!(all(64), [48, 32, 16, 0], "not the same again");
        assert_eq!(all(4096)[0], 2048);
        assert_eq!(all(1), [0]);
        assert_eq!(all(0), [0; 0]);
    }
}
