//! Masks a capture so that it can be shared: names, addresses and serial numbers are replaced.

use std::mem;

use linerate_facts::machine::CLOUD_TAGS;
use linerate_facts::parse::{self, ethtool, link, route, routes, smbios, sysctl};

use super::facts::block::tells_speed;
use super::facts::infiniband::SOFTWARE;
use super::{Answer, Captured, Ethtool, Query};

mod address;
mod group;

use address::Addresses;
use group::Groups;

const MASKED: &[u8] = b"masked\n";
/// Files in /sys that identify one piece of hardware, or contain the name of a file or host.
const NAMES: [&str; 7] =
    ["/serial", "/wwid", "/nguid", "/eui", "/unique_id", "/dm/name", "/loop/backing_file"];
/// Files of a port that contain a hardware address.
const ADDRESSES: [&str; 3] = ["/address", "/broadcast", "/ad_partner_mac"];
/// Files that contain a GUID.
const GUIDS: [&str; 2] = ["/node_guid", "/sys_image_guid"];
/// Lines of a device's `uevent` that linerate reads; the other lines are removed.
const UEVENT: [&[u8]; 5] = [b"DEVNAME=", b"DEVTYPE=", b"DRIVER=", b"MODALIAS=", b"PCI_SLOT_NAME="];

/// Lines of a process's `status` that linerate reads; the other lines are removed.
const STATUS: [&[u8]; 3] = [b"PPid:", b"CapEff:", b"Cpus_allowed_list:"];
/// Prefixes of link targets that are not files.
const NO_FILES: [&str; 2] = ["socket:[", "cgroup:["];

/// What is known so far of the values that are replaced by numbers.
#[derive(Default)]
struct Known {
    addresses: Addresses,
    groups: Groups,
}

impl Captured {
    /// Overwrites what identifies this host and others: names of the host, processes and mounts, memory addresses of
    /// processes, addresses of ports and other hosts, keys and serial numbers.
    ///
    /// Hardware addresses, GUIDs and names of control groups become numbers, always the same one for the same value: a
    /// port is identified by its address, and a group by the groups above it.
    pub fn mask(&mut self) {
        let mut known = Known::default();
        for (path, answers) in &mut self.files {
            if is_of_process(path, "/mountinfo") {
                replies(answers).for_each(|text| known.groups.learn(text));
            }
        }
        for (path, answers) in &mut self.files {
            for text in replies(answers) {
                mask(path, text, &mut known);
                known.addresses.in_names(text);
            }
        }
        let Known { mut addresses, mut groups } = known;
        for (query, answers) in &mut self.queries {
            for reply in replies(answers) {
                match query {
                    Query::Link(_) | Query::Links => {
                        link::mask(reply, |address| addresses.replace(address));
                    }
                    Query::Addresses => {
                        parse::address::mask(reply, |address| addresses.replace(address));
                    }
                    Query::Ethtool(Ethtool::Rss, _) => ethtool::mask_rss(reply),
                    Query::Route(_) => route::mask(reply),
                    _ => {}
                }
                addresses.in_names(reply);
            }
            // A replay looks up a tunnel's route by the address in the tunnel's link, so the address in the query must
            // match it.
            if let Query::Route(toward) = query {
                addresses.of_ends(toward);
            }
        }
        // Targets of links in /sys are devices, and are not masked.
        let links = self.links.iter_mut();
        let links = links.filter(|(path, _)| !path.starts_with("/sys/"));
        for target in links.flat_map(|(_, answers)| replies(answers)) {
            // Other targets of links are names of files.
            if !NO_FILES.iter().any(|kind| target.starts_with(kind)) {
                "masked".clone_into(target);
            }
        }
        for names in self.lists.values_mut().flat_map(|answers| replies(answers)) {
            for name in names {
                *name = addresses.in_name(name);
            }
        }
        let files = mem::take(&mut self.files).into_iter();
        self.files = files
            .map(|(path, answers)| {
                let path = groups.in_file(&path).unwrap_or(path);
                (addresses.in_name(&path), answers)
            })
            .collect();
        let lists = mem::take(&mut self.lists).into_iter();
        self.lists = lists.map(|(path, answers)| (addresses.in_name(&path), answers)).collect();
    }
}

fn replies<T>(answers: &mut [Answer<T>]) -> impl Iterator<Item = &mut T> {
    answers.iter_mut().filter_map(|answer| match answer {
        Answer::Reply(reply) => Some(reply),
        Answer::Failed(_) => None,
    })
}

