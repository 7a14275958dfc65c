//! `linerate host` in a virtual machine whose slots, nodes and cards are known, with planted faults; `linerate run`
//! between two hosts in that machine, and on disks with planted faults; and tests of virtual machines themselves.
#![expect(clippy::unwrap_used, reason = "clippy does not recognise helpers of tests")]

mod disk;
#[path = "../command/document.rs"]
mod document;
mod fabric;
mod faults;
mod guest;
mod host;
mod layers;
mod machine;
mod path;
mod rdma;
#[path = "../../../linerate-show/src/tests/schema/fits.rs"]
mod schema;
mod verbs;

use guest::Guest;
use linerate_lab::vm::VmError;
use linerate_test::program::{self, Outcome, outcome_of};
use linerate_test::skip;

/// A case in the guest; it panics if it fails.
type Case = fn(&mut Guest);

/// The cases; the last one ends the guest. Those whose names start with `long::` are run only by `./test.sh --long`.
const CASES: [(&str, Case); 42] = [
    ("facts_are_those_of_the_machine", host::facts),
    ("ports_and_disks_are_told_as_they_are", host::ports_and_disks),
    ("long::a_card_in_a_slot_too_narrow", host::narrow_slot),
    ("long::a_link_below_both_its_ends", host::slow_link),
    ("long::a_card_without_a_node", host::unknown_node),
    ("long::interrupts_on_the_other_node", host::remote_interrupts),
    ("long::what_makes_no_sense_is_a_gap", host::nonsense),
    ("a_capture_is_the_same_elsewhere", host::capture),
    ("long::a_disk_with_several_ways", host::ways),
    ("long::a_software_device_has_no_rate", host::software_device),
    // This case leaves interrupts on another CPU than the one that was off.
    ("long::a_cpu_that_is_off", host::offline_cpu),
    ("long::a_path_while_the_clock_is_set", path::clock_set),
    ("long::a_path_with_a_rate_for_each_flow", path::flow_rate),
    ("long::a_path_that_loses_packets", path::loss),
    ("long::a_path_behind_a_pacing_fq", path::pacing),
    ("ports_that_cannot_ask_an_infiniband_network", fabric::ports_that_cannot_ask),
    ("rdma_operations", rdma::operations),
    ("long::rdma_operations_both_ways", rdma::all_operations),
    ("long::rdma_several_operations", verbs::several),
    ("long::rdma_stalls_are_kept", verbs::stalls),
    ("long::rdma_that_loses_packets", faults::loss),
    ("long::rdma_queues_that_run_dry", faults::queues),
    ("long::rdma_ports_receivers_and_links", faults::ports),
    ("long::an_rdma_path_by_layers", layers::one_guest),
    ("long::an_rdma_path_between_two_guests", layers::two_guests),
    ("a_disk_depth", |guest| disk::planted(guest, &disk::DEPTH)),
    ("a_disk_depth_held", |guest| disk::planted(guest, &disk::DEPTH_HELD)),
    ("a_disk_throttled", |guest| disk::planted(guest, &disk::THROTTLED)),
    ("long::a_disk_split", |guest| disk::planted(guest, &disk::SPLIT)),
    ("long::a_disk_capped", |guest| disk::planted(guest, &disk::CAPPED)),
    ("long::a_disk_read_ahead", |guest| disk::planted(guest, &disk::READ_AHEAD)),
    ("long::a_disk_contended", |guest| disk::planted(guest, &disk::CONTENDED)),
    ("long::a_disk_page_cache", |guest| disk::planted(guest, &disk::PAGE_CACHE)),
    ("long::a_disk_dirty", |guest| disk::planted(guest, &disk::DIRTY)),
    ("long::a_disk_sync", |guest| disk::planted(guest, &disk::SYNC)),
    ("long::a_disk_crypt", |guest| disk::planted(guest, &disk::CRYPT)),
    ("long::a_disk_raid_parity", |guest| disk::planted(guest, &disk::RAID_PARITY)),
    ("long::a_disk_raid_bitmap", |guest| disk::planted(guest, &disk::RAID_BITMAP)),
    ("long::a_disk_submit", |guest| disk::planted(guest, &disk::SUBMIT)),
    ("programs_and_their_ends", machine::programs),
    ("long::a_command_in_a_machine", machine::command),
    ("long::what_takes_too_long_or_dies", machine::ends),
];

fn main() {
    program::main(&CASES, |cases, tell| match Guest::boot() {
        Ok(mut guest) => {
            for (name, case) in cases {
                tell(name, outcome_of(|| case(&mut guest)));
            }
        }
        Err(error) => {
            // If the programs or the kernel for a machine are missing, the cases are skipped, unless they are required.
            let lacking = matches!(error, VmError::Missing { .. } | VmError::NoKernel { .. });
            assert!(lacking, "no virtual machine: {error}");
            skip("qemu", &format!("this needs a virtual machine: {error}"));
            for (name, _) in cases {
                tell(name, Outcome::Skipped);
            }
        }
    });
}
