//! Disks with planted faults, each beside a near miss.
//!
//! The kernel's null_blk makes the disks. Requests take 20 ms where they take any time, since timers of an emulated machine
//! are coarse; so only ratios are checked, between a fault and its near miss, or between two counters of one load.
//! `LINERATE_TEST_RECORDS=FOLDER` keeps the records there, of runs with trials. `benches/disks/plants.md` has what was seen.

use std::fmt;
use std::fs;
use std::path::Path;

use linerate_facts::metric::{self as m, Metric};
use linerate_judge::model::{base_round_trips, derive};
use linerate_judge::verdict::{Verdict, judge};
use linerate_plan::Purpose;
use linerate_plan::path::Side;
use linerate_record::{Record, Step, Table};
use linerate_session::store::Store;
use linerate_test::{has, turn};
use linerate_units::Nanos;
use linerate_units::stats::percentile;

use super::guest::{Guest, PROGRAM};

const DISKS: &str = include_str!("disks.sh");

/// Causes that counters tell without a trial, so that a verdict must name them.
const JUDGED: [&str; 9] = [
    "disk-page-cache",
    "disk-dirty",
    "disk-depth-held",
    "disk-split",
    "disk-throttled",
    "disk-capped",
    "disk-read-ahead",
    "disk-crypt",
    "disk-raid-write",
];

/// A fault of a disk, and a disk that nearly has it.
pub(crate) struct Plant {
    name: &'static str,
    /// The cause of the fault, which a verdict must not name for the near miss.
    cause: &'static str,
    /// Programs of this machine that make the disks.
    needs: &'static [&'static str],
    fault: Work,
    near_miss: Work,
    /// Whether the counters tell the fault from the near miss.
    tells: fn(&Seen, &Seen) -> bool,
}

/// A disk, and what linerate does on it.
struct Work {
    /// Commands that make the disk, in the words of `disks.sh`.
    disk: &'static str,
    /// The target and the options of linerate.
    words: &'static str,
}

/// What a load did, and what the disks counted meanwhile.
struct Seen {
    /// Operations that linerate keeps in flight.
    asked: f64,
    /// Operations of linerate in a second.
    operations: f64,
    /// Payload in a second, in bytes.
    bytes: f64,
    /// Median time of the single operations that `run` times beside the load; `None` if they were few.
    p50: Option<Nanos>,
    /// The device that holds the target, then the disks below it.
    disks: Vec<Disk>,
}

/// What a disk counted in a second.
struct Disk {
    name: String,
    requests: f64,
    bytes: f64,
    /// Requests in flight, on average.
    in_flight: f64,
}

impl Seen {
    fn of(record: &Record) -> Self {
        let direction = record.start.plan.directions[0];
        let model = derive(record);
        let load = &model.direction(direction).unwrap().base;
        let is_base = |step: &&Step| step.plan.purpose == Purpose::Base { direction };
        let step = record.steps.iter().find(is_base).unwrap();
        let near = record.hosts.iter().position(|host| host.side == Side::Near).unwrap();
        let tables = step.ends[near].about("disk", |_| true);
        let times = base_round_trips(record, direction);
        let p50 = times.and_then(|times| percentile(&times, 0.5));
        Self {
            asked: f64::from(load.knobs.depth * load.streams),
            operations: load.operations.as_ref().unwrap().mean,
            bytes: load.goodput.mean / 8.0,
            p50: p50.map(Nanos),
            disks: tables.map(|table| Disk::of(table, step)).collect(),
        }
    }

    /// The device that holds the target.
    fn top(&self) -> &Disk {
        self.disks.first().unwrap()
    }

    /// The disks at the bottom: all but the device that holds the target, if it is made of others.
    fn bottom(&self) -> &[Disk] {
        if self.disks.len() > 1 { &self.disks[1..] } else { &self.disks }
    }

    /// Requests of the disks for each operation.
    fn requests(&self) -> f64 {
        let all: f64 = self.bottom().iter().map(|disk| disk.requests).sum();
        all / self.operations
    }

