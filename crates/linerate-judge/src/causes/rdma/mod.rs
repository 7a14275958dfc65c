//! Causes that limit RDMA loads.

pub(crate) mod depth;
pub(crate) mod inline;
pub(crate) mod link_down;
pub(crate) mod loss;
pub(crate) mod mtu;
pub(crate) mod one_port;
pub(crate) mod one_qp;
pub(crate) mod port;
pub(crate) mod queues;
pub(crate) mod read_depth;
pub(crate) mod receiver_not_ready;
pub(crate) mod verbs;
