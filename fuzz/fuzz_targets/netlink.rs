#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_core::parse::{link, netlink, qdisc, route};

fuzz_target!(|reply: &[u8]| {
    for message in netlink::messages(reply).flatten() {
        let _ = netlink::error_number(message.body);
    }
    let _ = link::parse(reply).count();
    let _ = qdisc::parse(reply).count();
    let _ = route::port(reply);
});
