//! RDMA through libibverbs: devices, queue pairs, and the memory that they may access.
//!
//! The library is loaded when it is first needed ([`Library::load`]), so that a program starts without it. An
//! [`Endpoint`] owns queue pairs with their completion queues, and one [region](Endpoint::region) of registered memory.
//! Requests can only use memory of that region, which lives longer than the queue pairs.

#![expect(unsafe_code, reason = "libibverbs has no safe binding that a program can start without")]

mod abi;
mod calls;
mod chain;
mod device;
mod endpoint;
mod library;
mod make;
mod region;
mod status;

pub use device::{Device, Limits, Port};
pub use endpoint::{
    Completion, DATAGRAM, Endpoint, Peer, Queue, QueuePlan, Request, Route, Service, Verb,
};
pub use library::{Library, Missing};
pub use region::{Region, Remote};
pub use status::Status;

use std::ffi::c_int;
use std::io;
use std::ptr::NonNull;

/// Error of a call of the library.
#[derive(Debug)]
pub struct Refused {
    /// Name of the function that failed, such as `ibv_create_qp`.
    pub call: &'static str,
    /// Error that the library reported.
    pub source: io::Error,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.call, self.source)
    }
}

impl std::error::Error for Refused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl Refused {
    /// Returns the error of a function that has set `errno`.
    fn last(call: &'static str) -> Self {
        Self { call, source: io::Error::last_os_error() }
    }

    /// Checks the result of a function: an error number, or zero for success. Some functions return -1 and set `errno`.
    #[inline]
    fn check(call: &'static str, result: c_int) -> Result<(), Self> {
        if result == 0 {
            return Ok(());
        }
        Err(Self::numbered(call, result))
    }

    #[cold]
    fn numbered(call: &'static str, result: c_int) -> Self {
        if result < 0 {
            return Self::last(call);
        }
        Self { call, source: io::Error::from_raw_os_error(result) }
    }
}

/// An object that the library has made, and the function that destroys it.
struct Owned<T> {
    at: NonNull<T>,
    destroy: unsafe extern "C" fn(*mut T) -> c_int,
}

impl<T> Owned<T> {
    /// Takes ownership of an object. The function that made it returns null and sets `errno` if it fails.
    ///
    /// # Safety
    /// `made` is null, or an object that nothing else destroys and that `destroy` can destroy.
    unsafe fn take(
        call: &'static str,
        made: *mut T,
        destroy: unsafe extern "C" fn(*mut T) -> c_int,
    ) -> Result<Self, Refused> {
        let at = NonNull::new(made).ok_or_else(|| Refused::last(call))?;
        Ok(Self { at, destroy })
    }

    fn as_ptr(&self) -> *mut T {
        self.at.as_ptr()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: the object exists until here, and the caller of `take` promised that this function destroys it. If
        // that fails, for example because the device was removed, nothing can be done.
        unsafe {
            (self.destroy)(self.at.as_ptr());
        }
    }
}

// SAFETY: objects of libibverbs may be used and destroyed by any thread.
unsafe impl<T> Send for Owned<T> {}
