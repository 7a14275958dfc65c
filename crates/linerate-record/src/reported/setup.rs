//! How a test was set up, as its output or its command says.

use serde::{Deserialize, Serialize};

use linerate_facts::infiniband::Layer;

/// The set-up of a test of messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setup {
    /// Hosts at which its processes ran, each once; one alone is a test within a host. Empty if unknown.
    pub hosts: Vec<String>,
    /// Queue pairs; `None` if unknown.
    pub queues: Option<u32>,
    /// Largest payload of a packet of RDMA, in bytes; `None` if unknown.
    pub mtu: Option<u32>,
    /// What carries the packets; `None` if unknown.
    pub layer: Option<Layer>,
    /// Messages that were measured; `None` if unknown, and of a table, whose rows have them.
    pub messages: Option<u64>,
    /// The first CPU that its command allows; `None` if it allows all, or if unknown.
    pub cpu: Option<u32>,
    /// The NUMA node that its command binds it to; `None` if it binds it to none, or if unknown.
    pub node: Option<u32>,
    /// Words of its command but the list of hosts: runs with other words differ in more than the hosts. Empty if unknown.
    pub command: String,
    /// Processes that take part; `None` if unknown.
    pub processes: Option<u32>,
    /// Ports that carry the messages, as the program or its command names them; empty if unknown.
    pub ports: Vec<String>,
    /// Why it does not use RDMA, in the program's own words; empty if it does not say.
    pub no_rdma: String,
    /// Whether many processes take part in each operation: then its time is not that of a message.
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
