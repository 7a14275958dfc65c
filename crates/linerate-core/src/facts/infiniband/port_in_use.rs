//! The port of an RDMA device that carries a load.

use serde::{Deserialize, Serialize};

use super::Layer;

/// The port of an RDMA device that carries a load, as its end chose it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortInUse {
    /// Name of the device: `mlx5_0`.
    pub device: String,
    /// Number of the port, from 1.
    pub port: u8,
    /// What carries its packets.
    pub layer: Option<Layer>,
    /// Whether the device is made by software on top of a network port.
    pub software: bool,
    /// The network port that its address belongs to; empty if none is known, as on InfiniBand.
    pub netdev: String,
}

impl PortInUse {
    /// The name in records and text: `mlx5_0/1`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.device, self.port)
    }
}
