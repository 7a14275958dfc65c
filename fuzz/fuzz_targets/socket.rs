#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_facts::parse::{control, mem_info, run::Mark, tcp_info, zerocopy};

fuzz_target!(|bytes: &[u8]| {
    let _ = tcp_info::values(bytes).count();
    let _ = mem_info::values(bytes).count();
    let _ = zerocopy::completions(bytes).count();
    let _ = control::stamp(bytes);
    if let Some(raw) = bytes.first_chunk()
        && let Ok(mark) = Mark::decode(raw)
    {
        assert_eq!(mark.encode(), *raw);
    }
});
