//! The built program across a lab: two hosts in network namespaces with planted faults, and in some tests iperf3 at the
//! other end.
#![expect(clippy::unwrap_used, reason = "clippy does not recognise helpers of tests")]

mod beside;
mod changes;
mod congestion;
mod datagrams;
mod disturbed;
mod flows;
mod iperf3;
mod lab;
mod latency;
#[path = "../../../linerate-show/src/tests/schema/fits.rs"]
mod schema;
mod two_faults;
