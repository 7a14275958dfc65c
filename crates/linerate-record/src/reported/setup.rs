//! How a test was set up, as its output or its command says.

use serde::{Deserialize, Serialize};

use linerate_facts::infiniband::Layer;

/// The set-up of a test that sends messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setup {
    /// Hosts at which processes of the test ran, each once. A single host means that the test stayed within it. Empty
    /// if unknown.
    pub hosts: Vec<String>,
    /// Number of queue pairs; `None` if unknown.
    pub queues: Option<u32>,
    /// Largest payload of an RDMA packet, in bytes; `None` if unknown.
    pub mtu: Option<u32>,
    /// The network layer that carries the packets; `None` if unknown.
    pub layer: Option<Layer>,
    /// Number of messages that were measured; `None` if unknown, and for a table, whose rows have their own numbers.
    pub messages: Option<u64>,
    /// The first CPU on which the command lets the program run; `None` if all are allowed, or if unknown.
    pub cpu: Option<u32>,
    /// The NUMA node to which the command binds the program; `None` if to none, or if unknown.
    pub node: Option<u32>,
    /// Words of the command without the list of hosts: runs whose words differ do not differ in hosts alone. Empty if
    /// unknown.
    pub command: String,
    /// Number of processes that take part; `None` if unknown.
    pub processes: Option<u32>,
    /// Ports that carry the messages, as the program or its command names them; empty if unknown.
    pub ports: Vec<String>,
    /// Why the program does not use RDMA, in its own words; empty if it does not say.
    pub no_rdma: String,
    /// Whether many processes take part in each operation: then the time of an operation is not that of a message.
    pub collective: bool,
}

impl Setup {
    /// The only host, if all processes ran at one.
    pub fn only_host(&self) -> Option<&str> {
        match self.hosts.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }
}
