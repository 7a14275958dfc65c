//! Reads lines of NCCL's log (`NCCL_DEBUG=INFO`): which network carries the messages between hosts.

use crate::reading::quoted;
use linerate_facts::infiniband::Layer;

/// The text before each message.
const MARK: &str = " NCCL INFO ";
/// Starts of messages with which the log of a run begins.
const FIRST: [&str; 4] = ["Bootstrap ", "NET/", "Using network ", "cudaDriverVersion "];
/// Largest number of ports that are kept: a host has fewer.
const MOST_PORTS: usize = 32;
/// Start of the variable with which a command chooses ports.
const CHOICE: &str = "NCCL_IB_HCA=";

/// The message in a line such as `gpu-a:41822:41911 [0] NCCL INFO Using network Socket`.
pub(super) fn said(line: &str) -> Option<&str> {
    line.split_once(MARK).map(|(_, said)| said.trim())
}

/// Whether the log of a run may begin with this line.
pub(super) fn begins(line: &str) -> bool {
    said(line).is_some_and(|said| FIRST.iter().any(|first| said.starts_with(first)))
}

/// Whether a line is part of the log.
pub(super) fn is_part(line: &str) -> bool {
    said(line).is_some() || line.contains(" NCCL WARN ") || line.starts_with("NCCL version ")
}

/// What the log shows about the network.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// Why RDMA is not used; empty if the log does not say.
    pub(super) no_rdma: String,
    /// The interfaces of sockets; and below, the ports of RDMA with their link layers.
    interfaces: Vec<String>,
    rdma: Vec<(String, Option<Layer>)>,
    /// The network that NCCL uses: `Socket` or `IB`.
    network: String,
    /// Whether messages between processes use sockets.
    crosses: bool,
}

impl Log {
    /// Reads a message.
    pub(super) fn line(&mut self, said: &str) {
        if let Some(name) = said.strip_prefix("Using network ") {
            self.network = quoted(name);
        } else if let Some(list) = said.strip_prefix("NET/Socket : Using ") {
            for (name, _) in listed(list) {
                keep(&mut self.interfaces, name);
            }
        } else if let Some(list) = said.strip_prefix("NET/IB : Using ") {
            for (name, kind) in listed(list) {
                keep(&mut self.rdma, (name, layer(&kind)));
            }
        } else if said.starts_with("NET/IB : No device found") {
            // If a library is missing, that is the reason, and is kept.
            if self.no_rdma.is_empty() {
                self.no_rdma = quoted(said);
            }
        } else if said.starts_with("Failed to open libibverbs") {
            self.no_rdma = quoted(said);
        } else if said.contains(" via NET/Socket") {
            self.crosses = true;
        }
    }

    /// Whether messages use sockets: either the log shows it, or its network is sockets and there are several
    /// `hosts`.
    pub(super) fn is_sockets(&self, hosts: usize) -> bool {
        let is_named = match self.network.as_str() {
            "" => !self.interfaces.is_empty() && self.rdma.is_empty(),
            name => name == "Socket",
        };
        self.crosses || is_named && hosts > 1
    }

    /// The ports that carry the messages.
    pub(super) fn ports(&self) -> Vec<String> {
        if self.rdma.is_empty() {
            return self.interfaces.clone();
        }
        self.rdma.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The link layer of the RDMA ports, if it is the same for all.
    pub(super) fn layer(&self) -> Option<Layer> {
        let (_, first) = self.rdma.first()?;
        first.filter(|_| self.rdma.iter().all(|(_, layer)| layer == first))
    }
}

fn keep<T: PartialEq>(all: &mut Vec<T>, one: T) {
    if all.len() < MOST_PORTS && !all.contains(&one) {
        all.push(one);
    }
}

/// Names, and the texts after their colons, in `[0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eno1:192.0.2.1<0>`.
fn listed(list: &str) -> impl Iterator<Item = (String, String)> {
    let list = list.split(';').next().unwrap_or_default();
    list.split_whitespace().filter_map(|word| {
        let (number, rest) = word.strip_prefix('[')?.split_once(']')?;
        let (name, kind) = rest.split_once(':')?;
        (number.bytes().all(|b| b.is_ascii_digit()) && is_name(name))
            .then(|| (name.to_owned(), kind.to_owned()))
    })
}

fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !text.is_empty() && text.len() <= 32 && text.chars().all(is_part)
}

fn layer(kind: &str) -> Option<Layer> {
    // The text is like `1/IB/SHARP`.
    match kind.split('/').nth(1)? {
        "IB" => Some(Layer::InfiniBand),
        "RoCE" => Some(Layer::Ethernet),
        _ => None,
    }
}

/// The devices that a command chooses, if it has their complete names: `NCCL_IB_HCA=mlx5_0,mlx5_1:1`. A name without
/// a number can match several devices.
pub(super) fn requested(command: &str) -> Vec<String> {
    let list = command.split_whitespace().find_map(|word| word.strip_prefix(CHOICE));
    let list = list.unwrap_or_default().trim_start_matches('=');
    let each = list.split(',').take(MOST_PORTS);
    let names: Option<Vec<String>> = each
        .map(|word| {
            let name = word.split(':').next().unwrap_or(word);
            // `mlx5` is the start of the names of all devices of its driver.
            let is_whole =
                name.contains('_') || ["ib", "roce"].iter().any(|start| name.starts_with(start));
            let ends = name.ends_with(|c: char| c.is_ascii_digit());
            (ends && is_whole && is_name(name)).then(|| name.to_owned())
        })
        .collect();
    names.unwrap_or_default()
}
