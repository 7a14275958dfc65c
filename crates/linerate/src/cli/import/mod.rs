//! `linerate import`: reads results and facts that other programs printed.

mod file;

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use clap::Parser;
use linerate_explain::{Claim, Explained, Material, explain};
use linerate_facts::Inventory;
use linerate_import::{merge, read};
use linerate_plan::path::{Direction, Side};
use linerate_plan::{Knobs, Plan};
use linerate_record::reported::{Note, Source};
use linerate_record::{Blob, End, FORMAT, Import, Imported, Kept, Made, Record, Start};
use linerate_session::store::Store;
use linerate_units::Nanos;

use super::exit::{Exit, Failure};
use super::options::{self, Options};
use super::run::shown_by;
use super::{out, report, session};
use crate::expect::Found;
use linerate_show::{import as view, noted};

/// Most files of one import.
const FILES: usize = 100;

/// Name of the engine in the plan of an import.
pub(super) const ENGINE: &str = "import";

// `linerate import`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Outputs of other programs: results of the client or facts of its host; `-` reads standard input.
    /// Several files describe one path
    #[arg(required_unless_present = "far")]
    files: Vec<PathBuf>,

    /// Output that was made at the server's host; may be repeated
    #[arg(long, value_name = "FILE")]
    far: Vec<PathBuf>,

    /// Title of the import
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// Claim to hold against the figures, such as 'goodput>=20Gbit/s', 'latency<=2us',
    /// 'before.udp.latency=6us' or transport=rdma; may be repeated
    #[arg(long = "claim", value_name = "CLAIM")]
    claims: Vec<Claim>,

    /// Port of the client's host that carries the path, where its facts show several
    #[arg(long, value_name = "NAME")]
    near_port: Option<String>,

    /// Port of the server's host that carries the path
    #[arg(long, value_name = "NAME")]
    far_port: Option<String>,

    #[command(flatten)]
    json: options::Json,
    #[command(flatten)]
    report: options::Report,
    #[command(flatten)]
    records: options::Records,
}

impl Args {
    pub(super) fn typed(&self, options: &mut Options) {
        options.report = self.report.clone();
        self.json.typed(&mut options.report);
        options.records = self.records.clone();
    }
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    let near = args.files.iter().map(|path| (Side::Near, path));
    let far = args.far.iter().map(|path| (Side::Far, path));
    let named: Vec<(Side, &PathBuf)> = near.chain(far).collect();
    if named.len() > FILES {
        let error = anyhow!("{} files are more than one import takes ({FILES})", named.len());
        return Err(Failure::usage(error).hint("import the files of one path"));
    }
    let (files, is_short) = file::imported(&named)?;
    let record = record(args, files, session::note(options));
    let material = material(&record);
    known_port(args.near_port.as_deref(), &material.near)?;
    known_port(args.far_port.as_deref(), &material.far)?;
    let saved = kept(&record, options)?;
    // An import is kept by default, and a failure to keep it counts only if the user gave a note or a folder.
    let is_requested = options.records.note.is_some() || args.records.save.is_some();
    let lacks = saved.is_none() && is_requested && options.records.no_save != Some(true);
    let command = saved.as_ref().map(|name| shown_by(name, &options.records));
    let saved = saved.as_deref().zip(command.as_deref());
    let exit = show(&record, saved, options)?;
    Ok(if lacks || is_short { exit.or(Exit::NotMeasured) } else { exit })
}

/// Refuses `--near-port` or `--far-port` if no imported file has facts of that port.
fn known_port(name: Option<&str>, host: &Inventory) -> Result<(), Failure> {
    let Some(name) = name else {
        return Ok(());
    };
    let ports = host.network.nics.iter().map(|nic| nic.name.as_str());
    let ports: Vec<&str> = ports.collect();
    if ports.contains(&name) {
        return Ok(());
    }
    let error = anyhow!("no output has facts of a port called {name}");
    Err(Failure::usage(error).hint(if ports.is_empty() {
        format!("import them too: ethtool {name} >FILE")
    } else {
        format!("the outputs have facts of {}", ports.join(", "))
    }))
}

