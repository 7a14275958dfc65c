//! Parses `modules.dep`, which depmod writes, and `modules.builtin`, which the kernel's build writes: the modules that
//! a driver needs.

use std::collections::BTreeSet;

use super::{Malformed, text};

/// The files to load so that the `wanted` modules work, in order and each once. A module that is built into the kernel
/// needs no file. Paths are relative to the folder of the two files.
///
/// [`Malformed::Missing`] is returned if the kernel does not have a module.
//= https://man7.org/linux/man-pages/man5/modules.dep.5.html: each line names all dependencies of a module,
//= indirect ones included, and the first one to load stands last.
pub fn load_order(
    dep: &[u8],
    builtin: &[u8],
    wanted: &[&'static str],
) -> Result<Vec<String>, Malformed> {
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    for name in wanted {
        if builtin.split(|&b| b == b'\n').any(|path| is(path, name)) {
            continue;
        }
        let mut lines = dep.split(|&b| b == b'\n');
        let (module, needs) = lines
            .find_map(|line| {
                let colon = line.iter().position(|&b| b == b':')?;
                let (module, needs) = line.split_at(colon);
                is(module, name).then_some((module, &needs[1..]))
            })
            .ok_or(Malformed::Missing(name))?;
        let needs: Vec<&[u8]> = text::fields(needs).collect();
        for path in needs.into_iter().rev().chain([module]) {
            if seen.insert(path) {
                order.push(text::trimmed(path));
            }
        }
    }
    Ok(order)
}

/// Whether a path such as `kernel/fs/9p/9p.ko.xz` belongs to the module `name`. In names of modules `-` and `_` are the
/// same.
fn is(path: &[u8], name: &str) -> bool {
    let file = path.rsplit(|&b| b == b'/').next().unwrap_or_default();
    let stem = file.split(|&b| b == b'.').next().unwrap_or_default();
    let same = |(a, b): (&u8, u8)| *a == b || (*a == b'-' && b == b'_');
    stem.len() == name.len() && stem.iter().zip(name.bytes()).all(same)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DEP: &[u8] = b"kernel/fs/9p/9p.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/fs/netfs.ko.xz\n\
        kernel/net/9p/9pnet.ko.xz:\n\
        kernel/net/9p/9pnet_virtio.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/virtio.ko.xz\n\
        kernel/a-b.ko:\n";

    #[test]
    fn what_a_module_needs_is_loaded_before_it_and_once() {
        let order = load_order(DEP, b"", &["9p", "9pnet_virtio"]).unwrap();
        let files = order.iter().map(|p| p.rsplit('/').next().unwrap());
        let want = ["netfs", "9pnet", "9p", "virtio", "9pnet_virtio"];
        assert_eq!(files.collect::<Vec<_>>(), want.map(|m| format!("{m}.ko.xz")));
    }

    #[test]
    fn what_is_built_in_is_not_loaded_and_what_is_nowhere_is_named() {
        let builtin = b"kernel/fs/9p/9p.ko\nkernel/overlayfs/overlay.ko\n";
        assert_eq!(load_order(DEP, builtin, &["overlay", "9p"]), Ok(vec![]));
        let missing = Err(Malformed::Missing("nvme"));
        assert_eq!(load_order(DEP, builtin, &["9p", "nvme"]), missing);
        // No module is called `9pne`, although `9pnet` begins with it.
        assert!(load_order(DEP, b"", &["9pne"]).is_err());
    }

    #[test]
    fn a_hyphen_is_an_underscore() {
        let order = load_order(DEP, b"", &["a_b"]);
        assert_eq!(order, Ok(vec!["kernel/a-b.ko".to_owned()]));
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_order_or_an_error(dep: Vec<u8>, builtin: Vec<u8>) {
            let _ = load_order(&dep, &builtin, &["a", "9p"]);
        }
    }
}
