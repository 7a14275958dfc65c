//! Requests of an endpoint: they are prepared once, and posted many times.

use std::ffi::c_int;
use std::ptr;

use super::super::Refused;
use super::super::abi::{RecvWr, SendWr, Sge, WrAtomic, WrKind, WrRdma, WrUd, flag, opcode};
use super::super::calls::{Calls, Each};
use super::super::chain::Chain;
use super::super::region::Remote;
use super::{Endpoint, QKEY, QueuePair, Request, Service, Verb};

/// Requests that are posted in one call.
pub(super) enum Prepared {
    List(Chain<SendWr>),
    Calls(Calls),
}

impl Endpoint {
    /// Sets the request that [`Endpoint::post`] posts to each queue pair. One call posts it `chained` times.
    ///
    /// # Panics
    /// If the payload is not inside this end's region, if `chained` is zero, or if a queue pair for datagrams is not
    /// connected.
    pub fn prepare(&mut self, request: Request, chained: usize) {
        assert!(chained > 0);
        let (addr, lkey) = self.region.local(request.local, request.len as usize);
        let inline = request.verb.carries_payload() && request.len <= self.inline;
        let sge = Sge { addr, length: request.len, lkey };
        for pair in &mut self.pairs {
            let each = Each {
                verb: request.verb,
                sge,
                inline,
                remote: pair.remote(request),
                address: (self.plan.service == Service::Ud).then(|| pair.address()),
            };
            pair.prepared = Some(pair.prepared(each, chained));
        }
    }

    /// Posts the prepared requests to queue pair `at`. If `signalled`, the last one reports a completion with the
    /// number `id`, which proves that all earlier requests are complete.
    ///
    /// # Panics
    /// If no request was prepared.
    #[inline]
    pub fn post(&mut self, at: usize, signalled: bool, id: u64) -> Result<(), Refused> {
        self.post_prepared(at, signalled, id, 0)
    }

    /// Posts the prepared requests with an immediate value to the first queue pair.
    ///
    /// # Panics
    /// If no request was prepared.
    #[inline]
    pub fn post_with(&mut self, immediate: u32, signalled: bool, id: u64) -> Result<(), Refused> {
        self.post_prepared(0, signalled, id, immediate.to_be())
    }

    #[inline]
    fn post_prepared(
        &mut self,
        at: usize,
        signalled: bool,
        id: u64,
        immediate: u32,
    ) -> Result<(), Refused> {
        let pair = &mut self.pairs[at];
        let Some(prepared) = &mut pair.prepared else {
            panic!("no request was prepared");
        };
        match prepared {
            Prepared::Calls(calls) => {
                // SAFETY: the memory belongs to the region, which lives as long as this value.
                let result = unsafe { calls.post(signalled, id, immediate) };
                Refused::check("ibv_wr_complete", result)
            }
            Prepared::List(chain) => {
                chain.sign(signalled, id, immediate);
                let mut bad = ptr::null_mut();
                // SAFETY: the queue pair exists, and it was checked that its provider has the function. The chain and
                // the memory to which it refers live as long as this value. The provider copies the requests.
                let result = unsafe {
                    let qp = pair.qp.as_ptr();
                    match (*(*qp).context).ops.post_send {
                        Some(post) => post(qp, chain.first(), &raw mut bad),
                        None => libc::ENOSYS,
                    }
                };
                Refused::check("ibv_post_send", result)
            }
        }
    }

    /// Sets the receive requests that [`Endpoint::post_receives`] posts, `chained` of
    /// them in one call. They are for messages of at most `len` bytes, and all use
    /// the same offset. Their completions contain the number of their queue pair.
    ///
    /// # Panics
    /// If the messages would not be inside this end's region.
    pub fn prepare_receives(&mut self, offset: usize, len: usize, chained: usize) {
        let (addr, lkey) = self.region.local(offset, len);
        let sge = Sge { addr, length: len as u32, lkey };
        for (wr_id, pair) in (0..).zip(&mut self.pairs) {
            let wr = RecvWr {
                wr_id,
                next: ptr::null_mut(),
                sg_list: ptr::null_mut(),
                num_sge: c_int::from(len > 0),
            };
            pair.receives = Some(Chain::new(wr, sge, chained));
        }
    }

    /// Posts the prepared receive requests to a queue pair; returns their number.
    ///
    /// # Panics
    /// If no receive requests were prepared.
    #[inline]
    pub fn post_receives(&mut self, at: usize) -> Result<u32, Refused> {
        let pair = &self.pairs[at];
        let Some(chain) = &pair.receives else {
            panic!("no receive request was prepared");
        };
        let mut bad = ptr::null_mut();
        // SAFETY: as in `post_prepared`.
        let result = unsafe {
            let qp = pair.qp.as_ptr();
            match (*(*qp).context).ops.post_recv {
                Some(post) => post(qp, chain.first(), &raw mut bad),
                None => libc::ENOSYS,
            }
        };
        Refused::check("ibv_post_recv", result)?;
        Ok(chain.len() as u32)
    }
}

impl QueuePair {
    /// Prepares a request, `chained` times, in the form for which the queue pair was made.
    fn prepared(&self, each: Each, chained: usize) -> Prepared {
        let list = Prepared::List(Chain::new(each.wr(), each.sge, chained));
        // SAFETY: the queue pair exists as long as this value, which will own the requests.
        let calls = self.calls.and_then(|qp| unsafe { Calls::new(qp, each, chained) });
        calls.map_or(list, Prepared::Calls)
    }

    /// Returns the memory of the other end that a request uses.
    const fn remote(&self, request: Request) -> Remote {
        let memory = self.peer.memory;
        Remote { address: memory.address.wrapping_add(request.remote), ..memory }
    }

    /// Returns the destination of datagrams.
    fn address(&self) -> WrUd {
        let Some(address) = &self.address else {
            panic!("the queue pair is not connected");
        };
        WrUd { ah: address.as_ptr(), remote_qpn: self.peer.number, remote_qkey: QKEY }
    }
}

impl Each {
    /// Returns the request as an entry of a list.
    fn wr(&self) -> SendWr {
        let Remote { address, key, .. } = self.remote;
        let rdma = WrRdma { remote_addr: address, rkey: key };
        let atomic = WrAtomic { remote_addr: address, compare_add: 1, swap: 0, rkey: key };
        SendWr {
            wr_id: 0,
            next: ptr::null_mut(),
            sg_list: ptr::null_mut(),
            num_sge: 1,
            opcode: self.verb.opcode(),
            send_flags: if self.inline { flag::INLINE } else { 0 },
            imm_data: 0,
            kind: match (self.address, self.verb) {
                (Some(ud), _) => WrKind { ud },
                (None, Verb::FetchAndAdd) => WrKind { atomic },
                (None, _) => WrKind { rdma },
            },
            unused: [0; 7],
        }
    }
}

impl Verb {
    const fn opcode(self) -> c_int {
        match self {
            Self::Send => opcode::SEND,
            Self::SendWithImmediate => opcode::SEND_WITH_IMM,
            Self::Write => opcode::RDMA_WRITE,
            Self::WriteWithImmediate => opcode::RDMA_WRITE_WITH_IMM,
            Self::Read => opcode::RDMA_READ,
            Self::FetchAndAdd => opcode::ATOMIC_FETCH_AND_ADD,
        }
    }

    /// Returns whether payload is sent with the request, so that it can be inline.
    const fn carries_payload(self) -> bool {
        !matches!(self, Self::Read | Self::FetchAndAdd)
    }
}
