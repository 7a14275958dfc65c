//! Rules of the whole workspace: which crate may use which, what may be linked, and which crates may contain unsafe
//! code. The tests read `cargo metadata` and the sources.
#![expect(clippy::unwrap_used, reason = "clippy does not recognise helpers of tests")]

#[path = "workspace/modules.rs"]
mod modules;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The pure crates: they do no I/O, and have no clock and no
/// thread. Each may use only the crates before it in this list.
const PURE: [&str; 10] = [
    "linerate-units",
    "linerate-plan",
    "linerate-ceiling",
    "linerate-facts",
    "linerate-record",
    "linerate-judge",
    "linerate-fabric",
    "linerate-explain",
    "linerate-import",
    "linerate-show",
];

/// Crates of the workspace that the other ones may use in addition to pure crates, outside of their tests.
const ARROWS: [(&str, &[&str]); 8] = [
    ("linerate-sys", &[]),
    ("linerate-host", &["linerate-sys"]),
    ("linerate-load", &["linerate-sys", "linerate-host"]),
    ("linerate-session", &["linerate-sys", "linerate-host", "linerate-load"]),
    ("linerate-lab", &["linerate-sys"]),
    ("linerate", &["linerate-host", "linerate-load", "linerate-session", "linerate-lab"]),
    ("linerate-sim", &["linerate-session"]),
    ("linerate-test", &[]),
];

/// Crates that only tests and studies may use.
const FOR_TESTS: [&str; 2] = ["linerate-sim", "linerate-test"];

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All packages that cargo knows, with their dependencies.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {why}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Returns the crates of the workspace that `package` uses outside of its tests.
fn uses(package: &Value) -> BTreeSet<&str> {
    let all = package["dependencies"].as_array().unwrap().iter();
    let used = all.filter(|d| d["kind"] != "dev" && d["path"].is_string());
    used.map(|d| text(d, "name")).collect()
}

#[test]
fn crates_use_each_other_only_as_the_architecture_says() {
    let packages = packages();
    let own = packages.iter().filter(|p| p["source"].is_null());
    let found: BTreeMap<&str, BTreeSet<&str>> = own.map(|p| (text(p, "name"), uses(p))).collect();
    let names: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).chain(PURE).collect();
    assert_eq!(found.keys().copied().collect::<BTreeSet<_>>(), names);
    let pure = PURE.iter().enumerate().map(|(at, name)| (*name, PURE[..at].to_vec()));
    let others = ARROWS.iter().map(|(name, beside)| (*name, [&PURE[..], beside].concat()));
    for (name, allowed) in pure.chain(others) {
        let allowed: BTreeSet<&str> = allowed.into_iter().collect();
        let more: Vec<_> = found[name].difference(&allowed).collect();
        assert!(more.is_empty(), "{name} must not use {more:?}");
    }
}

#[test]
fn pure_crates_have_the_walls_of_pure_crates() {
    for name in PURE {
        let walls = fs::read_link(root().join("crates").join(name).join("clippy.toml")).unwrap();
        assert_eq!(walls, Path::new("../pure-clippy.toml"), "{name}");
    }
}

/// Returns the licences that `deny.toml` allows.
fn allowed() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("deny.toml")).unwrap();
    let deny: toml::Table = toml::from_str(&text).unwrap();
    let allow = deny["licenses"]["allow"].as_array().unwrap().iter();
    allow.map(|id| id.as_str().unwrap().to_owned()).collect()
}

/// Returns whether an SPDX expression can be satisfied with allowed licences only.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> Result<bool, String> {
    // Old crates write MIT/Apache-2.0, which means OR.
    let parsed = spdx::Expression::parse_mode(expression, spdx::ParseMode::LAX);
    let parsed = parsed.map_err(|e| e.to_string())?;
    // An exception, such as that of LLVM, only permits more than its licence does.
    Ok(parsed.evaluate(|requested| {
        let id = requested.license.id();
        id.is_some_and(|id| allowed.contains(id.name))
    }))
}

