#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_fabric::finding::find;
use linerate_fabric::mad::LEN;
use linerate_fabric::walk::{OUTSTANDING, PARTS, Walk};
use linerate_units::Nanos;

/// Bytes of the input that each step uses as data of a reply.
const STEP: usize = 72;

// A walk whose replies are arbitrary bytes: each is received first without a valid header, then with one.
fuzz_target!(|bytes: &[u8]| {
    let mut walk = Walk::default();
    let mut now = Nanos(0);
    for data in bytes.chunks(STEP) {
        now = Nanos(now.0 + 1_000_000);
        walk.expire(now);
        walk.receive(now, data);
        let Some((transaction, get)) = walk.request(now, OUTSTANDING) else {
            for part in PARTS {
                walk.begin(part);
            }
            walk.ask_for_route(1);
            if let Some(own) = walk.network().own() {
                walk.ask_for_path(own, own);
            }
            continue;
        };
        let mut mad: [u8; LEN] = get.encode(transaction);
        mad[3] = 0x81;
        for (to, from) in mad[56..].iter_mut().zip(data) {
            *to = *from;
        }
        walk.receive(now, &mad);
    }
    let network = walk.into_network();
    let _ = find(&network);
    if let Some(own) = network.own() {
        let _ = (network.route(own, 1), network.path(own, own));
    }
});
