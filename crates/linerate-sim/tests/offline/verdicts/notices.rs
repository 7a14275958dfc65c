//! Tests of a run's notices about its hosts and the resources that they share.

use super::*;

/// Side and subject of each notice: those before the first step, and those later.
#[derive(Default)]
struct Notices {
    first: Vec<(Side, String)>,
    later: Vec<(Side, String)>,
    begun: bool,
}

impl Sink for Notices {
    fn event(&mut self, event: &Event<'_>) -> RunControl {
        match event {
            Event::StepBegan { .. } => self.begun = true,
            Event::Notice { side, gap, .. } => {
                let notice = (*side, gap.what.clone());
                if self.begun {
                    self.later.push(notice);
                } else {
                    self.first.push(notice);
                }
            }
            _ => {}
        }
        RunControl::Go
    }
}

#[test]
fn what_the_engine_knows_of_the_hosts_is_reported_before_the_first_step() {
    let mut path = SimPath::default();
    path.far.buffer_max = Bytes(1 << 20);
    let of_run = |bytes| {
        let plan = Plan {
            engine: "tcp".to_owned(),
            trials: false,
            ..plan(Knobs { recv_buffer: Some(Bytes(bytes)), ..Knobs::default() })
        };
        let mut notices = Notices::default();
        run(
            &mut Sim::new(path.clone(), 1),
            plan,
            linerate_session::run::Label::default(),
            &mut notices,
        );
        assert!(notices.begun);
        notices.first
    };
    assert_eq!(of_run(1 << 20), []);
    let expected = [(Side::Far, "set.recv_buffer".to_owned())];
    assert_eq!(of_run((1 << 20) + 1), expected);
}

#[test]
fn both_directions_at_once_are_left_out_where_no_time_is_left_and_that_is_reported() {
    let of_run = |millis| {
        let plan = Plan {
            directions: Direction::ALL.to_vec(),
            time: Nanos::from_millis(millis),
            sweep: false,
            trials: false,
            ..plan(Knobs::default())
        };
        let mut notices = Notices::default();
        let (record, _) = run(
            &mut Sim::new(SimPath::default(), 1),
            plan,
            linerate_session::run::Label::default(),
            &mut notices,
        );
        let both = record.steps.iter().any(|s| s.plan.purpose == Purpose::Both);
        (both, notices.later)
    };
    assert_eq!(of_run(5_000), (true, Vec::new()));
    let left_out = (Side::Near, "both directions at once".to_owned());
    assert_eq!(of_run(3_000), (false, vec![left_out]));
}

/// For each proof, its cause, its time and the number of trials that had begun; and the number of trials so far.
#[derive(Default)]
struct Proofs {
    begun: usize,
    proved: Vec<(&'static str, Nanos, usize)>,
}

impl Sink for Proofs {
    fn event(&mut self, event: &Event<'_>) -> RunControl {
        match event {
            Event::Trial { .. } => self.begun += 1,
            Event::Proved { limit, after } => self.proved.push((limit.cause, *after, self.begun)),
            _ => {}
        }
        RunControl::Go
    }
}

#[test]
fn a_proof_is_reported_once_and_before_the_trial_of_the_other_direction() {
    let mut path = SimPath::default();
    (path.forward.rate, path.reverse.rate) = (gigabits(1.0), gigabits(1.0));
    let plan = Plan { directions: Direction::ALL.to_vec(), ..plan(Knobs::default()) };
    let mut proofs = Proofs::default();
    let (record, _) =
        run(&mut Sim::new(path, 1), plan, linerate_session::run::Label::default(), &mut proofs);
    let ends = |trial| {
        let its = |p: &Purpose| matches!(p, Purpose::Slice { trial: id, .. } if *id == trial);
        let last = record.steps.iter().rfind(|s| its(&s.plan.purpose));
        last.expect("it had slices").ended()
    };
    let of_rate: Vec<_> = proofs.proved.iter().filter(|p| p.0 == "path-rate").collect();
    let expected = [("path-rate", ends(0), 1), ("path-rate", ends(1), 2)];
    assert_eq!(of_rate, expected.iter().collect::<Vec<_>>());
    assert!(ends(0) < ends(1));
}
