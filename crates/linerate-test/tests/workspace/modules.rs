//! Test that the rooms of a crate do not use each other in a circle. A room is a file or a folder of `src`. `lib.rs`
//! and `main.rs` are the root of the crate, which all rooms may use.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::{root, sources};

/// Returns the room to which a source belongs: `host` for `src/host/mod.rs` and `src/host.rs`.
fn room(src: &Path, file: &Path) -> String {
    let inner = file.strip_prefix(src).unwrap();
    let first = inner.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
    first.strip_suffix(".rs").map(str::to_owned).unwrap_or(first)
}

/// Returns how many modules a source is below the root of its crate: 1 for `src/host/mod.rs` and `src/host.rs`.
fn depth(src: &Path, file: &Path) -> usize {
    let inner = file.strip_prefix(src).unwrap();
    inner.components().count() - usize::from(inner.ends_with("mod.rs"))
}

/// Returns the text of a source at this depth, in which paths that lead up to the root are replaced by `crate::`.
fn from_root(text: &str, depth: usize) -> String {
    text.replace(&"super::".repeat(depth), "crate::")
}

/// Returns the rooms that a source uses outside of its tests, by a path from the root of the crate.
fn named<'a>(text: &str, rooms: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = code.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
    let code: String = lines.collect::<Vec<_>>().join(" ");
    let mut found = BTreeSet::new();
    for (at, head) in code.match_indices("crate::") {
        let rest = &code[at + head.len()..];
        let names: Vec<&str> = match rest.strip_prefix('{') {
            Some(group) => firsts(group),
            None => vec![word(rest)],
        };
        found.extend(rooms.iter().filter(|room| names.contains(*room)));
    }
    found
}

/// Returns the first word of a path.
fn word(path: &str) -> &str {
    path.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// Returns the first word of each path in a group of imports, up to the group's closing brace.
fn firsts(group: &str) -> Vec<&str> {
    let mut depth = 0;
    let mut found = vec![word(group.trim_start())];
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => found.push(word(group[at + 1..].trim_start())),
            _ => {}
        }
    }
    found
}

/// Returns whether a file contains only tests.
fn is_test(file: &Path) -> bool {
    file.components().any(|part| {
        let name = part.as_os_str().to_string_lossy();
        name == "tests" || name == "tests.rs"
    })
}

/// Returns the rooms of a crate, each with the rooms that it uses.
fn rooms(src: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut files = Vec::new();
    sources(src, &mut files);
    files.retain(|file| !is_test(file.strip_prefix(src).unwrap()));
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in &files {
        found.entry(room(src, file)).or_default();
    }
    found.retain(|room, _| room != "lib" && room != "main");
    let names = found.clone();
    let names: BTreeSet<&str> = names.keys().map(String::as_str).collect();
    for file in &files {
        let own = room(src, file);
        if let Some(uses) = found.get_mut(&own) {
            let text = from_root(&fs::read_to_string(file).unwrap(), depth(src, file));
            let others = named(&text, &names).into_iter().filter(|name| *name != own);
            uses.extend(others.map(str::to_owned));
        }
    }
    found
}

/// Returns the rooms that use each other in a circle, and those between two circles.
fn circle(rooms: &BTreeMap<String, BTreeSet<String>>) -> Vec<&str> {
    let mut left: BTreeMap<&str, BTreeSet<&str>> =
        rooms.iter().map(|(room, uses)| (&**room, uses.iter().map(|u| &**u).collect())).collect();
    // A room that uses no remaining room, or that no remaining room uses, is in no circle.
    loop {
        let used: BTreeSet<&str> = left.values().flatten().copied().collect();
        let names: BTreeSet<&str> = left.keys().copied().collect();
        let before = left.len();
        left.retain(|room, uses| used.contains(room) && uses.iter().any(|u| names.contains(u)));
        let names: BTreeSet<&str> = left.keys().copied().collect();
        for uses in left.values_mut() {
            uses.retain(|u| names.contains(u));
        }
        if left.len() == before {
            return left.into_keys().collect();
        }
    }
}

#[test]
fn no_rooms_use_each_other_in_a_circle() {
    let crates = fs::read_dir(root().join("crates")).unwrap();
    let mut seen = 0;
    for entry in crates {
        let folder = entry.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        let rooms = rooms(&folder.join("src"));
        seen += rooms.len();
        let circle = circle(&rooms);
        let uses: Vec<_> = circle.iter().map(|room| (room, &rooms[*room])).collect();
        assert!(circle.is_empty(), "{}: {uses:#?}", folder.display());
    }
    assert!(seen > 100, "{seen} rooms were found");
}

#[test]
fn rooms_that_a_source_names_are_found() {
    let rooms = BTreeSet::from(["model", "causes"]);
    for (text, expected) in [
        ("use crate::causes::Cause;", &["causes"][..]),
        ("    crate::causes::cause(id)", &["causes"]),
        ("use crate::{\n    One, causes::{A, model},\n    model::Model,\n};", &["causes", "model"]),
        ("// crate::causes::Cause", &[]),
        ("use crate::causes_of_death::One;", &[]),
        ("#[cfg(test)]\nmod tests { use crate::causes::Cause; }", &[]),
    ] {
        let expected: BTreeSet<&str> = expected.iter().copied().collect();
        assert_eq!(named(text, &rooms), expected, "{text}");
    }
    for (depth, expected) in [(1, 1), (2, 0)] {
        let text = from_root("use super::causes::Cause;", depth);
        assert_eq!(named(&text, &rooms).len(), expected, "{text}");
    }
    for (file, expected) in [("a.rs", 1), ("a/mod.rs", 1), ("a/b.rs", 2), ("a/b/mod.rs", 2)] {
        assert_eq!(depth(Path::new("src"), &Path::new("src").join(file)), expected, "{file}");
    }
}

#[test]
fn a_circle_is_found_and_what_only_leads_to_it_is_not() {
    let rooms = |rows: &[(&str, &[&str])]| -> BTreeMap<String, BTreeSet<String>> {
        let uses = |uses: &[&str]| uses.iter().map(|u| (*u).to_owned()).collect();
        rows.iter().map(|(room, used)| ((*room).to_owned(), uses(used))).collect()
    };
    let straight = rooms(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])]);
    assert!(circle(&straight).is_empty());
    let round = rooms(&[("a", &["b"]), ("b", &["c"]), ("c", &["b", "d"]), ("d", &[])]);
    assert_eq!(circle(&round), ["b", "c"]);
}
