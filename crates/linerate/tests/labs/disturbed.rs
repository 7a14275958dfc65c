//! Whether a run reports that its machine stood still, or that the hypervisor took its CPUs. The result of such a run
//! does not count, and the test runs it again.

use serde_json::Value;

/// Whether a verdict, or the answer of `flows` for a connection, reports such a disturbance. Stolen time that is only
/// listed next to a limit does not count as one.
pub(crate) fn is_disturbed(verdict: &Value) -> bool {
    let tells = |list: &str, cause: &str| {
        let all = verdict[list].as_array().unwrap();
        all.iter().any(|one| one["cause"] == cause)
    };
    tells("limits", "cpu-steal") || tells("disturbances", "interrupted")
}
