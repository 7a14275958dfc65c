//! User MAD devices (`/dev/infiniband/umadN`): the ioctls that prepare an open device for requests. Afterwards,
//! datagrams are written and read with the calls for any file.
//= Linux, include/uapi/rdma/ib_user_mad.h

#![expect(unsafe_code, reason = "ioctls that rustix does not have")]

use std::io;
use std::os::fd::BorrowedFd;

use rustix::ioctl::{NoArg, Opcode, Updater, ioctl, opcode};

/// `IB_IOCTL_MAGIC`: number of the group to which these ioctls belong.
const GROUP: u8 = 0x1b;
/// The ioctl `IB_USER_MAD_REGISTER_AGENT`.
const REGISTER: Opcode = opcode::read_write::<Registration>(GROUP, 1);
/// The ioctl `IB_USER_MAD_ENABLE_PKEY`.
const ENABLE_PKEY: Opcode = opcode::none(GROUP, 3);

/// Layout of `struct ib_user_mad_reg_req` of Linux.
#[repr(C)]
#[derive(Debug, Default)]
struct Registration {
    /// Number of the agent, which the kernel writes.
    id: u32,
    /// Bit mask of the 128 methods whose unsolicited datagrams are received.
    methods: [u32; 4],
    queue_pair: u8,
    /// Management class whose unsolicited datagrams are received.
    class: u8,
    class_version: u8,
    oui: [u8; 3],
    /// Version of RMPP, the protocol by which the kernel joins datagrams to longer messages; zero for none.
    rmpp_version: u8,
}

/// Selects the header of 64 bytes, which contains a partition key. This must be called before any agent is registered.
pub fn enable_partition_key(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the kernel neither reads nor writes memory of this process: the request
    // only sets a flag of the open file. If the file belongs to another driver with a
    // request of the same number, that request takes no argument either (`_IO`).
    let request = unsafe { NoArg::<ENABLE_PKEY>::new() };
    // SAFETY: as for `new`.
    Ok(unsafe { ioctl(fd, request) }?)
}

/// Registers an agent. It sends requests of any class on queue pair 0 or 1, and
/// receives only their replies. Returns the agent's number, which the header of
/// each datagram contains. The kernel removes the agent when the file is closed.
pub fn register(fd: BorrowedFd<'_>, queue_pair: u8) -> io::Result<u32> {
    let mut registration = Registration { queue_pair, ..Registration::default() };
    // SAFETY: according to the number of the request, the kernel reads and writes a structure of the size of
    // `Registration`. The structure lives during the call, and any bytes that the kernel writes are valid in it.
    let request = unsafe { Updater::<REGISTER, Registration>::new(&mut registration) };
    // SAFETY: as for `new`.
    unsafe { ioctl(fd, request) }?;
    Ok(registration.id)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::mem::{align_of, offset_of, size_of};
    use std::os::fd::AsFd;

    use super::{REGISTER, Registration, enable_partition_key, register};

    #[test]
    fn the_layout_is_that_of_the_kernel() {
        assert_eq!(size_of::<Registration>(), 28);
        assert_eq!(align_of::<Registration>(), 4);
        assert_eq!(offset_of!(Registration, queue_pair), 20);
        assert_eq!(offset_of!(Registration, rmpp_version), 26);
        // The low 16 bits of the number are the same on every architecture.
        assert_eq!(REGISTER & 0xffff, 0x1b01);
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        assert_eq!(REGISTER, 0xc01c_1b01);
    }

    #[test]
    fn another_device_refuses_the_requests() {
        let null = File::open("/dev/null").unwrap();
        for error in [
            enable_partition_key(null.as_fd()).unwrap_err(),
            register(null.as_fd(), 1).unwrap_err(),
        ] {
            let not_a_typewriter = rustix::io::Errno::NOTTY.raw_os_error();
            assert_eq!(error.raw_os_error(), Some(not_a_typewriter), "{error}");
        }
    }
}
