//! Whether a run says itself that its machine stood still, or that the hypervisor took its CPUs. Such a run does not
//! count as an answer.

use serde_json::Value;

/// Whether a verdict, or what `flows` tells of a connection, is that of such a machine. Stolen time beside a limit is
/// no excuse.
pub(crate) fn is_disturbed(verdict: &Value) -> bool {
    let tells = |list: &str, cause: &str| {
        let all = verdict[list].as_array().unwrap();
        all.iter().any(|one| one["cause"] == cause)
    };
    tells("limits", "cpu-steal") || tells("disturbances", "interrupted")
}
