//! Outputs of programs that measure disks, and of copies of files.
//!
//! Each file here has one program. What they share is in `figures`.

mod figures;
pub(crate) mod fio;
pub(crate) mod marks;

#[cfg(test)]
mod tests;
