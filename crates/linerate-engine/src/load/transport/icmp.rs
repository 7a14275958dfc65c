//! Messages of the path (ICMP), as calls tell them.

use std::io;

use rustix::io::Errno;

/// What they become as errors of a socket, besides that of a size.
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

/// Whether it is one: other than an error of a broken socket it says nothing of what comes next.
pub(crate) fn is_of_the_path(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(|e| ERRORS.contains(&e))
}
