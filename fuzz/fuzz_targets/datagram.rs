#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_facts::parse::datagram::{Header, datagrams};
use linerate_units::stats::Arrivals;
use linerate_record::wire::knock::{Knock, Place};

// What one receive may give, with the tag of the stream and without.
fuzz_target!(|bytes: &[u8]| {
    let tag = bytes.first_chunk().map_or(0, |raw: &[u8; 8]| u64::from_be_bytes(*raw));
    let mut arrivals = Arrivals::default();
    for header in datagrams(bytes, tag).flatten() {
        // What was read is written again, and reads the same.
        let mut again = header.encode().to_vec();
        again.resize(usize::from(header.size), 0);
        assert_eq!(Header::decode(&again, tag), Ok(header));
        arrivals.take(header.number);
        arrivals.expect(header.number);
    }
    assert!(datagrams(bytes, !tag).all(|header| header.is_err()));
    let _ = bytes.first_chunk().map(Place::decode);
    let _ = Knock::decode(bytes);
});
