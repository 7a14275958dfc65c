//! The distribution's stock kernel: an installed one, or one that is downloaded as a package.
//!
//! Kernels differ in the modules that are built in, so each kernel's own lists are read.

use std::cmp::Ordering;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use linerate_facts::parse::modules;

use super::error::VmError;
use super::tool;

/// Modules that a guest needs to mount its root: the bus, the file system that shares this machine's root, and the
/// overlay on it.
const NEEDED: [&str; 4] = ["virtio_pci", "9pnet_virtio", "9p", "overlay"];
/// Debian's package that depends on its newest kernel.
const NEWEST: &str = "linux-image-amd64";
/// Largest list of modules that is read, in bytes; real lists have half a megabyte.
const LONGEST_LIST: u64 = 16 << 20;

/// A kernel that can boot a guest.
#[derive(Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Version of the kernel as `uname -r` prints it.
    pub version: String,
    pub(super) image: PathBuf,
    /// The folder that holds the modules of each version.
    pub(super) modules: PathBuf,
    /// Files of the [`NEEDED`] modules and of those that they need, in loading order.
    pub(super) needed: Vec<PathBuf>,
}

impl Kernel {
    /// Returns the newest installed kernel, otherwise the newest in the folder `cache`, otherwise one that is
    /// downloaded into that folder as a package, which takes half a minute and 400 MB.
    pub fn find(cache: &Path) -> Result<Self, VmError> {
        if let Some(kernel) = Self::newest([PathBuf::from("/")]) {
            return Ok(kernel);
        }
        if let Some(kernel) = Self::cached(cache) {
            return Ok(kernel);
        }
        fetch(cache)?;
        Self::cached(cache).ok_or_else(|| VmError::NoKernel {
            why: format!("the one downloaded into {} is not suitable", cache.display()),
        })
    }

    fn cached(cache: &Path) -> Option<Self> {
        let folders = fs::read_dir(cache).ok()?.flatten().map(|e| e.path());
        let whole = |folder: &PathBuf| folder.extension().is_none_or(|e| e != PARTIAL);
        Self::newest(folders.filter(whole))
    }

    /// Returns the newest kernel below these folders, whose files are where packages put them.
    fn newest(roots: impl IntoIterator<Item = PathBuf>) -> Option<Self> {
        let found = roots.into_iter().flat_map(|root| Self::below(&root));
        found.max_by(|a, b| by_version(&a.version, &b.version))
    }

    fn below(root: &Path) -> Vec<Self> {
        let Ok(boot) = fs::read_dir(root.join("boot")) else {
            return Vec::new();
        };
        let names = boot.flatten().filter_map(|e| e.file_name().into_string().ok());
        let versions = names.filter_map(|n| n.strip_prefix("vmlinuz-").map(str::to_owned));
        versions.filter_map(|v| Self::suited(root, v)).collect()
    }

    /// Returns the kernel of a version, if it can be read and has the modules that a guest needs.
    fn suited(root: &Path, version: String) -> Option<Self> {
        let image = root.join("boot").join(format!("vmlinuz-{version}"));
        fs::File::open(&image).ok()?;
        let modules = modules_below(root, &version)?;
        let folder = modules.join(&version);
        let dep = list(&folder.join("modules.dep"))?;
        let builtin = list(&folder.join("modules.builtin"))?;
        let order = modules::load_order(&dep, &builtin, &NEEDED).ok()?;
        let needed = order.iter().map(|path| folder.join(path)).collect();
        Some(Self { version, image, modules, needed })
    }
}

fn modules_below(root: &Path, version: &str) -> Option<PathBuf> {
    let folders = ["lib/modules", "usr/lib/modules"].map(|f| root.join(f));
    folders.into_iter().find(|f| f.join(version).is_dir())
}

fn list(path: &Path) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let file = fs::File::open(path).ok()?;
    let length = file.take(LONGEST_LIST).read_to_end(&mut text).ok()?;
    ((length as u64) < LONGEST_LIST).then_some(text)
}

/// Compares kernel versions. Digits are compared as numbers: 6.1.0-9 comes before 6.1.0-56.
fn by_version(a: &str, b: &str) -> Ordering {
    let parts = |text: &str| -> Vec<(u64, String)> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        let number = |word: &str| word.parse().unwrap_or(0);
        words.map(|word| (number(word), word.to_owned())).collect()
    };
    parts(a).cmp(&parts(b))
}

/// Extension of the folder of a kernel that is still being fetched.
const PARTIAL: &str = "partial";

