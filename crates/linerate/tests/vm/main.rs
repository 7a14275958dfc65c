//! `linerate host` in a virtual machine whose slots, nodes and cards are known, beside what is
//! planted there; `linerate run` between two hosts in it; and virtual machines themselves.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, which clippy does not take for tests"
)]

#[path = "../document/mod.rs"]
mod document;
mod guest;
mod host;
mod machine;
mod path;
#[path = "../schema/mod.rs"]
mod schema;
#[path = "../skip/mod.rs"]
mod skip;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::exit;

use guest::Guest;
use linerate_lab::vm::VmError;
use skip::skip;

/// A case: its name, and what panics if it fails.
type Case = (&'static str, fn(&mut Guest));

/// The last one ends the guest.
const CASES: [Case; 16] = [
    ("facts_are_those_of_the_machine", host::facts),
    (
        "ports_and_disks_are_told_as_they_are",
        host::ports_and_disks,
    ),
    ("a_card_in_a_slot_too_narrow", host::narrow_slot),
    ("a_link_below_both_its_ends", host::slow_link),
    ("a_card_without_a_node", host::unknown_node),
    ("interrupts_on_the_other_node", host::remote_interrupts),
    ("what_makes_no_sense_is_a_gap", host::nonsense),
    ("a_capture_is_the_same_elsewhere", host::capture),
    // It leaves interrupts where the CPU was not.
    ("a_cpu_that_is_off", host::offline_cpu),
    ("a_path_while_the_clock_is_set", path::clock_set),
    ("a_path_with_a_rate_for_each_flow", path::flow_rate),
    ("a_path_that_loses_packets", path::loss),
    ("a_path_behind_a_pacing_fq", path::pacing),
    ("programs_and_their_ends", machine::programs),
    ("a_command_in_a_machine", machine::command),
    ("what_takes_too_long_or_dies", machine::ends),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|a| a == "--list") {
        for (name, _) in CASES {
            println!("{name}: test");
        }
        return;
    }
    let filter = arguments.iter().find(|a| !a.starts_with('-'));
    let wanted = |name: &str| filter.is_none_or(|f| name.contains(f.as_str()));
    let cases: Vec<Case> = CASES.into_iter().filter(|(name, _)| wanted(name)).collect();
    if cases.is_empty() {
        return;
    }
    let mut guest = match Guest::boot() {
        Ok(guest) => guest,
        Err(error) => return none(&cases, &error),
    };
    let failed = cases.iter().filter(|case| !passes(case, &mut guest));
    let failed = failed.count();
    if failed > 0 {
        println!("{failed} failed");
        exit(1);
    }
}

fn passes((name, case): &Case, guest: &mut Guest) -> bool {
    let passed = catch_unwind(AssertUnwindSafe(|| case(guest))).is_ok();
    let word = if passed { "ok" } else { "FAILED" };
    println!("test {name} in a virtual machine ... {word}");
    passed
}

/// Without what machines are made of the cases are skipped, loudly, unless they are required.
fn none(cases: &[Case], error: &VmError) {
    let lacking = matches!(error, VmError::Missing { .. } | VmError::NoKernel { .. });
    assert!(lacking, "no virtual machine: {error}");
    skip("qemu", &format!("this needs a virtual machine: {error}"));
    for (name, _) in cases {
        println!("test {name} in a virtual machine ... SKIPPED");
    }
}
