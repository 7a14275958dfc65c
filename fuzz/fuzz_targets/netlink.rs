#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_facts::nic::counted;
use linerate_facts::parse::{
    address, driver, ethtool, genetlink, link, netdev, netlink, qdisc, route, shaping, sock_diag,
};

fuzz_target!(|reply: &[u8]| {
    let _ = netlink::part(reply, 0);
    for link in link::parse(reply).flatten() {
        let _ = (link.bond(), link.vlan(), link.tunnel());
    }
    let _ = (genetlink::family(reply), netdev::queues(reply), netdev::napis(reply));
    let _ = (ethtool::link_modes(reply), ethtool::features(reply), ethtool::rings(reply));
    let _ = (ethtool::channels(reply), ethtool::coalesce(reply), ethtool::pause(reply));
    let _ = (ethtool::fec(reply), ethtool::rss(reply), ethtool::link_state(reply));
    let _ = (driver::info(reply), driver::counters(reply));
    let _ = std::str::from_utf8(reply).map(|name| counted::meaning("mlx5_core", name));
    for qdisc in qdisc::parse(reply).flatten() {
        let _ = (qdisc.id(), shaping::discipline(&qdisc));
    }
    for class in qdisc::classes(reply).flatten() {
        let _ = (class.id(), shaping::class(&class));
    }
    let _ = address::parse(reply).count();
    let _ = route::parse(reply);
    for connection in sock_diag::parse(reply).flatten() {
        let _ = connection.moved();
    }
});
