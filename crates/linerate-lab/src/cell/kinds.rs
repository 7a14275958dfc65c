//! Every kind of cell, with its expected verdict.

use super::{CellKind, datagrams, event, healthy, host, network};

/// Makes [`CELLS`] from its rows. A row has
/// - the id of the kind, and its description for people;
/// - the cause that should be named, and behind `or` those that may be named instead;
/// - the function that draws a cell, and whether a demonstration may choose this kind by itself.
macro_rules! cells {
    ($(
        $id:literal: $words:literal => $expected:literal $(or [$($neighbour:literal),*])?,
        $draw:path $(, shown: $shown:literal)?;
    )*) => {
        /// Every kind of cell.
        pub const CELLS: &[CellKind] = &[$(CellKind {
            id: $id,
            words: $words,
            expected: $expected,
            neighbours: &[$($($neighbour),*)?],
            shown: false $(|| $shown)?,
            draw: $draw,
        }),*];
    };
}

cells! {
    "healthy": "nothing at all" => "", healthy::plain, shown: true;
    "healthy-jumbo": "nothing, on a path of packets of 9000 bytes" => "", healthy::jumbo;
    "healthy-direct": "nothing, on a cable without a router" => "", healthy::direct;
    "healthy-bridge": "nothing, on a path through a bridge" => "", healthy::bridge;
    "healthy-ipv6": "nothing, on a path of IPv6" => "", healthy::ipv6;
    "healthy-one-cpu": "nothing, with one CPU for each end" => "", healthy::one_cpu;
    "healthy-busy": "nothing, next to a CPU that other programs keep busy" => "" or ["shared-core"],
        healthy::busy;
    // Buffers of the usual size do limit a path with so much delay.
    "healthy-jitter": "nothing, on a path whose delay varies" => ""
        or ["path-rate", "send-buffer", "receive-window"], healthy::jitter;
    "healthy-window": "nothing, with a small receive window that suffices" => "", healthy::window;
    "path-rate": "a slower link between the hosts" => "path-rate", network::path_rate, shown: true;
    "police": "a policer between the hosts" => "path-rate", network::police;
    "flow-rate": "a rate limit on each flow" => "flow-rate-cap", network::flow_rate;
    "loss": "a network that loses packets" => "path-loss" or ["send-buffer"], network::loss;
    "reorder": "a network that holds some packets back" => "path-reordering" or ["send-buffer"],
        network::reorder;
    "black-hole": "a network that swallows large packets" => "mtu-black-hole", network::black_hole;
    "receive-window": "a small receive window on a path with delay" => "receive-window",
        host::receive_window, shown: true;
    "hold": "a small receive window on a path where packets wait for a tick" => "receive-window",
        host::held_window;
    "send-buffer": "a small send buffer on a path with delay" => "send-buffer",
        host::send_buffer, shown: true;
    "host-shaping": "a rate limit on a host's own port" => "host-shaping", host::shaping;
    "local-drops": "a queue of a host's own port that is too short" => "local-drops"
        or ["host-shaping"], host::local_drops;
    "small-packets": "a port without its offloads" => "small-packets" or ["sender-core"],
        host::small_packets;
    // If moving payload between CPUs costs as much time as a second CPU saves, the first CPU stays full.
    "shared-core": "both ends on one CPU" => "shared-core"
        or ["shared-core", "sender-core", "receiver-core", "cpu-contention"], host::shared_core;
    "cpu-contention": "a CPU that other programs keep busy" => "cpu-contention"
        or ["sender-core", "receiver-core"], host::contention;
    "cpu-quota": "a limit of CPU time" => "cpu-quota", host::quota;
    "receiver-core": "a program that works hard on each byte it receives" => "receiver-core",
        host::receiver_core, shown: true;
    "sender-core": "a program that works hard on each byte it sends" => "sender-core",
        host::sender_core, shown: true;
    "receiver-app": "a program that pauses between its reads" => "receiver-app",
        host::receiver_app, shown: true;
    "sender-app": "a program that pauses between its writes" => "sender-app",
        host::sender_app, shown: true;
    "pacing": "a pace that was left in the environment" => "pacing", host::pacing, shown: true;
    "contended": "another client that measures at the same time" => "contended",
        event::contended, shown: true;
    "traffic": "traffic of others on a slow link" => "contended", event::traffic;
    "interrupted": "a link that goes down for a moment" => "interrupted",
        event::interrupted, shown: true;
    "stall": "an end that stops for a moment" => "interrupted", event::stall;
    "udp-healthy": "nothing, loaded by datagrams" => "", datagrams::healthy;
    "udp-path-rate": "a slower link, loaded by datagrams" => "path-rate", datagrams::path_rate;
    "udp-police": "a policer, loaded by datagrams" => "path-rate", datagrams::police;
    "udp-flow-rate": "a rate limit on each flow, loaded by datagrams" => "flow-rate-cap",
        datagrams::flow_rate;
    "udp-loss": "a network that loses datagrams" => "path-loss", datagrams::loss;
    "udp-socket-drops": "a small receive buffer, loaded by datagrams" => "socket-drops",
        datagrams::socket_drops;
    "udp-receiver-core": "a program that works hard on each datagram it receives"
        => "receiver-core", datagrams::receiver_core;
    "udp-sender-core": "a program that works hard on each datagram it sends" => "sender-core",
        datagrams::sender_core;
    "udp-pacing": "a pace that was left in the environment, of datagrams" => "pacing",
        datagrams::pacing;
    "udp-local-drops": "a queue of a host's own port that is too short for datagrams"
        => "local-drops" or ["host-shaping"], datagrams::local_drops;
    "udp-black-hole": "a network that swallows large datagrams" => "mtu-black-hole",
        datagrams::black_hole;
}
