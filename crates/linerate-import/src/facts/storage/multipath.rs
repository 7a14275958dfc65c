//! Reads the output of `multipath -ll`.

use linerate_facts::block::{BlockDevice, Layer, Path};

use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::{Line, MOST, is_digits};

pub(crate) static MULTIPATH: Format = Format {
    id: "multipath",
    label: "multipath -ll",
    versions: "multipath-tools 0.4 to 0.14",
    evidence: "published: forms by the manual pages of Red Hat Enterprise Linux 5 and 9 (device mapper \
        multipath), with other names",
    unknown: "What the paths carry, and why one failed: the log of the kernel has that.",
    starts: |at| {
        let size = at.next.trim_start();
        let is_size = size.starts_with("size=") || size.starts_with("[size=");
        map(at.line).is_some() && is_size || Group::of(at.line).is_some()
    },
    read,
    ..Format::FACTS
};

/// Largest number of paths of one device.
const MOST_PATHS: usize = 1_024;
/// Priorities (ALUA) of a path that the target prefers, and of one that it does not prefer.
//= multipath-tools 0.14, libmultipath/prioritizers/alua.c: AAS_OPTIMIZED 50, AAS_NON_OPTIMIZED 10
const OPTIMIZED: u32 = 50;
const NON_OPTIMIZED: u32 = 10;

/// The name of a device and of its map, from a line such as `mpathc (36001405..) dm-4 LIO-ORG,vol7`.
fn map(line: &str) -> Option<(&str, &str)> {
    if !line.contains(" dm-") {
        return None;
    }
    let mut words = line.split_whitespace();
    let first = words.next()?;
    // The line may begin with an action: `reload: mpathc`.
    let label = if first.ends_with(':') { words.next()? } else { first };
    let is_map = |word: &&str| word.strip_prefix("dm-").is_some_and(is_digits);
    words.take(2).find(is_map).map(|name| (label, name))
}

/// A group of paths: `|-+- policy='service-time 0' prio=50 status=active`, or of older versions `\_ round-robin 0
/// [prio=50][active]`.
struct Group<'a> {
    policy: &'a str,
    priority: Option<u32>,
    active: Option<bool>,
}

impl<'a> Group<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let status = |word: &str| match word {
            "active" => Some(true),
            "enabled" | "disabled" => Some(false),
            _ => None,
        };
        let number = |text: &str| text.split([' ', ']']).next().and_then(|word| word.parse().ok());
        if let Some((_, rest)) = line.split_once("policy='") {
            let (policy, rest) = rest.split_once('\'')?;
            return Some(Self {
                policy: policy.split(' ').next()?,
                priority: rest.split_once("prio=").and_then(|(_, rest)| number(rest)),
                active: rest.split_once("status=").and_then(|(_, word)| status(word.trim())),
            });
        }
        let (policy, rest) = line.trim_start().strip_prefix("\\_ ")?.split_once(" [")?;
        let policy = policy.strip_suffix(" 0")?;
        Some(Self {
            policy,
            priority: rest.strip_prefix("prio=").and_then(number),
            active: rest.trim_end_matches(']').rsplit('[').next().and_then(status),
        })
    }
}

/// Reads a path: `| |- 7:0:0:3 sdf 8:80  active ready running`, or `\_ 7:0:0:3 sdf 8:80 [active][ready]`.
fn path(line: &str) -> Option<Path> {
    let line = line.trim_start_matches([' ', '|', '`', '\\', '_', '-', '+']);
    let mut words = line.split([' ', '\t', '[', ']']).filter(|word| !word.is_empty());
    let (address, name, number) = (words.next()?, words.next()?, words.next()?);
    let is_numbers = |text: &str, parts: usize| {
        let each = text.split(':');
        each.clone().count() == parts && each.into_iter().all(is_digits)
    };
    let is_gone = |text: &str| text.contains('#') || text == "-" || text == "-:-";
    if !(is_numbers(address, 4) || is_gone(address)) || !(is_numbers(number, 2) || is_gone(number))
    {
        return None;
    }
    let states: Vec<&str> = words.take(4).collect();
    Some(Path {
        name: name.to_owned(),
        address: address.to_owned(),
        state: state(&states),
        ..Path::default()
    })
}

/// State of a path: `running`, as in the kernel, if it works; the words of multipath if it does not; empty if
/// unknown. A path to the passive side of a target (`ghost`) works.
//= multipath-tools 0.14, multipath.8: path states ready, ghost, faulty, shaky, delayed, i/o pending, unchecked
fn state(words: &[&str]) -> String {
    let has = |word: &str| words.contains(&word);
    let is_live = has("active") && (has("ready") || has("ghost"));
    let is_dead = ["failed", "faulty", "shaky", "delayed", "offline"].into_iter().any(has);
    if is_dead {
        return words.join(" ");
    }
    if is_live { "running".to_owned() } else { String::new() }
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let is_other = |line: &str| {
        let known = map(line).is_some() || Group::of(line).is_some() || path(line).is_some();
        let is_head = ["size=", "[size="].iter().any(|start| line.trim_start().starts_with(start));
        !(known || is_head || line.trim().is_empty())
    };
    let mut reading = Reading::until(section, is_other);
    let (mut alua, mut group, mut number) = (false, None, 0_u32);
    for line in std::mem::take(&mut reading.lines) {
        if let Some((label, name)) = map(line.text) {
            (alua, group, number) = (false, None, 0);
            add(&mut reading, label, name);
        } else if let Some(found) = Group::of(line.text) {
            // If the text is truncated, the name of the device is unknown.
            if reading.facts.storage.devices.is_empty() {
                add(&mut reading, "", "multipath");
            }
            if let Some(device) = reading.facts.storage.devices.last_mut() {
                found.policy.clone_into(&mut device.policy);
            }
            group = Some(found);
            number = number.saturating_add(1);
        } else if line.text.contains("size=") {
            alua = line.text.contains("alua");
        } else if let Some(path) = path(line.text) {
            let path = Path { group: Some(number), ..path };
            take(&mut reading, line, path, group.as_ref(), alua);
        }
    }
    reading.found("multipath")
}

