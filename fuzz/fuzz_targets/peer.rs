#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_core::wire::chunk::Assembler;
use linerate_core::wire::message::{Answer, Ask};
use linerate_core::wire::preamble::{Hello, Reply};
use linerate_core::wire::proof::Claim;

fuzz_target!(|bytes: &[u8]| {
    // What was read is written again, and reads the same. Without the second half a decoder that
    // loses something would pass.
    if let Ok(ask) = Ask::decode(bytes)
        && let Ok(again) = ask.encode()
    {
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
});
