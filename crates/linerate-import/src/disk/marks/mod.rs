//! CrystalDiskMark, and KDiskMark, which writes nearly the same report.

mod crystal;
mod kdisk;
mod lines;

#[cfg(test)]
mod tests;

pub(crate) use crystal::CRYSTAL;
pub(crate) use kdisk::KDISK;
