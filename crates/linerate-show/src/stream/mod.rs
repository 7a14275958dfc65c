//! The events of a run while it happens, as JSON: an object on each line.
//!
//! The schema of a line is made from `Line`. Keys contain the units, unknown values are `null`. A line about a step
//! or trial is computed from the readings so far. The result on the last line uses all readings, and may differ. A
//! run that measured nothing ends without a result.

mod line;

use std::io::{self, Write};

use linerate_judge::event::{Event, RunControl, Sink};
use linerate_judge::model::{
    Estimate, Latency, Load, Model, TrialModel, derive, load, once, trial,
};
use linerate_judge::verdict::{Limit, Verdict};
use linerate_plan::Purpose;
use linerate_plan::path::Direction;
use linerate_record::{End, Host, Record, Start, Step};
use linerate_units::stats::Interval;
use linerate_units::{Nanos, Rate};

use self::line::How;
use super::study::{self, Study};
use super::{bw, json, lat};

pub(super) use line::Line;

/// A sink that writes a line for each event, and stops the run when the reader closes the pipe.
pub struct Stream<W> {
    out: W,
    /// The record with the readings so far; `None` before the start.
    record: Option<Record>,
    /// The trial whose slices are being measured; `None` between trials.
    trial: Option<u32>,
    /// Whether this is a single measurement (`bw`, `lat`), whose figures are computed over all of its time.
    single: bool,
    broken: Option<io::Error>,
}

impl<W: Write> Stream<W> {
    /// Writes lines to `out`, each line in one call.
    pub fn new(out: W) -> Self {
        Self { out, record: None, trial: None, single: false, broken: None }
    }

    /// Marks this as the stream of a single measurement.
    #[must_use]
    pub fn of_a_probe(self) -> Self {
        Self { single: true, ..self }
    }

    /// Writes the last line: the result, as `run --json` prints it.
    pub fn result(&mut self, record: &Record, model: &Model, verdict: &Verdict, with_record: bool) {
        let result = Box::new(json::output(record, model, verdict, with_record));
        self.line(&Line::Verdict { result });
    }

    /// Writes the last line of `bw`: the result, as `bw --json` prints it.
    pub fn bw(&mut self, probe: &bw::Probe, record: Option<&Record>) {
        let result = Box::new(bw::output(probe, record));
        self.line(&Line::Bw { result });
    }

    /// Writes the last line of `lat`: the result, as `lat --json` prints it.
    pub fn lat(&mut self, probe: &lat::Probe, record: Option<&Record>) {
        let result = Box::new(lat::output(probe, record));
        self.line(&Line::Lat { result });
    }

    /// Writes the last line of a study: the result, as `--json` prints it.
    pub fn study(&mut self, study: &Study<'_>, with_record: bool) {
        let result = Box::new(study::output(study, with_record));
        self.line(&Line::Study { result });
    }

