//! ICMP errors of the path, as system calls on sockets report them.

use std::io;

use rustix::io::Errno;

/// The socket errors that ICMP messages become, except the one for a size (`EMSGSIZE`).
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

/// Returns whether an error is an ICMP error. Unlike the error of a broken socket, it says nothing about later calls.
pub(crate) fn is_of_the_path(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(|e| ERRORS.contains(&e))
}
