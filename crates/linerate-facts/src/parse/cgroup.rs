//! Parses `/proc/self/cgroup` and `/proc/self/mountinfo`: the paths of linerate's own cgroups; and their limits.

use super::mounts::Mount;
use super::{Malformed, text};
use linerate_units::Bytes;

/// Version of the cgroup interface in use for a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Version 1: one hierarchy for each controller.
    V1,
    /// Version 2: one hierarchy for all controllers.
    V2,
}

/// Where linerate's own cgroup is in the file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Version of the cgroup interface that has the controller.
    pub version: Version,
    /// Mount point of the cgroup hierarchy.
    pub mount: String,
    /// Path of the cgroup below the mount point: empty, or starting with `/`.
    pub group: String,
}

impl Place {
    /// The names of linerate's own cgroup and of those above it, own first, each with its folder. The root is `/`.
    pub fn own_and_above(&self) -> Vec<(&str, String)> {
        let mut path = self.group.as_str();
        let mut all = Vec::new();
        loop {
            let name = if path.is_empty() { "/" } else { path };
            all.push((name, format!("{}{path}", self.mount)));
            match path.rfind('/') {
                Some(cut) => path = &path[..cut],
                None => return all,
            }
        }
    }
}

/// Finds linerate's cgroup for a controller in the two files; `Ok(None)` if there is none.
pub fn place(
    controller: &str,
    membership: &[u8],
    mountinfo: &[u8],
) -> Result<Option<Place>, Malformed> {
    let Some((version, group)) = membership_of(controller.as_bytes(), membership)? else {
        return Ok(None);
    };
    for line in text::lines(mountinfo, "mountinfo") {
        let mount = Mount::of(line?).filter(|mount| holds(mount, controller, version));
        let Some(mount) = mount else {
            continue;
        };
        // A mount may show only a part of the hierarchy. A group outside that part cannot be seen.
        if let Some(below) = below(&group, &mount.root) {
            let group = below.to_owned();
            return Ok(Some(Place { version, mount: mount.point, group }));
        }
    }
    Err(Malformed::Missing("a mount that shows our own cgroup"))
}

/// The cgroup version that has the controller, and linerate's path in its hierarchy. If v1 has the controller, v2
/// cannot have it.
fn membership_of(controller: &[u8], text: &[u8]) -> Result<Option<(Version, String)>, Malformed> {
    let mut found = None;
    for line in text::lines(text, "/proc/self/cgroup") {
        let mut parts = line?.splitn(3, |&b| b == b':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(Malformed::Short("/proc/self/cgroup"));
        };
        let path = String::from_utf8_lossy(path).into_owned();
        if controllers.split(|&b| b == b',').any(|c| c == controller) {
            return Ok(Some((Version::V1, path)));
        }
        if controllers.is_empty() {
            found = Some((Version::V2, path));
        }
    }
    Ok(found)
}

/// Whether a mount is the hierarchy with the controller, for this cgroup version.
fn holds(mount: &Mount, controller: &str, version: Version) -> bool {
    match version {
        Version::V1 => mount.kind == "cgroup" && mount.options.iter().any(|o| o == controller),
        Version::V2 => mount.kind == "cgroup2",
    }
}

/// CPUs that `cpu.max` allows: the quota divided by the period; `None` without a quota. The two files of v1 are read as
/// if they were this one line.
pub fn quota(text: &[u8]) -> Result<Option<f64>, Malformed> {
    const WHAT: &str = "CPU quota";
    let mut fields = text::fields(text::first_line(text, WHAT)?);
    let quota = fields.next().ok_or(Malformed::Missing(WHAT))?;
    if matches!(quota, b"max" | b"-1") {
        return Ok(None);
    }
    let quota = text::decimal(quota).ok_or(Malformed::NotANumber(WHAT))?;
    match text::next_decimal(&mut fields, WHAT)? {
        0 => Err(Malformed::NotANumber(WHAT)),
        period => Ok(Some(quota as f64 / period as f64)),
    }
}

/// Bytes that a memory limit allows; `None` without a limit. v1 writes no limit as a number that no machine has.
pub fn limit(text: &[u8]) -> Result<Option<Bytes>, Malformed> {
    if super::sysctl::line(text) == "max" {
        return Ok(None);
    }
    let bytes = super::sysctl::number(text)?;
    Ok(Some(Bytes(bytes)).filter(|b| b.0 < 1 << 60))
}

