//! The options of a run, so that an advised command measures the same path in the same way.

use linerate_plan::Plan;
use linerate_plan::transport::{self, USUAL};
use linerate_units::shell::word;

/// The far end, the transport and its options, as arguments of `linerate run`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requested {
    /// The far end and the transport as arguments. Begins with a space, or is empty.
    path: String,
    /// Options of the transport: the flag, and the whole argument: `--op`, ` --op read`.
    options: Vec<(String, String)>,
}

impl Requested {
    /// The arguments from which a plan was made.
    pub(super) fn of(plan: &Plan) -> Self {
        let peer = plan.peer.iter().map(|peer| format!(" {}", word(peer)));
        let engine = Some(&plan.engine).filter(|engine| *engine != USUAL.name);
        let engine = engine.map(|engine| format!(" --engine {}", word(engine)));
        let reach = plan.reach.iter().map(|option| format!(" {}", word(option)));
        let rows = transport::options_of(&plan.engine);
        let row = |key: &str| rows.iter().find(|row| row.key == key);
        let options = plan.knobs.options.iter();
        let options = options.filter_map(|(key, setting)| {
            let value = row(key)?.argument(setting);
            Some((format!("--{key}"), format!(" --{key}{value}")))
        });
        let size = Some(plan.knobs.write_size).filter(|size| size.0 > 0);
        let size = size.map(|size| ("--size".to_owned(), format!(" --size {}", size.exact())));
        let options = options.chain(size).collect();
        Self { path: peer.chain(reach).chain(engine).collect(), options }
    }

    /// A run of which only these arguments are known.
    pub fn path(path: &str) -> Self {
        Self { path: path.to_owned(), options: Vec::new() }
    }

    /// The command that repeats the measurement, with the options `more`, which replace those of the run.
    pub fn run(&self, more: &str) -> String {
        let is_kept = |flag: &str| more.split_whitespace().all(|word| word != flag);
        let kept = self.options.iter().filter(|(flag, _)| is_kept(flag));
        let kept: String = kept.map(|(_, words)| words.as_str()).collect();
        format!("linerate run{}{kept}{more}", self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_plan::Knobs;
    use linerate_plan::transport::Setting;
    use linerate_units::Nanos;

    #[test]
    fn a_command_repeats_the_options_that_it_does_not_replace() {
        let mut knobs = Knobs::default();
        for (key, setting) in [
            ("op", Setting::Word("read".to_owned())),
            ("depth", Setting::Number(4)),
            ("inline", Setting::Number(64)),
            ("events", Setting::Switch(true)),
            ("verify", Setting::Switch(false)),
        ] {
            knobs.options.set(key, setting);
        }
        let plan = Plan {
            peer: Some("10.0.0.2".to_owned()),
            engine: "rdma".to_owned(),
            knobs,
            reach: vec!["--open".to_owned()],
            directions: Vec::new(),
            time: Nanos(0),
            sweep: false,
            trials: false,
        };
        let requested = Requested::of(&plan);
        assert_eq!(
            requested.run(""),
            "linerate run 10.0.0.2 --open --engine rdma --depth 4 --events --inline 64B --op read --verify=false"
        );
        let other = requested.run(" --op write --depth 8");
        assert_eq!(
            other,
            "linerate run 10.0.0.2 --open --engine rdma --events --inline 64B --verify=false --op write --depth 8"
        );
        assert_eq!(Requested::path(" HOST").run(""), "linerate run HOST");
    }
}
