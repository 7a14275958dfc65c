//! Settings of a host that a trial may change, and how a change is saved before it is made ([`Entry`]).
//!
//! A peer or a journal can only name a row of [`SETTINGS`], with numbers within its bounds. It can give neither a path
//! nor text that is written to a setting.

mod journal;

use serde::{Deserialize, Serialize};

use crate::path::Side;
pub use journal::{Damaged, Entry, JOURNAL_MAX, journal};

/// A setting of a host that a trial may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// The largest receive buffer that TCP autotuning may choose.
    TcpRmem,
    /// The largest send buffer that TCP autotuning may choose.
    TcpWmem,
    /// The largest `SO_RCVBUF` that a program may request.
    RmemMax,
    /// The largest `SO_SNDBUF` that a program may request.
    WmemMax,
    /// Segmentation offload while sending: TSO and GSO.
    SendOffloads,
    /// Coalescing while receiving: GRO.
    ReceiveOffloads,
    /// Number of received packets that may wait until a CPU processes them.
    Backlog,
    /// Bytes that may wait in the queue of a token bucket at the root of the port.
    QueueBytes,
    /// Number of packets that may wait in a plain queue at the root of the port.
    QueuePackets,
    /// CPUs that process packets of the port after they were received (`rps_cpus`).
    PacketCpus,
}

/// A queueing discipline at the root of a port. A trial can change only its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// A token bucket. Its limit is in bytes.
    Tbf,
    /// A plain queue of packets. Its limit is a number of packets.
    Pfifo,
}

impl Queue {
    /// The name of the queueing discipline in the kernel and in `tc`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tbf => "tbf",
            Self::Pfifo => "pfifo",
        }
    }
}

/// Work that a port does for the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offload {
    /// TCP segmentation by the port.
    Tso,
    /// Segmentation by the kernel just before packets reach the port (GSO).
    Gso,
    /// Coalescing of received packets of one flow (GRO).
    Gro,
}

impl Offload {
    /// Name of the offload in text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tso => "TSO",
            Self::Gso => "GSO",
            Self::Gro => "GRO",
        }
    }
}

/// Where a setting is, and what its numbers mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A sysctl: its name, and how many numbers it has. A change sets the last number.
    Sysctl(&'static str, usize),
    /// Offloads of the port on the path, 1 for on and 0 for off. A change sets all of them.
    Offloads(&'static [Offload]),
    /// The queueing discipline at the root of the port on the path: its handle and its limit. A change sets the limit.
    Limit(Queue),
    /// A mask of CPUs for each receive queue of the port on the path. A change sets all masks. Masks with a CPU above
    /// 31 are not supported.
    Spread,
}

/// One row of [`SETTINGS`].
#[derive(Debug, Clone, Copy)]
pub struct SettingRow {
    /// The setting that this row describes.
    pub setting: Setting,
    /// Stable id, used in facts and journals.
    pub id: &'static str,
    /// Where the setting is, and what its numbers mean.
    pub access: Access,
    /// The smallest and the largest value that a trial may set.
    pub bounds: (u64, u64),
}

/// Smallest and largest maximum of a buffer, in bytes: one page, and more than any path of today needs.
const BUFFER_BOUNDS: (u64, u64) = (4096, 1 << 30);

/// Smallest and largest value of a switch: 0 is off, 1 is on.
const SWITCH_BOUNDS: (u64, u64) = (0, 1);

/// Smallest and largest packet queue, in packets. The largest one holds every burst that a port sends.
const PACKET_BOUNDS: (u64, u64) = (1, 10_000);

/// Smallest and largest queue in bytes: one large packet, and a tenth of a second of 10 Gb/s.
const QUEUED_BOUNDS: (u64, u64) = (1 << 16, 1 << 27);

/// Every setting that a trial may change.
pub const SETTINGS: &[SettingRow] = &[
    SettingRow {
        setting: Setting::TcpRmem,
        id: "tcp-rmem",
        access: Access::Sysctl("net.ipv4.tcp_rmem", 3),
        bounds: BUFFER_BOUNDS,
    },
    SettingRow {
        setting: Setting::TcpWmem,
        id: "tcp-wmem",
        access: Access::Sysctl("net.ipv4.tcp_wmem", 3),
        bounds: BUFFER_BOUNDS,
    },
    SettingRow {
        setting: Setting::RmemMax,
        id: "rmem-max",
        access: Access::Sysctl("net.core.rmem_max", 1),
        bounds: BUFFER_BOUNDS,
    },
    SettingRow {
        setting: Setting::WmemMax,
        id: "wmem-max",
        access: Access::Sysctl("net.core.wmem_max", 1),
        bounds: BUFFER_BOUNDS,
    },
    SettingRow {
        setting: Setting::SendOffloads,
        id: "send-offloads",
        access: Access::Offloads(&[Offload::Tso, Offload::Gso]),
        bounds: SWITCH_BOUNDS,
    },
    SettingRow {
        setting: Setting::ReceiveOffloads,
        id: "receive-offloads",
        access: Access::Offloads(&[Offload::Gro]),
        bounds: SWITCH_BOUNDS,
    },
    SettingRow {
        setting: Setting::Backlog,
        id: "backlog",
        access: Access::Sysctl("net.core.netdev_max_backlog", 1),
        bounds: PACKET_BOUNDS,
    },
    SettingRow {
        setting: Setting::QueueBytes,
        id: "queue-bytes",
        access: Access::Limit(Queue::Tbf),
        bounds: QUEUED_BOUNDS,
    },
    SettingRow {
        setting: Setting::QueuePackets,
        id: "queue-packets",
        access: Access::Limit(Queue::Pfifo),
        bounds: PACKET_BOUNDS,
    },
    SettingRow {
        setting: Setting::PacketCpus,
        id: "packet-cpus",
        access: Access::Spread,
        bounds: (1, MASK),
    },
];

/// Largest mask of CPUs: all CPUs below 32.
const MASK: u64 = u32::MAX as u64;

/// Largest number of receive queues of a port whose packets are spread over CPUs.
const QUEUES_MAX: usize = 64;

impl Setting {
    /// The row of this setting in [`SETTINGS`].
    pub fn row(self) -> &'static SettingRow {
        // The rows are in the order of the variants; the tests check that.
        &SETTINGS[self as usize]
    }
}

