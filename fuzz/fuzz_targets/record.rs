#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_core::record::frame;

fuzz_target!(|bytes: &[u8]| {
    // As a file, and as what follows a header that is right: most inputs would end at the header.
    let _ = frame::decode(bytes);
    let mut file = frame::header().to_vec();
    file.extend_from_slice(bytes);
    let _ = frame::decode(&file);
});
