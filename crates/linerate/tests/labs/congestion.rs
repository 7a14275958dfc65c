//! The congestion control of a lab's hosts.

use linerate_test::{ask, turn};
use tempfile::TempDir;

use crate::lab;

/// Tests that only `./test.sh --long` runs.
mod long {
    use super::*;

    /// In a lab, the routes of the hosts set the congestion control of a socket that connects.
    #[test]
    fn a_congestion_control_that_is_asked_for_outranks_that_of_the_route() {
        let turn = turn();
        let home = TempDir::new().unwrap();
        for way in ["forward", "reverse"] {
            let script = format!(
                "$PROGRAM bw $1 --open --time 1s --congestion reno --direction {way} --json --quiet"
            );
            let near = ["--congestion", "cubic", "--", "sh", "-c", &script, "sh", "FAR"];
            let reported = ask(&turn, || lab::document(&turn, home.path(), &near));
            let Some(Some(reported)) = reported else {
                return;
            };
            let measured = &reported["directions"][way];
            for end in ["near", "far"] {
                assert_eq!(measured[end]["congestion"], "reno", "{way}, {end}");
            }
        }
    }
}
