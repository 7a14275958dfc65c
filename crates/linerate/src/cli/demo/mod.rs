//! `linerate demo`: shows a measurement that finds a planted fault, on a network made on this machine.

mod wrong_port;

use std::hash::{BuildHasher, RandomState};

use clap::Parser;
use linerate_judge::model::Model;
use linerate_judge::verdict::Verdict;
use linerate_lab::{Cell, CellKind};
use linerate_record::Record;
use linerate_units::{Nanos, Rate};

use super::exit::{Exit, Failure};
use super::options::{self, Options};
use super::session::{kept, records_of};
use super::{out, reach, run, signal};
use crate::demo::{Loader, Outcome, Problem, Report, Scored, Shown, Wish, planted, show};
use linerate_show::{Document, Style, Tone, text};

// `linerate demo`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Fault to plant; --list shows all [default: drawn from the seed]
    fault: Option<String>,

    /// List the faults
    #[arg(long)]
    list: bool,

    /// Print the outcome as one line of JSON instead of text
    #[arg(long)]
    json: bool,

    /// Congestion control at both hosts, such as cubic or bbr [default: the system's]
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,

    /// Program whose load measures the effect of the planted fault
    #[arg(long, value_name = "WHO", default_value = "linerate")]
    truth: Loader,

    /// Measure both directions, and not only the one with the fault
    #[arg(long)]
    both: bool,

    #[command(flatten)]
    pub(crate) demo: options::Demo,

    #[command(flatten)]
    pub(crate) records: options::Records,
}

/// Time of a run of both directions if no layer of options sets one: the whole demo then ends in 40 s.
const DEFAULT_TIME: Nanos = Nanos::from_secs(33);

/// Time of a run of one direction if none is set: it leaves as much for trials as each of two directions has.
const ONE_WAY_TIME: Nanos = Nanos::from_secs(20);

/// The kind of cell, the seed, and the cell that was drawn from it.
struct Drawn {
    kind: &'static CellKind,
    seed: u64,
    cell: Cell,
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    let style = out::style(&options.global);
    if args.list {
        out::print(&list().text(style))?;
        return Ok(Exit::Done);
    }
    if args.fault.as_deref() == Some(wrong_port::ID) {
        return wrong_port::run(args.json, options);
    }
    let drawn = draw(args, options)?;
    if !args.json {
        out::print(&opening(&drawn, args).text(style))?;
    }
    let folder = reach::system(
        tempfile::Builder::new().prefix("linerate-demo-").tempdir(),
        "cannot make a folder for the record",
    )?;
    let store = match options.records.no_save {
        Some(true) => None,
        _ => Some(records_of(&options.records)?),
    };
    let stop = reach::system(signal::interrupted(), "cannot watch for Ctrl-C")?;
    let mut page = Ok(());
    let shown = show(
        &Wish {
            cell: &drawn.cell,
            congestion: args.congestion.clone(),
            run_args: run_args(&drawn.cell, args, options),
            loader: args.truth,
            audible: !args.json && options.global.quiet != Some(true),
            folder: folder.path(),
            stop: &stop,
        },
        |loaded, model, verdict| {
            let name = store.as_ref().and_then(|store| {
                let mut recorder = store.recorder();
                recorder.copy(loaded);
                kept(&recorder)
            });
            if !args.json {
                let answer = answer(&loaded.record, model, verdict, name.as_deref(), options);
                page = out::print(&answer);
            }
        },
    )
    .map_err(Failure::not_measured)?;
    page?;
    end(&drawn, args, &shown, store.is_some(), style)
}

/// Prints the planted truth, and compares the verdict with it.
fn end(
    drawn: &Drawn,
    args: &Args,
    shown: &Shown,
    saves: bool,
    style: Style,
) -> Result<Exit, Failure> {
    let text = match (&shown.scored, args.json) {
        (None, true) => return Err(Failure::not_measured(Problem::Interrupted)),
        (Some(scored), true) => line(drawn, args, shown, scored)?,
        (_, false) => {
            let page = closing(drawn, shown, !saves);
            format!("\n{}", page.text(style))
        }
    };
    out::print(&text)?;
    Ok(match shown.scored.as_ref().map(|scored| scored.outcome) {
        Some(Outcome::Right | Outcome::Acceptable) => Exit::Done,
        Some(Outcome::Unknown | Outcome::Wrong) => Exit::Missed,
        None => Exit::NotMeasured,
    })
}

/// Arguments of the run: only the direction of the fault, if the fault has one and the user does not want both.
fn run_args(cell: &Cell, args: &Args, options: &Options) -> Vec<String> {
    let one = cell.direction.filter(|_| !args.both);
    let usual = one.map_or(DEFAULT_TIME, |_| ONE_WAY_TIME);
    let time = options.demo.time.map_or(usual, |t| t.0);
    let mut all = vec!["--time".to_owned(), format!("{}ns", time.0)];
    if let Some(direction) = one {
        all.extend(["--direction", direction.name()].map(str::to_owned));
    }
    all
}

