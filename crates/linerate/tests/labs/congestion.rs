//! The congestion control of a lab's hosts.

use linerate_test::{ask, turn};
use tempfile::TempDir;

use crate::lab;

/// Left to `./test.sh --long`.
mod long {
    use super::*;

    /// The hosts of a lab set it in their routes, which a socket that connects obeys.
    #[test]
    fn a_congestion_control_that_is_asked_for_outranks_that_of_the_route() {
        let turn = turn();
        let home = TempDir::new().unwrap();
        for way in ["forward", "reverse"] {
            let script = format!(
                "$PROGRAM bw $1 --open --time 1s --congestion reno --direction {way} --json --quiet"
            );
            let near = ["--congestion", "cubic", "--", "sh", "-c", &script, "sh", "FAR"];
            let told = ask(&turn, || lab::document(&turn, home.path(), &near));
            let Some(Some(told)) = told else {
                return;
            };
            let measured = &told["directions"][way];
            for end in ["near", "far"] {
                assert_eq!(measured[end]["congestion"], "reno", "{way}, {end}");
            }
        }
    }
}
