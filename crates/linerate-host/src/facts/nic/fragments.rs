//! Numbers of fragments that this network namespace has made and received since boot.

use linerate_facts::nic::{Fragments, Nic};

use super::super::Reader;
use crate::fragments;

impl Reader<'_> {
    /// Reads the kernel's counters of fragments if there is a tunnel, which may need fragmentation; `None` if the
    /// kernel has no counters for IPv4.
    pub(super) fn fragments(&mut self, nics: &[Nic]) -> Option<Fragments> {
        if !nics.iter().any(Nic::is_tunnel) {
            return None;
        }
        match fragments::read_all(self.machine) {
            Ok(counted) => Some(counted),
            Err(error) if super::super::is_absent(&error) => None,
            Err(error) => {
                self.miss("network.fragments", fragments::SNMP, &error, "");
                None
            }
        }
    }
}
