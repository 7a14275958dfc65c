//! Tests of sweeps on simulated paths: goodput of each setting, the knee, and which setting costs less.

use linerate_judge::model::{self, Cost, SweepPlan};
use linerate_plan::study::Pace;
use linerate_plan::transport::{Swept, TCP};
use linerate_plan::{ExtraWork, Handover, SetPlan, StepPlan};
use linerate_record::{End, Host, Record, Set, Step};
use linerate_session::link::{Link, LinkError, Live, StepControl};
use linerate_session::run::sweep;

use super::*;

fn requested(swept: Swept, settings: Vec<Knobs>) -> SweepPlan {
    SweepPlan {
        swept,
        direction: Direction::Forward,
        pace: Pace::of(Nanos::from_secs(40), settings.len()).expect("time enough"),
        settings,
        left_out: Vec::new(),
    }
}

fn streams(most: u32) -> SweepPlan {
    requested(Swept::Streams, Swept::Streams.settings(&TCP, &Knobs::default(), most))
}

fn run_sweep(
    link: &mut dyn Link,
    requested: &mut SweepPlan,
    sink: &mut dyn Sink,
) -> (Record, model::Sweep) {
    let plan = Plan {
        trials: false,
        sweep: false,
        time: Nanos::from_secs(40),
        ..plan(requested.settings[0].clone())
    };
    let (record, error) =
        sweep(link, plan, requested, linerate_session::run::Label::default(), sink);
    assert!(error.is_none(), "{error:?}");
    let found = model::sweep(
        &record,
        requested.swept,
        &requested.swept.axis(&requested.settings),
        requested.direction,
    );
    (record, found)
}

/// Makes a path of 20 Gb/s on which a window of 1 MiB limits each stream to 8.4 Gb/s at a round trip of 1 ms.
fn windowed() -> SimPath {
    let mut path = SimPath { rtt: Nanos::from_millis(1), ..SimPath::default() };
    path.forward.rate = gigabits(20.0);
    path.forward.receive_window = Bytes(1 << 20);
    path.forward.send_buffer = Bytes(2 << 20);
    path
}

fn rounds(found: &model::Sweep) -> Vec<usize> {
    let of = |s: &model::Setting| s.goodput.map_or(0, |goodput| goodput.samples);
    found.settings.iter().map(of).collect()
}

#[test]
fn the_knee_is_where_the_streams_fill_the_wire() {
    let mut requested = streams(8);
    let (record, found) = run_sweep(&mut Sim::new(windowed(), 1), &mut requested, &mut ());
    assert_eq!(record.end, Some(End::Complete));
    let each = requested.pace.rounds as usize;
    assert_eq!(rounds(&found), [each; 4]);
    assert_eq!(record.steps.len(), (each + 1) * 4, "one round warms up");
    let knee = found.knee.expect("a knee");
    assert_eq!([knee.from, knee.at, knee.to], [2, 2, 2], "{found:#?}");
    let half = found.settings[0].goodput_ratio.expect("a ratio");
    assert!((0.4..0.5).contains(&half.mid), "{half:?}");
}

#[test]
fn a_goodput_that_still_grows_has_its_knee_at_the_end() {
    let mut requested = streams(2);
    let (_, found) = run_sweep(&mut Sim::new(windowed(), 1), &mut requested, &mut ());
    assert_eq!(found.knee.map(|knee| knee.at), Some(1));
}

#[test]
fn what_costs_the_sender_less_is_told_from_what_costs_as_much() {
    let of = |copy, ps| Knobs {
        copy,
        extra_work: ExtraWork { sender_ps_per_byte: ps, receiver_ps_per_byte: 0 },
        ..Knobs::default()
    };
    let settings =
        vec![of(Handover::Copy, 100), of(Handover::Zerocopy, 0), of(Handover::Sendfile, 100)];
    let mut requested = requested(Swept::Copy, settings);
    let (_, found) = run_sweep(&mut Sim::new(SimPath::default(), 1), &mut requested, &mut ());
    let costs: Vec<_> = found.settings.iter().map(model::Setting::cost).collect();
    assert_eq!(costs, [None, Some(Cost::Less), Some(Cost::Same)], "{found:#?}");
    assert_eq!((found.reference, found.knee), (Some(0), None));
}

