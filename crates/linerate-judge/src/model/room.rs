//! Whether a send buffer has room for the data that a program has to write.
//!
//! If the kernel sizes a buffer by itself, it enlarges the buffer as soon as a program finds no room in it. A buffer
//! smaller than its maximum was therefore large enough: its content is what the program chose to write.

use super::held::value;
use super::readings::{Window, growth};
use linerate_facts::metric as m;
use linerate_record::Table;

/// Minimum share of the send buffer in use, at which linerate's own sender waits for room: the kernel wakes the sender
/// when a third of the buffer is free.
const FULL_BUFFER: f64 = 0.6;

/// Largest share of the send buffer in use, at which a program that waited for room may write again.
//= Linux, include/net/sock.h, sk_stream_is_writeable(): free memory is at least half of what is in use
const WRITABLE: f64 = 2.0 / 3.0;

/// Largest excess over `WRITABLE` of the memory in use, if a program writes a little as soon as it may.
const JUST_ABOVE: f64 = 0.05;

/// Minimum share of time in which the kernel's clock of a full buffer must have run, if the program found no room.
const RAN: f64 = 0.01;

/// The kind of program that writes to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer {
    /// linerate itself, which writes whenever the buffer has room.
    Own,
    /// Another program, which may have its own window, or nothing to write.
    Any {
        /// The setting `net.ipv4.tcp_wmem` of the program's host.
        tcp_wmem: Option<[u64; 3]>,
    },
}

impl Writer {
    /// Whether the program may wait for something other than room in the buffer.
    pub(super) fn may_wait(self) -> bool {
        self != Self::Own
    }
}

/// The columns of a socket, looked up once for all rows.
pub(super) struct Room<'a> {
    at: &'a [u64],
    size: Option<&'a [i64]>,
    queued: Option<&'a [i64]>,
    mss: u64,
    writer: Writer,
    /// Whether the program filled the buffer at some time.
    reached: bool,
    /// The first row that is not before the time that was last asked for.
    next: usize,
}

impl<'a> Room<'a> {
    pub(super) fn of(socket: &'a Table, tcp: &Table, window: Window, writer: Writer) -> Self {
        let mss = tcp.column(m::TCP_SND_MSS).and_then(|all| all.last());
        let mut room = Self {
            at: &socket.at,
            size: socket.column(m::SOCKET_SNDBUF),
            queued: socket.column(m::SOCKET_WMEM_QUEUED),
            mss: mss.map_or(0, |mss| u64::try_from(*mss).unwrap_or(0)),
            writer,
            reached: false,
            next: 0,
        };
        let ran = growth(tcp, m::TCP_SNDBUF_LIMITED, window)
            .is_some_and(|(us, secs)| us >= secs * 1e6 * RAN);
        room.reached = ran || room.comes_to_an_end(window.within(socket));
        room
    }

    /// Whether the memory in use shows that the program waits for room: the buffer is full, or its use stays just above
    /// the mark at which the kernel wakes a program.
    fn comes_to_an_end(&self, rows: std::ops::Range<usize>) -> bool {
        let used: Vec<f64> = rows.filter_map(|row| self.used(row)).collect();
        let above = || used.iter().filter(|used| **used > WRITABLE);
        let just = above().filter(|used| **used <= WRITABLE + JUST_ABOVE).count();
        used.iter().any(|used| *used >= 1.0) || (just > 0 && just * 2 >= above().count())
    }

    /// Whether the send buffer has no room for the program at the row nearest to `at`; `None` if it was not read. `at`
    /// must ascend from call to call.
    pub(super) fn is_full(&mut self, at: u64) -> Option<bool> {
        let before = |row: &usize| self.at.get(*row).is_some_and(|time| *time < at);
        while before(&self.next) {
            self.next += 1;
        }
        let near = |row: &usize| Some(self.at.get(*row)?.abs_diff(at));
        let beside = self.next.checked_sub(1).into_iter().chain([self.next]);
        let row = beside.min_by_key(|row| near(row).unwrap_or(u64::MAX))?;
        let used = self.used(row)?;
        Some(match self.writer {
            Writer::Own => used >= FULL_BUFFER,
            Writer::Any { tcp_wmem } => {
                let size = u64::try_from(*self.size?.get(row)?).ok()?;
                self.reached && used > WRITABLE && !may_grow(size, self.mss, tcp_wmem)
            }
        })
    }

