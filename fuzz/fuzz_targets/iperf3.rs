#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_record::iperf3::{
    Header, Intake, Params, Refusal, Results, State, Width, answer, is_answer, length,
};

fuzz_target!(|bytes: &[u8]| {
    // A value that was decoded is encoded again, and must decode to the same value. Otherwise a decoder that loses
    // something would pass.
    if let Ok(params) = Params::decode(bytes) {
        assert_eq!(Params::decode(&params.encode()), Ok(params));
    }
    if let Ok(results) = Results::decode(bytes) {
        let repeated = Results::decode(&results.encode());
        assert_eq!(repeated.map(|repeated| repeated.bytes()), Ok(results.bytes()));
        let _ = (results.packets(), results.errors(), results.jitter());
    }
    let _ = bytes.first_chunk().map(|raw| length(*raw));
    let _ = bytes.first_chunk().map(|raw| Refusal::decode(*raw).words());
    if let Some(state) = bytes.first().and_then(|byte| State::decode(*byte)) {
        assert_eq!(state.encode(), bytes[0]);
    }
    assert!(answer(bytes).is_none() || bytes.len() == 4);
    let _ = is_answer(bytes);
    datagrams(bytes);
});

/// A stream of datagrams: one byte is the length of each datagram, and another one the time until it arrived.
fn datagrams(bytes: &[u8]) {
    for width in [Width::Narrow, Width::Wide] {
        let (mut intake, mut now, mut rest) = (Intake::new(width, 0), 0u64, bytes);
        let (mut held, mut counted) = (0, 0);
        while let [length, pause, behind @ ..] = rest {
            let (datagram, behind) = behind.split_at(behind.len().min(usize::from(*length)));
            now = now.saturating_add(1u64.checked_shl(u32::from(*pause)).unwrap_or(0));
            counted += intake.take(datagram, now);
            held += datagram.len() as u64;
            rest = behind;
            if let Some(header) = Header::read(datagram, width) {
                let mut repeated = datagram.to_vec();
                header.write(width, &mut repeated);
                let read = Header::read(&repeated, width);
                assert_eq!(read.map(|read| read.number), Some(header.number));
            }
        }
        let arrivals = intake.arrivals();
        let _ = (arrivals.missing(), intake.jitter(), intake.strays());
        assert!(counted <= held);
    }
}
