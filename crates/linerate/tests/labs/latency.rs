//! Long round trips under load: a deep queue is named and proved. If packets above the rate are dropped instead of
//! queued, no limit of latency is named.

use linerate_test::{Turn, ask, turn};
use serde_json::Value;

use crate::disturbed::is_disturbed;
use crate::lab;

/// The result of a forward run through a fault.
fn run(turn: &Turn, fault: &str) -> lab::Given<Value> {
    let home = tempfile::TempDir::new().unwrap();
    let lab = ["--fault", fault, "--", lab::PROGRAM, "run", "FAR", "--open"];
    let plan = ["--congestion", "cubic", "--direction", "forward"];
    let rest = ["--time", "90s", "--no-save", "--quiet", "--json"];
    lab::document(turn, home.path(), &[&lab[..], &plan, &rest].concat())
}

/// The limits of latency in a verdict.
fn of_latency(result: &Value) -> Vec<&Value> {
    let limits = result["verdict"]["limits"].as_array().unwrap();
    let is_latency = |limit: &&Value| limit["metric"] == "latency";
    limits.iter().filter(is_latency).collect()
}

/// Checks that the queue of the path was proved by a trial with half the pace.
fn is_proved(result: &Value) -> Result<(), String> {
    if is_disturbed(&result["verdict"]) {
        return Err("the run was disturbed".to_owned());
    }
    let limits = of_latency(result);
    let [queue] = limits.as_slice() else {
        return Err(format!("{limits:#?}"));
    };
    assert_eq!(queue["side"], "path", "{result:#}");
    let seen = ["cause", "certainty"].map(|key| queue[key].as_str().unwrap());
    if seen != ["latency-queue", "proved"] {
        return Err(format!("{seen:?}"));
    }
    assert_eq!(queue["trial"]["kind"], "half-pace", "{queue:#}");
    assert!(queue["trial"]["latency"].as_f64().unwrap() < 0.5, "{queue:#}");
    Ok(())
}

/// The document of a sweep of round trips by size through a fault.
fn sweep(turn: &Turn, fault: &str) -> lab::Given<Value> {
    let home = tempfile::TempDir::new().unwrap();
    let lab = ["--fault", fault, "--", lab::PROGRAM, "lat", "FAR", "--open"];
    let plan = ["--sweep", "size", "--time", "6s"];
    let rest = ["--no-save", "--quiet", "--json"];
    lab::document(turn, home.path(), &[&lab[..], &plan, &rest].concat())
}

mod long {
    use super::*;

    /// On a loaded machine no round of three can tell: threads wake up 10 ms late. Pure tests cover both sides.
    #[test]
    fn a_tick_is_named_with_its_period_and_a_long_path_is_no_tick() {
        let turn = turn();
        ask(&turn, || {
            let Some(result) = sweep(&turn, "hold:far,1ms")? else {
                return Ok(());
            };
            let period = result["parts"][0]["sizes"]["timer"]["period_ns"].as_f64();
            let period = period.ok_or_else(|| format!("no timer: {}", result["points"]))?;
            // The program's own time between an answer and the next message is in no round trip, so the period may be
            // shorter.
            assert!((900_000.0..=1_020_000.0).contains(&period), "{period}");
            Ok(())
        });
        ask(&turn, || {
            let Some(result) = sweep(&turn, "delay:10ms")? else {
                return Ok(());
            };
            assert_eq!(result["parts"][0]["sizes"]["timer"], Value::Null, "{}", result["points"]);
            Ok(())
        });
    }

    #[test]
    fn what_is_dropped_does_not_wait_and_nothing_is_said_of_it() {
        let turn = turn();
        ask(&turn, || {
            let Some(result) = run(&turn, "police:50Mb/s,forward")? else {
                return Ok(());
            };
            // Planted: the check for a proved queue must fail on this result.
            assert!(is_proved(&result).is_err(), "{result:#}");
            let unknown = result["verdict"]["unknown"].to_string();
            let silent = of_latency(&result).is_empty() && !unknown.contains("round trips");
            silent.then_some(()).ok_or_else(|| format!("{:#}", result["verdict"]))
        });
    }

    #[test]
    fn a_deep_queue_is_proved_by_half_the_pace() {
        let turn = turn();
        ask(&turn, || match run(&turn, "path-rate:50Mb/s,deep,forward")? {
            Some(result) => is_proved(&result),
            None => Ok(()),
        });
    }
}
