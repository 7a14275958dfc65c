//! What a run tells whose machine stood still for a while, or lost its CPUs to its host: it is no answer to what a
//! test asks.

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