/// Fetches the distribution's newest kernel into a folder of `cache`.
fn fetch(cache: &Path) -> Result<(), VmError> {
    let [get, look, unpack] = ["apt-get", "apt-cache", "dpkg"].map(|p| tool::find(p, "apt"));
    let (get, look, unpack) = (get?, look?, unpack?);
    let depmod = tool::find("depmod", "kmod")?;
    let no_kernel = |why: String| VmError::NoKernel { why };
    let reported = tool::output(&look, ["depends", NEWEST], Path::new("/"))
        .map_err(|e| no_kernel(e.to_string()))?;
    let package = depended_on(&String::from_utf8_lossy(&reported))
        .ok_or_else(|| no_kernel(format!("apt-cache knows of no package {NEWEST}")))?;

    // The package is downloaded to a folder of its own until it is complete, because other processes may be fetching
    // it too, or may be killed.
    let partial = cache.join(format!("{package}-{}.{PARTIAL}", std::process::id()));
    fs::create_dir_all(&partial)
        .map_err(VmError::step(format!("cannot make a folder {}", partial.display())))?;
    let fetched = || {
        let patient = ["-o", "Acquire::Retries=3"];
        tool::output(&get, [&patient[..], &["download", &package]].concat(), &partial)
            .map_err(|e| no_kernel(e.to_string()))?;
        let archive = only_file(&partial, "deb")?;
        tool::output(&unpack, [Path::new("-x"), &archive, &partial], &partial)?;
        let version = package.trim_start_matches("linux-image-");
        let modules = modules_below(&partial, version)
            .ok_or_else(|| no_kernel(format!("{package} holds no modules")))?;
        let base = modules.ancestors().nth(2).unwrap_or(&partial);
        tool::output(&depmod, [Path::new("-b"), base, Path::new(version)], &partial)?;
        // If another process has put this kernel there in the meantime, that copy is used.
        let _ = fs::remove_file(&archive);
        let _ = fs::rename(&partial, cache.join(&package));
        Ok(())
    };
    let done = fetched();
    let _ = fs::remove_dir_all(&partial);
    done
}

/// Returns the first kernel package in the output of `apt-cache depends`.
fn depended_on(text: &str) -> Option<String> {
    let mut words = text.lines().filter_map(|l| l.trim().strip_prefix("Depends: "));
    let package = words.find(|p| p.starts_with("linux-image-"))?;
    Some(package.to_owned())
}

fn only_file(folder: &Path, extension: &str) -> Result<PathBuf, VmError> {
    let found = fs::read_dir(folder).ok().and_then(|entries| {
        let mut paths = entries.flatten().map(|e| e.path());
        paths.find(|p| p.extension().is_some_and(|e| e == extension))
    });
    found.ok_or_else(|| VmError::NoKernel { why: "apt-get download left no package".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates the files of a kernel where packages put them, with 9p and overlay as modules and the rest built in.
    fn lay_out(root: &Path, version: &str, dep: &str) {
        let modules = root.join("lib/modules").join(version);
        fs::create_dir_all(root.join("boot")).unwrap();
        fs::create_dir_all(&modules).unwrap();
        fs::write(root.join(format!("boot/vmlinuz-{version}")), "").unwrap();
        fs::write(modules.join("modules.dep"), dep).unwrap();
        let builtin = "kernel/virtio_pci.ko\nkernel/9pnet_virtio.ko\n";
        fs::write(modules.join("modules.builtin"), builtin).unwrap();
    }

    const WHOLE: &str = "kernel/9p.ko:\nkernel/overlay.ko:\n";

    #[test]
    fn the_newest_that_has_what_a_guest_needs() {
        let cache = tempfile::tempdir().unwrap();
        lay_out(&cache.path().join("a"), "6.1.0-9-amd64", WHOLE);
        lay_out(&cache.path().join("b"), "6.1.0-56-amd64", WHOLE);
        lay_out(&cache.path().join("c"), "6.12.1-amd64", "kernel/9p.ko:\n");
        lay_out(&cache.path().join("d.partial"), "6.13.0-amd64", WHOLE);
        let kernel = Kernel::cached(cache.path()).unwrap();
        assert_eq!(kernel.version, "6.1.0-56-amd64");
        let folder = cache.path().join("b/lib/modules/6.1.0-56-amd64");
        let needed = ["kernel/9p.ko", "kernel/overlay.ko"].map(|m| folder.join(m));
        assert_eq!(kernel.needed, needed);

        // If the newest kernel lacks a needed module, an older one may be used.
        lay_out(&cache.path().join("c"), "6.12.1-amd64", WHOLE);
        assert_eq!(Kernel::cached(cache.path()).unwrap().version, "6.12.1-amd64");
    }

    #[test]
    fn none_is_none() {
        let cache = tempfile::tempdir().unwrap();
        assert_eq!(Kernel::cached(cache.path()), None);
        assert_eq!(Kernel::cached(&cache.path().join("nowhere")), None);
    }

    #[test]
    fn what_the_newest_kernel_is_called() {
        let text = "linux-image-amd64\n  Depends: linux-image-6.1.0-56-amd64\n";
        let package = Some("linux-image-6.1.0-56-amd64".to_owned());
        assert_eq!(depended_on(text), package);
        assert_eq!(depended_on("linux-image-amd64\n  Suggests: x\n"), None);
    }
}
