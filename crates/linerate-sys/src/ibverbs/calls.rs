//! Requests that functions of the provider build (`ibv_wr_*`), without a list in memory.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::NonNull;

use super::abi::extended::{
    Begin, BeginAdd, BeginImmediate, BeginRemote, BeginRemoteImmediate, Complete, QpEx, SetAddress,
    SetInline, SetPayload,
};
use super::abi::{Sge, WrUd, flag};
use super::endpoint::Verb;
use super::region::Remote;

/// Function of the provider that begins a request, with its arguments.
#[derive(Clone, Copy)]
enum Operation {
    Send(Begin),
    SendWithImmediate(BeginImmediate),
    Remote(BeginRemote, u32, u64),
    WriteWithImmediate(BeginRemoteImmediate, u32, u64),
    Add(BeginAdd, u32, u64),
}

/// Function of the provider that sets the payload of a request.
#[derive(Clone, Copy)]
enum Payload {
    Inline(SetInline),
    Registered(SetPayload),
}

/// A queue pair whose provider has functions that build requests.
#[derive(Clone, Copy)]
pub(super) struct Builder(pub(super) NonNull<QpEx>);

// SAFETY: objects of libibverbs may be used by any thread.
unsafe impl Send for Builder {}

/// Several equal requests, which are built one after the other and posted together.
pub(super) struct Calls {
    qp: Builder,
    start: Begin,
    complete: Complete,
    operation: Operation,
    address: Option<(SetAddress, WrUd)>,
    payload: Payload,
    sge: Sge,
    /// Flags of each request.
    flags: c_uint,
    /// Number of requests that are posted together.
    len: usize,
}

// SAFETY: as for `Builder`; an address handle is an object of libibverbs as well.
unsafe impl Send for Calls {}

/// Description of a request, which is posted several times.
#[derive(Clone, Copy)]
pub(super) struct Each {
    pub(super) verb: Verb,
    pub(super) sge: Sge,
    pub(super) inline: bool,
    /// Destination or source in the other end's memory.
    pub(super) remote: Remote,
    /// Destination of a datagram; `None` for other services.
    pub(super) address: Option<WrUd>,
}

impl Calls {
    /// Prepares `len` requests; `None` if the queue pair lacks one of the functions.
    ///
    /// # Safety
    /// The queue pair exists as long as the returned value.
    pub(super) unsafe fn new(qp: Builder, each: Each, len: usize) -> Option<Self> {
        // SAFETY: the queue pair exists, and its function pointers never change.
        let of = unsafe { qp.0.as_ref() };
        let Remote { address, key, .. } = each.remote;
        let operation = match each.verb {
            Verb::Send => Operation::Send(of.wr_send?),
            Verb::SendWithImmediate => Operation::SendWithImmediate(of.wr_send_imm?),
            Verb::Write => Operation::Remote(of.wr_rdma_write?, key, address),
            Verb::Read => Operation::Remote(of.wr_rdma_read?, key, address),
            Verb::WriteWithImmediate => {
                Operation::WriteWithImmediate(of.wr_rdma_write_imm?, key, address)
            }
            Verb::FetchAndAdd => Operation::Add(of.wr_atomic_fetch_add?, key, address),
        };
        let address = match each.address {
            Some(to) => Some((of.wr_set_ud_addr?, to)),
            None => None,
        };
        Some(Self {
            qp,
            start: of.wr_start?,
            complete: of.wr_complete?,
            operation,
            address,
            payload: if each.inline {
                Payload::Inline(of.wr_set_inline_data?)
            } else {
                Payload::Registered(of.wr_set_sge?)
            },
            sge: each.sge,
            // Soft-RoCE needs this flag, although the function for inline payload implies it. Without the flag, the
            // copied payload is interpreted as a list of addresses (rdma-core 44.0, Linux 6.1:
            // findings/rxe-inline-needs-flag.sh).
            flags: if each.inline { flag::INLINE } else { 0 },
            len,
        })
    }

    /// Posts the requests; returns an error number, or zero for success. If `signalled`,
    /// the last request reports a completion with the number `id`. Each request has the
    /// immediate value, in network byte order, if its operation has one.
    ///
    /// # Safety
    /// The memory with the payload is registered.
    #[inline]
    pub(super) unsafe fn post(&mut self, signalled: bool, id: u64, immediate: u32) -> c_int {
        let qp = self.qp.0.as_ptr();
        // SAFETY: the queue pair exists, and all functions belong to it. A provider copies the arguments.
        unsafe {
            (self.start)(qp);
            for left in (0..self.len).rev() {
                let is_last = left == 0;
                (*qp).wr_id = if is_last { id } else { 0 };
                (*qp).wr_flags = self.flags | (c_uint::from(is_last && signalled) * flag::SIGNALED);
                self.build(immediate);
            }
            (self.complete)(qp)
        }
    }

