//! Whether a run reports that its machine stood still, or that the hypervisor took its CPUs. Such a run does
//! not count as an answer.

use serde_json::Value;

/// Whether a verdict, or the answer of `flows` for a connection, reports such a machine. Stolen time that is
/// listed next to a limit is no excuse.
pub(crate) fn is_disturbed(verdict: &Value) -> bool {
    let tells = |list: &str, cause: &str| {
        let all = verdict[list].as_array().unwrap();
        all.iter().any(|one| one["cause"] == cause)
    };
    tells("limits", "cpu-steal") || tells("disturbances", "interrupted")
}
