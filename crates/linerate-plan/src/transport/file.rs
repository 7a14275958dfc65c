//! Files and disks: the row of the transport, and its options.

use super::info::{FarEnd, PatternKind, TransportInfo};
use super::options::{Kind, OptionInfo, Options};
use super::{Feature, Knob, Swept};
use crate::path::Stage;
use linerate_units::Bytes;

const READ: &str = "read";
const WRITE: &str = "write";

/// What operations do.
pub const OP: OptionInfo = OptionInfo {
    key: "op",
    help: "Whether operations read or write. Only a file of linerate's own is written, in a folder, or a disk that --write-to names too [default: read]",
    kind: Kind::Word(&[READ, WRITE]),
    pattern: None,
    of_path: false,
};

/// Where operations begin.
pub const ORDER: OptionInfo = OptionInfo {
    key: "order",
    help: "Order of the blocks: one after the other, or drawn at random [default: sequential]",
    kind: Kind::Word(&["sequential", RANDOM]),
    pattern: None,
    of_path: true,
};

const RANDOM: &str = "random";

/// Operations in flight.
pub const DEPTH: OptionInfo = OptionInfo {
    key: "depth",
    help: "Operations that each thread keeps in flight [default: 1]",
    kind: Kind::Count { least: 1, most: 1024 },
    pattern: Some(PatternKind::Stream),
    of_path: false,
};

/// Through the page cache.
pub const BUFFERED: OptionInfo = OptionInfo {
    key: "buffered",
    help: "Read and write through the page cache, not past it",
    kind: Kind::Switch,
    pattern: None,
    of_path: true,
};

/// A write ends when its data are on the disk.
pub const SYNC: OptionInfo = OptionInfo {
    key: "sync",
    help: "Let each write end when the disk has stored its data for good (O_DSYNC)",
    kind: Kind::Switch,
    pattern: None,
    of_path: false,
};

/// The kernel reads twice as far ahead.
pub const READ_AHEAD: OptionInfo = OptionInfo {
    key: "read-ahead",
    help: "Ask the kernel to read twice as far ahead of buffered reads in order (POSIX_FADV_SEQUENTIAL)",
    kind: Kind::Switch,
    pattern: None,
    of_path: false,
};

/// Size of a file of our own.
pub const FILE_SIZE: OptionInfo = OptionInfo {
    key: "file-size",
    help: "Size of the file that is made in a folder [default: 1GiB]",
    kind: Kind::Size { least: 1 << 20, most: 1 << 40 },
    pattern: None,
    of_path: true,
};

/// Bytes of each operation of a load, if none are requested: what most programs that copy files use.
pub const BLOCK: Bytes = Bytes(1 << 20);

/// Size of a file of our own, if none is requested.
pub const FILE_SIZE_DEFAULT: u64 = 1 << 30;

/// Contents are checked.
pub const VERIFY: OptionInfo = OptionInfo {
    key: "verify",
    help: "Write data that can be checked, and check what is read from a file of linerate's own; costs CPU time",
    kind: Kind::Switch,
    pattern: None,
    of_path: true,
};

/// Consent to overwrite a disk.
pub const WRITE_TO: OptionInfo = OptionInfo {
    key: "write-to",
    help: "Name the disk that is measured once more, and let it be written: ALL DATA IN THE TESTED PART ARE LOST, which is the whole disk, or as much as --file-size says from its beginning",
    kind: Kind::Path("/dev/nvme1n1"),
    pattern: None,
    of_path: true,
};

/// Whether operations write with these options.
pub fn writes(options: &Options) -> bool {
    options.word(OP.key) == Some(WRITE)
}

/// Whether operations are in random order with these options.
pub fn is_random(options: &Options) -> bool {
    options.word(ORDER.key) == Some(RANDOM)
}

/// A file or a disk of this host, which takes the place of the far end: a write is payload forward, a read is payload in
/// reverse.
pub static FILE: TransportInfo = TransportInfo {
    name: "file",
    words: Some(|options| {
        let is_buffered = options.is_on(BUFFERED.key);
        if is_buffered { "through the page cache" } else { "past the page cache" }.to_owned()
    }),
    doc: "a file or a disk of this machine",
    patterns: &[PatternKind::Stream, PatternKind::RoundTrips],
    far_end: FarEnd::File,
    sample: "operation",
    features: &[Feature::Operations, Feature::Disk],
    stages: &[Stage::App, Stage::Cpu, Stage::Memory, Stage::Pcie, Stage::Device],
    returns: |_| true,
    depth: |options| options.number(DEPTH.key).map_or(1, |depth| depth as u32),
    obeys: &[Knob::Depth, Knob::OpenLoop, Knob::BusyPoll],
    has_no: "a file has no",
    options: &[OP, ORDER, DEPTH, BUFFERED, READ_AHEAD, SYNC, FILE_SIZE, VERIFY, WRITE_TO],
    varies: &[Swept::Depth, Swept::Size, Swept::Streams],
    sizes: [4 << 10, 4 << 20],
    // The unit in which most file systems and databases move data.
    message: 4096,
    ..TransportInfo::BASE
};
