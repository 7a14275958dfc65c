#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_explain::case::{Case, answer, check_figures, reported};

fuzz_target!(|input: (&str, &str)| {
    let (text, set) = input;
    let _ = check_figures(text);
    let _ = reported(text);
    if let Ok(case) = Case::read(text, &[set]).or_else(|_| Case::read(text, &[""; 0])) {
        if let Ok(answer) = answer(&case) {
            for solved in [&answer.forward, &answer.reverse, &answer.both].into_iter().flatten() {
                assert!(solved.goodput.high().is_finite());
            }
        }
    }
});
