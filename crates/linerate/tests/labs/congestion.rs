//! The congestion control of a lab's hosts.

use serde_json::Value;
use tempfile::TempDir;

use crate::lab;

/// The hosts of a lab set it in their routes, which a socket that connects obeys.
#[test]
fn a_congestion_control_that_is_asked_for_outranks_that_of_the_route() {
    let home = TempDir::new().unwrap();
    for way in ["forward", "reverse"] {
        let script = format!(
            "$PROGRAM bw $1 --open --time 1s --congestion reno --direction {way} --json --quiet"
        );
        let near = [
            "--congestion",
            "cubic",
            "--",
            "sh",
            "-c",
            &script,
            "sh",
            "FAR",
        ];
        let Some([out, _]) = lab::run(home.path(), &near) else {
            return;
        };
        let told: Value = serde_json::from_str(&out).unwrap();
        let measured = &told["directions"][way];
        for end in ["near", "far"] {
            assert_eq!(measured[end]["congestion"], "reno", "{way}, {end}");
        }
    }
}
