//! `linerate causes`: lists or explains the causes that can limit a path.

use clap::Parser;
use linerate_judge::causes::CAUSES;

use super::exit::{Exit, Failure};
use super::options::{self, Format, Options};
use super::out;
use linerate_show::text;

// `linerate causes`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Id of a cause to explain, such as receive-window [default: list all]
    id: Option<String>,

    #[command(flatten)]
    pub(crate) form: options::Form,
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    let words = match &args.id {
        None => out::rendered(&text::causes(CAUSES), options),
        Some(id) => match options.report.format {
            // The pages are written in Markdown, so this format needs no conversion.
            Some(Format::Markdown) => format!("{}\n", page(id)?.trim()),
            _ => out::rendered(&text::cause(page(id)?), options),
        },
    };
    out::print(&words)?;
    Ok(Exit::Done)
}

fn page(id: &str) -> Result<&'static str, Failure> {
    let found = CAUSES.iter().find(|c| c.id == id);
    found.map(|c| c.page).ok_or_else(|| {
        let known: Vec<_> = CAUSES.iter().map(|c| c.id).collect();
        Failure::usage(anyhow::anyhow!("no cause has the id `{id}`"))
            .hint(format!("the ids are {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use linerate_test::kept;

    /// The pages of all causes, one after another.
    fn document() -> String {
        let mut text = String::from(
            "# Causes\n\nWhat linerate can name as the reason why a path is not faster. Generated from \
             the program\nby its tests; `linerate causes ID` prints one of them.\n",
        );
        for cause in CAUSES {
            let _ = write!(text, "\n#{}\n", cause.page.trim());
        }
        text
    }

    #[test]
    fn the_document_of_causes_says_what_the_program_says() {
        kept::check("docs/causes.md", &document());
    }

    #[test]
    fn every_cause_has_a_summary_that_fits_beside_its_id() {
        for cause in CAUSES {
            let summary = linerate_show::summary(cause.page);
            assert!((10..=200).contains(&summary.len()), "{}: {summary}", cause.id);
        }
    }

    #[test]
    fn an_unknown_id_is_refused_with_the_known_ones() {
        let failure = page("no-such-cause").unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.words().contains("`no-such-cause`"));
    }
}
