//! Queue pairs: requests are posted to them, and completions say how the requests ended.

mod connect;
mod post;

pub use connect::Route;

use std::ffi::c_int;
use std::sync::Arc;
use std::time::Duration;
use std::{io, ptr};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::BorrowedFd;

use super::abi::{Ah, CompChannel, Cq, Qp, RecvWr, Wc};
use super::calls::Builder;
use super::chain::Chain;
use super::make::{Made, channel, completions, queue_pair};
use super::region::{Region, Remote};
use super::status::Status;
use super::{Owned, Refused};
use post::Prepared;

/// Most completions that one poll returns.
const POLLED: usize = 16;
/// Key of datagrams that both ends use.
const QKEY: u32 = 0x1111_1111;

/// Bytes in front of a received datagram, for the global route header.
//= rdma-core 65.0, libibverbs/man/ibv_post_recv.3
pub const DATAGRAM: usize = 40;

/// The transport service of a queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Unreliable datagram.
    Ud,
}

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// To a receive request that the other end has posted.
    Send,
    /// As [`Verb::Send`], with a number that the receiver's completion has.
    SendWithImmediate,
    /// To the other end's memory.
    Write,
    /// To the other end's memory, with a completion there, which uses up a receive request.
    WriteWithImmediate,
    /// From the other end's memory.
    Read,
    /// Adds to eight bytes of the other end's memory, and returns their old value.
    FetchAndAdd,
}

/// What queue pairs are made for.
#[derive(Debug, Clone, Copy)]
pub struct QueuePlan {
    pub service: Service,
    /// Number of queue pairs, at least one.
    pub pairs: u32,
    /// Port of the device, from 1.
    pub port: u8,
    /// Most requests in flight, of each queue pair.
    pub depth: u32,
    /// Most receive requests posted, of each queue pair.
    pub receives: u32,
    /// Payload that should be copied into a request; less may be granted.
    pub inline: u32,
    /// Whether the thread sleeps until a completion.
    pub events: bool,
    /// Which of the device's interrupts reports completions: the rest of its division by their number.
    pub vector: u32,
    /// Whether the provider's functions build requests (`ibv_wr_*`), if it has them. They are posted as lists
    /// (`ibv_post_send`) otherwise.
    pub calls: bool,
}

/// The other end of a queue pair.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peer {
    /// Number of its queue pair.
    pub number: u32,
    /// Number of its first packet.
    pub first_packet: u32,
    /// Local identifier of its port.
    pub lid: u16,
    /// Its GID.
    pub gid: [u8; 16],
    /// Its memory.
    pub memory: Remote,
}

/// One kind of request, posted as often as wanted.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub verb: Verb,
    /// Payload, in bytes.
    pub len: u32,
    /// Where it is in this end's region.
    pub local: usize,
    /// Where it is in the other end's region.
    pub remote: u64,
}

/// One of the two queues of completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// Of requests that were posted to be sent.
    Sent,
    /// Of receive requests.
    Received,
}

/// How a request ended.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Completion(Wc);

impl Completion {
    /// The number that the request was posted with.
    #[inline]
    pub fn id(&self) -> u64 {
        self.0.wr_id
    }

    #[inline]
    pub fn status(&self) -> Status {
        Status::new(self.0.status)
    }

    /// Error code of the device's maker.
    pub fn vendor_error(&self) -> u32 {
        self.0.vendor_err
    }

    /// Bytes that were received; undefined for requests that were sent. Those of a datagram include [`DATAGRAM`].
    #[inline]
    pub fn bytes(&self) -> u32 {
        self.0.byte_len
    }

    /// Number of the queue pair that sent a datagram; undefined for other services.
    #[inline]
    pub fn source(&self) -> u32 {
        self.0.src_qp
    }

    /// Number that a request with an immediate value had.
    #[inline]
    pub fn immediate(&self) -> u32 {
        u32::from_be(self.0.imm_data)
    }
}

/// A queue pair, with the requests that are posted to it.
struct QueuePair {
    qp: Owned<Qp>,
    address: Option<Owned<Ah>>,
    peer: Peer,
    /// The same queue pair, for requests that its provider's functions build.
    calls: Option<Builder>,
    /// Requests that are posted in one call; `None` before they are prepared.
    prepared: Option<Prepared>,
    receives: Option<Chain<RecvWr>>,
}

/// Queue pairs with common completion queues and memory. Those that it has are numbered from zero.
pub struct Endpoint {
    // The order is that in which they are destroyed.
    pairs: Vec<QueuePair>,
    sent: Owned<Cq>,
    received: Owned<Cq>,
    channel: Option<Owned<CompChannel>>,
    region: Region,
    plan: QueuePlan,
    inline: u32,
    completions: [Completion; POLLED],
}

