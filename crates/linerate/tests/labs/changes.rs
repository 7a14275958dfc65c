//! Trials that change settings of a host, by the built program in a lab: what they prove, and that none of the changes
//! stays, however the run ends.

use linerate_test::{Turn, ask, turn};
use serde_json::Value;
use tempfile::TempDir;

use crate::disturbed::is_disturbed;
use crate::lab;

const RMEM: &str = "/proc/sys/net/ipv4/tcp_rmem";

/// Makes the maximum of send buffers so large that it is no limit.
const LARGE: &str = "echo 4096 16384 67108864 > /proc/sys/net/ipv4/tcp_wmem";

/// Shows the settings of the near host that trials may change, and the names of journals of changes.
const STATE: &str = "cat /proc/sys/net/ipv4/tcp_?mem /proc/sys/net/core/?mem_max 2>/dev/null; \
    ls .local/state/linerate 2>/dev/null | grep changes";

/// A run in the near host, which receives. A receive buffer that a socket may request is too small for the path.
const RUN: &str = "$PROGRAM run $1 --open --direction reverse --no-save";

/// `started CHANGED COMMAND...` starts a run, `$run`, and returns once CHANGED holds: a trial has changed a setting.
/// The run chooses its trials; if it ends without such a trial, the script ends with `== no trial`. `killed CHANGED
/// COMMAND...` kills the run while CHANGED holds. A trial undoes its change within a second, so the run is stopped
/// first, and continued if CHANGED no longer holds by then. Its files are closed once its last thread has ended; until
/// then its first thread may be a zombie.
const STARTED: &str = "started() { changed=$1; shift; \
    \"$@\" > run 2>&1 & run=$!; \
    while kill -0 $run 2>/dev/null; do eval \"$changed\" && return; sleep 0.02; done; \
    echo '== no trial'; cat run; exit 0; }; \
    killed() { meant=$1; shift; started stopped \"$@\"; kill -9 $run; \
    while cat /proc/$run/task/*/stat 2>/dev/null | grep -qv ') [ZX] '; do wait $run; sleep 0.02; done; }; \
    stopped() { eval \"$meant\" || return; kill -STOP $run; \
    while cat /proc/$run/task/*/stat 2>/dev/null | grep -qv ') [TZ] '; do sleep 0.02; done; \
    eval \"$meant\" && return; kill -CONT $run; false; }";

/// Remembers the near host's limit, and tests whether it differs from the remembered one.
const BEFORE: &str = "was=$(cat /proc/sys/net/ipv4/tcp_rmem)";
const CHANGED: &str = "'[ \"$(cat /proc/sys/net/ipv4/tcp_rmem)\" != \"$was\" ]'";

/// The limit of a receive buffer, and a delay with which it limits the path to about 600 Mb/s. The limit is more than a
/// socket may request (which the kernel doubles), so that only the host's setting can raise the buffer.
fn faults(side: &str) -> [String; 2] {
    let most = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap_or_default();
    let most: u64 = most.trim().parse().unwrap_or(0);
    let limit = (most * 3).max(512 << 10);
    let delay = (limit * 8 * 6 / 10 / 600_000).max(20);
    [format!("receive-window:{side},{}KiB", limit >> 10), format!("delay:{delay}ms")]
}

/// A lab in which one host's receive buffer is too small for the path.
struct Lab {
    /// Home and working directory of all programs in the lab.
    home: TempDir,
    limited: &'static str,
    /// Options of `linerate serve` on the far host.
    serve: &'static str,
}

impl Lab {
    fn new(limited: &'static str, serve: &'static str) -> Self {
        let home = TempDir::new().unwrap();
        Self { home, limited, serve }
    }

    /// Runs a script in the near host, where $1 is the far host's address; returns its stdout and stderr.
    fn run(&self, turn: &Turn, script: &str) -> lab::Given<[String; 2]> {
        // Send buffers are large, so that they limit neither host.
        let far = format!(
            "cd \"$HOME\"; {LARGE}; cat {RMEM} > was; while cat {RMEM} > new && mv new now; do sleep 0.1; done & \
             {} serve --open {} 2> far.log",
            lab::PROGRAM,
            self.serve
        );
        let listening = "until grep -q listening far.log 2>/dev/null; do sleep 0.05; done";
        let script =
            format!("set -m; cd \"$HOME\"; {STARTED}; {LARGE}; {listening}; {script}; true");
        let [window, delay] = faults(self.limited);
        let faults = ["--fault", &window, "--fault", &delay, "--far", &far];
        let near = ["sh", "-c", &script, "sh", "FAR"];
        lab::run(turn, self.home.path(), &[&faults[..], &near].concat())
    }
}

