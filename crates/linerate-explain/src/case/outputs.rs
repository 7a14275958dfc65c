//! The measured results in a case file: outputs of programs, times by size, and claims.

use serde::Deserialize;

use super::parts::express;
use super::{Answer, Case, CaseError, Host, answer, value};
use crate::{Claim, Hardware, Material, Part};
use linerate_ceiling::Bounds;
use linerate_ceiling::fingerprint::Point;
use linerate_plan::path::{Direction, Side};
use linerate_record::reported::{Measured, Outcome, Setup, SizeRow, Sizes, Source, Tool, Trip};

/// An output of a program, as it was published.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Output {
    /// Name of the output: what was measured.
    pub name: String,
    /// The host on which the program ran.
    #[serde(default = "near")]
    pub side: Side,
    /// Values in which the measured path differs from the case, written as after `--set`.
    #[serde(default)]
    pub set: Vec<String>,
    /// The text as the program printed it, or a table with named columns.
    pub text: String,
}

const fn near() -> Side {
    Side::Near
}

/// A claim about the results.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClaimKey {
    /// The claim: `goodput>=20Gbit/s`.
    #[serde(deserialize_with = "value::word")]
    pub says: Claim,
}

/// Times of messages of many sizes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SizeSeries {
    /// Description of the measured quantity.
    pub what: String,
    /// Sizes with their times: all times in one direction, or all round trips.
    #[serde(deserialize_with = "value::points")]
    pub points: Vec<Point>,
}

/// Results of one path: the path of the case, or one that differs from it in some values.
#[derive(Debug, Clone)]
pub struct Reported {
    /// The values in which the path differs from the case; empty for the path of the case itself.
    pub set: Vec<String>,
    /// The hardware, the times by size and the claims. The text of the outputs is not parsed yet.
    pub material: Material,
    /// The outputs of programs, not parsed yet.
    pub outputs: Vec<Output>,
}

/// The results in a case file: of its own path first, then of each path that differs. Empty if it has no results.
pub fn reported(text: &str) -> Result<Vec<Reported>, CaseError> {
    let case = Case::read(text, &[""; 0])?;
    let mut paths: Vec<Vec<String>> = vec![Vec::new()];
    for output in &case.output {
        if !paths.contains(&output.set) {
            paths.push(output.set.clone());
        }
    }
    let each = paths.into_iter().map(|set| of_path(text, &case, set));
    let mut all = each.collect::<Result<Vec<_>, _>>()?;
    all.retain(|one| {
        let report = &one.material;
        !(one.outputs.is_empty() && report.sources.is_empty() && report.claims.is_empty())
    });
    Ok(all)
}

fn of_path(text: &str, case: &Case, set: Vec<String>) -> Result<Reported, CaseError> {
    let path = Case::read(text, &set)?;
    let mut material =
        Material { hardware: hardware(&path, &answer(&path)?), ..Material::default() };
    // Any path of the case may refute a claimed ceiling. Other claims are about the path of the case itself.
    let is_own = |claim: &&ClaimKey| set.is_empty() || claim.says.text.starts_with("ceiling");
    let claims = case.claim.iter().filter(is_own);
    material.claims = claims.map(|claim| claim.says.clone()).collect();
    if set.is_empty() {
        material.sources = case.sweep.iter().map(source).collect();
    }
    let outputs = case.output.iter().filter(|output| output.set == set);
    Ok(Reported { outputs: outputs.cloned().collect(), material, set })
}

/// The ceilings of the hardware that a case describes.
fn hardware(case: &Case, answer: &Answer) -> Hardware {
    let ways = Direction::ALL.into_iter().filter_map(|way| answer.way(way));
    let all = Direction::ALL.into_iter().flat_map(|way| answer.ceilings(way));
    let mut parts: Vec<Part> = Vec::new();
    for ceiling in all {
        let name = &ceiling.resource.name;
        match parts.iter_mut().find(|part| part.name == *name) {
            Some(part) => {
                let (one, other) = (part.goodput, ceiling.goodput);
                let ends = [one.low(), one.high(), other.low(), other.high()];
                part.goodput = Bounds::of(ends);
            }
            None => parts.push(Part { name: name.clone(), goodput: ceiling.goodput }),
        }
    }
    let slot = |(name, host): (&str, &Host)| Some((name.to_owned(), express(host)?));
    let hosts = [("near slot", &case.near), ("far slot", &case.far)];
    Hardware {
        ways: ways.cloned().collect(),
        parts,
        slots: hosts.into_iter().filter_map(slot).collect(),
    }
}

/// Turns times by size, which were typed into the case file, into the form of a program's output.
fn source(series: &SizeSeries) -> Source {
    let row = |point: &Point| SizeRow {
        size: point.size,
        typical: Some(point.time),
        ..SizeRow::default()
    };
    let sizes = Sizes {
        carrier: None,
        operation: String::new(),
        trip: Trip::Unknown,
        both: false,
        rows: series.points.iter().map(row).collect(),
        setup: Setup::default(),
    };
    Source {
        file: series.what.clone(),
        side: None,
        label: "points of the case file".to_owned(),
        tool: Tool::default(),
        results: vec![Outcome { title: String::new(), line: 1, measured: Measured::Sizes(sizes) }],
        notes: Vec::new(),
    }
}
