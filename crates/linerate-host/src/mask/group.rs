//! Paths of control groups in a capture, and the numbers that replace the names in them.
//!
//! Names that are the same on every host stay, and so do the parts of names that show the kind of a group: a user, a
//! session, a container, a service. The rest of a name becomes a number, always the same one for the same text, so that
//! a group is still found below its parent.

use linerate_facts::parse::mounts::Mount;

/// The usual mount point of control groups.
const ROOT: &str = "/sys/fs/cgroup";
/// Names of groups that systemd, container engines and Kubernetes use on every host.
const COMMON: [&str; 20] = [
    "-.slice",
    "app.slice",
    "background.slice",
    "besteffort",
    "burstable",
    "docker",
    "elogind",
    "init.scope",
    "kubepods",
    "kubepods-besteffort.slice",
    "kubepods-burstable.slice",
    "kubepods.slice",
    "lxc",
    "machine",
    "machine.slice",
    "session.slice",
    "system.slice",
    "systemd",
    "unified",
    "user.slice",
];
/// Names of controllers. Hierarchies of v1 are named after controllers, and names of a group's files begin with them.
const CONTROLLERS: [&str; 15] = [
    "blkio",
    "cgroup",
    "cpu",
    "cpuacct",
    "cpuset",
    "devices",
    "freezer",
    "hugetlb",
    "io",
    "memory",
    "misc",
    "net_cls",
    "net_prio",
    "perf_event",
    "pids",
];
/// Prefixes of names that show the kind of a group. A prefix comes before the shorter prefixes that it begins with.
const KINDS: [&str; 18] = [
    "cri-containerd-",
    "crio-conmon-",
    "crio-",
    "docker-",
    "kubepods-besteffort-pod",
    "kubepods-burstable-pod",
    "kubepods-pod",
    "libpod-conmon-",
    "libpod-",
    "lxc.monitor.",
    "lxc.payload.",
    "machine-",
    "app-",
    "pod",
    "run-",
    "session-",
    "user-",
    "user@",
];
/// Suffixes of the names of systemd's units.
const UNITS: [&str; 6] = [".slice", ".scope", ".service", ".mount", ".socket", ".swap"];

/// The names found so far, whose positions determine the numbers that replace them, and the folders where cgroups are
/// mounted.
#[derive(Default)]
pub(super) struct Groups {
    names: Vec<String>,
    mounts: Vec<String>,
}

impl Groups {
    /// Adds the folders where cgroups are mounted, from a table of mounts that is not masked yet.
    pub(super) fn learn(&mut self, mountinfo: &[u8]) {
        let text = String::from_utf8_lossy(mountinfo);
        let mounts = text.lines().filter_map(of_groups);
        self.mounts.extend(mounts.map(|mount| mount.point));
    }

    /// Masks the lines of `/proc/PID/cgroup`: number of the hierarchy, its controllers, and the path of the group.
    pub(super) fn in_membership(&mut self, text: &mut Vec<u8>) {
        let lines = String::from_utf8_lossy(text);
        let line = |line: &str| {
            let mut fields = line.splitn(3, ':');
            let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            let controllers: Vec<&str> = controllers.split(',').map(hierarchy).collect();
            Some(format!("{number}:{}:{}\n", controllers.join(","), self.path(path)))
        };
        *text = lines.lines().filter_map(line).collect::<String>().into();
    }

    /// Masks a line of a table of mounts; `None` if it does not mount control groups.
    pub(super) fn in_mount(&mut self, line: &str) -> Option<String> {
        let mut mount = of_groups(line)?;
        let [root, point] = [&mount.root, &mount.point].map(|path| self.path(path));
        // Options with a value may contain the name of a program or of a user.
        mount.options.retain(|option| !option.contains('='));
        let (number, kind, options) = (mount.number, mount.kind, mount.options.join(","));
        Some(format!("0 0 {number} {root} {point} rw - {kind} {kind} {options}\n"))
    }

    /// Masks the path of a file of a control group; `None` for other files.
    pub(super) fn in_file(&mut self, path: &str) -> Option<String> {
        let (root, seen) = as_seen(path);
        let (folder, file) = seen.rsplit_once('/')?;
        let controller = file.split_once('.')?.0;
        let mounts = self.mounts.iter().map(String::as_str).chain([ROOT]);
        let is_group = mounts.into_iter().any(|mount| is_below(folder, mount));
        (is_group && CONTROLLERS.contains(&controller))
            .then(|| format!("{root}{}/{file}", self.path(folder)))
    }

    fn path(&mut self, path: &str) -> String {
        if let Some(below) = path.strip_prefix(ROOT)
            && is_below(path, ROOT)
        {
            return format!("{ROOT}{}", self.path(below));
        }
        let names: Vec<String> = path.split('/').map(|name| self.name(name)).collect();
        names.join("/")
    }

