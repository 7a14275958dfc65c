//! The built program, as a user sees it: help, exit codes, errors, layers of options.

mod repeat;

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use linerate_test::{Turn, free_ports, turn};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Started, ended, linerate, run, words};

/// Exit code and stderr of a command that should fail.
fn refusal(args: &[&str]) -> (Option<i32>, String) {
    let output = run(args);
    assert!(output.stdout.is_empty(), "{args:?} wrote to stdout");
    (output.status.code(), words(&output.stderr))
}

#[test]
fn help_of_every_verb() {
    for verb in [
        "run", "serve", "bw", "lat", "pair", "show", "diff", "host", "flows", "demo", "whatif",
        "causes", "lab", "generate", "guide", "list", "import", "explain",
    ] {
        for flag in ["-h", "--help"] {
            let output = run(&[verb, flag]);
            assert_eq!(output.status.code(), Some(0));
            let name = format!("help_{verb}_{}", flag.trim_start_matches('-'));
            insta::assert_snapshot!(name, words(&output.stdout));
        }
    }
    insta::assert_snapshot!("help", words(&run(&["--help"]).stdout));
}

#[test]
fn wrong_quantities_are_usage_errors_that_name_option_value_and_range() {
    for (option, values) in [
        ("--time", ["0s", "-3s", "30", "30KiB"]),
        ("--size", ["0B", "-1B", "64", "64s"]),
        ("--write-size", ["0KiB", "99999999GiB", "x", "1Gbit/s"]),
        ("--send-buffer", ["1B", "9GiB", "4096", "4ms"]),
        ("--pacing", ["0Gbit/s", "9999Tbit/s", "10", "10MiB"]),
        ("--streams", ["0", "-1", "100000", "four"]),
        ("--mss", ["0", "87", "40000", "1400B"]),
    ] {
        for value in values {
            let (code, text) = refusal(&["run", "brook", option, value]);
            assert_eq!(code, Some(2), "{option} {value}: {text}");
            assert!(text.starts_with("error: "), "{text}");
            for part in [option, value, "allowed: "] {
                assert!(text.contains(part), "{option} {value}: no `{part}` in: {text}");
            }
        }
    }
}

/// Runs a program that reads `text` from stdin; `None` if the program is not installed.
fn read_by(program: &[&str], text: &[u8]) -> Option<Output> {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).stdin(Stdio::piped());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        linerate_test::skip(program[0], &format!("{} is not installed", program[0]));
        return None;
    };
    let mut stdin = child.stdin.take().unwrap();
    // The program may fill its output pipe while it still reads, so a separate thread writes its input.
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(text).unwrap());
        child.wait_with_output().unwrap()
    });
    Some(output)
}

#[test]
fn what_is_generated_is_read_by_those_that_it_is_made_for() {
    let page = run(&["generate", "man"]).stdout;
    if let Some(set) = read_by(&["groff", "-mandoc", "-Tascii", "-ww", "-P-cbu"], &page) {
        assert!(set.status.success());
        assert_eq!(words(&set.stderr), "", "groff warns");
        let text = words(&set.stdout);
        assert!(text.contains("LINERATE RUN") && text.contains("--congestion"));
    }
    for (shell, check) in [
        ("bash", &["bash", "-n"][..]),
        ("zsh", &["zsh", "-n"]),
        ("fish", &["fish", "--no-execute"]),
    ] {
        let script = run(&["generate", "completions", shell]).stdout;
        if let Some(read) = read_by(check, &script) {
            assert!(read.status.success(), "{}", words(&read.stderr));
            assert_eq!(words(&read.stderr), "", "{shell}");
        }
    }
    let list = words(&run(&["generate", "schema"]).stdout);
    for line in list.lines() {
        let name = line.split_whitespace().next().unwrap();
        let schema = run(&["generate", "schema", name]).stdout;
        assert!(serde_json::from_slice::<Value>(&schema).is_ok(), "{name}");
    }
    assert_eq!(refusal(&["generate", "schema", "no-such-schema"]).0, Some(2));
    assert_eq!(refusal(&["generate", "completions", "no-such-shell"]).0, Some(2));
}

