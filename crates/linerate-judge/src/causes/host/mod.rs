//! Causes inside a host: its CPUs, its memory, its slots, and the two programs.

pub(crate) mod busy_thread;
pub(crate) mod core_bound;
pub(crate) mod cpu_clock;
pub(crate) mod cpu_contention;
pub(crate) mod cpu_quota;
pub(crate) mod cpu_share;
pub(crate) mod cpu_steal;
pub(crate) mod exchange_deadlock;
pub(crate) mod hash_collision;
pub(crate) mod memory_bandwidth;
pub(crate) mod numa_remote;
pub(crate) mod pcie_slot;
pub(crate) mod queue_depth;
pub(crate) mod receiver_app;
pub(crate) mod receiver_core;
pub(crate) mod sender_app;
pub(crate) mod sender_core;
pub(crate) mod shared_core;
pub(crate) mod small_packets;
pub(crate) mod softirq_core;
