//! `linerate whatif --compare`: several paths in one table.

use linerate_explain::Best;
use linerate_explain::case::{Case, answer};

use super::super::exit::{Exit, Failure};
use super::super::options::{Format, Options};
use super::super::out;
use super::{explained, refused, text_of};
use linerate_show::whatif::compare::{self as view, Row};

/// Most paths in one table.
const MOST: usize = 100;

pub(super) fn run(names: &[String], options: &Options) -> Result<Exit, Failure> {
    if names.len() > MOST {
        let why = anyhow::anyhow!("{} cases are too many; allowed: {MOST}", names.len());
        return Err(Failure::usage(why));
    }
    let rows = names.iter().map(|name| {
        let text = text_of(name, &options.records)?;
        row(name, &text).map_err(|error| refused(name, error))
    });
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    if options.report.format == Some(Format::Csv) && options.report.json != Some(true) {
        out::print(&view::csv(&rows))?;
    } else {
        out::result(options, || view::document(&rows), || view::page(&rows))?;
    }
    Ok(Exit::Done)
}

/// The table row of a case: the ceilings of its path, and the best published measurement.
pub(super) fn row(name: &str, text: &str) -> anyhow::Result<Row> {
    let case = Case::read(text, &[""; 0])?;
    let answer = answer(&case)?;
    let paths = explained::read(text)?;
    let own = paths.iter().find(|path| path.is_own());
    let best = own.and_then(|path| Best::of(&path.material));
    Ok(Row::new(name, &case, &answer, best))
}
