#![no_main]

use std::str::FromStr as _;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use linerate_judge::model::derive;
use linerate_record::{EndReadings, Record, frame};
use linerate_judge::verdict::judge;
use linerate_record::wire::chunk::Assembler;
use linerate_record::wire::limits::{PlanLimits, Taken};
use linerate_record::wire::message::{Answer, Ask};
use linerate_record::wire::preamble::{Hello, Reply};
use linerate_record::wire::proof::Claim;
use linerate_session::peer::address::Target;
use linerate_session::peer::keys::Key;

/// Judges a real run in which the readings of the far end are replaced by `far`.
fn judged(far: EndReadings) {
    static RUN: LazyLock<Record> = LazyLock::new(|| {
        let file = include_bytes!("../../crates/linerate/tests/records/planted-two-streams.lnr");
        frame::decode(file).expect("a kept record").0
    });
    let mut record = RUN.clone();
    for step in &mut record.steps {
        if let [_, end] = &mut step.ends[..] {
            *end = far.clone();
        }
    }
    let _ = judge(&derive(&record));
}

fuzz_target!(|bytes: &[u8]| {
    // A value that was decoded is encoded again, and must decode to the same value. Otherwise a decoder that loses
    // something would pass.
    if let Ok(ask) = Ask::decode(bytes)
        && let Ok(repeated) = ask.encode()
    {
        if let Ask::Prepare { plan } = &ask {
            let own = Taken::of(plan, None);
            let _ = PlanLimits::default().set(plan, own, Taken::default());
        }
        assert_eq!(Ask::decode(&repeated), Ok(ask));
    }
    if let Ok(Answer::Readings { end }) = Answer::decode(bytes) {
        judged(end);
    }
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
        // Text that a user typed or piped in.
        let _ = Target::from_str(text);
        if let Ok(key) = text.parse::<Key>() {
            assert!(key.text().parse::<Key>().is_ok_and(|repeated| repeated == key));
        }
    }
});