/// A path that refuses sets with more than `most` streams. After `alone` steps, each step reports that another session
/// loads a host.
struct Picky {
    sim: Sim,
    most: u32,
    alone: usize,
    steps: usize,
}

impl Link for Picky {
    fn now(&self) -> Nanos {
        self.sim.now()
    }

    fn hosts(&mut self) -> Result<Vec<Host>, LinkError> {
        self.sim.hosts()
    }

    fn prepare(&mut self, plan: &SetPlan) -> Result<Set, LinkError> {
        if plan.knobs.streams > self.most {
            return Err(LinkError::Refused {
                what: "no descriptor left".to_owned(),
                hint: "ulimit -n 9".to_owned(),
            });
        }
        self.sim.prepare(plan)
    }

    fn step(
        &mut self,
        plan: &StepPlan,
        watch: &mut dyn FnMut(Live) -> StepControl,
    ) -> Result<Step, LinkError> {
        let mut step = self.sim.step(plan, watch)?;
        self.steps += 1;
        step.ends[1].other_sessions = u32::from(self.steps > self.alone);
        Ok(step)
    }

    fn release(&mut self, set: u32) -> Result<(), LinkError> {
        self.sim.release(set)
    }
}

fn picky(most: u32, alone: usize) -> Picky {
    Picky { sim: Sim::new(windowed(), 1), most, alone, steps: 0 }
}

#[test]
fn a_setting_that_is_refused_is_left_out_and_the_others_are_measured() {
    let mut requested = streams(4);
    let (record, found) = run_sweep(&mut picky(2, usize::MAX), &mut requested, &mut ());
    assert_eq!(record.end, Some(End::Complete));
    let each = requested.pace.rounds as usize;
    assert_eq!(rounds(&found), [each, each, 0]);
    let [gap] = requested.left_out.as_slice() else {
        panic!("{:?}", requested.left_out);
    };
    assert_eq!((&*gap.what, &*gap.hint), ("4 streams", "ulimit -n 9"));
    assert_eq!(found.knee.map(|knee| knee.at), Some(1));
}

#[test]
fn slices_beside_another_session_do_not_count() {
    // 12 steps without another session are enough for the warm-up and five rounds of two settings.
    let mut requested = streams(2);
    let (_, found) = run_sweep(&mut picky(2, 12), &mut requested, &mut ());
    assert_eq!(rounds(&found), [5, 5]);
    assert!(found.settings[0].goodput_ratio.is_some());
    // With fewer such steps, too few rounds count for a ratio. The warm-up is not a round.
    for (alone, left) in [(8, 3), (2, 0)] {
        let (_, found) = run_sweep(&mut picky(2, alone), &mut streams(2), &mut ());
        assert_eq!(rounds(&found), [left, left]);
        assert_eq!((found.settings[0].goodput_ratio, found.knee), (None, None));
    }
}

/// Stops the run in the middle of the step that follows `after` steps.
struct Stops {
    after: usize,
}

impl Sink for Stops {
    fn event(&mut self, event: &Event<'_>) -> RunControl {
        match event {
            Event::Step(_) => self.after = self.after.saturating_sub(1),
            Event::Progress { .. } if self.after == 0 => return RunControl::Stop,
            _ => {}
        }
        RunControl::Go
    }
}

#[test]
fn what_was_measured_until_a_stop_is_kept() {
    let mut stop = Stops { after: 5 };
    let (record, found) = run_sweep(&mut Sim::new(windowed(), 1), &mut streams(2), &mut stop);
    assert_eq!(record.end, Some(End::Interrupted));
    // Two warm-up steps, then slices in the order 2, 1, 1, of which the last one was stopped.
    assert_eq!(rounds(&found), [2, 1]);
    assert_eq!(found.knee, None);
}
