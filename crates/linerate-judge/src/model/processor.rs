//! Threads of a load, and the CPUs of its hosts.

use linerate_units::Hertz;

/// One worker thread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Thread {
    /// Number of the stream that the thread serves.
    pub stream: u32,
    /// Share of time that the thread ran on a CPU.
    pub busy: Option<f64>,
    /// Share of time that the thread was runnable but not running.
    pub waiting: Option<f64>,
    /// Share of `busy` spent in user code.
    pub user: Option<f64>,
    /// The CPU that the thread ran on last.
    pub cpu: Option<u32>,
    /// The CPU that the thread was on at every sample; `None` if the thread moved.
    pub home: Option<u32>,
    /// Share of time that interrupts and the hypervisor took on the thread's CPU, on top of the time that it
    /// ran and waited. `None` if it was not read. Zero on kernels that count interrupts as time of the
    /// interrupted thread.
    pub taken: Option<f64>,
    /// Payload per operation, mean.
    pub bytes_per_op: Option<f64>,
    /// The CPU that received the packets of its stream in every sample. `None` if it changed or was not read.
    pub takes_in: Option<u32>,
}

/// One CPU of a host, whole machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cpu {
    /// Number of the CPU.
    pub number: u32,
    /// Share of time that the CPU was not idle.
    pub busy: f64,
    /// Share of time that the CPU spent in softirq.
    pub softirq: f64,
    /// Share of time stolen by the hypervisor.
    pub steal: f64,
    /// Share of time that this run's threads ran on this CPU, of both ends if they share the machine; `None` if
    /// it was not read.
    pub ours: Option<f64>,
    /// Share of time that it ran something else than this run's threads and interrupts, at least;
    /// `None` if it was not read.
    pub others: Option<f64>,
    /// Packets per second that the network stack received on the CPU.
    pub packets: Option<f64>,
    /// The CPU's clock under the load; `None` if it was not read.
    pub clock: Option<Hertz>,
}