/// The page of the run without commands: the network for which they would be no longer exists.
fn answer(
    record: &Record,
    model: &Model,
    verdict: &Verdict,
    name: Option<&str>,
    options: &Options,
) -> String {
    let mut verdict = verdict.clone();
    let limits = verdict.limits.iter_mut().chain(&mut verdict.next);
    let of_limits = limits.flat_map(|limit| &mut limit.advice);
    let disturbances = verdict.disturbances.iter_mut();
    for advice in of_limits.chain(disturbances.flat_map(|d| &mut d.advice)) {
        advice.steps.clear();
        advice.undo.clear();
    }
    for unknown in &mut verdict.unknown {
        unknown.hint.clear();
    }
    let shown_by = run::shown_by("last", &options.records);
    let saved = name.map(|name| (name, &*shown_by));
    let page = text::verdict(record, model, &verdict, saved).without_commands();
    page.text(out::style(&options.global))
}

fn draw(args: &Args, options: &Options) -> Result<Drawn, Failure> {
    // Any number will do as a seed: it is printed, so that the same demonstration can be repeated.
    let seed = options.demo.seed.unwrap_or_else(|| RandomState::new().hash_one(0) % 100_000);
    let kind = match &args.fault {
        None => CellKind::drawn(seed),
        Some(id) => offered(id).ok_or_else(|| {
            Failure::usage(anyhow::anyhow!("`{id}` is not a fault that the demo can plant"))
                .hint("linerate demo --list")
        })?,
    };
    Ok(Drawn { kind, seed, cell: kind.cell(seed) })
}

/// The kind with this name, if a verdict can name its cause.
fn offered(id: &str) -> Option<&'static CellKind> {
    CellKind::named(id).filter(|kind| kind.is_answerable())
}

fn list() -> Document {
    let mut doc = Document::new();
    for kind in CellKind::answerable() {
        doc.entry(kind.id, &[(Tone::Plain, kind.words)], 0);
    }
    doc.entry(wrong_port::ID, &[(Tone::Plain, wrong_port::WORDS)], 0);
    doc
}

fn opening(drawn: &Drawn, args: &Args) -> Document {
    let mut doc = Document::new();
    let seed = drawn.seed;
    let by = args.congestion.as_ref();
    let by = by.map_or_else(String::new, |by| format!(" --congestion {by}"));
    let command = format!("linerate demo {} --seed {seed}{by}", drawn.kind.id);
    let text = format!(
        "Two hosts, near and far, with a router between them, are made of namespaces on this \
         machine. This network may have a fault. The run that follows does not know which (seed \
         {seed}: `{command}` plants the same again). The network is removed at the end, so the answer has no commands \
         for it."
    );
    doc.line(&[(Tone::Plain, &text)], 0);
    doc.gap();
    doc
}

fn closing(drawn: &Drawn, shown: &Shown, forgotten: bool) -> Document {
    let mut doc = Document::new();
    if forgotten {
        let text = "the record is deleted after this demo (--no-save)";
        doc.entry("Not saved", &[(Tone::Plain, text)], 0);
        doc.gap();
    }
    doc.heading("The planted truth");
    doc.entry("Planted", &[(Tone::Plain, &planted(&drawn.cell))], 0);
    if let Some(truth) = &shown.truth {
        let text = format!(
            "{} without it {}, with it {}, by the counters of {}{}",
            truth.direction.name(),
            Rate(truth.without as u64),
            Rate(truth.with as u64),
            truth.counted.words(),
            if truth.bites() { "" } else { ": too little to matter, the path counts as healthy" }
        );
        doc.entry("Truth", &[(Tone::Plain, &text)], 0);
    }
    let Some(scored) = &shown.scored else {
        let text = "not compared with the truth: the demo was interrupted";
        doc.entry("The verdict was", &[(Tone::Warning, text)], 0);
        return doc;
    };
    let expected = scored.expected.join(" or ");
    doc.entry("Expected", &[(Tone::Plain, &expected)], 0);
    let (tone, text) = judgement(scored);
    doc.entry("The verdict was", &[(tone, &text)], 0);
    doc
}

fn judgement(scored: &Scored) -> (Tone, String) {
    let named = scored.named.as_ref().map_or("nothing", |l| l.cause);
    let disturbs = scored.named.as_ref().is_some_and(|l| l.certainty.is_none());
    match scored.outcome {
        Outcome::Right if disturbs => (Tone::Good, format!("right: disturbed by {named}")),
        Outcome::Right if scored.proved => (Tone::Good, format!("right, and proved: {named}")),
        Outcome::Right => (Tone::Good, format!("right, but not proved: {named}")),
        Outcome::Acceptable => {
            (Tone::Warning, format!("acceptable: it named {named}, which is true as well"))
        }
        Outcome::Unknown => (Tone::Warning, "unknown: it named no cause".to_owned()),
        Outcome::Wrong => (Tone::Warning, format!("wrong: it named {named}")),
    }
}

/// The outcome as one line of JSON, for scripts that score many runs.
fn line(drawn: &Drawn, args: &Args, shown: &Shown, scored: &Scored) -> Result<String, Failure> {
    let which = (drawn.kind.id, drawn.seed, &drawn.cell);
    let report = Report::of(which, args.congestion.as_deref(), (shown, scored));
    let json = serde_json::to_string(&report).map_err(Failure::not_measured)?;
    Ok(json + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_direction_is_measured_where_one_has_the_fault() {
        let mut args = Args::parse_from(["demo", "path-rate", "--seed", "1"]);
        let options = Options::default();
        let mut with_direction = |kind: &str, both| {
            args.both = both;
            let cell = CellKind::named(kind).unwrap().cell(1);
            run_args(&cell, &args, &options).contains(&"--direction".to_owned())
        };
        assert!(with_direction("path-rate", false));
        assert!(!with_direction("path-rate", true));
        assert!(!with_direction("healthy", false));
    }
}
