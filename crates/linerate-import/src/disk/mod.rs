//! Outputs of programs that measure disks, and of copies of files.
//!
//! Each module here reads one program, or programs with similar outputs.

pub(crate) mod copies;
pub(crate) mod dd;
pub(crate) mod diskspd;
pub(crate) mod fio;
pub(crate) mod hdparm;
pub(crate) mod iostat;
pub(crate) mod marks;
pub(crate) mod nfsiostat;
pub(crate) mod progress;

#[cfg(test)]
#[path = "tests/answers.rs"]
mod answers;
#[cfg(test)]
#[path = "tests/helper.rs"]
mod helper;
#[cfg(test)]
#[path = "tests/single.rs"]
mod single;
#[cfg(test)]
mod tests;
