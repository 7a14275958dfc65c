#![no_main]

use std::str::FromStr as _;

use libfuzzer_sys::fuzz_target;
use linerate_core::wire::chunk::Assembler;
use linerate_core::wire::limits::{PlanLimits, Taken};
use linerate_core::wire::message::{Answer, Ask};
use linerate_core::wire::preamble::{Hello, Reply};
use linerate_core::wire::proof::Claim;
use linerate_engine::peer::address::Target;
use linerate_engine::peer::keys::Key;

fuzz_target!(|bytes: &[u8]| {
    // What was read is written again, and reads the same. Without the second half a decoder that
    // loses something would pass.
    if let Ok(ask) = Ask::decode(bytes)
        && let Ok(again) = ask.encode()
    {
        if let Ask::Prepare { plan } = &ask {
            let _ = PlanLimits::default().set(plan, Taken::default());
        }
        assert_eq!(Ask::decode(&again), Ok(ask));
    }
    let _ = Answer::decode(bytes);
    let _ = bytes.first_chunk().map(Hello::decode);
    let _ = bytes.first_chunk().map(Reply::decode);
    let _ = bytes.first_chunk().map(Claim::decode);
    let mut assembler = Assembler::new(64);
    for frame in bytes.split(|b| *b == 0xFF) {
        if assembler.push(frame).is_err() {
            break;
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        // What a user typed or piped in.
        let _ = Target::from_str(text);
        if let Ok(key) = text.parse::<Key>() {
            assert!(key.text().parse::<Key>().is_ok_and(|again| again == key));
        }
    }
});
