//! Causes of slow files and disks.

pub(super) mod page_cache;
