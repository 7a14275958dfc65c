//! `linerate causes`: what can hold a path back.

use std::fmt::Write as _;

use clap::Parser;
use linerate_core::causes::{CAUSES, Cause};

use super::exit::{Exit, Failure};
use super::options::Options;
use super::out;
use crate::show::{Style, text};

// `linerate causes`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Id of a cause, such as receive-window
    id: Option<String>,
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    let style = out::style(&options.global);
    let words = match &args.id {
        None => text::causes(CAUSES, style),
        Some(id) => page(id)?.to_owned(),
    };
    out::print(&words)?;
    Ok(Exit::Done)
}

fn page(id: &str) -> Result<&'static str, Failure> {
    let found = CAUSES.iter().find(|c| c.id() == id);
    found.map(|c| c.page()).ok_or_else(|| {
        let known: Vec<_> = CAUSES.iter().map(|c| c.id()).collect();
        Failure::usage(anyhow::anyhow!("no cause has the id `{id}`"))
            .hint(format!("the ids are {}", known.join(", ")))
    })
}

/// All pages, one after the other: `docs/causes.md`.
fn document(causes: &[&dyn Cause]) -> String {
    let mut text = String::from(
        "# Causes\n\nWhat linerate can name as the reason why a path is not faster. \
         Generated from the program; `linerate causes ID` prints one of them.\n",
    );
    for cause in causes {
        let _ = write!(text, "\n{}\n", cause.page().trim());
    }
    text
}