    /// Waits until all lines are written. The error says why a line could not be written; nothing was written
    /// after it.
    pub fn finish(mut self) -> io::Result<()> {
        match self.broken {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    fn line(&mut self, line: &Line<'_>) {
        if self.broken.is_some() {
            return;
        }
        let written = serde_json::to_vec(line).map_err(io::Error::from).and_then(|mut text| {
            text.push(b'\n');
            self.out.write_all(&text)
        });
        self.broken = written.err();
    }

    fn started(&mut self, start: &Start) {
        self.record = Some(Record {
            start: start.clone(),
            hosts: Vec::new(),
            sets: Vec::new(),
            trials: Vec::new(),
            steps: Vec::new(),
            imported: None,
            end: None,
        });
        self.line(&Line::Started {
            format: crate::head::Format,
            linerate: &start.linerate,
            started_unix_s: start.wall_secs,
            peer: start.plan.peer.as_deref(),
            engine: &start.plan.engine,
            directions: &start.plan.directions,
            budget_ns: start.plan.time.0,
        });
    }

    fn host(&mut self, host: &Host) {
        self.line(&Line::Host(json::host(host)));
    }

    /// Writes the results of a step that ended. Slices have no lines of their own; their trial has.
    fn step(&mut self, step: &Step) {
        if let Some(trouble) = &step.trouble {
            self.line(&Line::Trouble {
                index: step.plan.index,
                side: trouble.side,
                what: &trouble.what,
            });
        }
        if matches!(step.plan.purpose, Purpose::Slice { .. } | Purpose::Warm { .. }) {
            return;
        }
        let Some(model) = self.record.as_ref().map(derive) else {
            return;
        };
        match step.plan.purpose {
            Purpose::IdleLatency => self.latency(None, model.idle.as_ref()),
            Purpose::Base { direction } => {
                let base = model.direction(direction).map(|d| &d.base);
                let single = self.once(step, direction);
                self.load(direction, single.as_ref().or(base));
                self.latency(Some(direction), base.and_then(|b| b.latency.as_ref()));
            }
            Purpose::Sweep { direction } => {
                // A step that ended early has no rate to compare.
                let whole = self.record.as_ref().filter(|_| step.trouble.is_none());
                let shown = whole.and_then(|record| load(record, step, direction));
                self.load(direction, shown.as_ref());
            }
            Purpose::Both => {
                let streams = self.streams();
                for (direction, goodput) in &model.both {
                    let single = self.once(step, *direction).map(|load| load.goodput);
                    let goodput = single.unwrap_or(*goodput);
                    self.goodput(*direction, streams, true, &goodput);
                }
            }
            Purpose::Slice { .. } | Purpose::Warm { .. } => {}
        }
    }

    /// The load in a step of a single measurement, computed as for its result; `None` in a run.
    fn once(&self, step: &Step, direction: Direction) -> Option<Load> {
        let record = self.record.as_ref().filter(|_| self.single)?;
        once(record, step, direction).map(|once| once.load)
    }

    fn load(&mut self, direction: Direction, load: Option<&Load>) {
        if let Some(load) = load {
            self.goodput(direction, load.streams, false, &load.goodput);
        }
    }

    fn goodput(&mut self, direction: Direction, streams: u32, both: bool, goodput: &Estimate) {
        self.line(&Line::Goodput { direction, streams, both, goodput: goodput.into() });
    }

    /// Number of connections of the base load.
    fn streams(&self) -> u32 {
        let plan = self.record.as_ref().map(|record| &record.start.plan);
        plan.map_or(1, |plan| plan.knobs.streams)
    }

    fn latency(&mut self, direction: Option<Direction>, latency: Option<&Latency>) {
        if let Some(latency) = latency {
            let latency = json::latency(latency);
            self.line(&Line::Latency { direction, latency });
        }
    }

    /// Writes the result of the trial that just ended; nothing if no slice was measured.
    fn trial_over(&mut self) {
        let Some((id, record)) = self.trial.take().zip(self.record.as_ref()) else {
            return;
        };
        if let Some(model) = trial(record, id) {
            self.line(&outcome(&model));
        }
    }

    fn proved(&mut self, limit: &Limit, after: Nanos) {
        self.trial_over();
        self.line(&Line::Proved {
            metric: limit.metric,
            cause: limit.cause,
            side: limit.side,
            direction: limit.direction,
            trial: limit.trial.as_ref().map(|t| t.id),
            after_ns: after.0,
        });
    }

    fn ended(&mut self, end: &End) {
        self.trial_over();
        let (how, why) = match end {
            End::Complete => (How::Complete, None),
            End::Interrupted => (How::Interrupted, None),
            End::Failed { why } => (How::Failed, Some(why.as_str())),
        };
        self.line(&Line::Ended { how, why });
    }

    fn progress(&mut self, rate: Option<Rate>, direction: Option<Direction>, left: Nanos) {
        self.line(&Line::Tick {
            direction,
            rate_bps: rate.map(|r| json::exact(r.0)),
            left_ns: left.0,
        });
    }
}

fn outcome(model: &TrialModel) -> Line<'_> {
    let mid = |i: Option<Interval>| i.map(|i| i.mid);
    Line::TrialEnded {
        id: model.plan.id,
        kind: &model.plan.kind,
        direction: model.plan.direction,
        slices: model.slices,
        effect: mid(model.effect),
        effect_ci: model.effect.map(json::ends),
        loss: mid(model.loss),
        loss_ci: model.loss.map(json::ends),
        latency: mid(model.latency),
        latency_ci: model.latency.map(json::ends),
    }
}

impl<W: Write> Sink for Stream<W> {
    fn event(&mut self, event: &Event<'_>) -> RunControl {
        match event {
            Event::Started(start) => self.started(start),
            Event::Host(host) => {
                self.note(|record| record.hosts.push((*host).clone()));
                self.host(host);
            }
            Event::Set(set) => self.note(|record| record.sets.push((*set).clone())),
            Event::Trial { plan, words } => {
                self.trial_over();
                self.trial = Some(plan.id);
                self.note(|record| record.trials.push((*plan).clone()));
                self.line(&Line::Trial {
                    id: plan.id,
                    kind: &plan.kind,
                    direction: plan.direction,
                    words,
                });
            }
            Event::StepBegan { plan, words, left } => {
                self.line(&Line::Step { index: plan.index, words, left_ns: left.0 });
            }
            Event::Progress { rate, direction, left } => self.progress(*rate, *direction, *left),
            Event::Step(step) => {
                self.note(|record| record.steps.push((*step).clone()));
                self.step(step);
            }
            Event::Proved { limit, after } => self.proved(limit, *after),
            Event::Notice { level, side, gap } => self.line(&Line::Notice {
                level: (*level).into(),
                side: *side,
                what: &gap.what,
                why: &gap.why,
                hint: &gap.hint,
            }),
            Event::Ended(end) => self.ended(end),
        }
        if self.broken.is_some() { RunControl::Stop } else { RunControl::Go }
    }
}

impl<W> Stream<W> {
    fn note(&mut self, add: impl FnOnce(&mut Record)) {
        if let Some(record) = &mut self.record {
            add(record);
        }
    }
}
