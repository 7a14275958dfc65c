//! Readers of PowerShell's outputs about network adapters: tables, and lists of `Format-List`.

mod adapter;
mod advanced;
mod hardware;
mod rdma;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use adapter::ADAPTER;
pub(crate) use advanced::ADVANCED;
pub(crate) use hardware::HARDWARE;
pub(crate) use rdma::RDMA;

const VERSIONS: &str = "Windows Server 2012 to 2025, Windows 8 to 11";
