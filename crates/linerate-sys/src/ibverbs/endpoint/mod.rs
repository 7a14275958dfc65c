//! Queue pairs: requests are posted to them, and completions report how the requests ended.

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

/// Largest number of completions that one poll returns.
const POLLED: usize = 16;
/// Key (Q_Key) of datagrams, which both ends use.
const QKEY: u32 = 0x1111_1111;

/// Bytes before the payload in the buffer of a received datagram, for the global route header.
//= rdma-core 65.0, libibverbs/man/ibv_post_recv.3
pub const DATAGRAM: usize = 40;

/// The transport service of a queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Reliable connection: packets are acknowledged and sent again if lost.
    Rc,
    /// Unreliable connection: lost packets are not sent again.
    Uc,
    /// Unreliable datagrams, without a connection.
    Ud,
}

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Sends payload to a receive request that the other end has posted.
    Send,
    /// As [`Verb::Send`], with a number that the completion at the receiver contains.
    SendWithImmediate,
    /// Writes payload to the other end's memory.
    Write,
    /// Writes payload to the other end's memory, with a completion there, which uses up one receive request.
    WriteWithImmediate,
    /// Reads payload from the other end's memory.
    Read,
    /// Adds to eight bytes of the other end's memory, and returns their old value.
    FetchAndAdd,
}

/// Settings of the queue pairs of an endpoint.
#[derive(Debug, Clone, Copy)]
pub struct QueuePlan {
    pub service: Service,
    /// Number of queue pairs, at least one.
    pub pairs: u32,
    /// Port of the device, numbered from 1.
    pub port: u8,
    /// Largest number of requests in flight, for each queue pair.
    pub depth: u32,
    /// Largest number of posted receive requests, for each queue pair.
    pub receives: u32,
    /// Requested number of payload bytes that are copied into a request; fewer may be granted.
    pub inline: u32,
    /// Whether the thread can sleep until a completion arrives.
    pub events: bool,
    /// Number of the device's interrupt that reports completions, modulo the number of its interrupts.
    pub vector: u32,
    /// Whether functions of the provider build requests (`ibv_wr_*`), if the provider has them. Otherwise requests are
    /// posted as lists (`ibv_post_send`).
    pub calls: bool,
}

/// Data about the other end of a queue pair.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peer {
    /// Number of the other end's queue pair.
    pub number: u32,
    /// Number of the first packet from the other end.
    pub first_packet: u32,
    /// LID of the other end's port.
    pub lid: u16,
    /// GID of the other end's port.
    pub gid: [u8; 16],
    /// Memory of the other end.
    pub memory: Remote,
}

/// A request that can be posted many times.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub verb: Verb,
    /// Length of the payload, in bytes.
    pub len: u32,
    /// Offset of the payload in this end's region.
    pub local: usize,
    /// Offset of the payload in the other end's region.
    pub remote: u64,
}

/// One of the two completion queues of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// Completions of requests that were posted to be sent.
    Sent,
    /// Completions of receive requests.
    Received,
}

/// Report of a device about how a request ended.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Completion(Wc);

impl Completion {
    /// Returns the number with which the request was posted.
    #[inline]
    pub fn id(&self) -> u64 {
        self.0.wr_id
    }

    #[inline]
    pub fn status(&self) -> Status {
        Status::new(self.0.status)
    }

    /// Returns the error code of the device's vendor.
    pub fn vendor_error(&self) -> u32 {
        self.0.vendor_err
    }

    /// Returns the number of bytes that were received, for a
    /// datagram including [`DATAGRAM`]. Undefined for sent requests.
    #[inline]
    pub fn bytes(&self) -> u32 {
        self.0.byte_len
    }

    /// Returns the number of the queue pair that sent a datagram; undefined for other services.
    #[inline]
    pub fn source(&self) -> u32 {
        self.0.src_qp
    }

    /// Returns the immediate value with which the other end sent the request.
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
    /// The queue pair as functions of the provider use it; `None` if requests are posted as lists.
    calls: Option<Builder>,
    /// Requests that are posted in one call; `None` until they are prepared.
    prepared: Option<Prepared>,
    receives: Option<Chain<RecvWr>>,
}

/// Queue pairs that share completion queues and memory. They are numbered from zero.
pub struct Endpoint {
    // The order of the fields is that in which the objects must be destroyed.
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
    /// Makes queue pairs whose requests use memory of `region`. If the
    /// device supports less inline payload than requested, less is granted.
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

    /// Adds one queue pair.
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

    /// Returns the numbers of the queue pairs, which the other end needs to connect to them.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        // SAFETY: the queue pair exists, and its number never changes.
        let number = |pair: &QueuePair| unsafe { (*pair.qp.as_ptr()).qp_num };
        self.pairs.iter().map(number)
    }

    /// Returns the number of payload bytes that may be copied into a request.
    pub fn inline(&self) -> u32 {
        self.inline
    }

    /// Returns the registered memory of this end.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Copies bytes to an offset in the memory of this end.
    ///
    /// # Panics
    /// If the bytes at this offset are not all inside the memory.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.region.write(offset, bytes);
    }

    /// Sets one byte in the memory of this end.
    ///
    /// # Panics
    /// If the byte is outside the memory.
    #[inline]
    pub fn set_byte(&mut self, offset: usize, byte: u8) {
        self.region.set_byte(offset, byte);
    }

    /// Returns the number of the other end's queue pair to which queue pair
    /// `at` of this end is connected. `None` if there is no queue pair `at`.
    #[inline]
    pub fn peer(&self, at: usize) -> Option<u32> {
        Some(self.pairs.get(at)?.peer.number)
    }

    /// Returns at most `most` completions of a queue, without waiting.
    #[inline]
    pub fn poll(&mut self, queue: Queue, most: usize) -> Result<&[Completion], Refused> {
        let cq = self.queue(queue);
        let most = most.min(POLLED) as c_int;
        // SAFETY: the queue exists, and the function is called only if its provider has it. There is room for this many
        // completions, which have the layout of `Completion`.
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
        // SAFETY: the channel exists, and its descriptor is open as long as the channel exists.
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
        // SAFETY: the channel exists; both results are written to variables that live during the call.
        let result =
            unsafe { (library.ibv_get_cq_event)(channel.as_ptr(), &raw mut cq, &raw mut context) };
        Refused::check("ibv_get_cq_event", result)?;
        // SAFETY: the queue is one of the two queues of this value; the library returned it with its event.
        unsafe { (library.ibv_ack_cq_events)(cq, 1) }
        Ok(())
    }

    /// Requests that the next completion of a queue ends [`Endpoint::sleep`]. A completion that has already arrived
    /// does not end it, so poll once more after this call.
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