/// Returns whether a path is that of `file` of one process, such as `/proc/71/stat`.
fn is_of_process(path: &str, file: &str) -> bool {
    let who = path.strip_prefix("/proc/").and_then(|rest| rest.strip_suffix(file));
    who.is_some_and(|who| !who.is_empty() && !who.contains('/'))
}

fn mask(path: &str, text: &mut Vec<u8>, known: &mut Known) {
    match path {
        "/proc/sys/kernel/hostname" => *text = MASKED.to_vec(),
        "/proc/cmdline" => {
            let words = sysctl::words(text).into_iter();
            let words = words.filter(|word| word.contains("iommu"));
            *text = (words.collect::<Vec<_>>().join(" ") + "\n").into_bytes();
        }
        "/proc/net/route" => routes::mask(text),
        "/proc/cpuinfo" => keep_lines(text, |line| !line.starts_with(b"Serial")),
        "/sys/class/dmi/id/chassis_asset_tag" => {
            let tag = sysctl::line(text);
            if CLOUD_TAGS.iter().all(|(known, _)| *known != tag) {
                *text = MASKED.to_vec();
            }
        }
        _ if path.starts_with("/sys/firmware/dmi/") => smbios::mask(text),
        _ if path.starts_with("/proc/") && path.ends_with("/stat") => mask_process(text),
        _ if is_of_process(path, "/mountinfo") => {
            let lines = text.split_inclusive(|&b| b == b'\n');
            let lines = lines.map(|line| mask_mount(line, &mut known.groups));
            *text = lines.collect::<Vec<_>>().concat();
        }
        _ if is_of_process(path, "/cgroup") => known.groups.in_membership(text),
        _ if is_of_process(path, "/status") => {
            keep_lines(text, |line| STATUS.iter().any(|key| line.starts_with(key)));
        }
        _ if path.starts_with("/sys/") => mask_device(path, text, &mut known.addresses),
        _ => {}
    }
}

/// Masks a line of a table of mounts. Its kind, its device and the options that affect speed stay; its folder and its
/// server are names and are replaced.
fn mask_mount(line: &[u8], groups: &mut Groups) -> Vec<u8> {
    let text = String::from_utf8_lossy(line);
    if let Some(masked) = groups.in_mount(&text) {
        return masked.into_bytes();
    }
    let (Some((_, rest)), Some(number)) = (text.split_once(" - "), text.split(' ').nth(2)) else {
        return Vec::new();
    };
    let mut fields = rest.trim_end().split(' ');
    let (kind, source) = (fields.next().unwrap_or_default(), fields.next());
    let is_device = |s: &&str| s.starts_with("/dev/") && !s.starts_with("/dev/mapper/");
    let source = source.filter(is_device).unwrap_or("masked");
    let options = fields.next().unwrap_or_default().split(',');
    let options: Vec<&str> = options.filter(|option| tells_speed(option)).collect();
    let point = match text.split(' ').nth(4) {
        Some("/") => "/",
        _ => "/masked",
    };
    let options = [&["rw"], options.as_slice()].concat().join(",");
    format!("0 0 {number} / {point} rw - {kind} {source} {options}\n").into_bytes()
}

/// Masks a file of a device in /sys.
fn mask_device(path: &str, text: &mut Vec<u8>, addresses: &mut Addresses) {
    let is_port = path.starts_with("/sys/class/net/");
    if is_port && ADDRESSES.iter().any(|name| path.ends_with(name)) {
        addresses.in_text(text);
    } else if path.ends_with("/uevent") {
        keep_lines(text, |line| UEVENT.iter().any(|key| line.starts_with(key)));
    } else if path.ends_with("/dm/uuid") {
        // In a text such as `LVM-...`, the part before the hyphen shows the kind of layer and stays.
        let kind = text.iter().position(|&b| b == b'-').map_or(0, |at| at + 1);
        *text = [&text[..kind], MASKED].concat();
    } else if path.contains("/gids/") || GUIDS.iter().any(|name| path.ends_with(name)) {
        if !addresses.in_groups(text) {
            *text = MASKED.to_vec();
        }
    } else if path.ends_with("/node_desc") {
        if !SOFTWARE.contains(&sysctl::line(text).as_str()) {
            *text = MASKED.to_vec();
        }
    } else if NAMES.iter().any(|name| path.ends_with(name))
        || path.ends_with("/address") && text.contains(&b'=')
    {
        *text = MASKED.to_vec();
    }
}

