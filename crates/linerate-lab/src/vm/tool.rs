//! Finds and runs the programs of this machine that virtual machines need.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::VmError;
use crate::tool;

/// Returns the path of a program; the error names the package that contains it.
pub(super) fn find(program: &str, package: &'static str) -> Result<PathBuf, VmError> {
    tool::find(program).ok_or_else(|| VmError::Missing { program: program.to_owned(), package })
}

/// Runs a program in a folder and returns its standard output.
pub(super) fn output<A: AsRef<OsStr>>(
    program: &Path,
    arguments: impl IntoIterator<Item = A>,
    folder: &Path,
) -> Result<Vec<u8>, VmError> {
    let failed = |source| VmError::Step { what: format!("{} failed", program.display()), source };
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(failed)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let reported = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(failed(std::io::Error::other(reported)))
}
