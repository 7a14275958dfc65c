//! Two faults at once, in a lab: the one that is the limit is named, then the next limit. Without the first fault, the
//! second is the limit.

mod long {
    use linerate_test::{Turn, ask, turn};
    use serde_json::Value;
    use tempfile::TempDir;

    use crate::disturbed::is_disturbed;
    use crate::lab;

    /// The verdict of a forward run from near on a path with these faults.
    fn verdict(turn: &Turn, faults: &[&str]) -> lab::Given<Value> {
        let home = TempDir::new().unwrap();
        let mut args = vec!["--congestion", "cubic"];
        args.extend(faults.iter().flat_map(|fault| ["--fault", fault]));
        args.extend(["--", lab::PROGRAM, "run", "FAR", "--open", "--no-save"]);
        args.extend(["--direction", "forward", "--time", "40s", "--json"]);
        let result = lab::document(turn, home.path(), &args)?;
        Ok(result.map(|result| result["verdict"].clone()))
    }

    /// The first cause in a list of limits that is about goodput; empty if there is none.
    fn first<'a>(verdict: &'a Value, list: &str) -> &'a str {
        let all = verdict[list].as_array().unwrap();
        let first = all.iter().find(|limit| limit["metric"] == "goodput");
        first.map_or("", |limit| limit["cause"].as_str().unwrap())
    }

    /// Checks that the first causes of these lists are the expected ones. On a disturbed machine one may be unknown or
    /// a disturbance, which is an `Err`; a wrong cause panics.
    fn names(verdict: &Value, expected: &[(&str, &str)]) -> Result<(), String> {
        if is_disturbed(verdict) {
            return Err("the run was disturbed".to_owned());
        }
        for (list, cause) in expected {
            let named = first(verdict, list);
            if named.is_empty() {
                return Err(format!("{list}: unknown instead of {cause}"));
            }
            assert_eq!(named, *cause, "{list}: {verdict:#}");
        }
        Ok(())
    }

    fn agrees(faults: &[&str], expected: &[(&str, &str)]) {
        let turn = turn();
        ask(&turn, || match verdict(&turn, faults)? {
            Some(verdict) => names(&verdict, expected),
            None => Ok(()),
        });
    }

    #[test]
    fn what_binds_next_is_the_verdict_once_the_first_limit_is_gone() {
        // The window permits about 50 Mb/s over 20 ms, and the path carries three times that.
        let (delay, window) = ("delay:20ms", "receive-window:far,192KiB");
        let rate = "path-rate:150Mb/s,deep,forward";
        let both = [("limits", "receive-window"), ("next", "path-rate")];
        agrees(&[delay, window, rate], &both);
        agrees(&[delay, rate], &[("limits", "path-rate")]);
    }

    /// Planted: a wrong cause, and no cause.
    #[test]
    #[should_panic(expected = "wire-full")]
    fn a_wrong_cause_is_never_forgiven() {
        let named = serde_json::json!({
            "limits": [{"metric": "goodput", "cause": "wire-full"}],
            "disturbances": []
        });
        assert!(
            names(
                &serde_json::json!({"limits": [], "disturbances": []}),
                &[("limits", "path-rate")]
            )
            .is_err()
        );
        let _ = names(&named, &[("limits", "path-rate")]);
    }
}
