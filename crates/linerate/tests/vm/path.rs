//! The verdict of a run between two hosts in the guest. The guest's kernel has features that this machine's may lack,
//! and its clock can be set.

use linerate_judge::model::{Model, derive};
use linerate_judge::verdict::{Disturbance, Limit, Verdict, judge};
use linerate_plan::path::{Direction, Measure, Place, Stage};
use linerate_record::{End, Record};
use linerate_session::store::Store;
use linerate_test::{ask, turn};

use super::guest::{Guest, PROGRAM};

const HOSTS: &str = include_str!("hosts.sh");

/// The rate to which the router and the ports are set, in bits per second of whole frames.
const RATE: f64 = 20e6;
/// Range of the goodput over [`RATE`]. Headers and the ramp take some, and a short sample may begin with packets that
/// had been queued.
const FILLED: std::ops::Range<f64> = 0.8..1.1;

/// The results of a script that makes a run.
struct Measured {
    record: Record,
    model: Model,
    verdict: Verdict,
    /// The stdout of the script.
    reported: String,
}

impl Measured {
    /// The limits of goodput in the loaded direction. Its latency may have another cause.
    fn limits(&self) -> Vec<&Limit> {
        let limits = self.verdict.limits.iter();
        limits
            .filter(|l| l.direction == Direction::Forward && l.metric == Measure::Goodput)
            .collect()
    }

    /// The first cause of a limit in the loaded direction.
    fn named(&self) -> Option<&str> {
        self.limits().first().map(|l| l.cause)
    }

    /// Whether a cause is a finding and no other cause is named as a limit. A trial that distinguishes it from others
    /// would take too long.
    fn leaves(&self, cause: &str) -> bool {
        let mut answers = self.verdict.answers.iter();
        let found = answers.any(|a| a.cause == cause && a.outcome == "finding");
        found && self.named().is_none_or(|named| named == cause)
    }

    /// The disturbances of the loaded direction.
    fn disturbances(&self) -> impl Iterator<Item = &str> {
        let all = self.verdict.disturbances.iter();
        all.filter(|d| d.direction == Direction::Forward).map(|d| d.cause)
    }

    fn goodput(&self) -> f64 {
        let forward = self.model.direction(Direction::Forward).unwrap();
        forward.base.goodput.mean
    }

    /// The limits, unknowns and answers in words, for a case that fails.
    fn words(&self) -> String {
        let Verdict { limits, unknown, answers, .. } = &self.verdict;
        format!("{limits:#?}\n{unknown:#?}\n{answers:#?}\n{}", self.reported)
    }
}

/// Runs a script that plants something between or on two hosts and measures the path: `--save $records` saves the
/// record. All processes of the script end with it. A disturbed run is repeated; `None` if each run was disturbed.
fn measured(guest: &mut Guest, name: &str, script: &str) -> Option<Measured> {
    let turn = turn();
    ask(&turn, || {
        let got = measured_once(guest, name, script);
        is_undisturbed(&got.verdict).map_err(|()| got.words())?;
        Ok(got)
    })
}

/// Whether the machine neither stood still nor lost CPU time to its host, in the loaded direction.
fn is_undisturbed(verdict: &Verdict) -> Result<(), ()> {
    let limits = verdict.limits.iter().map(|l| (l.cause, l.direction));
    let disturbances = verdict.disturbances.iter().map(|d| (d.cause, d.direction));
    let stolen = limits.into_iter().any(|l| l == ("cpu-steal", Direction::Forward));
    let still = disturbances.into_iter().any(|d| d == ("interrupted", Direction::Forward));
    if stolen || still { Err(()) } else { Ok(()) }
}

/// Planted: the verdict of an undisturbed run, with the disturbance of a machine that stood still.
fn a_disturbed_verdict_is_refused(verdict: &Verdict) {
    let mut verdict = verdict.clone();
    assert_eq!(is_undisturbed(&verdict), Ok(()));
    verdict.disturbances.push(Disturbance {
        cause: "interrupted",
        stage: Stage::App,
        side: Place::Path,
        direction: Direction::Forward,
        share: None,
        evidence: Vec::new(),
        advice: Vec::new(),
    });
    assert_eq!(is_undisturbed(&verdict), Err(()));
}

fn measured_once(guest: &mut Guest, name: &str, script: &str) -> Measured {
    let script = format!("{HOSTS}\nrecords=/out/{name}\nhosts\n{script}");
    let reported = guest.ask_apart(&["--mount", "--pid", "--fork", "--mount-proc"], &script);
    let store = Store::new(guest.vm.shared().join(name));
    let last = store.last().unwrap();
    let record = store.load(&last.to_string_lossy()).unwrap().record;
    let model = derive(&record);
    let verdict = judge(&model);
    Measured { record, model, verdict, reported }
}

