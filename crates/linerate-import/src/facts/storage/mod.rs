//! Readers of facts about disks and file systems.

mod lsblk;
mod mounts;
mod multipath;
mod nvme;
mod table;

pub(crate) use lsblk::LSBLK;
pub(crate) use mounts::MOUNTS;
pub(crate) use multipath::MULTIPATH;
pub(crate) use nvme::NVME;