fn keep_lines(text: &mut Vec<u8>, keep: impl Fn(&[u8]) -> bool) {
    let lines = text.split_inclusive(|&b| b == b'\n');
    *text = lines.filter(|line| keep(line)).collect::<Vec<_>>().concat();
}

/// Masks the line of a process's `stat`: the name of the process, which is in brackets, and those fields behind it that
/// are memory addresses. Fields are numbered as in proc(5).
fn mask_process(text: &mut Vec<u8>) {
    let open = text.iter().position(|&b| b == b'(');
    let close = text.iter().rposition(|&b| b == b')');
    let (Some(open), Some(close)) = (open, close) else {
        return;
    };
    let fields = text[close + 1..].split(|&b| b == b' ').enumerate();
    let fields = fields.map(|(at, field)| match at + 2 {
        26..=30 | 45..=51 => b"0",
        _ => field,
    });
    let tail = fields.collect::<Vec<&[u8]>>().join(&b' ');
    let head = text.get(..=open).unwrap_or_default();
    *text = [head, b"masked)", &tail].concat();
}

#[cfg(test)]
mod tests {
    use linerate_facts::infiniband::Guid;
    use linerate_units::Bytes;

    use crate::testing::{Fake, attr, link, msg};
    use crate::{Answer, Captured, Ethtool, Query, Replay, inventory};

    fn file(path: &str, text: &str) -> String {
        let mut fake = Fake::default().file(path, &[text]).0;
        fake.mask();
        match &fake.files[path][0] {
            Answer::Reply(text) => String::from_utf8(text.clone()).unwrap(),
            Answer::Failed(_) => unreachable!("a reply"),
        }
    }

    #[test]
    fn names_and_numbers_of_one_machine_go_and_the_rest_stays() {
        assert_eq!(file("/proc/sys/kernel/hostname", "brook\n"), "masked\n");
        assert_eq!(file("/proc/7/stat", "7 (secret) x) R 1\n"), "7 (masked) R 1\n");
        let fields: Vec<String> = (3..=52).map(|n| n.to_string()).collect();
        let masked = file("/proc/7/stat", &format!("7 (a) {}\n", fields.join(" ")));
        assert!(masked.starts_with("7 (masked) 3 4 "), "{masked}");
        assert!(masked.contains(" 25 0 0 0 0 0 31 "), "{masked}");
        assert!(masked.ends_with(" 44 0 0 0 0 0 0 0 52\n"), "{masked}");
        assert_eq!(file("/proc/stat", "cpu0 1 2\n"), "cpu0 1 2\n");
        assert_eq!(file("/proc/cpuinfo", "Model : Pi\nSerial\t: 1000\n"), "Model : Pi\n");
        let mounts = "1 1 0:1 / /mnt rw - nfs4 filer:/home rw\n1 1 0:2 / /cg rw - cgroup2 c rw\n";
        let masked =
            "0 0 0:1 / /masked rw - nfs4 masked rw\n0 0 0:2 / /masked-1 rw - cgroup2 cgroup2 rw\n";
        assert_eq!(file("/proc/self/mountinfo", mounts), masked);
        let disk = "1 0 8:1 / / rw - ext4 /dev/sda1 rw,x=secret\n1 0 0:3 / /a rw - nfs4 h:/b \
                    rw,vers=4.2,addr=10.0.0.1,nconnect=4\n1 0 253:0 / /b rw - xfs \
                    /dev/mapper/secret rw\ncut\n";
        let masked = "0 0 8:1 / / rw - ext4 /dev/sda1 rw\n0 0 0:3 / /masked rw - nfs4 masked \
                      rw,vers=4.2,nconnect=4\n0 0 253:0 / /masked rw - xfs masked rw\n";
        assert_eq!(file("/proc/self/mountinfo", disk), masked);
        assert_eq!(file("/proc/7/mountinfo", disk), masked);
        let status = "Name:\tsecret\nPPid:\t1\nUid:\t1000\nCapEff:\t00\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n";
        let masked = "PPid:\t1\nCapEff:\t00\nCpus_allowed_list:\t0-3\n";
        assert_eq!(file("/proc/self/status", status), masked);
        let node = "/sys/class/infiniband/siw0/node_desc";
        assert_eq!(file(node, "brook mlx5_0\n"), "masked\n");
        let played = "Software iWARP stack\n";
        assert_eq!(file(node, played), played);
        let boot = "root=UUID=1-2 quiet intel_iommu=on\n";
        assert_eq!(file("/proc/cmdline", boot), "intel_iommu=on\n");
        let tag = "/sys/class/dmi/id/chassis_asset_tag";
        assert_eq!(file(tag, "rack 7\n"), "masked\n");
        assert_eq!(file(tag, "OracleCloud.com\n"), "OracleCloud.com\n");
    }