impl SettingRow {
    /// Whether the setting belongs to a port, not to the whole host.
    pub fn of_port(&self) -> bool {
        match self.access {
            Access::Sysctl(..) => false,
            Access::Offloads(_) | Access::Limit(_) | Access::Spread => true,
        }
    }

    /// Whether a change from `old` to `new` is useful. A limit must grow by half at least. Packets are spread over CPUs
    /// only if all masks were zero before.
    pub fn is_change(&self, old: &[u64], new: &[u64]) -> bool {
        match self.access {
            Access::Offloads(_) => old != new,
            Access::Spread => old.iter().all(|mask| *mask == 0) && old != new,
            Access::Sysctl(..) | Access::Limit(_) => {
                let (old, new) = (old.last(), new.last());
                old.zip(new).is_some_and(|(old, new)| old.saturating_add(old / 2) <= *new)
            }
        }
    }

    /// The numbers of the setting after a change from `old` to `value`.
    pub fn changed(&self, old: &[u64], value: u64) -> Vec<u64> {
        let mut new = old.to_vec();
        match self.access {
            Access::Sysctl(..) | Access::Limit(_) => {
                new.iter_mut().rev().take(1).for_each(|n| *n = value);
            }
            Access::Offloads(_) | Access::Spread => new.fill(value),
        }
        new
    }

    /// Name of the setting for people, on a host whose path uses `port`.
    pub fn what(&self, port: &str) -> String {
        match self.access {
            Access::Sysctl(name, _) => name.to_owned(),
            Access::Offloads(offloads) => {
                let names: Vec<&str> = offloads.iter().map(|o| o.name()).collect();
                format!("{} of {port}", names.join(" and "))
            }
            Access::Limit(queue) => format!("the limit of {port} {}", queue.name()),
            Access::Spread => format!("rps_cpus of {port}"),
        }
    }