    /// Share of the payload that passed the disks.
    fn passed(&self) -> f64 {
        let all: f64 = self.bottom().iter().map(|disk| disk.bytes).sum();
        all / self.bytes
    }

    /// Bytes of a request.
    fn size(&self) -> f64 {
        self.top().bytes / self.top().requests
    }

    /// Share of the operations in flight that the device has; the others wait above it.
    fn held(&self) -> f64 {
        self.top().in_flight / self.asked
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, operations, bytes, p50, disks } = self;
        let p50 = p50.map_or("-".to_owned(), |p50| p50.to_string());
        write!(f, "{asked} asked, {operations:.0}/s, {:.2} MB/s, p50 {p50}", bytes / 1e6)?;
        disks.iter().try_for_each(|Disk { name, requests, bytes, in_flight }| {
            write!(
                f,
                "; {name}: {requests:.0}/s of {:.1} KiB, {in_flight:.2} in flight",
                bytes / requests / 1024.0
            )
        })
    }
}

impl Disk {
    fn of(table: &Table, step: &Step) -> Self {
        let from = table.at.partition_point(|at| *at < step.plan.washout.0);
        let to = table.at.len() - 1;
        let secs = (table.at[to] - table.at[from]) as f64 / 1e9;
        let grown = |counter: Metric| {
            let values = table.column(counter).unwrap();
            (values[to] - values[from]) as f64 / secs
        };
        Self {
            name: table.subject.clone(),
            requests: grown(m::DISK_READS) + grown(m::DISK_WRITES),
            bytes: grown(m::DISK_READ_BYTES) + grown(m::DISK_WRITTEN_BYTES),
            in_flight: grown(m::DISK_QUEUE) / 1e3,
        }
    }
}

/// Makes both disks of a plant, one after the other, and checks what linerate counts and names.
pub(crate) fn planted(guest: &mut Guest, plant: &Plant) {
    if !plant.needs.iter().all(|program| has(program)) {
        return;
    }
    let _turn = turn();
    let [fault, near_miss] = [("", &plant.fault), ("-near-miss", &plant.near_miss)]
        .map(|(kind, work)| measured(guest, &format!("{}{kind}", plant.name), work));
    let both = format!("{}\n{}", fault.0, near_miss.0);
    assert!((plant.tells)(&fault.0, &near_miss.0), "{both}");
    assert!(!(plant.tells)(&near_miss.0, &fault.0), "{both}");
    if JUDGED.contains(&plant.cause) {
        assert!(names(&fault.1, plant.cause), "{:#?}", fault.1);
        assert!(!names(&near_miss.1, plant.cause), "{:#?}", near_miss.1);
    }
}

/// Whether a cause is a finding and no other one is named as a limit: trials that would prove it take too long.
fn names(verdict: &Verdict, cause: &str) -> bool {
    let found = verdict.answers.iter().any(|a| a.cause == cause && a.outcome == "finding");
    found && verdict.limits.first().is_none_or(|limit| limit.cause == cause)
}

fn measured(guest: &mut Guest, name: &str, work: &Work) -> (Seen, Verdict) {
    let kept = std::env::var_os("LINERATE_TEST_RECORDS").filter(|folder| !folder.is_empty());
    let time = if kept.is_some() { "--time 30s" } else { "--time 8s --no-trials --streams 1" };
    let Work { disk, words } = work;
    guest.ask(&format!(
        "{DISKS}\nprogram={PROGRAM}\n{disk}\n{PROGRAM} run {words} --engine file {time} --quiet --save /out/disks/{name}"
    ));
    let store = Store::new(guest.vm.shared().join("disks").join(name));
    let last = store.last().unwrap();
    if let Some(folder) = kept {
        fs::copy(&last, Path::new(&folder).join(name).with_extension("lnr")).unwrap();
    }
    let record = store.load(&last.to_string_lossy()).unwrap().record;
    let seen = Seen::of(&record);
    println!("{name}: {seen}");
    (seen, judge(&derive(&record)))
}

/// Random reads of 4 KiB, 32 of them in flight.
const READS: &str = "/dev/a --order random --size 4KiB --depth 32";