pub(crate) fn clock_set(guest: &mut Guest) {
    let script = format!(
        "on router tc qdisc add dev far root tbf rate {RATE}bit burst 32k latency 50ms
         serve {PROGRAM}
         read -r before rest </proc/uptime
         measure {PROGRAM} --time 20s --save $records >/dev/null 2>/run/steps &
         run=$!
         # begun STEPS: waits until so many have begun.
         begun() {{
           for _ in $(seq 300); do
             [ $(wc -l </run/steps) -lt $1 ] || return 0
             sleep 0.1
           done
           cat /run/steps >&2
           return 1
         }}
         set_clock() {{ date -s @$(($(date +%s) + $1)) >/dev/null; }}
         begun 2
         set_clock -3600
         begun 3
         set_clock 7200
         begun 4
         wait $run || {{ cat /run/steps >&2; exit 1; }}
         read -r after rest </proc/uptime
         set_clock -3600
         echo $before $after"
    );
    let Some(got) = measured(guest, "clock", &script) else {
        return;
    };
    assert_eq!(got.record.end, Some(End::Complete));
    let uptimes: Vec<f64> = got.reported.split_whitespace().map(|t| t.parse().unwrap()).collect();
    let within = ((uptimes[1] - uptimes[0]) * 1e9) as u64;

    // The uptime, which setting the clock does not change, gives the duration: no time in the record may be longer.
    let steps = &got.record.steps;
    assert!(steps.is_sorted_by_key(|step| step.began));
    for step in steps {
        assert!(step.began.0 <= within, "{}", step.began);
        for end in &step.ends {
            for table in &end.tables {
                assert!(table.at.is_sorted(), "{}", table.source);
                assert!(table.at.last().is_none_or(|at| *at <= within));
            }
            let times = end.latencies.iter().flat_map(|l| &l.counts);
            assert!(times.into_iter().all(|(time, _)| *time <= within));
        }
    }
    // Goodput over the rate that the router lets pass.
    let filled = got.goodput() / RATE;
    assert!(FILLED.contains(&filled), "{filled}");
    let idle = got.model.idle.as_ref().and_then(|idle| idle.percentile(50.0));
    assert!(idle.is_none_or(|idle| idle.0 > 0 && idle.0 <= within));
    assert!(got.leaves("path-rate"), "{}", got.words());
    assert!(got.disturbances().all(|cause| cause != "interrupted"));
}

pub(crate) fn flow_rate(guest: &mut Guest) {
    let script = format!(
        "on router tc qdisc add dev far root fq maxrate {RATE}bit
         serve {PROGRAM}
         measure {PROGRAM} --time 10s --quiet --save $records"
    );
    let Some(got) = measured(guest, "flow-rate", &script) else {
        return;
    };
    assert!(got.leaves("flow-rate-cap"), "{}", got.words());
    assert!(got.goodput() < RATE * FILLED.end, "{}", got.goodput());
}

pub(crate) fn loss(guest: &mut Guest) {
    let script = format!(
        "on router tc qdisc add dev far root netem delay 10ms loss 1%
         serve {PROGRAM}
         measure {PROGRAM} --time 10s --quiet --save $records"
    );
    let Some(got) = measured(guest, "loss", &script) else {
        return;
    };
    assert!(got.leaves("path-loss"), "{}", got.words());
    a_disturbed_verdict_is_refused(&got.verdict);
}

pub(crate) fn pacing(guest: &mut Guest) {
    let script = format!(
        "on near tc qdisc replace dev eth0 root fq
         serve {PROGRAM}
         measure {PROGRAM} --pacing {RATE}b/s --time 20s --quiet --save $records >/dev/null
         on near tc -s qdisc show dev eth0"
    );
    let Some(got) = measured(guest, "pacing", &script) else {
        return;
    };
    assert!(got.leaves("pacing"), "{}", got.words());
    // A busy machine sends later than the pace permits, and never sooner.
    let filled = got.goodput() / RATE;
    assert!(filled < FILLED.end, "{filled}");
    // The queueing discipline fq held the packets back, not a timer of TCP.
    let throttled = got.reported.rsplit_once(" throttled ").map(|(_, rest)| rest);
    let throttled = throttled.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    assert!(throttled.is_some_and(|n| n > 0), "{}", got.reported);
}