fn record(args: &Args, files: Vec<Import>, note: String) -> Record {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH);
    let title = args.title.clone().unwrap_or_default();
    let stem = files.first().and_then(|file| Path::new(&file.name).file_stem());
    let stem = stem.map(|stem| stem.to_string_lossy().into_owned());
    Record {
        start: Start {
            format: FORMAT,
            linerate: env!("CARGO_PKG_VERSION").to_owned(),
            wall_secs: wall.map_or(0, |d| d.as_secs()),
            plan: Plan {
                engine: ENGINE.to_owned(),
                peer: stem,
                reach: Vec::new(),
                knobs: Knobs::default(),
                directions: Direction::ALL.to_vec(),
                time: Nanos(0),
                sweep: false,
                trials: false,
            },
            made: Made::Import,
            note,
            study: None,
        },
        hosts: Vec::new(),
        sets: Vec::new(),
        trials: Vec::new(),
        steps: Vec::new(),
        imported: Some(Imported {
            title,
            claims: args.claims.iter().map(|claim| claim.text.clone()).collect(),
            ports: [args.near_port.clone(), args.far_port.clone()],
            files,
        }),
        end: Some(End::Complete),
    }
}

/// Saves the record; returns its name.
fn kept(record: &Record, options: &Options) -> Result<Option<String>, Failure> {
    let Some(mut recorder) = session::store(&options.records)?.as_ref().map(Store::recorder) else {
        return Ok(None);
    };
    recorder.keep(record);
    Ok(session::kept(&recorder))
}

/// Prints the results and findings of an imported record.
pub(super) fn show(
    record: &Record,
    saved: Option<(&str, &str)>,
    options: &Options,
) -> Result<Exit, Failure> {
    let material = material(record);
    let explained = explain(&material);
    out::result(
        options,
        || view::json(&explained),
        || noted(view::page(&explained, saved), record),
    )?;
    Ok(report::expectations(
        &directions(&explained),
        &Found { summary: explained.summary.clone(), verdict: Some(&explained.verdict) },
        options,
    ))
}

/// The directions for which transfers were reported.
fn directions(explained: &Explained<'_>) -> Vec<Direction> {
    let all = Direction::ALL.into_iter();
    let known = |direction: &Direction| {
        let mut transfers = explained.material.transfers();
        transfers.any(|(_, one)| one.direction == *direction)
    };
    all.filter(known).collect()
}

/// The results and facts of an imported record, parsed again from the bytes in the record.
pub(super) fn material(record: &Record) -> Material {
    let Some(imported) = &record.imported else {
        return Material::default();
    };
    let claims = imported.claims.iter();
    let mut material = Material {
        title: imported.title.clone(),
        claims: claims.filter_map(|claim| claim.parse().ok()).collect(),
        ports: imported.ports.clone(),
        ..Material::default()
    };
    for file in &imported.files {
        match &file.kept {
            Kept::Bytes(Blob(bytes)) => add(&mut material, (&file.name, file.side), bytes),
            Kept::Rows { label, tool, results, notes } => material.sources.push(Source {
                file: file.name.clone(),
                side: Some(file.side),
                label: label.clone(),
                tool: tool.clone(),
                results: results.clone(),
                notes: notes.clone(),
            }),
        }
    }
    material
}

/// Parses one file and adds its results; `name` and `side` are its name and the host at which it was made.
pub(super) fn add(material: &mut Material, (name, side): (&str, Side), bytes: &[u8]) {
    let source = |label: &str| Source {
        file: name.to_owned(),
        side: Some(side),
        label: label.to_owned(),
        ..Source::default()
    };
    let parsed = match read(bytes) {
        Ok(parsed) => parsed,
        // The record may be older than this parser, or damaged.
        Err(why) => {
            let note = Note { line: None, what: why.to_string() };
            return material.sources.push(Source { notes: vec![note], ..source(file::NOT_READ) });
        }
    };
    for part in parsed.parts {
        let host = match side {
            Side::Near => &mut material.near,
            Side::Far => &mut material.far,
        };
        let mut notes = part.notes;
        notes.extend(merge(host, part.facts));
        material.sources.push(Source {
            tool: part.tool,
            results: part.results,
            notes,
            ..source(part.format.label)
        });
    }
    if !parsed.notes.is_empty() {
        material.sources.push(Source {
            notes: parsed.notes,
            ..source("lines that are no output of a known program")
        });
    }
}

#[cfg(test)]
#[path = "tests/document.rs"]
mod document;
#[cfg(test)]
mod tests;
