//! The archive from which a guest boots: busybox, the modules that it needs first, and the program that mounts its
//! root.

use std::fs;
use std::path::Path;

use super::error::VmError;
use super::kernel::Kernel;
use super::tool;

const INIT: &str = include_str!("guest/init");
const PROGRAM: u32 = 0o100_755;
const FILE: u32 = 0o100_644;
const FOLDER: u32 = 0o040_755;

/// Compression formats of modules, by file name extension, and the programs that decompress them.
const PACKED: [(&str, &str, &str); 3] =
    [("xz", "xz", "xz-utils"), ("zst", "zstd", "zstd"), ("gz", "gzip", "gzip")];

/// Builds the archive.
pub(super) fn build(kernel: &Kernel) -> Result<Vec<u8>, VmError> {
    let mut archive = Archive::default();
    for folder in ["bin", "dev", "mnt", "modules", "proc", "ro", "rw", "sys"] {
        archive.add(folder, FOLDER, &[]);
    }
    archive.add("init", PROGRAM, INIT.as_bytes());
    archive.add("bin/busybox", PROGRAM, &busybox()?);
    for (at, path) in kernel.needed.iter().enumerate() {
        // File names are numbers, because the guest loads modules in the order of their names.
        archive.add(&format!("modules/{at:02}"), FILE, &unpacked(path)?);
    }
    Ok(archive.end())
}

/// Returns the busybox program, which must be statically linked: the archive has no libraries.
fn busybox() -> Result<Vec<u8>, VmError> {
    const PACKAGE: &str = "busybox-static";
    let file = tool::find("busybox", PACKAGE)?;
    let program = read(&file)?;
    let head = &program[..program.len().min(4096)];
    if head.windows(8).any(|w| w == b"ld-linux") {
        return Err(VmError::Missing {
            program: "a busybox that is linked statically".to_owned(),
            package: PACKAGE,
        });
    }
    Ok(program)
}

fn unpacked(module: &Path) -> Result<Vec<u8>, VmError> {
    let end = module.extension().unwrap_or_default();
    match PACKED.iter().find(|(packed, ..)| end == *packed) {
        Some((_, program, package)) => {
            let program = tool::find(program, package)?;
            tool::output(&program, [Path::new("-dc"), module], Path::new("/"))
        }
        None => read(module),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, VmError> {
    fs::read(path).map_err(VmError::step(format!("cannot read {}", path.display())))
}

/// A cpio archive in the portable format with ASCII headers.
//= https://docs.kernel.org/driver-api/early-userspace/buffer-format.html
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    files: usize,
}

impl Archive {
    fn add(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.files += 1;
        // The header has number, mode, user, group, links, time, size, two devices, length of the name, checksum.
        let header = [self.files, mode as usize, 0, 0, 1, 0, content.len()];
        let header = header.into_iter().chain([0, 0, 0, 0, name.len() + 1, 0]);
        let header = header.fold("070701".to_owned(), |text, n| format!("{text}{n:08x}"));
        self.put(header.as_bytes());
        self.put(name.as_bytes());
        self.put(&[0]);
        self.pad();
        self.put(content);
        self.pad();
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn pad(&mut self) {
        let whole = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(whole, 0);
    }

    fn end(mut self) -> Vec<u8> {
        self.add("TRAILER!!!", 0, &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_of_one_file() {
        let mut archive = Archive::default();
        archive.add("abc", FILE, b"hello");
        let bytes = archive.end();
        let header = "070701\
             00000001000081a40000000000000000000000010000000000000005\
             000000000000000000000000000000000000000400000000";
        assert_eq!(header.len(), 110);
        assert_eq!(&bytes[..110], header.as_bytes());
        // The name ends with a zero byte, and content begins and ends at multiples of 4 bytes.
        assert_eq!(&bytes[110..124], b"abc\0\0\0hello\0\0\0");
        assert_eq!(&bytes[124..130], b"070701");
        assert_eq!(bytes.len() % 4, 0);
    }
}
