//! Threads of a load, and the CPUs of the hosts.

use linerate_units::Hertz;

/// One worker thread of a load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Thread {
    /// Number of the stream that the thread serves.
    pub stream: u32,
    /// Share of time in which the thread ran on a CPU.
    pub busy: Option<f64>,
    /// Share of time in which the thread was runnable but did not run.
    pub waiting: Option<f64>,
    /// Share of `busy` spent in user mode.
    pub user: Option<f64>,
    /// The CPU that the thread ran on last.
    pub cpu: Option<u32>,
    /// The CPU on which the thread was in every sample; `None` if the thread moved.
    pub home: Option<u32>,
    /// Share of time in which interrupts and the hypervisor used the thread's CPU, in addition to the time that the
    /// thread ran and waited. `None` if it was not read. Zero on kernels that count interrupts as time of the
    /// interrupted thread.
    pub taken: Option<f64>,
    /// Mean payload of an operation, in bytes.
    pub bytes_per_op: Option<f64>,
    /// The CPU that received the packets of the thread's stream in every sample. `None` if it changed or was not read.
    pub takes_in: Option<u32>,
}

/// One CPU of a host, with its use by all programs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cpu {
    /// Number of the CPU in the system.
    pub number: u32,
    /// Share of time in which the CPU was not idle.
    pub busy: f64,
    /// Share of time in which the CPU handled softirqs.
    pub softirq: f64,
    /// Share of time in which the hypervisor stole the CPU.
    pub steal: f64,
    /// Share of time in which this run's threads ran on the CPU, those of both ends if they share the machine; `None`
    /// if it was not read.
    pub ours: Option<f64>,
    /// Least share of time in which other programs ran on the CPU, without interrupts; `None` if it was not read.
    pub others: Option<f64>,
    /// Packets per second that the network stack processed on the CPU.
    pub packets: Option<f64>,
    /// The CPU's clock under the load; `None` if it was not read.
    pub clock: Option<Hertz>,
}
