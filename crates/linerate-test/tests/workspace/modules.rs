//! The order of the modules that read hosts and judge: each uses only those before it.

use std::fs;
use std::path::Path;

use super::{root, sources};

/// The modules of `linerate-core` from the ground floor up. Others are below all of them, or stand apart.
const FLOORS: [&str; 16] = [
    "path",
    "transport",
    "ceiling",
    "facts",
    "parse",
    "reported",
    "factor",
    "model",
    "figure",
    "signs",
    "causes",
    "trial",
    "verdict",
    "fabric",
    "explain",
    "diff",
];

/// Modules above `module` that a source of it uses outside of its tests.
fn uses_above<'a>(module: &str, text: &str, floors: &[&'a str]) -> Vec<&'a str> {
    let at = floors.iter().position(|floor| *floor == module);
    let above = at.map_or(&[][..], |at| &floors[at + 1..]);
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = code.lines().map(str::trim_start);
    let code: Vec<&str> = lines.filter(|line| !line.starts_with("//")).collect();
    let is_used = |floor: &&&str| {
        let path = format!("crate::{floor}");
        code.iter().any(|line| {
            let rests = line.match_indices(&path).map(|(i, _)| &line[i + path.len()..]);
            rests.into_iter().any(|rest| rest.starts_with([':', ';', ' ']))
        })
    };
    above.iter().filter(is_used).copied().collect()
}

#[test]
fn modules_use_only_those_below_them() {
    let src = root().join("crates/linerate-core/src");
    for module in FLOORS {
        let mut files = vec![src.join(format!("{module}.rs"))];
        if src.join(module).is_dir() {
            sources(&src.join(module), &mut files);
        }
        files.retain(|file| file.exists() && !is_test(file));
        assert!(!files.is_empty(), "there is no module {module}");
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let above = uses_above(module, &text, &FLOORS);
            assert!(above.is_empty(), "{} uses {above:?}", file.display());
        }
    }
}

/// Whether a file holds tests alone.
fn is_test(file: &Path) -> bool {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    name.contains("test")
}

#[test]
fn a_module_that_uses_one_above_it_is_found() {
    let floors = ["model", "causes"];
    for (text, expected) in [
        ("use crate::causes::Cause;", &["causes"][..]),
        ("    crate::causes::cause(id)", &["causes"]),
        ("// crate::causes::Cause", &[]),
        ("use crate::causes_of_death::One;", &[]),
        ("#[cfg(test)]\nmod tests { use crate::causes::Cause; }", &[]),
    ] {
        assert_eq!(uses_above("model", text, &floors), expected, "{text}");
        assert!(uses_above("causes", text, &floors).is_empty());
    }
}
