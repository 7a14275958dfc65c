//! Finds the programs of this machine that labs need.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Folders that are searched after those in `PATH`, which may lack the folders of administrators.
const ALSO: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// Returns the path of a program; `None` if it is not installed.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(ALSO.map(PathBuf::from));
    let mut files = folders.map(|folder| folder.join(program));
    files.find(|file| runs(file))
}

fn runs(file: &Path) -> bool {
    let found = file.metadata();
    found.is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}
