//! Settings of this host that trials change: what a killed process left is undone at each start that
//! could change some itself.

use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use linerate_host::change::{ChangeError, Ledger};
use linerate_session::store::state_directory;

use super::exit::{Failure, tell};

/// Undoes changes left by killed runs, and gives the right to change settings if `asked` for.
pub(crate) fn ledger(asked: Option<bool>) -> Result<Option<Ledger>, Failure> {
    let allowed = asked == Some(true);
    let directory = state_directory(|name| std::env::var_os(name));
    let Some(ledger) = directory.as_deref().map(open) else {
        let why = anyhow!("there is no directory for the journal of changes");
        let failure = Failure::not_measured(why).hint("set HOME or XDG_STATE_HOME");
        return if allowed { Err(failure) } else { Ok(None) };
    };
    match ledger.undo_left() {
        Ok(()) => Ok(allowed.then_some(ledger)),
        Err(error) if allowed => Err(failure(error)),
        // The measurement is not affected, but the user must know.
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
