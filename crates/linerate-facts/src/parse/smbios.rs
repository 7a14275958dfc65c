//! Parses the SMBIOS table, `/sys/firmware/dmi/tables/DMI`: the firmware's list of memory modules.

use super::Malformed;
use crate::memory::Module;
use linerate_units::{Bytes, Transfers};

const WHAT: &str = "SMBIOS table";
const MEMORY_DEVICE: u8 = 17;
const END: u8 = 127;
/// Length in bytes of a structure's head: type, length and handle.
const HEAD: usize = 4;

/// One structure of the table: its formatted area, and the strings after it, each with its zero byte.
struct Structure<'a> {
    formatted: &'a [u8],
    strings: &'a [u8],
}

/// The memory slots with their modules, empty slots included, in the order of the table.
pub fn modules(table: &[u8]) -> Result<Vec<Module>, Malformed> {
    let mut found = Vec::new();
    let mut rest = table;
    while !rest.is_empty() {
        let structure = structure(rest)?;
        match structure.formatted[0] {
            MEMORY_DEVICE => found.push(module(&structure)?),
            END => break,
            _ => {}
        }
        rest = &rest[structure.formatted.len() + structure.strings.len() + 1..];
    }
    Ok(found)
}

/// Overwrites the strings that identify a place, a person or a device: all except the location of a module. Bytes that
/// are not a table become zero.
pub fn mask(table: &mut [u8]) {
    let mut at = 0;
    while at < table.len() {
        let Ok(found) = structure(&table[at..]) else {
            table[at..].fill(0);
            return;
        };
        let keep: &[u8] = match found.formatted[0] {
            MEMORY_DEVICE => found.formatted.get(0x10..0x12).unwrap_or_default(),
            _ => &[],
        };
        let keep = keep.to_vec();
        let (fixed, length) = (found.formatted.len(), found.strings.len());
        let mut number = 1u8;
        for byte in &mut table[at + fixed..at + fixed + length] {
            match *byte {
                0 => number = number.saturating_add(1),
                _ if keep.contains(&number) => {}
                _ => *byte = b'x',
            }
        }
        at += fixed + length + 1;
    }
}

/// The first structure in `bytes`. A second zero byte ends its strings.
fn structure(bytes: &[u8]) -> Result<Structure<'_>, Malformed> {
    let length = usize::from(*bytes.get(1).ok_or(Malformed::Short(WHAT))?);
    if length < HEAD {
        return Err(Malformed::Missing("length of an SMBIOS structure"));
    }
    let (formatted, rest) = bytes.split_at_checked(length).ok_or(Malformed::Short(WHAT))?;
    let end = rest.windows(2).position(|pair| pair == [0, 0]);
    let end = end.ok_or(Malformed::Short(WHAT))?;
    Ok(Structure { formatted, strings: &rest[..=end] })
}

fn module(structure: &Structure<'_>) -> Result<Module, Malformed> {
    let data = structure.formatted;
    if data.len() < 0x15 {
        return Err(Malformed::Short("SMBIOS memory device"));
    }
    // A value with all bits set is unknown, and so is a field that an older table does not have.
    let width = |at| word(data, at).filter(|&w| w != 0 && w != 0xffff);
    let (data_width, total_width) = (width(0x0a), width(0x08));
    Ok(Module {
        locator: string(structure, 0x10),
        bank: string(structure, 0x11),
        size: size(data),
        kind: kind(data[0x12]),
        rated: speed(data, 0x15, 0x54),
        now: speed(data, 0x20, 0x58),
        width_bits: data_width,
        ecc: data_width.zip(total_width).map(|(data, total)| total > data),
        ranks: data.get(0x1b).map(|b| b & 15).filter(|&r| r > 0),
    })
}

fn word(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*data.get(at..)?.first_chunk()?))
}

fn double(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*data.get(at..)?.first_chunk()?))
}

/// The size of a module; `None` if the slot is empty or the size is unknown.
fn size(data: &[u8]) -> Option<Bytes> {
    let bytes = match word(data, 0x0c)? {
        0 | 0xffff => return None,
        0x7fff => u64::from(double(data, 0x1c)? & 0x7fff_ffff) << 20,
        kib @ 0x8000.. => u64::from(kib & 0x7fff) << 10,
        mib => u64::from(mib) << 20,
    };
    Some(Bytes(bytes)).filter(|b| b.0 > 0)
}

/// The transfer rate at offset `at`, or at offset `extended` if it does not fit the first field.
fn speed(data: &[u8], at: usize, extended: usize) -> Option<Transfers> {
    let mega = match word(data, at)? {
        0 => return None,
        0xffff => double(data, extended)? & 0x7fff_ffff,
        mega => u32::from(mega),
    };
    Some(Transfers(u64::from(mega) * 1_000_000)).filter(|t| t.0 > 0)
}