#[test]
fn a_generated_configuration_is_read_where_it_says_it_belongs() {
    let home = TempDir::new().unwrap();
    let config = words(&run(&["generate", "config"]).stdout);
    let file = home.path().join(".config/linerate/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, &config).unwrap();
    let output = linerate(home.path()).arg("causes").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", words(&output.stderr));
    // Uncommenting one line sets one option.
    fs::write(&file, config.replace("# engine = \"tcp\"", "engine = \"pigeon\"")).unwrap();
    let output = linerate(home.path()).arg("run").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(words(&output.stderr).contains("`pigeon`"));
}

#[test]
fn a_wrong_environment_is_named() {
    let home = TempDir::new().unwrap();
    let output =
        linerate(home.path()).args(["run", "brook"]).env("LINERATE_TIME", "10").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = words(&output.stderr);
    assert!(text.contains("--time") && text.contains("are set: LINERATE_TIME"), "{text}");
}

#[test]
fn a_variable_that_no_option_reads_is_told_of() {
    let home = TempDir::new().unwrap();
    let mut command = linerate(home.path());
    command.args(["causes", "path-rate"]);
    command.env("LINERATE_WRITE_SIZE", "64KiB");
    let quiet = command.output().unwrap();
    assert_eq!((quiet.status.code(), words(&quiet.stderr).as_str()), (Some(0), ""));
    let output = command.env("LINERATE_WRITE_SIZES", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        words(&output.stderr),
        "note: no option reads these environment variables: LINERATE_WRITE_SIZES\n"
    );
}

#[test]
fn a_wrong_configuration_is_shown_with_its_line() {
    let home = TempDir::new().unwrap();
    let file = home.path().join(".config/linerate/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "[run]\ntime = \"20s\"\n[load]\nsteams = 4\n").unwrap();
    let output = linerate(home.path()).arg("causes").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = words(&output.stderr);
    for part in ["config.toml", "line 4", "steams", "^^^^^^", "`streams`"] {
        assert!(text.contains(part), "no `{part}` in: {text}");
    }
}

#[test]
fn a_default_configuration_that_may_not_be_read_is_left_out_and_named() {
    let home = TempDir::new().unwrap();
    // A file in place of the folder makes it inaccessible even for root, who may read any folder.
    fs::write(home.path().join(".config"), "").unwrap();
    let output = linerate(home.path()).arg("causes").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let text = words(&output.stderr);
    assert!(text.contains(".config/linerate/config.toml may not be read"), "{text}");
    let named = home.path().join(".config/config.toml");
    let named = ["--config", named.to_str().unwrap(), "causes"];
    let output = linerate(home.path()).args(named).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "it was named");
}

#[test]
fn a_folder_that_is_no_machine_and_a_key_that_is_not_used_are_refused() {
    let home = TempDir::new().unwrap();
    let folder = home.path().to_str().unwrap();
    let (code, text) = ended(&["host", "--root", folder]);
    assert!(code == Some(2) && text.contains("neither proc nor sys"), "{text}");
    let (code, text) = ended(&["serve", "--open", "--key-stdin", "--port", "1"]);
    assert!(code == Some(2) && text.contains("--open uses no key"), "{text}");
}

