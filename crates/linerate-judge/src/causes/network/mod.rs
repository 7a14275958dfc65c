//! Causes between the two programs: ports, queues, links and the network between the hosts.

pub(crate) mod ack_way;
pub(crate) mod arp_flux;
pub(crate) mod bad_checksums;
pub(crate) mod beyond_hosts;
pub(crate) mod burst_credit;
pub(crate) mod cloud_allowance;
pub(crate) mod contended;
pub(crate) mod duplex;
pub(crate) mod flow_rate_cap;
pub(crate) mod held;
pub(crate) mod host_shaping;
pub(crate) mod interrupted;
pub(crate) mod local_drops;
pub(crate) mod loss;
pub(crate) mod mtu_black_hole;
pub(crate) mod path_loss;
pub(crate) mod path_rate;
pub(crate) mod path_reordering;
pub(crate) mod pause_frames;
pub(crate) mod shared_rate;
pub(crate) mod tunnel;
pub(crate) mod wire_full;
pub(crate) mod wrong_route;
