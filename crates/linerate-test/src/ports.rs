//! Ports for the servers of tests.

use std::net::TcpListener;

/// Unused ports of loopback, all different.
///
/// # Panics
///
/// If the kernel has no more.
pub fn free_ports<const N: usize>() -> [u16; N] {
    let free = || TcpListener::bind("127.0.0.1:0").expect("a free port");
    // All ports stay in use until each of them is known, so they differ.
    let listeners = [(); N].map(|()| free());
    listeners.map(|listener| listener.local_addr().expect("its address").port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ() {
        let [first, second] = free_ports();
        assert!(first != second && first != 0 && second != 0);
    }
}