#[test]
fn a_described_path_is_computed_and_a_typo_in_it_is_shown_where_it_stands() {
    let output = run(&["whatif", "case1", "--set", "near.port.pcie=gen3x4", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["after"]["forward"]["binding"][0], "near slot");

    let home = TempDir::new().unwrap();
    let file = home.path().join("mine.toml");
    fs::write(&file, "title = 'x'\nprotocol = 'tcp'\n[near.port]\nmut = 9000\n").unwrap();
    let output = linerate(home.path()).args(["whatif", "mine.toml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = words(&output.stderr);
    for part in ["mine.toml", "line 4", "^^^", "did you mean `mtu`?", "hint: "] {
        assert!(text.contains(part), "no `{part}` in: {text}");
    }
    for args in [
        &["whatif", "nowhere.toml"][..],
        &["whatif", "case1", "--set", "near.port.pcie=gen3x3"],
        &["whatif", "case1", "--set", "near.port"],
        &["whatif"],
    ] {
        assert_eq!(refusal(args).0, Some(2), "{args:?}");
    }
}

#[test]
fn paths_are_compared_as_text_and_as_csv_and_nothing_else_is_csv() {
    let output = run(&["whatif", "--compare", "case1", "case4", "--format", "csv"]);
    assert_eq!(output.status.code(), Some(0));
    let text = words(&output.stdout);
    let names: Vec<&str> = text.lines().filter_map(|line| line.split(',').next()).collect();
    assert_eq!(names, ["path", "case1", "case4"]);
    let output = run(&["whatif", "--compare", "case1", "case4"]);
    let text = words(&output.stdout);
    assert!(text.contains("case4") && text.contains(" 100 Gb/s "), "{text}");
    for args in [&["whatif", "case1", "--format", "csv"][..], &["causes", "--format", "csv"]] {
        let (code, text) = refusal(args);
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains("only for the table of `linerate whatif --compare`"), "{text}");
    }
    for args in [
        &["whatif", "--compare"][..],
        &["whatif", "case1", "--compare", "case2"],
        &["whatif", "--compare", "case2", "--set", "streams=1"],
        &["whatif", "--compare", "nowhere.toml"],
    ] {
        assert_eq!(refusal(args).0, Some(2), "{args:?}");
    }
}

#[test]
fn a_configuration_that_was_asked_for_must_exist() {
    let (code, text) = refusal(&["causes", "--config", "nowhere.toml"]);
    assert_eq!(code, Some(2));
    assert!(text.contains("nowhere.toml"), "{text}");
}

#[test]
fn what_cannot_be_measured_is_exit_code_3_with_a_hint() {
    // On port 1 of loopback no server is expected to listen.
    let (code, text) = refusal(&["run", "127.0.0.1", "--port", "1", "--open", "--no-save"]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("127.0.0.1:1") && text.contains("hint: "), "{text}");
    let (code, text) = refusal(&["run", "127.0.0.1", "-6"]);
    assert_eq!(code, Some(3), "{text}");
    let (code, text) = refusal(&["show", "last"]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("hint: linerate run"), "{text}");
}

#[test]
fn what_makes_no_sense_is_exit_code_2() {
    for args in [
        &["rum"][..],
        &["run", "a", "b"],
        &["run", "-4", "-6"],
        &["run", "--save", "x", "--no-save"],
        &["run", "not/a/host"],
        &["run", "--engine", "pigeon"],
        &["run", "--json", "--stream-json"],
        &["run", "--repeat", "2", "--stream-json"],
        &["run", "--repeat", "1"],
        &["run", "--expect", "goodput"],
        &["causes", "no-such-cause"],
        &["demo", "no-such-fault"],
        &["lab", "run", "--fault", "no-such-fault"],
        &[],
    ] {
        let (code, text) = refusal(args);
        assert_eq!(code, Some(2), "{args:?}: {text}");
    }
}

#[test]
fn a_broken_pipe_is_no_failure_and_a_full_disk_is() {
    let home = TempDir::new().unwrap();
    for args in [&["causes"][..], &["--help"]] {
        let mut child = linerate(home.path())
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(output.stderr.is_empty(), "{}", words(&output.stderr));
    }
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = linerate(home.path()).arg("causes").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(words(&output.stderr).contains("standard output"));
}

#[test]
fn a_key_that_is_none_is_refused_without_being_repeated() {
    let home = TempDir::new().unwrap();
    let mut child = linerate(home.path())
        .args(["serve", "--key-stdin", "--listen", "127.0.0.1"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"hunter2!\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let text = words(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("key") && !text.contains("hunter2"), "{text}");
}

#[test]
fn every_cause_of_the_list_has_its_page() {
    let list = words(&run(&["causes"]).stdout);
    let ids: Vec<&str> = list
        .lines()
        .filter(|l| !l.starts_with(' ') && !l.starts_with("linerate"))
        .filter_map(|l| l.split_whitespace().next())
        .collect();
    assert!(!ids.is_empty());
    for id in ids {
        let output = run(&["causes", id]);
        assert_eq!(output.status.code(), Some(0), "{id}");
        assert!(words(&output.stdout).starts_with(id), "{id}");
    }
}

/// A run of this machine against itself; its record is saved in `home`.
fn measured(_turn: &Turn, home: &Path, args: &[&str]) -> Output {
    linerate(home)
        .args(["run", "--time", "5s", "--no-trials", "--quiet"])
        .args(args)
        .output()
        .unwrap()
}

#[test]
fn a_run_is_judged_by_its_expectations_and_shown_again_from_its_record() {
    let home = TempDir::new().unwrap();
    let output = measured(&turn(), home.path(), &["--json", "--expect", "goodput>=1kb/s"]);
    assert_eq!(output.status.code(), Some(0), "{}", words(&output.stderr));
    let show = |args: &[&str]| {
        let mut command = linerate(home.path());
        command.args(["show", "last"]).args(args).output().unwrap()
    };
    assert_eq!(words(&show(&["--json"]).stdout), words(&output.stdout));
    let missed = show(&["--expect", "goodput>=9000Gbit/s"]);
    assert_eq!(missed.status.code(), Some(4));
    let why = words(&missed.stderr);
    assert!(why.contains("goodput>=9000Gbit/s") && why.contains("goodput was"), "{why}");
}

#[test]
fn interrupted_by_ctrl_c_a_run_keeps_what_it_has_and_ends_with_3_whatever_was_expected() {
    let home = TempDir::new().unwrap();
    let _turn = turn();
    let args = ["run", "--time", "30s", "--expect", "cause=duplex"];
    let mut run = Started::new(linerate(home.path()).args(args));
    // Once the second step begins, the first has been measured.
    run.until("forward, 1 stream");
    run.signal(Signal::INT);
    let output = run.end();
    assert_eq!(output.status.code(), Some(3));
    assert!(words(&output.stdout).contains("interrupted"));
    let shown = linerate(home.path()).args(["show", "--json"]).output().unwrap();
    assert_eq!(shown.status.code(), Some(3));
    assert!(words(&shown.stdout).contains("\"complete\": false"));
}

/// Starts a server on a free port; returns it, the port, and the line about its key.
fn serve(home: &Path) -> (Started, u16, String) {
    let [port] = free_ports();
    let mut command = linerate(home);
    command.args(["serve", "--listen", "127.0.0.1", "--port"]);
    let mut server = Started::new(command.arg(port.to_string()));
    let line = server.until(" key");
    server.log();
    (server, port, line)
}

fn pair(home: &Path, port: u16, key: &str) -> (Option<i32>, String) {
    let mut command = linerate(home);
    command.args(["pair", "127.0.0.1", "--port", &port.to_string()]);
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(key.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), words(&text))
}

#[test]
fn a_key_stays_out_of_logs_and_is_kept_only_where_it_is_accepted() {
    let (home, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let kept = |line: &str| {
        let file = line.split("cat ").nth(1).unwrap().trim_end_matches(')');
        fs::read_to_string(file).unwrap().trim().to_owned()
    };
    let (server, port, line) = serve(home.path());
    assert!(line.starts_with("new key is in "), "{line}");
    let key = kept(&line);
    assert!(!line.contains(&key), "{line}");
    let wrong = {
        let (_server, _, line) = serve(other.path());
        kept(&line)
    };

    let (code, text) = pair(other.path(), port, &wrong);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("copy the whole key"), "{text}");
    for (verb, more) in [("pair", &[][..]), ("bw", &["--time", "1s"])] {
        let output = linerate(other.path())
            .args([verb, "127.0.0.1", "--port", &port.to_string()])
            .args(more)
            .env("LINERATE_KEY", &wrong)
            .output()
            .unwrap();
        let text = words(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{text}");
        assert!(text.contains("LINERATE_KEY holds another key"), "{text}");
        assert_eq!(text.contains("was read from LINERATE_KEY"), verb == "pair", "{text}");
        assert!(!text.contains("no option reads"), "{text}");
    }
    let (code, text) = pair(other.path(), port, "no key");
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("key"), "{text}");
    let (code, text) = pair(other.path(), port, &key);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("paired: 127.0.0.1"), "{text}");

    drop(server);
    let (code, text) = pair(other.path(), port, &key);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("linerate serve"), "{text}");
    let (_server, _, line) = serve(home.path());
    assert!(line.starts_with("the key is in "), "{line}");
    assert_eq!(kept(&line), key);
}
