//! Readers of facts about a host, from outputs that people paste.

mod cpu;
mod dmesg;
mod ethtool;
mod infiniband;
mod ip;
mod lines;
mod lspci;
mod pcm;
mod powershell;
#[cfg(test)]
#[path = "tests/samples.rs"]
pub(crate) mod samples;
mod storage;
mod sysctl;
mod tree;
mod usb;

pub(crate) use cpu::{INTERRUPTS, LSCPU, LSCPU_LIST, NPROC, NUMACTL};
pub(crate) use dmesg::DMESG;
pub(crate) use ethtool::{COUNTERS, DRIVER, FEATURES, PARAMETERS, SETTINGS, is_speed};
pub(crate) use infiniband::{
    IBQUERYERRORS, IBSTAT, IBSTATUS, IBV_DEVINFO, MLXLINK, PERFQUERY, is_software,
};
pub(crate) use ip::{IFCONFIG, IP, IP_JSON};
pub(crate) use lspci::LSPCI;
pub(crate) use pcm::{PCM_MEMORY, PCM_PCIE};
pub(crate) use powershell::{ADAPTER, ADVANCED, HARDWARE, RDMA};
pub(crate) use storage::{LSBLK, MOUNTS, MULTIPATH, NVME};
pub(crate) use sysctl::SYSCTL;
pub(crate) use tree::link_up;
pub(crate) use usb::LSUSB;

use linerate_facts::nic::{Network, Nic};

use crate::reading::MOST;

/// Largest number of ports that are kept, as each is found by its name.
const MOST_PORTS: usize = 1_024;

/// The entry with this key in a list sorted by key, added if it is new; `None` if the list is full.
fn entry<T, K: Ord>(
    all: &mut Vec<T>,
    key: K,
    of: impl Fn(&T) -> K,
    new: impl FnOnce(K) -> T,
) -> Option<&mut T> {
    let at = match all.binary_search_by_key(&key, of) {
        Ok(at) => at,
        Err(_) if all.len() >= MOST => return None,
        Err(at) => {
            all.insert(at, new(key));
            at
        }
    };
    all.get_mut(at)
}

/// The port with this name, added if it is new; `None` if there are too many ports.
fn port<'a>(network: &'a mut Network, name: &str) -> Option<&'a mut Nic> {
    let is_last = network.nics.last().is_some_and(|nic| nic.name == name);
    let known = if is_last {
        network.nics.len().checked_sub(1)
    } else {
        network.nics.iter().position(|nic| nic.name == name)
    };
    let at = known.unwrap_or(network.nics.len());
    if at >= MOST_PORTS {
        return None;
    }
    if known.is_none() {
        network.nics.push(Nic { name: name.to_owned(), ..Nic::default() });
    }
    network.nics.get_mut(at)
}