    /// Builds one request.
    ///
    /// # Safety
    /// As for [`Calls::post`]; the function that starts the requests was called.
    #[inline]
    unsafe fn build(&mut self, immediate: u32) {
        let qp = self.qp.0.as_ptr();
        // SAFETY: as in `post`.
        unsafe {
            match self.operation {
                Operation::Send(begin) => begin(qp),
                Operation::SendWithImmediate(begin) => begin(qp, immediate),
                Operation::Remote(begin, key, address) => begin(qp, key, address),
                Operation::WriteWithImmediate(begin, key, address) => {
                    begin(qp, key, address, immediate);
                }
                Operation::Add(begin, key, address) => begin(qp, key, address, 1),
            }
            if let Some((set, WrUd { ah, remote_qpn, remote_qkey })) = self.address {
                set(qp, ah, remote_qpn, remote_qkey);
            }
            let Sge { addr, length, lkey } = self.sge;
            match self.payload {
                Payload::Inline(set) => {
                    let at = std::ptr::with_exposed_provenance_mut::<c_void>(addr as usize);
                    set(qp, at, length as usize);
                }
                Payload::Registered(set) => set(qp, lkey, addr, length),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::ptr;

    use super::*;
    use crate::ibverbs::abi::Ah;

    thread_local! {
        static SEEN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }

    fn saw(what: String) {
        SEEN.with_borrow_mut(|seen| seen.push(what));
    }

    unsafe extern "C" fn start(_: *mut QpEx) {
        saw("start".to_owned());
    }
    unsafe extern "C" fn send(qp: *mut QpEx) {
        // SAFETY: the test passes a queue pair that still exists.
        let (id, flags) = unsafe { ((*qp).wr_id, (*qp).wr_flags) };
        saw(format!("send {id} {flags}"));
    }
    unsafe extern "C" fn write_imm(_: *mut QpEx, key: u32, address: u64, immediate: u32) {
        saw(format!("write {key} {address} {immediate}"));
    }
    unsafe extern "C" fn add(_: *mut QpEx, key: u32, address: u64, add: u64) {
        saw(format!("add {key} {address} {add}"));
    }
    unsafe extern "C" fn ud(_: *mut QpEx, _: *mut Ah, number: u32, key: u32) {
        saw(format!("to {number} {key}"));
    }
    unsafe extern "C" fn inline(_: *mut QpEx, at: *mut c_void, len: usize) {
        saw(format!("inline {} {len}", at as usize));
    }
    unsafe extern "C" fn sge(_: *mut QpEx, key: u32, address: u64, len: u32) {
        saw(format!("payload {key} {address} {len}"));
    }
    unsafe extern "C" fn complete(_: *mut QpEx) -> c_int {
        saw("complete".to_owned());
        libc::ENOMEM
    }

    fn pair() -> Box<QpEx> {
        // SAFETY: zeroes are valid values of all fields.
        let mut qp: Box<QpEx> = Box::new(unsafe { std::mem::zeroed() });
        qp.wr_start = Some(start);
        qp.wr_send = Some(send);
        qp.wr_rdma_write_imm = Some(write_imm);
        qp.wr_atomic_fetch_add = Some(add);
        qp.wr_set_ud_addr = Some(ud);
        qp.wr_set_inline_data = Some(inline);
        qp.wr_set_sge = Some(sge);
        qp.wr_complete = Some(complete);
        qp
    }

    fn each(verb: Verb, inline: bool) -> Each {
        Each {
            verb,
            sge: Sge { addr: 64, length: 8, lkey: 3 },
            inline,
            remote: Remote { address: 4096, key: 5, len: 8 },
            address: None,
        }
    }

    /// Posts `len` requests once; returns the calls that the provider's functions received.
    fn posted(each: Each, len: usize) -> Option<Vec<String>> {
        let mut qp = pair();
        // SAFETY: the queue pair lives through this function, and no device reads the memory.
        let result = unsafe {
            let mut calls = Calls::new(Builder(NonNull::from(&mut *qp)), each, len)?;
            calls.post(true, 9, 77)
        };
        assert_eq!(result, libc::ENOMEM, "the provider's error is returned");
        Some(SEEN.take())
    }

    #[test]
    fn requests_are_built_one_by_one_and_only_the_last_completes() {
        let seen = posted(each(Verb::Send, true), 3).unwrap();
        let not_last = ["send 0 8", "inline 64 8"];
        let last = ["send 9 10", "inline 64 8", "complete"];
        assert_eq!(seen, [&["start"][..], &not_last, &not_last, &last].concat());
    }

    #[test]
    fn each_operation_says_where_its_payload_goes() {
        let start = ["start"];
        let end = ["payload 3 64 8", "complete"];
        for (verb, begin) in
            [(Verb::WriteWithImmediate, "write 5 4096 77"), (Verb::FetchAndAdd, "add 5 4096 1")]
        {
            let seen = posted(each(verb, false), 1).unwrap();
            assert_eq!(seen, [&start[..], &[begin], &end].concat(), "{verb:?}");
        }
        let address = Some(WrUd { ah: ptr::null_mut(), remote_qpn: 11, remote_qkey: 13 });
        let datagram = Each { address, ..each(Verb::Send, false) };
        let seen = posted(datagram, 1).unwrap();
        assert_eq!(seen, [&start[..], &["send 9 2", "to 11 13"], &end].concat());
    }

    #[test]
    fn a_queue_pair_without_a_function_is_not_used() {
        for verb in [Verb::Write, Verb::Read, Verb::SendWithImmediate] {
            assert_eq!(posted(each(verb, true), 1), None, "{verb:?}");
        }
    }
}
