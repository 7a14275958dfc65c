//! What the kernel counts about a connection, read by the sampler.

use std::io;

use linerate_core::facts::Gap;
use linerate_core::metric::{Metric, SOCKET_UNREAD};
use linerate_core::parse::{mem_info, tcp_info};
use linerate_core::record::Table;
use linerate_sys::socket;

use super::line::Line;
use crate::load::Probe;
use crate::load::sheet::Sheet;

/// A question to the kernel about one socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    /// `TCP_INFO`.
    TcpInfo,
    /// `SO_MEMINFO`.
    MemInfo,
    /// `SIOCINQ`, as eight bytes.
    Unread,
}

/// Whoever answers: a connection, or a capture of its replies.
pub(super) trait Kernel: Send {
    /// Writes the raw reply and returns its length. The only way a probe learns anything.
    fn ask(&self, ask: Ask, into: &mut [u8]) -> io::Result<usize>;
    /// Shuts the connection down.
    fn shut(&self);
}

impl Kernel for Line {
    fn ask(&self, ask: Ask, into: &mut [u8]) -> io::Result<usize> {
        match ask {
            Ask::TcpInfo => socket::tcp_info(self.fd(), into),
            Ask::MemInfo => socket::mem_info(self.fd(), into),
            Ask::Unread => {
                let raw = socket::unread(self.fd())?.to_ne_bytes();
                into[..raw.len()].copy_from_slice(&raw);
                Ok(raw.len())
            }
        }
    }

    fn shut(&self) {
        // A connection that is closed already needs no shutdown.
        let _ = socket::shutdown(self.fd());
    }
}

/// Reads `TCP_INFO` and the socket's queues.
pub(super) struct SocketProbe<K> {
    kernel: K,
    tcp: Sheet,
    socket: Sheet,
}

impl SocketProbe<Line> {
    pub(super) fn new(line: Line) -> Self {
        let subject = format!("s{}/{}", line.set, line.stream);
        Self::over(line, subject)
    }
}

impl<K: Kernel> SocketProbe<K> {
    fn over(kernel: K, subject: String) -> Self {
        Self {
            kernel,
            tcp: Sheet::new("tcp", subject.clone()),
            socket: Sheet::new("socket", subject),
        }
    }

    /// Values of a reply; one that failed holds nothing.
    fn reply(&self, ask: Ask, room: &mut [u8]) -> usize {
        self.kernel.ask(ask, room).unwrap_or(0).min(room.len())
    }

    fn unread(&self) -> (Metric, Option<i64>) {
        let mut raw = [0; 8];
        let got = self.reply(Ask::Unread, &mut raw);
        let bytes = (got == raw.len()).then(|| u64::from_ne_bytes(raw) as i64);
        (SOCKET_UNREAD, bytes)
    }
}

impl<K: Kernel> Probe for SocketProbe<K> {
    fn observe(&mut self, at: &dyn Fn() -> u64) {
        let mut raw = [0; tcp_info::ROOM];
        let got = self.reply(Ask::TcpInfo, &mut raw);
        self.tcp.push(at(), tcp_info::values(&raw[..got]));

        let mut raw = [0; mem_info::ROOM];
        let got = self.reply(Ask::MemInfo, &mut raw);
        let unread = self.unread();
        let row = mem_info::values(&raw[..got]).chain([unread]);
        self.socket.push(at(), row);
    }

    fn take(&mut self, gaps: &mut Vec<Gap>) -> Vec<Table> {
        gaps.extend(
            [self.tcp.ended(), self.socket.ended()]
                .into_iter()
                .flatten(),
        );
        [self.tcp.take(), self.socket.take()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn abort(&self) {
        self.kernel.shut();
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::metric::{SOCKET_RCVBUF, TCP_RCV_WND, TCP_RTT, TCP_SND_WND};

    use super::*;

    /// A capture: what a kernel replied.
    struct Capture {
        tcp: Vec<u8>,
        mem: Vec<u8>,
    }

    impl Kernel for Capture {
        fn ask(&self, ask: Ask, into: &mut [u8]) -> io::Result<usize> {
            let raw = match ask {
                Ask::TcpInfo => &self.tcp,
                Ask::MemInfo => &self.mem,
                Ask::Unread => return Err(io::ErrorKind::Unsupported.into()),
            };
            into[..raw.len()].copy_from_slice(raw);
            Ok(raw.len())
        }
        fn shut(&self) {}
    }

    #[test]
    fn a_capture_of_an_old_kernel_gives_the_columns_that_it_had() {
        // 5.4: the struct ends with snd_wnd.
        let mut tcp = vec![0; 232];
        tcp[68..72].copy_from_slice(&41u32.to_ne_bytes());
        let mem = (0u32..9).flat_map(u32::to_ne_bytes).collect();
        let mut probe = SocketProbe::over(Capture { tcp, mem }, "s3/0".to_owned());
        probe.observe(&|| 0);
        probe.observe(&|| 70);
        let mut gaps = Vec::new();
        let tables = probe.take(&mut gaps);
        assert_eq!(gaps, []);
        assert_eq!(tables.len(), 2);
        assert_eq!(tables[0].subject, "s3/0");
        assert_eq!(tables[0].at, [0, 70]);
        assert_eq!(tables[0].column(TCP_RTT), Some([41, 41].as_slice()));
        assert_eq!(tables[0].column(TCP_SND_WND), Some([0, 0].as_slice()));
        assert_eq!(tables[0].column(TCP_RCV_WND), None);
        assert_eq!(tables[1].column(SOCKET_RCVBUF), Some([1, 1].as_slice()));
        assert_eq!(tables[1].column(SOCKET_UNREAD), None);
    }
}
