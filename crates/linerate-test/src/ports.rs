//! TCP ports for the servers of tests.

use std::net::TcpListener;

/// Returns different unused TCP ports of loopback.
///
/// # Panics
///
/// If the kernel has no unused port left.
pub fn free_ports<const N: usize>() -> [u16; N] {
    let free = || TcpListener::bind("127.0.0.1:0").expect("a free port");
    // All ports stay in use until all of them are known, so they are different.
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
