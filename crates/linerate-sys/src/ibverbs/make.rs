//! How queues are made.

use std::ffi::c_int;
use std::ptr;

use super::abi::{CompChannel, Cq, Qp, QpCap, QpInitAttr};
use super::device::Device;
use super::endpoint::{QueuePlan, Service};
use super::region::Region;
use super::{Owned, Refused};

/// Makes the channel by which a device wakes a thread.
pub(super) fn channel(device: &Device) -> Result<Owned<CompChannel>, Refused> {
    let library = device.library;
    // SAFETY: the context is open, and the channel is destroyed after its queues.
    unsafe {
        let made = (library.ibv_create_comp_channel)(device.context.as_ptr());
        Owned::take(
            "ibv_create_comp_channel",
            made,
            library.ibv_destroy_comp_channel,
        )
    }
}

/// Makes a queue with room for `most` completions.
pub(super) fn completions(
    device: &Device,
    most: u32,
    channel: *mut CompChannel,
) -> Result<Owned<Cq>, Refused> {
    let library = device.library;
    let most = c_int::try_from(most).unwrap_or(c_int::MAX);
    // SAFETY: the context is open, and the channel is null or exists longer than the queue.
    unsafe {
        let context = device.context.as_ptr();
        let made = (library.ibv_create_cq)(context, most, ptr::null_mut(), channel, 0);
        Owned::take("ibv_create_cq", made, library.ibv_destroy_cq)
    }
}

/// Makes a queue pair; returns it with the inline payload that was granted.
pub(super) fn queue_pair(
    region: &Region,
    plan: &QueuePlan,
    [sent, received]: [&Owned<Cq>; 2],
) -> Result<(Owned<Qp>, u32), Refused> {
    let library = region.device.library;
    let mut inline = plan.inline;
    loop {
        let mut attr = QpInitAttr {
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
            qp_type: match plan.service {
                Service::Rc => 2,
                Service::Uc => 3,
                Service::Ud => 4,
            },
            sq_sig_all: 0,
        };
        // SAFETY: domain and queues exist, and outlive the queue pair, as the order of `Endpoint`'s fields says.
        let made = unsafe {
            let made = (library.ibv_create_qp)(region.pd.as_ptr(), &raw mut attr);
            Owned::take("ibv_create_qp", made, library.ibv_destroy_qp)
        };
        match made {
            // The library writes back what was granted, which may be more.
            Ok(qp) => return Ok((qp, attr.cap.max_inline_data.min(plan.inline))),
            // Which of its numbers a device refuses is not reported. Only this one can be lowered without a loss.
            Err(_) if inline > 0 => inline /= 2,
            Err(refused) => return Err(refused),
        }
    }
}
