//! RDMA devices and their ports.

use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;
use std::sync::Arc;

use super::abi::{Context, DeviceAttr, PortAttr};
use super::library::Library;
use super::{Owned, Refused};

/// The list that `ibv_get_device_list` returned.
struct List {
    library: &'static Library,
    at: *mut *mut super::abi::Device,
    len: usize,
}

impl List {
    fn get(library: &'static Library) -> Result<Self, Refused> {
        let mut len: c_int = 0;
        // SAFETY: the number is written to a variable that lives during the call.
        let at = unsafe { (library.ibv_get_device_list)(&raw mut len) };
        if at.is_null() {
            return Err(Refused::last("ibv_get_device_list"));
        }
        let len = usize::try_from(len).unwrap_or(0);
        Ok(Self { library, at, len })
    }

    fn devices(&self) -> impl Iterator<Item = *mut super::abi::Device> {
        // SAFETY: the list has this many entries until it is freed, which `drop` does.
        (0..self.len).map(|n| unsafe { *self.at.add(n) })
    }

    /// Returns the name of a device in the list, such as `mlx5_0`.
    fn name(&self, device: *mut super::abi::Device) -> String {
        // SAFETY: the device is in the list, which is not freed yet; its name ends with a zero byte.
        let name = unsafe { CStr::from_ptr((self.library.ibv_get_device_name)(device)) };
        name.to_string_lossy().into_owned()
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the list was returned by the library and is not freed yet. Devices that were opened stay open.
        unsafe { (self.library.ibv_free_device_list)(self.at) }
    }
}

/// An open RDMA device.
pub struct Device {
    pub(super) library: &'static Library,
    pub(super) context: Owned<Context>,
}

// SAFETY: all functions of the library that take a context may be called by several threads at a time.
unsafe impl Sync for Device {}

/// Limits of a device: how many objects or requests it supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest number of requests in a queue.
    pub requests: u32,
    /// Largest number of completions in a completion queue.
    pub completions: u32,
    /// Largest number of reads and atomic operations that a queue pair may have in flight.
    pub reads_out: u32,
    /// Largest number of reads and atomic operations of the other end that a queue pair serves at the same time.
    pub reads_in: u32,
    /// Whether the device supports atomic operations.
    pub atomics: bool,
}

/// A port of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port {
    /// MTU in force: bytes of payload in a packet.
    pub mtu: u32,
    /// Largest MTU that the port supports, in bytes.
    pub mtu_most: u32,
    /// Size of the largest message, in bytes.
    pub message: u32,
    /// LID, the local identifier that the subnet manager gave the port; zero if the port has none.
    pub lid: u16,
}

impl Device {
    /// Opens the device of a name; `None` if the library lists no such device.
    pub fn open(library: &'static Library, name: &str) -> Result<Option<Arc<Self>>, Refused> {
        let list = List::get(library)?;
        let Some(device) = list.devices().find(|device| list.name(*device) == name) else {
            return Ok(None);
        };
        // SAFETY: the device is in the list, which is not freed yet. The context is closed once, by its owner.
        let context = unsafe {
            let context = (library.ibv_open_device)(device);
            Owned::take("ibv_open_device", context, library.ibv_close_device)
        }?;
        Ok(Some(Arc::new(Self { library, context })))
    }

    /// Returns the limits of the device.
    pub fn limits(&self) -> Result<Limits, Refused> {
        let mut attr = MaybeUninit::<DeviceAttr>::zeroed();
        // SAFETY: the context is open, and the structure is as large as in the library.
        let result =
            unsafe { (self.library.ibv_query_device)(self.context.as_ptr(), attr.as_mut_ptr()) };
        Refused::check("ibv_query_device", result)?;
        // SAFETY: all fields are numbers, for which any bytes are valid.
        let attr = unsafe { attr.assume_init() };
        let count = |number: c_int| u32::try_from(number).unwrap_or(0);
        Ok(Limits {
            requests: count(attr.max_qp_wr),
            completions: count(attr.max_cqe),
            reads_out: count(attr.max_qp_init_rd_atom),
            reads_in: count(attr.max_qp_rd_atom),
            atomics: attr.atomic_cap > 0,
        })
    }

    /// Returns the attributes of a port. Ports are numbered from 1.
    pub fn port(&self, number: u8) -> Result<Port, Refused> {
        let mut attr = MaybeUninit::<PortAttr>::zeroed();
        // SAFETY: the context is open, and the structure is larger than in any version of the library.
        let result = unsafe {
            (self.library.ibv_query_port)(self.context.as_ptr(), number, attr.as_mut_ptr())
        };
        Refused::check("ibv_query_port", result)?;
        // SAFETY: all fields are numbers, for which any bytes are valid.
        let attr = unsafe { attr.assume_init() };
        Ok(Port {
            mtu: mtu_bytes(attr.active_mtu),
            mtu_most: mtu_bytes(attr.max_mtu),
            message: attr.max_msg_sz,
            lid: attr.lid,
        })
    }

    /// Returns an entry of a port's GID table.
    pub fn gid(&self, port: u8, index: u32) -> Result<[u8; 16], Refused> {
        let mut gid = [0; 16];
        let index = c_int::try_from(index).unwrap_or(c_int::MAX);
        // SAFETY: the context is open, and a GID has 16 bytes.
        let result = unsafe {
            (self.library.ibv_query_gid)(self.context.as_ptr(), port, index, &raw mut gid)
        };
        Refused::check("ibv_query_gid", result)?;
        Ok(gid)
    }
}

/// Returns the bytes of a number of `enum ibv_mtu`: 1 is 256, 5 is 4096. Returns zero if the number is none of these.
fn mtu_bytes(number: c_int) -> u32 {
    match number {
        1..=5 => 128 << number,
        _ => 0,
    }
}

/// Returns the number of `enum ibv_mtu` for an MTU; if there is none for this size, that of the next smaller one.
pub(super) const fn mtu_number(bytes: u32) -> c_int {
    match bytes {
        0..512 => 1,
        512..1024 => 2,
        1024..2048 => 3,
        2048..4096 => 4,
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_packets_have_numbers() {
        for (number, bytes) in [(1, 256), (2, 512), (3, 1024), (4, 2048), (5, 4096)] {
            assert_eq!(mtu_bytes(number), bytes);
            assert_eq!(mtu_number(bytes), number);
            assert_eq!(mtu_number(bytes - 1), (number - 1).max(1));
        }
        assert_eq!([mtu_bytes(0), mtu_bytes(6)], [0, 0]);
    }
}
