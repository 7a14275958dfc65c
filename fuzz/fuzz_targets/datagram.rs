#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_facts::parse::datagram::{Header, datagrams};
use linerate_units::stats::Arrivals;
use linerate_record::wire::knock::{Knock, Place};

// The bytes of one receive call, with the right tag of the stream and with a wrong one.
fuzz_target!(|bytes: &[u8]| {
    let tag = bytes.first_chunk().map_or(0, |raw: &[u8; 8]| u64::from_be_bytes(*raw));
    let mut arrivals = Arrivals::default();
    for header in datagrams(bytes, tag).flatten() {
        // A header that was decoded is encoded again, and must decode to the same value.
        let mut repeated = header.encode().to_vec();
        repeated.resize(usize::from(header.size), 0);
        assert_eq!(Header::decode(&repeated, tag), Ok(header));
        arrivals.take(header.number);
        arrivals.expect(header.number);
    }
    assert!(datagrams(bytes, !tag).all(|header| header.is_err()));
    let _ = bytes.first_chunk().map(Place::decode);
    let _ = Knock::decode(bytes);
});