/// Repeats a script until its run makes a trial, and checks its output.
fn shows(run: impl Fn(&Turn) -> lab::Given<[String; 2]>, check: impl Fn(&str)) {
    let turn = turn();
    ask(&turn, || {
        if let Some([out, _]) = run(&turn)? {
            is_tried(&out)?;
            check(&out);
        }
        Ok(())
    });
}

/// Whether the run in a script made a trial.
fn is_tried(out: &str) -> Result<(), String> {
    let tried = !out.contains("== no trial\n");
    tried.then_some(()).ok_or_else(|| out.to_owned())
}

/// Planted: the output of a run that made no trial.
#[test]
fn a_run_without_a_trial_is_no_answer() {
    assert!(is_tried("== before\n4096\n== no trial\ngoodput\n").is_err());
    assert_eq!(is_tried("== before\n4096\n== after\n"), Ok(()));
}

/// The lines of a script's output between `== NAME` and the next such line.
fn part<'a>(text: &'a str, name: &str) -> &'a str {
    let begin = format!("== {name}\n");
    let rest = text.split_once(&begin).unwrap_or_else(|| panic!("no {name} in {text}")).1;
    // `== ` may also occur within a line, in an advised command.
    let lines = rest.split_inclusive('\n').take_while(|line| !line.starts_with("== "));
    &rest[..lines.map(str::len).sum()]
}

/// Checks that the verdict of a run proves the window by the trial of the host's setting. The run chooses its trials,
/// and a disturbed one may prove too little: that is an `Err`. A wrong cause panics.
fn is_proved_by_the_host(result: &Value) -> Result<(), String> {
    let verdict = &result["verdict"];
    let limit = &verdict["limits"][0];
    let cause = limit["cause"].as_str().unwrap_or_default();
    let is_known = ["", "receive-window"].contains(&cause);
    assert!(is_known || is_disturbed(verdict), "{limit}");
    let kind = &limit["trial"]["kind"];
    if cause != "receive-window" || kind != "host-window" {
        return Err(format!("{cause:?} by {kind}"));
    }
    assert_eq!(limit["certainty"], "proved", "{limit}");
    Ok(())
}

/// Planted: a window that another trial has proved.
#[test]
fn a_proof_by_another_trial_is_not_that_of_the_host() {
    let limit = |kind: &str| serde_json::json!({"cause": "receive-window", "certainty": "proved", "trial": {"kind": kind}});
    let result =
        |kind| serde_json::json!({"verdict": {"limits": [limit(kind)], "disturbances": []}});
    assert!(is_proved_by_the_host(&result("half-window")).is_err());
    assert_eq!(is_proved_by_the_host(&result("host-window")), Ok(()));
}

/// A script that begins with `begin`, kills `run` while `changed` holds, and then starts `run` again. It shows `state`
/// before, between and after.
fn killed_and_started_again(begin: &str, changed: &str, state: &str, run: &str) -> String {
    format!(
        "{begin}; echo '== before'; {state}; killed {changed} {run} --time 40s --allow-changes; \
         echo '== killed'; {state}; \
         echo '== next'; {run} --no-trials --time 5s --quiet 2>&1 >/dev/null; \
         echo '== after'; {state}"
    )
}

/// Checks the output of such a script: the kill left a change and its journal, and the next start undid it and reported
/// that in `words`.
fn is_undone(out: &str, words: &str) {
    let (before, killed) = (part(out, "before"), part(out, "killed"));
    assert!(killed.contains("changes-"), "{out}");
    assert_ne!(before.lines().next(), killed.lines().next(), "{out}");
    let next = part(out, "next");
    assert!(next.starts_with(words), "{out}");
    assert!(next.ends_with("(left by a run that was killed)\n"), "{out}");
    assert_eq!(before, part(out, "after"));
}

#[test]
fn what_a_kill_leaves_is_undone_by_the_next_start() {
    let script = killed_and_started_again(BEFORE, CHANGED, STATE, RUN);
    let run = |turn: &Turn| Lab::new("near", "").run(turn, &script);
    shows(run, |out| {
        is_undone(out, "undone: net.ipv4.tcp_rmem back to \"");
    });
}

/// A run in the near host, whose own port has too small a queue; and a command that shows that port's queueing
/// discipline.
const SEND: &str = "$PROGRAM run $1 --open --direction forward --no-save";
const ROOT: &str = "tc qdisc show dev eth0; ls .local/state/linerate 2>/dev/null | grep changes";

