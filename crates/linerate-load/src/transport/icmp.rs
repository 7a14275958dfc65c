//! ICMP errors from the path, as system calls on sockets report them.

use std::io;

use rustix::io::Errno;

/// Error numbers that the kernel derives from ICMP messages, except `EMSGSIZE`, which is for the packet size.
//= net/ipv4/icmp.c, icmp_err_convert; net/ipv6/icmp.c, tab_unreach
const ERRORS: [Errno; 9] = [
    Errno::CONNREFUSED,
    Errno::HOSTUNREACH,
    Errno::NETUNREACH,
    Errno::HOSTDOWN,
    Errno::NONET,
    Errno::NOPROTOOPT,
    Errno::PROTO,
    Errno::OPNOTSUPP,
    Errno::ACCESS,
];

/// Returns whether an error was caused by an ICMP message. Such an error does not mean that later calls on the socket
/// fail.
pub(crate) fn is_of_the_path(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(|e| ERRORS.contains(&e))
}