    /// Returns what replaces one name in a path.
    fn name(&mut self, name: &str) -> String {
        let is_hierarchy = name.split(',').all(|part| CONTROLLERS.contains(&part));
        if ["", ".", ".."].contains(&name) || COMMON.contains(&name) || is_hierarchy {
            return name.to_owned();
        }
        let kind = KINDS.into_iter().find(|kind| name.starts_with(kind));
        let kind = kind.unwrap_or_default();
        let own = &name[kind.len()..];
        let unit = UNITS.into_iter().find(|unit| own.ends_with(unit));
        let unit = unit.unwrap_or_default();
        let own = &own[..own.len() - unit.len()];
        let known = self.names.iter().position(|known| known == own);
        let at = known.unwrap_or_else(|| {
            self.names.push(own.to_owned());
            self.names.len() - 1
        });
        format!("{kind}masked-{}{unit}", at + 1)
    }
}

/// Returns a controller as it is, or masks the name of a hierarchy without a controller.
fn hierarchy(controller: &str) -> &str {
    match controller.strip_prefix("name=") {
        None | Some("systemd") => controller,
        Some(_) => "name=masked",
    }
}

/// Returns whether `path` is `folder`, or is below it.
fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Splits a path into the root of the process that sees it, such as `/proc/PID/root`, and the path below that root.
fn as_seen(path: &str) -> (&str, &str) {
    let of_process = path.strip_prefix("/proc/").and_then(|rest| {
        let (_, seen) = rest.split_once("/root/")?;
        Some(path.split_at(path.len() - seen.len() - 1))
    });
    of_process.unwrap_or(("", path))
}

/// Parses a line of a table of mounts; `None` if it does not mount control groups.
fn of_groups(line: &str) -> Option<Mount> {
    Mount::of(line.as_bytes()).filter(|mount| mount.kind.starts_with("cgroup"))
}

#[cfg(test)]
mod tests {
    use super::Groups;

    fn membership(groups: &mut Groups, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        groups.in_membership(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn names_of_people_services_and_containers_go_and_kinds_of_groups_stay() {
        for (path, masked) in [
            ("/", "/"),
            ("/init.scope", "/init.scope"),
            (
                "/user.slice/user-1000.slice/session-3.scope",
                "/user.slice/user-masked-1.slice/session-masked-2.scope",
            ),
            // The same user is replaced by the same number.
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/app-bob-7.scope",
                "/user.slice/user-masked-1.slice/user@masked-1.service/app.slice/app-masked-2.scope",
            ),
            ("/system.slice/bobs.service", "/system.slice/masked-1.service"),
            ("/docker/f00d", "/docker/masked-1"),
            ("/system.slice/docker-f00d.scope", "/system.slice/docker-masked-1.scope"),
            (
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podab_c.slice/crio-ab.scope",
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podmasked-1.slice/crio-masked-2.scope",
            ),
            ("/lxc.payload.bob/../..", "/lxc.payload.masked-1/../.."),
            ("/bob/bob/alice", "/masked-1/masked-1/masked-2"),
        ] {
            let got = membership(&mut Groups::default(), &format!("0::{path}\n"));
            assert_eq!(got, format!("0::{masked}\n"));
        }
    }

    #[test]
    fn hierarchies_of_the_first_version_keep_their_controllers() {
        let text = "5:cpu,cpuacct:/bob\n2:name=systemd:/bob\n1:name=bob:/x:y\nno line\n";
        let masked = "5:cpu,cpuacct:/masked-1\n2:name=systemd:/masked-1\n1:name=masked:/masked-2\n";
        assert_eq!(membership(&mut Groups::default(), text), masked);
    }

    #[test]
    fn a_group_stays_where_it_was_mounted() {
        let mut groups = Groups::default();
        let mounts = "31 23 0:28 /docker/f00d /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup \
                      rw,cpu,cpuacct,release_agent=/home/bob/x\n\
                      32 23 0:29 / /home/bob/my\\040groups rw - cgroup2 bob rw,nsdelegate\n\
                      33 23 8:1 / /home rw - ext4 /dev/sda1 rw\n";
        groups.learn(mounts.as_bytes());
        let masked: Vec<_> = mounts.lines().map(|line| groups.in_mount(line)).collect();
        let want = [
            Some(
                "0 0 0:28 /docker/masked-1 /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                    .to_owned(),
            ),
            Some("0 0 0:29 / /masked-2/masked-3/masked-4 rw - cgroup2 cgroup2 rw,nsdelegate\n".to_owned()),
            None,
        ];
        assert_eq!(masked, want);
        for (path, masked) in [
            (
                "/sys/fs/cgroup/cpu,cpuacct/f00d/cpu.cfs_quota_us",
                Some("/sys/fs/cgroup/cpu,cpuacct/masked-1/cpu.cfs_quota_us"),
            ),
            (
                "/proc/71/root/sys/fs/cgroup/bob/cpu.max",
                Some("/proc/71/root/sys/fs/cgroup/masked-3/cpu.max"),
            ),
            (
                "/home/bob/my groups/alice/memory.max",
                Some("/masked-2/masked-3/masked-4/masked-5/memory.max"),
            ),
            ("/sys/fs/cgroup/cpu.max", Some("/sys/fs/cgroup/cpu.max")),
            ("/sys/fs/cgroups/bob/cpu.max", None),
            ("/sys/class/net/cpu.max", None),
            ("/proc/stat", None),
            ("/proc/71/root", None),
        ] {
            assert_eq!(groups.in_file(path).as_deref(), masked, "{path}");
        }
    }
}