pub(crate) const DEPTH: Plant = Plant {
    name: "depth",
    cause: "queue-depth",
    needs: &[],
    fault: Work { disk: "late a", words: "/dev/a --order random --size 4KiB" },
    near_miss: Work { disk: "late a", words: READS },
    // `run` times single operations beside the load: one more is in flight.
    tells: |fault, near| fault.top().in_flight < 2.5 && near.operations > 8.0 * fault.operations,
};

pub(crate) const DEPTH_HELD: Plant = Plant {
    name: "depth-held",
    cause: "disk-depth-held",
    needs: &[],
    fault: Work { disk: "late a submit_queues=1 hw_queue_depth=4", words: READS },
    near_miss: Work { disk: "late a submit_queues=1 hw_queue_depth=128", words: READS },
    // The program sees 32 operations in flight on both disks.
    tells: |fault, near| fault.held() < 0.2 && near.held() > 0.7,
};

/// Reads of 1 MiB, 4 of them in flight.
const LARGE: &str = "/dev/a --size 1MiB --depth 4";
/// Reads of 256 KiB, 4 of them in flight: a request that needs no more than 64 pieces of memory.
const WHOLE: &str = "/dev/a --size 256KiB --depth 4";

pub(crate) const SPLIT: Plant = Plant {
    name: "split",
    cause: "disk-split",
    needs: &[],
    fault: Work { disk: "late a submit_queues=1 hw_queue_depth=8 max_sectors=64", words: LARGE },
    near_miss: Work {
        disk: "late a submit_queues=1 hw_queue_depth=8 max_sectors=2048",
        words: WHOLE,
    },
    tells: |fault, near| fault.requests() > 4.0 * near.requests(),
};

pub(crate) const THROTTLED: Plant = Plant {
    name: "throttled",
    cause: "disk-throttled",
    needs: &[],
    fault: Work { disk: "late a; limit a riops=100 rbps=100000000", words: READS },
    near_miss: Work { disk: "late a; limit a riops=1000000 rbps=max", words: READS },
    // Operations wait above the disk, which is nearly idle.
    tells: |fault, near| fault.held() < 0.3 && near.operations > 3.0 * fault.operations,
};

pub(crate) const CAPPED: Plant = Plant {
    name: "capped",
    cause: "disk-capped",
    needs: &[],
    fault: Work { disk: "disk a mbps=4", words: "/dev/a --size 64KiB --depth 32" },
    near_miss: Work { disk: "disk a", words: "/dev/a --size 64KiB --depth 32" },
    tells: |fault, near| fault.held() > 0.4 && near.bytes > 3.0 * fault.bytes,
};

pub(crate) const READ_AHEAD: Plant = Plant {
    name: "read-ahead",
    cause: "disk-read-ahead",
    needs: &[],
    fault: Work {
        disk: "late a max_sectors=2048; queue a read_ahead_kb 128",
        words: "/dev/a --size 64KiB --buffered",
    },
    near_miss: Work {
        disk: "late a max_sectors=2048; queue a read_ahead_kb 4096",
        words: "/dev/a --size 64KiB --buffered",
    },
    tells: |fault, near| fault.size() < 140e3 && near.bytes > 1.5 * fault.bytes,
};

pub(crate) const CONTENDED: Plant = Plant {
    name: "contended",
    cause: "disk-contended",
    needs: &[],
    fault: Work {
        disk: "late a submit_queues=1 hw_queue_depth=32
beside $program bw /dev/a --engine file --order random --size 4KiB --depth 64 --time 60s --quiet --no-save",
        words: READS,
    },
    near_miss: Work { disk: "late a submit_queues=1 hw_queue_depth=32", words: READS },
    tells: |fault, near| fault.requests() > 1.5 && near.requests() < 1.3,
};