/// The name of a kind of memory, by its code in the specification.
fn kind(code: u8) -> &'static str {
    match code {
        0x12 => "DDR",
        0x13 => "DDR2",
        0x18 => "DDR3",
        0x1a => "DDR4",
        0x1b => "LPDDR",
        0x1c => "LPDDR2",
        0x1d => "LPDDR3",
        0x1e => "LPDDR4",
        0x1f => "persistent",
        0x20 => "HBM",
        0x21 => "HBM2",
        0x22 => "DDR5",
        0x23 => "LPDDR5",
        0x24 => "HBM3",
        _ => "",
    }
}

/// The string whose number is at offset `at`; empty if that number is 0.
fn string(structure: &Structure<'_>, at: usize) -> String {
    let number = usize::from(structure.formatted[at]);
    let mut strings = structure.strings.split(|&b| b == 0);
    let found = number.checked_sub(1).and_then(|n| strings.nth(n));
    super::text::trimmed(found.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The structure of a module from the host tree 32em64t, as its firmware wrote it.
    const REAL: &[u8] = b"\x11\x22\x00\x11\x00\x10\xfe\xff\x48\x00\x40\x00\x00\x10\x09\x01\x01\x00\
        \x18\x80\x20\x40\x06\x02\x03\x04\x05\x02\x00\x00\x00\x00\x40\x06DIMM_A1 \x0000AD04B300AD\0\
        48AAE639\x0001115021\0HMT351R7CFR8C-PB  \0\0";
    const LAST: &[u8] = b"\x7f\x04\xff\xfe\0\0";

    #[test]
    fn a_module_as_its_firmware_wrote_it() {
        let want = Module {
            locator: "DIMM_A1".to_owned(),
            bank: String::new(),
            size: Some(Bytes(4 << 30)),
            kind: "DDR3",
            rated: Some(Transfers(1_600_000_000)),
            now: Some(Transfers(1_600_000_000)),
            width_bits: Some(64),
            ecc: Some(true),
            ranks: Some(2),
        };
        assert_eq!(modules(REAL), Ok(vec![want.clone()]));
        let table = [b"\x10\x04\x01\0\0\0", REAL, REAL, LAST, b"rest"].concat();
        assert_eq!(modules(&table), Ok(vec![want.clone(), want]));
    }

    #[test]
    fn sizes_and_speeds_have_three_ways_to_be_written() {
        let module = |at: usize, bytes: &[u8]| {
            let mut raw = REAL.to_vec();
            raw[at..at + bytes.len()].copy_from_slice(bytes);
            modules(&raw).unwrap().remove(0)
        };
        let size = |bytes: &[u8]| module(0x0c, bytes).size;
        assert_eq!(size(&[0, 0]), None, "empty slot");
        assert_eq!(size(&[0xff, 0xff]), None, "unknown");
        assert_eq!(size(&[0x00, 0x82]), Some(Bytes(512 << 10)));
        let mut large = REAL.to_vec();
        large[0x0c..0x0e].copy_from_slice(&[0xff, 0x7f]);
        large[0x1c..0x20].copy_from_slice(&65_536u32.to_le_bytes());
        assert_eq!(modules(&large).unwrap()[0].size, Some(Bytes(64 << 30)));
        assert_eq!(module(0x15, &[0, 0]).rated, None);
        assert_eq!(module(0x15, &[0xff, 0xff]).rated, None, "not in this table");
    }

    #[test]
    fn a_cut_table_is_an_error() {
        for end in 1..REAL.len() {
            assert!(modules(&REAL[..end]).is_err(), "cut at {end}");
        }
        assert!(modules(b"\x11\x03\0\0\0\0").is_err(), "shorter than its head");
        assert!(modules(b"\x11\x08\0\0\0\0\0\0\0\0").is_err(), "no such memory device");
    }

    #[test]
    fn a_masked_table_says_the_same_of_modules_and_holds_no_serial_number() {
        let mut table = [b"\x01\x04\x01\0secret\0\0", REAL, LAST].concat();
        let before = modules(&table);
        mask(&mut table);
        assert_eq!(modules(&table), before);
        let text = String::from_utf8_lossy(&table);
        assert!(!text.contains("48AAE639") && !text.contains("secret"), "{text}");
        let mut cut = REAL[..60].to_vec();
        mask(&mut cut);
        assert_eq!(cut, [0; 60]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(mut text: Vec<u8>, at in 0..REAL.len(), byte: u8) {
            let _ = modules(&text);
            mask(&mut text);
            let mut raw = [REAL, LAST].concat();
            raw[at] = byte;
            let _ = modules(&raw);
            mask(&mut raw);
        }
    }
}