impl Endpoint {
    /// Makes queue pairs whose requests name places in `region`. If the device has less room for inline payload than
    /// is wanted, less is granted.
    pub fn new(region: Region, plan: QueuePlan) -> Result<Self, Refused> {
        let device = Arc::clone(&region.device);
        let channel = plan.events.then(|| channel(&device)).transpose()?;
        let to = channel.as_ref().map_or(ptr::null_mut(), Owned::as_ptr);
        let count = plan.pairs.max(1);
        let queue = |most: u32| completions(&device, most.saturating_mul(count), to, plan.vector);
        let sent = queue(plan.depth)?;
        let received = queue(plan.receives.max(1))?;
        let mut endpoint = Self {
            pairs: Vec::new(),
            sent,
            received,
            channel,
            region,
            plan,
            inline: plan.inline,
            completions: [Completion(Wc::default()); POLLED],
        };
        for _ in 0..count {
            endpoint.add()?;
        }
        Ok(endpoint)
    }

    /// Makes one more queue pair.
    fn add(&mut self) -> Result<(), Refused> {
        let queues = [&self.sent, &self.received];
        let Made { qp, calls, inline } = queue_pair(&self.region, &self.plan, queues)?;
        self.inline = self.inline.min(inline);
        self.pairs.push(QueuePair {
            qp,
            address: None,
            peer: Peer::default(),
            calls,
            prepared: None,
            receives: None,
        });
        self.initialize(self.pairs.len() - 1)
    }

    /// Returns the numbers by which the other end addresses the queue pairs.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        // SAFETY: the queue pair exists, and its number never changes.
        let number = |pair: &QueuePair| unsafe { (*pair.qp.as_ptr()).qp_num };
        self.pairs.iter().map(number)
    }

    /// Returns how much payload is copied into a request.
    pub fn inline(&self) -> u32 {
        self.inline
    }

    /// Returns the memory of this end.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Copies bytes to an offset of the memory of this end.
    ///
    /// # Panics
    /// If they are not all inside.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.region.write(offset, bytes);
    }

    /// Sets one byte of the memory of this end.
    ///
    /// # Panics
    /// If it is outside.
    #[inline]
    pub fn set_byte(&mut self, offset: usize, byte: u8) {
        self.region.set_byte(offset, byte);
    }

    /// Returns the number of the other end's queue pair that one of this end's is connected to; `None` if there is no
    /// queue pair with this number.
    #[inline]
    pub fn peer(&self, at: usize) -> Option<u32> {
        Some(self.pairs.get(at)?.peer.number)
    }

    /// Returns completions of a queue, at most `most` of them, without waiting.
    #[inline]
    pub fn poll(&mut self, queue: Queue, most: usize) -> Result<&[Completion], Refused> {
        let cq = self.queue(queue);
        let most = most.min(POLLED) as c_int;
        // SAFETY: the queue exists, and its provider has the function, or it is not called. There is room for this many
        // completions, whose layout `Completion` has.
        let got = unsafe {
            match (*(*cq).context).ops.poll_cq {
                Some(poll) => poll(cq, most, self.completions.as_mut_ptr().cast()),
                None => -1,
            }
        };
        let got = usize::try_from(got).map_err(|_| Refused {
            call: "ibv_poll_cq",
            source: io::Error::other("the completion queue overflowed, or its device failed"),
        })?;
        Ok(&self.completions[..got.min(POLLED)])
    }

    fn queue(&self, queue: Queue) -> *mut Cq {
        match queue {
            Queue::Sent => self.sent.as_ptr(),
            Queue::Received => self.received.as_ptr(),
        }
    }

    /// Waits, at most for `most`, until a queue for which [`Endpoint::arm`] was called has a completion.
    pub fn sleep(&mut self, most: Duration) -> Result<(), Refused> {
        let Some(channel) = &self.channel else {
            return Ok(());
        };
        // SAFETY: the channel exists, and its descriptor is open as long as it does.
        let fd = unsafe { BorrowedFd::borrow_raw((*channel.as_ptr()).fd) };
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        let time = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() };
        match poll(&mut fds, Some(&time)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(error) => {
                return Err(Refused { call: "poll", source: error.into() });
            }
        }
        let (mut cq, mut context) = (ptr::null_mut(), ptr::null_mut());
        let library = self.region.device.library;
        // SAFETY: the channel exists; both results are written to variables that live through the call.
        let result =
            unsafe { (library.ibv_get_cq_event)(channel.as_ptr(), &raw mut cq, &raw mut context) };
        Refused::check("ibv_get_cq_event", result)?;
        // SAFETY: the queue is one of the two of this value, which the library returned with its event.
        unsafe { (library.ibv_ack_cq_events)(cq, 1) }
        Ok(())
    }

    /// Requests that the next completion of a queue ends [`Endpoint::sleep`]. A completion that is already there does
    /// not: poll once more after the call.
    pub fn arm(&mut self, queue: Queue) -> Result<(), Refused> {
        let cq = self.queue(queue);
        // SAFETY: the queue exists.
        let result = unsafe {
            match (*(*cq).context).ops.req_notify_cq {
                Some(notify) => notify(cq, 0),
                None => libc::ENOSYS,
            }
        };
        Refused::check("ibv_req_notify_cq", result)
    }
}