#[test]
fn licences_of_all_dependencies_are_allowed() {
    let allowed = allowed();
    let packages = packages();
    assert!(packages.len() > 20, "cargo metadata lists no dependencies");
    let refused = packages.iter().filter_map(|package| {
        let licence = text(package, "license");
        let why = match is_allowed(licence, &allowed) {
            Ok(true) => return None,
            Ok(false) => "not allowed by deny.toml".to_owned(),
            Err(error) => error,
        };
        Some(format!("{}: {licence:?}: {why}", text(package, "name")))
    });
    let refused: Vec<String> = refused.collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn a_licence_that_is_not_listed_is_refused() {
    let allowed: BTreeSet<String> = ["MIT", "Apache-2.0"].map(str::to_owned).into();
    for (expression, expected) in [
        ("MIT", true),
        ("MIT/Apache-2.0", true),
        ("GPL-3.0-only OR MIT", true),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("(MIT AND Apache-2.0) OR GPL-2.0-only", true),
        ("GPL-3.0-only", false),
        ("MIT AND GPL-3.0-only", false),
        ("LicenseRef-MIT", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), Ok(expected), "{expression}");
    }
    for nonsense in ["", "MIT OR", "no licence at all"] {
        assert!(is_allowed(nonsense, &allowed).is_err(), "{nonsense:?}");
    }
}

#[test]
fn all_dependencies_are_from_crates_io() {
    let packages = packages();
    let foreign = packages.iter().filter_map(|p| {
        let source = p["source"].as_str()?;
        (source != CRATES_IO).then(|| format!("{} from {source}", text(p, "name")))
    });
    let foreign: Vec<String> = foreign.collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}

#[test]
fn an_installed_program_has_nothing_that_is_for_tests() {
    let packages = packages();
    for package in packages.iter().filter(|p| p["source"].is_null()) {
        let name = text(package, "name");
        let used = uses(package);
        let test: Vec<&str> = FOR_TESTS.into_iter().filter(|name| used.contains(name)).collect();
        assert!(test.is_empty(), "{name} uses {test:?} outside of its tests");
        let features = package["features"].as_object().unwrap();
        assert!(
            features.is_empty(),
            "{name} has {features:?}: it would be linted and tested twice"
        );
    }
}

/// A C compiler would be an additional requirement for a build. The default features of a dependency may require one
/// for code that is never called.
#[test]
fn no_dependency_compiles_c() {
    let packages = packages();
    let tools: Vec<&str> = packages
        .iter()
        .map(|package| text(package, "name"))
        .filter(|name| ["bindgen", "cc", "cmake", "nasm-rs", "pkg-config"].contains(name))
        .collect();
    assert!(tools.is_empty(), "{tools:?}: see cargo tree --invert");
}

/// Adds the Rust sources below a folder to `found`.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        // Symbolic links are not followed: those of copied /sys trees form circles.
        if entry.file_type().unwrap().is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Returns whether a line of code contains the keyword, also if the lint was disabled.
fn has_unsafe(line: &str) -> bool {
    let code = line.trim_start();
    let words = || code.split(|c: char| !c.is_alphanumeric() && c != '_');
    !code.starts_with("//") && words().any(|word| word == KEYWORD)
}

/// The keyword is written in two parts, because this file must pass its own test.
const KEYWORD: &str = concat!("un", "safe");

#[test]
fn only_the_crate_of_system_calls_has_unsafe_code() {
    let mut files = Vec::new();
    for folder in ["crates", "fuzz/fuzz_targets"] {
        sources(&root().join(folder), &mut files);
    }
    assert!(files.len() > 100, "{} sources were found", files.len());
    let allowed = root().join("crates/linerate-sys");
    for file in files.iter().filter(|file| !file.starts_with(&allowed)) {
        let text = fs::read_to_string(file).unwrap();
        let found = text.lines().enumerate().find(|(_, line)| has_unsafe(line));
        assert_eq!(found, None, "{}", file.display());
    }
    let names = PURE.into_iter().chain(ARROWS.iter().map(|(name, _)| *name));
    for name in names.filter(|name| *name != "linerate-sys") {
        let folder = root().join("crates").join(name).join("src");
        let entries = ["lib.rs", "main.rs"].map(|entry| folder.join(entry));
        let entries: Vec<_> = entries.iter().filter(|path| path.exists()).collect();
        assert!(!entries.is_empty(), "{} has no crate", folder.display());
        for path in entries {
            let text = fs::read_to_string(path).unwrap();
            let forbids = text.lines().any(|l| l == format!("#![forbid({KEYWORD}_code)]"));
            assert!(forbids, "{} does not forbid it", path.display());
        }
    }
}

#[test]
fn the_keyword_is_found_wherever_it_stands() {
    for line in [concat!("un", "safe { }"), concat!("    pub un", "safe fn f()")] {
        assert!(has_unsafe(line), "{line}");
    }
    for line in [concat!("// un", "safe"), concat!("un", "safe_code"), "safe"] {
        assert!(!has_unsafe(line), "{line}");
    }
}