    /// A machine with a port that is named after its address, and with a tunnel.
    fn ports() -> Fake {
        let remote = b"secret-tunnel-16";
        let tunnel =
            [attr(1, b"vxlan"), attr(2, &[attr(2, &remote[..4]), attr(16, remote)].concat())];
        let port = link(7, "enx5ec2e7addbe0", &[attr(1, MAC), attr(2, MAC), attr(54, MAC)]);
        let tunnel = link(8, "vx0", &[attr(1, MAC), attr(18, &tunnel.concat())]);
        let key = msg(
            21,
            &[vec![0; 4], attr(3, &1u32.to_ne_bytes()), attr(5, b"secret-hash-key")].concat(),
        );
        let class = "/sys/class/net/enx5ec2e7addbe0";
        Fake::default()
            .reply(Query::Links, &[&[port, tunnel].concat()])
            .reply(Query::Ethtool(Ethtool::Rss, 7), &[&key])
            .list("/sys/class/net", &["enx5ec2e7addbe0"])
            .file(&format!("{class}/ifindex"), &["7\n"])
            .file(&format!("{class}/address"), &["5e:c2:e7:ad:db:e0\n"])
            .file(&format!("{class}/broadcast"), &["5e:c2:e7:ad:db:ff\n"])
            .list(&format!("{class}/queues"), &["rx-0", "tx-0"])
            .file("/proc/interrupts", &["CPU0\n 64: 5 PCI-MSI 1-edge enx5ec2e7addbe0-rx-0\n"])
    }

    /// Adds an RDMA device.
    fn rdma(fake: Fake) -> Fake {
        let rdma = "/sys/class/infiniband/mlx5_0";
        fake.list("/sys/class/infiniband", &["mlx5_0"])
            .list(&format!("{rdma}/ports"), &["1"])
            .list(&format!("{rdma}/ports/1/gids"), &["0", "1"])
            .file(&format!("{rdma}/ports/1/gids/0"), &["fe80:0000:0000:0000:5ec2:e7ff:fead:dbe0\n"])
            .file(&format!("{rdma}/ports/1/gids/1"), &["0000:0000:0000:0000:0000:0000:0000:0000\n"])
            .file(&format!("{rdma}/ports/1/state"), &["4: ACTIVE\n"])
            .file(&format!("{rdma}/ports/1/link_layer"), &["InfiniBand\n"])
            .file(&format!("{rdma}/node_guid"), &["5ec2:e7ff:fead:dbe0\n"])
            .file(&format!("{rdma}/node_desc"), &["secret mlx5_0\n"])
    }

    /// Adds a process in the control group of a user's session, below a group with a quota.
    fn group(fake: Fake) -> Fake {
        let own = "0::/user.slice/user-1000.slice/session-secret.scope\n";
        let slice = "/sys/fs/cgroup/user.slice/user-1000.slice";
        fake.file("/proc/self/cgroup", &[own; 2])
            .file(&format!("{slice}/session-secret.scope/cpu.max"), &["max 100000\n"])
            .file(&format!("{slice}/cpu.max"), &["150000 100000\n"])
            .file("/sys/fs/cgroup/user.slice/memory.max", &["1048576\n"])
    }

    /// A machine with a port, a tunnel, an RDMA device and a control group, disks of several kinds, and a mount.
    fn machine() -> Fake {
        group(rdma(ports()))
            .list("/sys/class/block", &["dm-0", "nvme0n1", "sda"])
            .file("/sys/class/block/sda/size", &["2048\n"])
            .file("/sys/class/block/sda/device/wwid", &["naa.secret\n"])
            .file("/sys/class/block/sda/device/serial", &["secret\n"])
            .file("/sys/class/block/sda/uevent", &["DEVNAME=sda\nPARTNAME=secret\n"])
            .file("/sys/class/block/nvme0n1/size", &["4096\n"])
            .file("/sys/class/nvme/nvme0/transport", &["tcp\n"])
            .file("/sys/class/nvme/nvme0/state", &["live\n"])
            .file("/sys/class/nvme/nvme0/address", &["traddr=secret,trsvcid=4420\n"])
            .file("/sys/class/block/dm-0/size", &["8192\n"])
            .file("/sys/class/block/dm-0/dm/name", &["secret\n"])
            .file("/sys/class/block/dm-0/dm/uuid", &["LVM-secret\n"])
            .file(
                "/proc/self/mountinfo",
                &["1 1 0:1 / /secret rw - nfs4 secret:/home rw\n\
                   1 1 0:2 / /sys/fs/cgroup rw - cgroup2 secret rw\n"; 3],
            )
    }

