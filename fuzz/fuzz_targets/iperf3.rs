#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_core::iperf3::{Params, Refusal, Results, State, length};

fuzz_target!(|bytes: &[u8]| {
    // What was read is written again, and reads the same. Without the second half a decoder that
    // loses something would pass.
    if let Ok(params) = Params::decode(bytes) {
        assert_eq!(Params::decode(&params.encode()), Ok(params));
    }
    if let Ok(results) = Results::decode(bytes) {
        let again = Results::decode(&results.encode());
        assert_eq!(again.map(|again| again.bytes()), Ok(results.bytes()));
    }
    let _ = bytes.first_chunk().map(|raw| length(*raw));
    let _ = bytes.first_chunk().map(|raw| Refusal::decode(*raw).words());
    if let Some(state) = bytes.first().and_then(|byte| State::decode(*byte)) {
        assert_eq!(state.encode(), bytes[0]);
    }
});
