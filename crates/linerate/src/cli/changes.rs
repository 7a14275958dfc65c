//! Settings of this host that trials change. What a killed process left changed is undone at each start of a command
//! that may change settings.

use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use linerate_host::change::{ChangeError, Ledger};
use linerate_session::store::state_directory;

use super::exit::{Failure, tell};

/// Undoes changes left by killed runs. Returns the ledger, which permits changes, if they are `requested`.
pub(crate) fn ledger(requested: Option<bool>) -> Result<Option<Ledger>, Failure> {
    let allowed = requested == Some(true);
    let directory = state_directory(|name| std::env::var_os(name));
    let Some(ledger) = directory.as_deref().map(open) else {
        let why = anyhow!("there is no directory for the journal of changes");
        let failure = Failure::not_measured(why).hint("set HOME or XDG_STATE_HOME");
        return if allowed { Err(failure) } else { Ok(None) };
    };
    match ledger.undo_left() {
        Ok(()) => Ok(allowed.then_some(ledger)),
        Err(error) if allowed => Err(failure(error)),
        // The leftover change does not stop the measurement, but the user must know of it.
        Err(error) => {
            tell(&failure(error).words().replacen("error: ", "warning: ", 1));
            Ok(None)
        }
    }
}

fn open(directory: &Path) -> Ledger {
    Ledger::new(directory, Arc::new(|line| tell(&format!("{line}\n"))))
}

fn failure(error: ChangeError) -> Failure {
    let hint = error.hint();
    Failure::not_measured(error).hint(hint)
}
