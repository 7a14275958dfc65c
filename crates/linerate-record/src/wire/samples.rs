//! How often the streams of a step are read: all readings have to fit into one answer.

use super::codec::Bounds;
use linerate_units::Nanos;

/// Most columns that are read for a stream: those of its thread, its socket and its connection.
const STREAM_COLUMNS: u64 = 64;
/// Number of values that fit into an answer, each with its longest encoding.
const VALUES_MAX: u64 = Bounds::ANSWER.bytes as u64 / 9;
/// Time from one sample to the next in a short step.
pub(super) const TICK: Nanos = Nanos::from_millis(100);
/// Most samples of a step. The readings of hundreds of CPUs and of the streams must fit into an answer.
const TICKS: u64 = 1_200;
/// Largest number of streams of a set whose connections are read. Of a larger set, at most so many streams are read,
/// at equal distances.
const READ_MAX: u32 = 1024;

/// Every how many streams of a set one stream is read.
pub fn read_every(streams: u32) -> u32 {
    streams.div_ceil(READ_MAX).max(1)
}

/// Number of streams of a set whose connections are read.
pub fn read_of(streams: u32) -> u32 {
    streams.div_ceil(read_every(streams))
}

/// Time between samples in a step that reads `streams` streams: the shortest with which all readings fit into an
/// answer.
pub fn tick(length: Nanos, streams: u64) -> Nanos {
    let decades = (0..).map_while(|k| TICK.0.checked_mul(10_u64.checked_pow(k)?));
    let mut ticks = decades.flat_map(|decade| [decade, 2 * decade, 5 * decade]);
    let few = |tick: u64| length.0 / tick <= TICKS && fits(length.0, tick, streams);
    // If not even two rows fit into an answer, the server refuses the step.
    let tick = ticks.find(|tick| few(*tick) || *tick >= length.0);
    tick.map_or(length, Nanos)
}

/// Whether the readings of all streams fit into an answer. The first and the last row are read in addition to the
/// ticks.
pub(super) fn fits(length: u64, tick: u64, streams: u64) -> bool {
    let rows = length / tick + 2;
    streams.saturating_mul(rows).saturating_mul(STREAM_COLUMNS) <= VALUES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_streams_some_stand_for_all() {
        for (streams, read) in [(1, 1), (1024, 1024), (1025, 513), (2048, 1024), (10_000, 1000)] {
            assert_eq!(read_of(streams), read, "{streams}");
        }
    }
}
