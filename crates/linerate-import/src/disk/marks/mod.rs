//! The reports of CrystalDiskMark and KDiskMark, which are nearly the same.

mod crystal;
mod kdisk;
mod lines;

#[cfg(test)]
mod tests;

pub(crate) use crystal::CRYSTAL;
pub(crate) use kdisk::KDISK;
