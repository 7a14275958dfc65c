//! Two ends of a path, and the runs between them.
//!
//! The central trait is [`link::Link`]: two ends of a path, ready to run the steps of a plan. A link is a session with
//! a [`peer`], a path to an [`iperf3`] server, or this host alone. [`end`] prepares and samples one end; [`run`] drives
//! any link through steps and trials; [`store`] keeps records. Both servers admit unauthenticated clients by the same
//! rules. This crate moves no payload itself, and judges nothing.
#![forbid(unsafe_code)]

pub mod end;
mod guests;
pub mod iperf3;
pub mod link;
mod net;
pub mod peer;
pub mod run;
pub mod store;
mod strangers;
