//! Reads the kernel's counters of a connection for the sampler.

use std::sync::Arc;

use linerate_facts::Gap;
use linerate_facts::metric::{Metric, SOCKET_CPU, SOCKET_UNREAD, ZEROCOPY_SENDS};
use linerate_facts::parse::{mem_info, tcp_info};
use linerate_record::Table;
use linerate_sys::socket;

use super::completions::Completions;
use crate::Probe;
use crate::transport::line::Line;
use linerate_host::sheet::Sheet;
use linerate_host::{Machine, SocketAsk, SocketQuery};

/// Probe that reads `TCP_INFO` and the socket's queues.
pub(super) struct SocketProbe {
    line: Line,
    tcp: Sheet,
    socket: Sheet,
    zerocopy: Option<(Sheet, Arc<Completions>)>,
    setbacks: Option<u64>,
    /// Gaps to report: each event after which a table was ended.
    gaps: Vec<Gap>,
}

impl SocketProbe {
    pub(super) fn new(line: Line) -> Self {
        let subject = line.subject();
        Self {
            line,
            tcp: Sheet::new("tcp", subject.clone()),
            socket: Sheet::new("socket", subject),
            zerocopy: None,
            setbacks: None,
            gaps: Vec::new(),
        }
    }

    /// Makes the probe also read the counters of sends without a copy.
    pub(super) fn with(mut self, completions: Option<Arc<Completions>>) -> Self {
        let sheet = || Sheet::new(ZEROCOPY_SENDS.source, self.line.subject());
        self.zerocopy = completions.map(|counts| (sheet(), counts));
        self
    }

    /// Queries the socket, and returns the reply, which is stored in `room`; it is empty if the call failed.
    fn reply<'a>(&self, machine: &dyn Machine, ask: SocketAsk, room: &'a mut [u8]) -> &'a [u8] {
        let query = SocketQuery { set: self.line.set, stream: self.line.stream, ask };
        let got = machine.socket(&query, self.line.fd(), room).unwrap_or(0);
        &room[..got.min(room.len())]
    }

    fn unread(&self, machine: &dyn Machine) -> (Metric, Option<i64>) {
        let mut room = [0; 8];
        let raw = self.reply(machine, SocketAsk::Unread, &mut room);
        let bytes = raw.try_into().ok().map(|raw| u64::from_ne_bytes(raw) as i64);
        (SOCKET_UNREAD, bytes)
    }

    fn incoming_cpu(&self, machine: &dyn Machine) -> (Metric, Option<i64>) {
        let mut room = [0; 4];
        let raw = self.reply(machine, SocketAsk::IncomingCpu, &mut room);
        let cpu = raw.try_into().ok().map(i32::from_ne_bytes);
        (SOCKET_CPU, cpu.map(i64::from))
    }
}

impl Probe for SocketProbe {
    fn observe(&mut self, machine: &dyn Machine, at: &dyn Fn() -> u64) {
        let mut room = [0; tcp_info::ROOM];
        let raw = self.reply(machine, SocketAsk::TcpInfo, &mut room);
        let setbacks = tcp_info::setbacks(raw);
        self.gaps.extend(self.tcp.push(at(), tcp_info::values(raw)));
        self.setbacks = setbacks;

        let mut room = [0; mem_info::ROOM];
        let raw = self.reply(machine, SocketAsk::MemInfo, &mut room);
        let unread = self.unread(machine);
        let cpu = self.incoming_cpu(machine);
        let row = mem_info::values(raw).chain([unread, cpu]);
        self.gaps.extend(self.socket.push(at(), row));
        if let Some((sheet, counts)) = &mut self.zerocopy {
            counts.take_in(&self.line);
            // The program's own counters are always available, so there is no gap to report.
            sheet.push(at(), counts.row());
        }
    }

    fn take(&mut self, gaps: &mut Vec<Gap>) -> Vec<Table> {
        gaps.append(&mut self.gaps);
        let zerocopy = self.zerocopy.as_mut().and_then(|(sheet, counts)| {
            gaps.extend(counts.gap());
            sheet.take()
        });
        [self.tcp.take(), self.socket.take(), zerocopy].into_iter().flatten().collect()
    }

    fn setbacks(&self) -> Option<u64> {
        self.setbacks
    }

    fn abort(&self) {
        // A connection that is closed already needs no shutdown.
        let _ = socket::shutdown(self.line.fd());
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use linerate_facts::metric::{SOCKET_RCVBUF, TCP_RCV_WND, TCP_RTT, TCP_SND_WND};

    use super::*;
    use linerate_host::{Answer, Captured, Replay};

    /// A machine that gives each of these replies twice.
    fn replay(replies: &[(SocketAsk, Vec<u8>)]) -> Replay {
        let answered = |(ask, raw): &(SocketAsk, Vec<u8>)| {
            let (set, stream) = (3, 0);
            let query = SocketQuery { set, stream, ask: *ask };
            (query, vec![Answer::Reply(raw.clone()); 2])
        };
        Replay::new(Captured {
            sockets: replies.iter().map(answered).collect(),
            ..Captured::default()
        })
    }

    #[test]
    fn a_capture_of_an_old_kernel_gives_the_columns_that_it_had() {
        // On Linux 5.4 the struct ends with snd_wnd.
        let mut tcp = vec![0; 232];
        tcp[68..72].copy_from_slice(&41u32.to_ne_bytes());
        let mem = (0u32..9).flat_map(u32::to_ne_bytes).collect();
        let machine = replay(&[(SocketAsk::TcpInfo, tcp), (SocketAsk::MemInfo, mem)]);
        // The replay never uses this socket.
        let fd = UdpSocket::bind("127.0.0.1:0").unwrap().into();
        let mut probe = SocketProbe::new(Line::new(fd, 3, 0).unwrap());
        probe.observe(&machine, &|| 0);
        probe.observe(&machine, &|| 70);
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
        assert_eq!(tables[1].column(SOCKET_CPU), None);
    }

    #[test]
    fn the_cpu_that_takes_packets_in_is_read_beside_the_queues() {
        let mem = (0u32..9).flat_map(u32::to_ne_bytes).collect();
        let cpu = 3i32.to_ne_bytes().to_vec();
        let machine = replay(&[(SocketAsk::MemInfo, mem), (SocketAsk::IncomingCpu, cpu)]);
        let fd = UdpSocket::bind("127.0.0.1:0").unwrap().into();
        let mut probe = SocketProbe::new(Line::new(fd, 3, 0).unwrap());
        probe.observe(&machine, &|| 0);
        let tables = probe.take(&mut Vec::new());
        assert_eq!(tables[0].column(SOCKET_CPU), Some([3].as_slice()));
    }
}