/// Runs a script in a near host whose own port has a short queue, with `linerate serve` on the far host.
fn queued(turn: &Turn, script: &str) -> lab::Given<[String; 2]> {
    let home = TempDir::new().unwrap();
    let far = format!("cd \"$HOME\"; {} serve --open 2> far.log", lab::PROGRAM);
    let listening = "until grep -q listening far.log 2>/dev/null; do sleep 0.05; done";
    let script = format!("set -m; cd \"$HOME\"; {STARTED}; {listening}; {script}; true");
    let near = ["sh", "-c", &script, "sh", "FAR"];
    let faults = ["--fault", "queue:near,500Mb/s,100KiB", "--far", &far];
    lab::run(turn, home.path(), &[&faults[..], &near].concat())
}

mod long {
    use super::*;

    #[test]
    fn without_leave_no_setting_changes() {
        let script = format!(
            "echo '== before'; {STATE}; {RUN} --time 15s --json > run & run=$!; \
             while kill -0 $run 2>/dev/null; do cat {RMEM}; sleep 0.05; done | sort -u > during; \
             echo '== during'; cat during; echo '== after'; {STATE}; echo '== run'; cat run"
        );
        let run = |turn: &Turn| Lab::new("near", "--allow-changes").run(turn, &script);
        shows(run, |out| {
            assert_eq!(part(out, "before"), part(out, "after"));
            assert_eq!(part(out, "during").lines().count(), 1, "{out}");
            assert!(part(out, "before").starts_with(part(out, "during")), "{out}");
            let run = part(out, "run");
            assert!(run.contains("\"limits\"") && !run.contains("host-window"), "{run}");
        });
    }

    #[test]
    fn what_is_interrupted_is_undone_at_once() {
        let script = format!(
            "{BEFORE}; echo '== before'; {STATE}; for signal in INT TERM HUP; do \
                 started {CHANGED} {RUN} --time 40s --allow-changes; kill -$signal $run; wait $run; \
                 echo \"== after $signal\"; {STATE}; \
             done"
        );
        let run = |turn: &Turn| Lab::new("near", "").run(turn, &script);
        shows(run, |out| {
            for signal in ["INT", "TERM", "HUP"] {
                assert_eq!(part(out, "before"), part(out, &format!("after {signal}")), "{signal}");
            }
        });
    }

    #[test]
    fn the_far_host_sets_back_what_a_client_that_was_killed_wanted() {
        let changed = "'! cmp -s now was && grep -q \"an experiment sets tcp-rmem\" far.log'";
        let script = format!(
            "started {changed} $PROGRAM run $1 --open --direction forward --no-save --time 40s \
             --allow-changes; kill -9 $run; wait $run; \
             until grep -q 'session 1 ended' far.log && cmp -s now was; do sleep 0.05; done; \
             echo '== far'; cat far.log; echo '== left'; ls .local/state/linerate | grep changes"
        );
        let run = |turn: &Turn| Lab::new("far", "--allow-changes").run(turn, &script);
        shows(run, |out| {
            assert!(!part(out, "far").contains("not undone"), "{out}");
            assert_eq!(part(out, "left"), "");
        });
    }

    #[test]
    fn more_room_in_a_queue_is_tried_and_taken_back_as_it_was() {
        let script = format!(
            "was=$(tc qdisc show dev eth0); echo '== before'; {ROOT}; \
             started '[ \"$(tc qdisc show dev eth0)\" != \"$was\" ]' {SEND} --time 30s --allow-changes; \
             wait $run; echo '== after'; {ROOT}"
        );
        let run = |turn: &Turn| queued(turn, &script);
        shows(run, |out| {
            let before = part(out, "before");
            assert!(before.contains("tbf"), "{before}");
            assert_eq!(before, part(out, "after"));
        });
    }

    #[test]
    fn a_queue_that_a_killed_run_left_longer_is_set_back_by_the_next_start() {
        let begin = "was=$(tc qdisc show dev eth0)";
        let changed = "'[ \"$(tc qdisc show dev eth0)\" != \"$was\" ]'";
        let script = killed_and_started_again(begin, changed, ROOT, SEND);
        let run = |turn: &Turn| queued(turn, &script);
        shows(run, |out| {
            is_undone(out, "undone: the limit of eth0 tbf back to \"");
        });
    }

    #[test]
    fn a_raised_limit_proves_the_window_and_is_set_back() {
        let script = format!(
            "echo '== before'; {STATE}; echo '== run'; {RUN} --time 50s --allow-changes --json; \
             echo '== after'; {STATE}"
        );
        let turn = turn();
        ask(&turn, || {
            let Some([out, errors]) = Lab::new("near", "").run(&turn, &script)? else {
                return Ok(());
            };
            assert_eq!(part(&out, "before"), part(&out, "after"));
            assert!(errors.contains("far: host settings"), "{errors}");
            is_proved_by_the_host(&serde_json::from_str(part(&out, "run")).unwrap())
        });
    }
}
