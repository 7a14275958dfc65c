#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_plan::change::journal;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(entries) = journal(bytes) {
        for entry in entries {
            let line = entry.line().expect("what was read can be written");
            assert_eq!(journal(line.as_bytes()), Ok(vec![entry]));
        }
    }
});