/// The count `key` in `memory.stat`, such as `inactive_file`.
pub fn count(text: &[u8], key: &str) -> Option<u64> {
    text::lines(text, "memory.stat").find_map(|line| {
        let mut fields = text::fields(line.ok()?);
        (fields.next()? == key.as_bytes()).then(|| text::decimal(fields.next()?))?
    })
}

/// The path `group` relative to `root`; `None` if `group` is not below `root`, or if it contains `..`.
fn below<'a>(group: &'a str, root: &str) -> Option<&'a str> {
    let rest = group.strip_prefix(root.trim_end_matches('/'))?;
    let inside = rest.is_empty() || rest.starts_with('/');
    (inside && rest.split('/').all(|part| part != "..")).then(|| rest.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Bytes, Malformed, Place, Version, limit, place, quota};

    fn at(version: Version, mount: &str, group: &str) -> Place {
        Place { version, mount: mount.to_owned(), group: group.to_owned() }
    }

    fn cpu(membership: &[u8], mountinfo: &[u8]) -> Result<Option<Place>, Malformed> {
        place("cpu", membership, mountinfo)
    }

    #[test]
    fn v1_hybrid_v2_and_containers() {
        let hybrid = b"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
            33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n\
            32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu\n\
            41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let got = cpu(b"2:cpuacct:/x\n1:cpu:/a/b\n0::/c\n", hybrid).unwrap();
        assert_eq!(got, Some(at(Version::V1, "/sys/fs/cgroup/cpu", "/a/b")));

        let unified = b"30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let got = cpu(b"0::/user.slice/s-3.scope\n", unified).unwrap();
        assert_eq!(got, Some(at(Version::V2, "/sys/fs/cgroup", "/user.slice/s-3.scope")));
        let got = cpu(b"0::/\n", unified).unwrap();
        assert_eq!(got, Some(at(Version::V2, "/sys/fs/cgroup", "")));

        let docker =
            b"9 8 0:30 /docker/f00 /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n";
        let got = cpu(b"4:cpu,cpuacct:/docker/f00\n", docker).unwrap();
        assert_eq!(got, Some(at(Version::V1, "/sys/fs/cgroup/cpu,cpuacct", "")));
        assert!(cpu(b"4:cpu,cpuacct:/docker/f00d\n", docker).is_err(), "another container");
        assert!(cpu(b"0::/../../x\n", unified).is_err(), "outside what we can see");
    }

    #[test]
    fn none_is_none_and_blanks_are_unescaped() {
        assert_eq!(cpu(b"", b""), Ok(None));
        assert_eq!(cpu(b"3:memory:/\n", b""), Ok(None));
        assert!(cpu(b"0::/\n", b"").is_err());
        let odd = b"1 1 0:1 / /mnt/a\\040b rw - cgroup2 none rw\n";
        assert_eq!(cpu(b"0::/\n", odd).unwrap(), Some(at(Version::V2, "/mnt/a b", "")));
    }

    #[test]
    fn controllers_have_hierarchies_of_their_own() {
        let mounts = b"1 1 0:1 / /cg/memory rw - cgroup cgroup rw,memory\n\
            1 1 0:2 / /cg/cpu rw - cgroup cgroup rw,cpu\n";
        let membership = b"2:memory:/m\n1:cpu:/c\n";
        let got = place("memory", membership, mounts).unwrap();
        assert_eq!(got, Some(at(Version::V1, "/cg/memory", "/m")));
    }

    #[test]
    fn limits_and_their_absence() {
        assert_eq!(quota(b"max 100000\n"), Ok(None));
        assert_eq!(quota(b"-1 100000\n"), Ok(None));
        assert_eq!(quota(b"150000 100000\n"), Ok(Some(1.5)));
        for bad in ["", "1 0\n", "1\n", "x 1\n", "1 1"] {
            assert!(quota(bad.as_bytes()).is_err(), "{bad:?}");
        }
        assert_eq!(limit(b"max\n"), Ok(None));
        assert_eq!(limit(b"9223372036854771712\n"), Ok(None));
        assert_eq!(limit(b"1073741824\n"), Ok(Some(Bytes(1 << 30))));
        assert!(limit(b"-5\n").is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(a: Vec<u8>, b: Vec<u8>) {
            let _ = (cpu(&a, &b), quota(&a), limit(&b));
            let _ = cpu(b"0::/\n", &[b"1 1 0:1 / /", &b[..], b" rw - cgroup2 none rw\n"].concat());
        }
    }
}