fn add(reading: &mut Reading<'_>, label: &str, name: &str) {
    let devices = &mut reading.facts.storage.devices;
    if devices.len() < MOST {
        devices.push(BlockDevice {
            name: name.to_owned(),
            label: label.to_owned(),
            layer: Layer::Multipath,
            ..BlockDevice::default()
        });
    }
}

fn take(
    reading: &mut Reading<'_>,
    line: Line<'_>,
    path: Path,
    group: Option<&Group<'_>>,
    alua: bool,
) {
    let device = reading.facts.storage.devices.last_mut();
    let Some((device, group)) = device.zip(group) else {
        return reading.strange(line);
    };
    let ana_state = match group.priority {
        Some(priority) if alua && priority >= OPTIMIZED => "optimized",
        Some(NON_OPTIMIZED) if alua => "non-optimized",
        _ => "",
    };
    if device.paths.len() < MOST_PATHS {
        device.below.push(path.name.clone());
        device.paths.push(Path {
            ana_state: ana_state.to_owned(),
            in_use: group.active,
            priority: group.priority,
            ..path
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::samples::{ids, merged, of, words};

    fn paths(text: &str) -> Vec<(String, String, Option<bool>)> {
        let (all, notes) = merged(&[text]);
        assert_eq!(words(&notes), [""; 0]);
        let paths = all.storage.devices.into_iter().flat_map(|device| device.paths);
        paths.map(|path| (path.name, path.state, path.in_use)).collect()
    }

    fn path_of(name: &str, state: &str, active: bool) -> (String, String, Option<bool>) {
        (name.to_owned(), state.to_owned(), Some(active))
    }

    #[test]
    fn paths_are_in_groups_of_which_one_is_in_use() {
        let (all, notes) = of(&["multipath/failed.txt"]);
        assert_eq!(words(&notes), [""; 0]);
        let device = &all.storage.devices[0];
        assert_eq!((device.name.as_str(), device.label.as_str()), ("dm-2", "mpatha"));
        assert_eq!(device.policy, "service-time");
        let ana: Vec<&str> = device.paths.iter().map(|path| path.ana_state.as_str()).collect();
        assert_eq!(ana, ["optimized", "optimized", "non-optimized", "non-optimized"]);
        let groups: Vec<_> = device.paths.iter().map(|path| (path.group, path.priority)).collect();
        let (first, second) = ((Some(1), Some(50)), (Some(2), Some(10)));
        assert_eq!(groups, [first, first, second, second]);
        let dead: Vec<bool> =
            device.paths.iter().map(|path| path.is_live() == Some(false)).collect();
        assert_eq!(dead, [false, true, false, false]);
        assert_eq!(ids(&all), ["disk-path-failed"]);
        assert_eq!(all.storage.devices[1].name, "dm-3");
    }

    #[test]
    fn the_form_of_old_versions_is_read() {
        let old = "mpath1 (3600d0230003228bc000339414edb8101) dm-5 SUN,StorEdge\n[size=10G][features=0][hwhandler=0]\n\
            \\_ round-robin 0 [prio=1][active]\n \\_ 2:0:0:6 sdb 8:16 [active][ready]\n\
            \\_ round-robin 0 [prio=1][enabled]\n \\_ 3:0:0:6 sdc 8:64 [failed][faulty]\n";
        assert_eq!(
            paths(old),
            [path_of("sdb", "running", true), path_of("sdc", "failed faulty", false)]
        );
    }

    #[test]
    fn a_passive_path_works_and_an_unchecked_one_is_unknown() {
        let text = "360014057f3a1 dm-4 LIO-ORG,a\nsize=2.0T features='0' hwhandler='1 alua' wp=rw\n\
            `-+- policy='service-time 0' prio=1 status=active\n  |- 7:0:0:3 sdf 8:80 active ghost running\n  \
            |- 7:0:1:3 sdg 8:96 active undef running\n  `- #:#:#:# -   #:#  failed faulty offline\n";
        let states: Vec<String> = paths(text).into_iter().map(|(_, state, _)| state).collect();
        assert_eq!(states, ["running", "", "failed faulty offline"]);
    }

    #[test]
    fn groups_without_the_first_lines_are_read() {
        let text = "|-+- policy='service-time 0' prio=50 status=active\n| `- 8:0:0:3 sdg 8:96  failed faulty running\n";
        assert_eq!(paths(text), [path_of("sdg", "failed faulty running", true)]);
        assert!(crate::read(b"mpatha dm-4 is slow\nsize matters\n").is_err());
    }
}
