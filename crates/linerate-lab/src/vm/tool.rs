//! Programs of the system that are needed for virtual machines.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::VmError;

/// Folders of administrators' programs, which an ordinary user's `PATH` may not contain.
const ALSO: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// Returns the path of a program; the error names the package that contains it.
pub(super) fn find(program: &str, package: &'static str) -> Result<PathBuf, VmError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(ALSO.map(PathBuf::from));
    let mut files = folders.map(|folder| folder.join(program));
    files
        .find(|file| runs(file))
        .ok_or_else(|| VmError::Missing {
            program: program.to_owned(),
            package,
        })
}

fn runs(file: &Path) -> bool {
    let found = file.metadata();
    found.is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Runs a program in a folder and returns its standard output.
pub(super) fn output<A: AsRef<OsStr>>(
    program: &Path,
    arguments: impl IntoIterator<Item = A>,
    folder: &Path,
) -> Result<Vec<u8>, VmError> {
    let failed = |source| VmError::Step {
        what: format!("{} failed", program.display()),
        source,
    };
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
    let told = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(failed(std::io::Error::other(told)))
}
