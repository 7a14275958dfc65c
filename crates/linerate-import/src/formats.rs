//! The table of formats.

use crate::format::Format;

/// Every format. The first that recognises a text reads it.
pub static FORMATS: &[&Format] = &[&crate::iperf3::json::FORMAT];
pub static FORMATS: &[&Format] = &[
    &crate::disk::fio::JSON,
    &crate::disk::fio::TEXT,
    &crate::disk::marks::CRYSTAL,
    &crate::disk::marks::KDISK,
    &crate::disk::diskspd::DISKSPD,
    &crate::disk::hdparm::HDPARM,
    &crate::disk::dd::DD,
    &crate::disk::copies::ROBOCOPY,
    &crate::disk::copies::RSYNC,
];