    /// The numbers of the setting as text, for people.
    pub fn words(&self, numbers: &[u64]) -> String {
        match self.access {
            Access::Sysctl(..) => words(numbers),
            Access::Offloads(_) => {
                let state = |n: &u64| if *n == 0 { "off" } else { "on" };
                numbers.iter().map(state).collect::<Vec<_>>().join(" ")
            }
            Access::Limit(_) => match numbers {
                [handle, limit] => format!("{:x}: {limit}", handle >> 16),
                _ => words(numbers),
            },
            Access::Spread => {
                let masks = numbers.iter().map(|mask| format!("{mask:x}"));
                masks.collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// Whether the kernel can hold these numbers in the setting. A sysctl holds numbers of the C type int.
    fn holds(&self, numbers: &[u64]) -> bool {
        let (many, most) = match self.access {
            Access::Sysctl(_, many) => (many..=many, u64::from(i32::MAX.unsigned_abs())),
            Access::Offloads(offloads) => (offloads.len()..=offloads.len(), 1),
            Access::Limit(_) => (2..=2, u64::from(u32::MAX)),
            Access::Spread => (1..=QUEUES_MAX, MASK),
        };
        many.contains(&numbers.len()) && numbers.iter().all(|n| *n <= most)
    }
}

/// A setting of one end's host that is changed while a set of connections is made and used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostChange {
    /// The end whose host is changed.
    pub side: Side,
    /// The setting to change.
    pub setting: Setting,
    /// The new value: bytes, or 1 for on and 0 for off.
    pub value: u64,
}

impl HostChange {
    /// Whether the new value is within the bounds of the setting. The error names the violated bound, as a lowercase
    /// fragment.
    pub fn check(&self) -> Result<(), String> {
        let row = self.setting.row();
        let (least, most) = row.bounds;
        if (least..=most).contains(&self.value) {
            return Ok(());
        }
        let value = self.value;
        Err(format!("{value} for {}: {least} to {most}", row.id))
    }
}

fn words(numbers: &[u64]) -> String {
    let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_one_row_and_its_bounds() {
        use Setting::{
            Backlog, PacketCpus, QueueBytes, QueuePackets, ReceiveOffloads, RmemMax, SendOffloads,
            TcpRmem, TcpWmem, WmemMax,
        };
        let all = [
            TcpRmem,
            TcpWmem,
            RmemMax,
            WmemMax,
            SendOffloads,
            ReceiveOffloads,
            Backlog,
            QueueBytes,
            QueuePackets,
            PacketCpus,
        ];
        assert_eq!(all.len(), SETTINGS.len());
        for setting in all {
            let row = setting.row();
            assert_eq!(row.setting, setting);
            assert_eq!(SETTINGS.iter().filter(|r| r.id == row.id).count(), 1);
            let at = |value| HostChange { side: Side::Far, setting, value };
            let (least, most) = row.bounds;
            assert!(at(least).check().is_ok() && at(most).check().is_ok());
            assert!(at(most + 1).check().is_err());
            assert!(least == 0 || at(least - 1).check().is_err());
        }
    }

    #[test]
    fn a_change_keeps_what_it_is_not_about() {
        let row = Setting::TcpWmem.row();
        assert_eq!(row.changed(&[1, 2, 3], 9), [1, 2, 9]);
        let row = Setting::SendOffloads.row();
        assert_eq!(row.changed(&[0, 1], 1), [1, 1]);
        assert_eq!(row.what("eth0"), "TSO and GSO of eth0");
        assert_eq!(row.words(&[0, 1]), "off on");
        let row = Setting::QueueBytes.row();
        assert_eq!(row.changed(&[0x8001_0000, 9], 20), [0x8001_0000, 20]);
        assert_eq!(row.what("eth0"), "the limit of eth0 tbf");
        assert_eq!(row.words(&[0x8001_0000, 9]), "8001: 9");
    }

    #[test]
    fn a_limit_is_raised_by_half_and_never_lowered() {
        for row in [Setting::RmemMax.row(), Setting::Backlog.row()] {
            assert!(row.is_change(&[100], &[150]) && !row.is_change(&[100], &[149]));
            assert!(!row.is_change(&[100], &[50]));
        }
        let row = Setting::QueuePackets.row();
        assert!(row.is_change(&[7, 100], &[7, 150]) && !row.is_change(&[7, 100], &[7, 149]));
        let row = Setting::SendOffloads.row();
        assert!(row.is_change(&[0, 1], &[1, 1]) && !row.is_change(&[1, 1], &[1, 1]));
        let row = Setting::PacketCpus.row();
        assert!(row.is_change(&[0, 0], &[6, 6]) && !row.is_change(&[0, 2], &[6, 6]));
        assert_eq!(row.words(&row.changed(&[0, 0], 10)), "a a");
    }
}