    /// Share of the send buffer that is in use at a row.
    fn used(&self, row: usize) -> Option<f64> {
        let size = value(self.size, row)?;
        (size > 0.0).then_some(value(self.queued, row)? / size)
    }
}

/// Whether the kernel would enlarge a send buffer if a program found no room in it: the buffer is smaller than the
/// maximum, and of a size that the kernel chose.
fn may_grow(size: u64, mss: u64, tcp_wmem: Option<[u64; 3]>) -> bool {
    let initial = tcp_wmem.is_some_and(|[_, initial, _]| size == initial);
    let most = tcp_wmem.is_some_and(|[_, _, most]| size >= most);
    !most && (initial || is_autotuned(size, mss))
}

/// Memory that the kernel needs to describe a segment, aligned. Payload and headers are added to it, rounded up to a
/// power of two.
const DESCRIPTION: u64 = 256;

/// Payload and headers of the largest segment (on loopback), rounded up to a power of two.
const LARGEST: u64 = 1 << 17;

/// Least number of segments for which autotuning gives a buffer room.
const LEAST_SEGMENTS: u64 = 10;

/// Whether autotuning chose `size`: it is two, or with BBR three, times a number of segments. `SO_SNDBUF` of other
/// processes cannot be read, but a fixed size would be such a multiple only by chance.
//= Linux, net/ipv4/tcp_input.c, tcp_sndbuf_expand(): sndmem * nr_segs * per_mss; net/ipv4/tcp_bbr.c, bbr_sndbuf_expand(): 3
fn is_autotuned(size: u64, mss: u64) -> bool {
    // The segment size that the far end announced counts: it may be larger than the one in use.
    let least = mss.clamp(1, LARGEST).next_power_of_two();
    let payloads = std::iter::successors(Some(least), |payload| Some(payload * 2));
    let mut segments =
        payloads.take_while(|payload| *payload <= LARGEST).map(|payload| payload + DESCRIPTION);
    segments.any(|segment| {
        let of = |times: u64| size.is_multiple_of(times * segment);
        size >= 2 * LEAST_SEGMENTS * segment && (of(2) || of(3))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WMEM: Option<[u64; 3]> = Some([4096, 16_384, 4_194_304]);

    #[test]
    fn a_size_that_the_kernel_chose_is_told_from_one_that_a_program_asked_for() {
        // Sizes seen on Linux 6.18: CUBIC with segments of 1448 bytes, BBR, jumbo frames, loopback.
        for (size, mss) in [
            (110_592, 1448),
            (165_888, 1448),
            (1_304_064, 1448),
            (2_806_272, 1448),
            (3 * 101 * 2304, 1448),
            (2 * 10 * 16_640, 8948),
            (2 * 10 * 131_328, 65_483),
            // The far end accepts jumbo frames, but the path does not carry them.
            (2 * 77 * 16_640, 1448),
        ] {
            assert!(is_autotuned(size, mss), "{size} {mss}");
        }
        // Twice the sizes that a program may request.
        for requested in [
            16_384, 65_536, 87_380, 100_000, 131_072, 200_000, 212_992, 262_144, 500_000,
            1_000_000, 1_048_576, 2_000_000, 4_194_304, 16_777_216,
        ] {
            for mss in [536, 1448, 8948, 65_483] {
                assert!(!is_autotuned(2 * requested, mss), "{requested} {mss}");
            }
        }
        assert!(!is_autotuned(2 * 9 * 2304, 1448), "less than ten segments");
        assert!(!is_autotuned(0, 0) && !is_autotuned(u64::MAX, u64::MAX));
    }

    #[test]
    fn a_buffer_may_grow_up_to_its_maximum() {
        assert!(may_grow(1_304_064, 1448, WMEM));
        assert!(may_grow(1_304_064, 1448, None));
        assert!(may_grow(16_384, 1448, WMEM), "as it began");
        assert!(!may_grow(4_194_304, 1448, WMEM));
        assert!(!may_grow(8_000_000, 1448, WMEM), "asked for by force");
        assert!(!may_grow(1_000_000, 1448, WMEM), "asked for");
        // The maximum may be such a multiple by chance.
        assert!(!may_grow(1_304_064, 1448, Some([4096, 16_384, 1_304_064])));
    }
}
