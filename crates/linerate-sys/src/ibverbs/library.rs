//! libibverbs, which is loaded when it is first needed. On a host without it, all other functions of linerate work.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use super::abi::extended::QpEx;
use super::abi::{
    Ah, AhAttr, CompChannel, Context, Cq, Device, DeviceAttr, Mr, Pd, PortAttr, Qp, QpAttr,
    QpInitAttr,
};

/// File name of the library, with the version of its binary interface.
const NAME: &CStr = c"libibverbs.so.1";

/// Why the library cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// The library cannot be loaded. The text is that of the dynamic loader.
    Library(String),
    /// The library lacks this function.
    Function(&'static str),
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Library(why) => write!(f, "libibverbs cannot be loaded: {why}"),
            Self::Function(name) => write!(f, "libibverbs has no function {name}"),
        }
    }
}

impl std::error::Error for Missing {}

/// Declares each function of the library once: its field, type and symbol. Older versions lack the optional function.
macro_rules! functions {
    (
        $($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*
        [optional] $only:ident: fn($($of:ty),*) -> $to:ty;
    ) => {
        /// Functions of the loaded library. The library is never unloaded.
        #[derive(Debug)]
        pub struct Library {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            pub(super) $only: Option<unsafe extern "C" fn($($of),*) -> $to>,
        }

        impl Library {
            /// Looks up all functions in the loaded library.
            fn lookup(handle: *mut c_void) -> Result<Self, Missing> {
                // SAFETY: each symbol is the function of that name. The table declares the signature that the header of
                // this version of the interface has. A null pointer becomes `None`.
                unsafe {
                    Ok(Self {
                        $($name: std::mem::transmute::<
                            *mut c_void,
                            Option<unsafe extern "C" fn($($argument),*) $(-> $result)?>,
                        >(symbol(handle, concat!(stringify!($name), "\0")))
                        .ok_or(Missing::Function(stringify!($name)))?,)*
                        $only: std::mem::transmute::<
                            *mut c_void,
                            Option<unsafe extern "C" fn($($of),*) -> $to>,
                        >(symbol(handle, concat!(stringify!($only), "\0"))),
                    })
                }
            }
        }
    };
}

/// Returns the address of a function in a library, or null.
///
/// # Safety
/// The handle belongs to a library that stays loaded; the name ends with a zero byte.
unsafe fn symbol(handle: *mut c_void, name: &str) -> *mut c_void {
    // SAFETY: as for this function.
    unsafe { libc::dlsym(handle, name.as_ptr().cast::<c_char>()) }
}

functions! {
    ibv_get_device_list: fn(*mut c_int) -> *mut *mut Device;
    ibv_free_device_list: fn(*mut *mut Device);
    ibv_get_device_name: fn(*mut Device) -> *const c_char;
    ibv_open_device: fn(*mut Device) -> *mut Context;
    ibv_close_device: fn(*mut Context) -> c_int;
    ibv_query_device: fn(*mut Context, *mut DeviceAttr) -> c_int;
    ibv_query_port: fn(*mut Context, u8, *mut PortAttr) -> c_int;
    ibv_query_gid: fn(*mut Context, u8, c_int, *mut [u8; 16]) -> c_int;
    ibv_alloc_pd: fn(*mut Context) -> *mut Pd;
    ibv_dealloc_pd: fn(*mut Pd) -> c_int;
    ibv_reg_mr: fn(*mut Pd, *mut c_void, usize, c_int) -> *mut Mr;
    ibv_dereg_mr: fn(*mut Mr) -> c_int;
    ibv_create_comp_channel: fn(*mut Context) -> *mut CompChannel;
    ibv_destroy_comp_channel: fn(*mut CompChannel) -> c_int;
    ibv_create_cq: fn(*mut Context, c_int, *mut c_void, *mut CompChannel, c_int) -> *mut Cq;
    ibv_destroy_cq: fn(*mut Cq) -> c_int;
    ibv_get_cq_event: fn(*mut CompChannel, *mut *mut Cq, *mut *mut c_void) -> c_int;
    ibv_ack_cq_events: fn(*mut Cq, u32);
    ibv_create_qp: fn(*mut Pd, *mut QpInitAttr) -> *mut Qp;
    ibv_modify_qp: fn(*mut Qp, *mut QpAttr, c_int) -> c_int;
    ibv_destroy_qp: fn(*mut Qp) -> c_int;
    ibv_create_ah: fn(*mut Pd, *mut AhAttr) -> *mut Ah;
    ibv_destroy_ah: fn(*mut Ah) -> c_int;
    [optional] ibv_qp_to_qp_ex: fn(*mut Qp) -> *mut QpEx;
}

impl Library {
    /// Returns the library. The first call loads it.
    pub fn load() -> Result<&'static Self, Missing> {
        static LIBRARY: OnceLock<Result<Library, Missing>> = OnceLock::new();
        LIBRARY.get_or_init(|| Self::lookup(open(NAME)?)).as_ref().map_err(Clone::clone)
    }
}

/// Loads a library until the process ends.
fn open(name: &CStr) -> Result<*mut c_void, Missing> {
    // SAFETY: the initialisation code of the library runs, as that of any library with which a program is linked.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if !handle.is_null() {
        return Ok(handle);
    }
    // SAFETY: the call returns null, or the text of this thread's
    // last error, which stays valid until the next such call.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return Err(Missing::Library("no reason is given".to_owned()));
    }
    // SAFETY: the text is not null and ends with a zero byte.
    let text = unsafe { CStr::from_ptr(text) };
    Err(Missing::Library(text.to_string_lossy().into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let missing = open(c"libno-such-library.so.7").unwrap_err();
        assert!(missing.to_string().contains("libno-such-library.so.7"), "{missing}");
    }

    #[test]
    fn a_library_without_the_functions_is_refused() {
        let missing = Library::lookup(open(c"libc.so.6").unwrap()).unwrap_err();
        assert_eq!(missing, Missing::Function("ibv_get_device_list"));
    }
}
