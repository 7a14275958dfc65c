//! Requests that are linked to each other, so that one call posts all of them.

use std::ffi::c_uint;
use std::ptr::NonNull;

use super::abi::{RecvWr, SendWr, Sge, flag};

/// A request that can be linked to another one.
pub(super) trait Link: Copy {
    /// Sets the payload, and the request that follows in the chain.
    fn link(&mut self, sge: *mut Sge, next: *mut Self);
}

impl Link for SendWr {
    fn link(&mut self, sge: *mut Sge, next: *mut Self) {
        (self.sg_list, self.next) = (sge, next);
    }
}

impl Link for RecvWr {
    fn link(&mut self, sge: *mut Sge, next: *mut Self) {
        (self.sg_list, self.next) = (sge, next);
    }
}

/// Equal requests that are linked to a chain. Each points to the next one, so they are only accessed by pointers.
pub(super) struct Chain<W: Link> {
    wrs: NonNull<[W]>,
    sge: NonNull<Sge>,
}

// SAFETY: the pointers refer to memory that only this value owns.
unsafe impl<W: Link> Send for Chain<W> {}

impl<W: Link> Chain<W> {
    /// Makes a chain of `len` requests (at least one) with the same payload.
    pub(super) fn new(wr: W, sge: Sge, len: usize) -> Self {
        let sge = NonNull::from(Box::leak(Box::new(sge)));
        let wrs = NonNull::from(Box::leak(vec![wr; len.max(1)].into_boxed_slice()));
        let chain = Self { wrs, sge };
        for at in 0..chain.len() {
            let follows = at + 1 < chain.len();
            let next = if follows { chain.at(at + 1) } else { std::ptr::null_mut() };
            // SAFETY: the element is inside the slice, to which no other reference exists.
            unsafe { (*chain.at(at)).link(sge.as_ptr(), next) }
        }
        chain
    }

    /// Returns the number of requests in the chain.
    pub(super) const fn len(&self) -> usize {
        self.wrs.len()
    }

    /// Returns the request with this index, which must be less than the length.
    const fn at(&self, index: usize) -> *mut W {
        self.first().wrapping_add(index)
    }

    /// Returns the first request of the chain.
    #[inline]
    pub(super) const fn first(&self) -> *mut W {
        self.wrs.as_ptr().cast()
    }
}

impl Chain<SendWr> {
    /// Sets whether the last request reports a completion, the number of
    /// that completion, and the immediate value in network byte order.
    #[inline]
    pub(super) fn sign(&mut self, signalled: bool, id: u64, immediate: u32) {
        let last = self.at(self.len() - 1);
        // SAFETY: the slice has at least one element, and no reference to it exists.
        unsafe {
            (*last).wr_id = id;
            let others = (*last).send_flags & !flag::SIGNALED;
            (*last).send_flags = others | (c_uint::from(signalled) * flag::SIGNALED);
            (*last).imm_data = immediate;
        }
    }
}

impl<W: Link> Drop for Chain<W> {
    fn drop(&mut self) {
        // SAFETY: both pointers were made by leaking a box, and are
        // not used any more, because a provider copies requests.
        unsafe {
            drop(Box::from_raw(self.wrs.as_ptr()));
            drop(Box::from_raw(self.sge.as_ptr()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::super::abi::{WrKind, WrRdma};
    use super::*;

    fn wr() -> SendWr {
        SendWr {
            wr_id: 0,
            next: ptr::null_mut(),
            sg_list: ptr::null_mut(),
            num_sge: 1,
            opcode: 0,
            send_flags: flag::INLINE,
            imm_data: 0,
            kind: WrKind { rdma: WrRdma { remote_addr: 7, rkey: 9 } },
            unused: [0; 7],
        }
    }

    #[test]
    fn requests_are_linked_and_only_the_last_completes() {
        for len in [1, 2, 16] {
            let sge = Sge { addr: 1, length: 2, lkey: 3 };
            let mut chain = Chain::new(wr(), sge, len);
            chain.sign(true, 5, 7);
            let mut seen = Vec::new();
            let mut at = chain.first();
            while !at.is_null() {
                // SAFETY: the request is part of the chain, which still exists.
                let (wr, sge) = unsafe { (*at, *(*at).sg_list) };
                assert_eq!((sge.addr, sge.length, sge.lkey), (1, 2, 3));
                seen.push((wr.wr_id, wr.send_flags, wr.imm_data));
                at = wr.next;
            }
            assert_eq!(seen.len(), len);
            assert_eq!(seen.pop(), Some((5, flag::INLINE | flag::SIGNALED, 7)));
            assert!(seen.iter().all(|wr| *wr == (0, flag::INLINE, 0)));
            chain.sign(false, 6, 0);
            // SAFETY: as above.
            assert_eq!(unsafe { (*chain.at(len - 1)).send_flags }, flag::INLINE);
        }
    }
}