pub(crate) const PAGE_CACHE: Plant = Plant {
    name: "page-cache",
    cause: "disk-page-cache",
    needs: &["mke2fs"],
    fault: Work {
        disk: "disk a memory_backed=1; ext4 /dev/a",
        words: "/run/data --direction reverse --file-size 16MiB --size 64KiB --buffered",
    },
    near_miss: Work {
        disk: "disk a memory_backed=1; ext4 /dev/a",
        words: "/run/data --direction reverse --file-size 16MiB --size 64KiB",
    },
    tells: |fault, near| fault.passed() < 0.3 && near.passed() > 0.8,
};

pub(crate) const DIRTY: Plant = Plant {
    name: "dirty",
    cause: "disk-dirty",
    needs: &["mke2fs"],
    fault: Work {
        disk: "disk a memory_backed=1 mbps=60; ext4 /dev/a",
        words: "/run/data --file-size 300MiB --direction forward --buffered",
    },
    near_miss: Work {
        disk: "disk a memory_backed=1 mbps=60; ext4 /dev/a",
        words: "/run/data --file-size 300MiB --direction forward",
    },
    tells: |fault, near| fault.passed() < 0.8 * near.passed(),
};

/// A file system on a disk with a write cache, which takes 20 ms to be emptied: a loop device has one.
const CACHED: &str = "disk a memory_backed=1
modprobe loop
losetup /dev/loop0 /dev/a
mapped delay /dev/loop0 /dev/loop0 0 0 /dev/loop0 0 0 /dev/loop0 0 20
ext4 /dev/dm-0 -O has_journal";

pub(crate) const SYNC: Plant = Plant {
    name: "sync",
    cause: "disk-sync",
    needs: &["mke2fs", "dmsetup", "losetup"],
    fault: Work {
        disk: CACHED,
        words: "/run/data --file-size 64MiB --direction forward --order random --size 4KiB --sync",
    },
    near_miss: Work {
        disk: CACHED,
        words: "/run/data --file-size 64MiB --direction forward --order random --size 4KiB",
    },
    tells: |fault, near| near.operations > 3.0 * fault.operations,
};

pub(crate) const CRYPT: Plant = Plant {
    name: "crypt",
    cause: "disk-crypt",
    needs: &["dmsetup"],
    fault: Work {
        disk: "disk a; mapped crypt /dev/a aes-xts-plain64 $(printf %0128d 7) 0 /dev/a 0",
        words: "/dev/dm-0 --size 64KiB --depth 32",
    },
    near_miss: Work {
        disk: "disk a; mapped linear /dev/a /dev/a 0",
        words: "/dev/dm-0 --size 64KiB --depth 32",
    },
    tells: |fault, near| fault.held() > 0.7 && near.bytes > 2.0 * fault.bytes,
};

/// Random writes of 4 KiB to a file on a RAID.
const WRITES: &str =
    "/run/data --file-size 64MiB --direction forward --order random --size 4KiB --depth 4";

pub(crate) const RAID_PARITY: Plant = Plant {
    name: "raid-parity",
    cause: "disk-raid-write",
    needs: &["mke2fs", "mdadm"],
    fault: Work { disk: "raid 5; ext4 /dev/md0", words: WRITES },
    near_miss: Work { disk: "raid 0; ext4 /dev/md0", words: WRITES },
    tells: |fault, near| fault.requests() > 2.0 * near.requests(),
};

pub(crate) const RAID_BITMAP: Plant = Plant {
    name: "raid-bitmap",
    cause: "disk-raid-write",
    needs: &["mke2fs", "mdadm"],
    fault: Work {
        disk: "raid 1 --bitmap=internal --bitmap-chunk=8K --delay=1; ext4 /dev/md0",
        words: WRITES,
    },
    near_miss: Work { disk: "raid 1 --bitmap=none; ext4 /dev/md0", words: WRITES },
    tells: |fault, near| fault.requests() > 1.2 * near.requests(),
};

pub(crate) const SUBMIT: Plant = Plant {
    name: "submit",
    cause: "receiver-core",
    needs: &[],
    fault: Work { disk: "disk a", words: READS },
    near_miss: Work { disk: "late a", words: READS },
    tells: |fault, near| fault.held() < 0.7 && near.held() > 0.7,
};