    const MAC: &[u8] = &[0x5e, 0xc2, 0xe7, 0xad, 0xdb, 0xe0];

    /// Returns all bytes of a capture, one after the other.
    fn bytes(captured: &Captured) -> Vec<u8> {
        let text = |answers: &[Answer<Vec<u8>>]| {
            let replies = answers.iter().filter_map(|a| match a {
                Answer::Reply(text) => Some(text.clone()),
                Answer::Failed(_) => None,
            });
            replies.collect::<Vec<_>>().concat()
        };
        let mut all = Vec::new();
        for (path, answers) in &captured.files {
            all.extend([path.as_bytes(), &text(answers)].concat());
        }
        for (_, answers) in &captured.queries {
            all.extend(text(answers));
        }
        all.extend(format!("{:?}", captured.lists).into_bytes());
        all
    }

    #[test]
    fn no_address_key_or_serial_number_of_a_machine_survives() {
        let holds = |all: &[u8], secret: &[u8]| all.windows(secret.len()).any(|w| w == secret);
        let secrets: [&[u8]; 7] =
            [b"user-1000", MAC, b"5ec2e7addbe0", b"5e:c2:e7", b"5ec2:e7ff", b"secret", b"fead"];
        let mut captured = machine().0;
        let before = bytes(&captured);
        captured.mask();
        let after = bytes(&captured);
        for secret in secrets {
            assert!(holds(&before, secret), "{secret:x?}");
            assert!(!holds(&after, secret), "{secret:x?}");
        }
    }

    #[test]
    fn a_masked_machine_is_the_same_but_for_what_is_masked() {
        let mut captured = machine().0;
        let mut whole = inventory(&Replay::new(captured.clone()), &|_| {});
        captured.mask();
        let masked = inventory(&Replay::new(captured), &|_| {});
        assert_eq!(whole.network.nics[0].queues.len(), 2, "its /sys is known to be its own");
        assert_eq!(whole.interrupts.of(&whole.network.nics[0]).len(), 1);
        for gap in &mut whole.gaps {
            gap.why = gap.why.replace("5ec2e7addbe0", "000000000001");
            gap.hint = gap.hint.replace("5ec2e7addbe0", "000000000001");
            let own = "user-1000.slice/session-secret.scope";
            let masked = "user-masked-1.slice/session-masked-2.scope";
            gap.why = gap.why.replace(own, masked);
        }
        whole.network.nics[0].name = "enx000000000001".to_owned();
        whole.interrupts.irqs[0].name = "enx000000000001-rx-0".to_owned();
        for port in &mut whole.network.addresses {
            "00:00:00:00:00:01".clone_into(&mut port.hardware);
        }
        let device = &mut whole.infiniband.devices[0];
        let gid = &mut device.ports[0].gids[0].gid;
        let lower = gid.split_off("fe80:0000:0000:0000:".len());
        assert_eq!(lower, "5ec2:e7ff:fead:dbe0");
        gid.push_str("0000:0000:0000:0002");
        device.node_guid = device.ports[0].guid();
        assert_eq!(device.node_guid, Some(Guid(2)), "one number for both");
        assert_eq!(whole.machine.cpu_quota, Some(1.5));
        assert_eq!(whole.machine.memory_limit, Some(Bytes(1 << 20)));
        let mapped = whole.storage.devices.iter_mut().find(|d| d.name == "dm-0");
        mapped.unwrap().label = "masked".to_owned();
        let remote = whole.storage.devices.iter_mut().find(|d| d.name == "nvme0n1");
        remote.unwrap().paths[0].address = "masked".to_owned();
        "/masked".clone_into(&mut whole.storage.filesystems[0].point);
        assert_eq!(masked, whole);
    }
}
