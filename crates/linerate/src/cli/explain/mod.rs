//! `linerate explain`: explains the words of a field, such as InfiniBand.

use clap::{Parser, ValueEnum};

use super::exit::{Exit, Failure};
use super::options::{self, Format, Options};
use super::out;
use linerate_show::text;

// `linerate explain`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// The field whose words are explained
    field: Field,

    #[command(flatten)]
    pub(crate) form: options::Form,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Field {
    /// InfiniBand: LID, GUID, subnet manager, IPoIB, and the rates of each generation
    Ib,
}

impl Field {
    /// The explained words, in Markdown without headings; docs/glossary.md has the same text.
    const fn words(self) -> &'static str {
        match self {
            Self::Ib => include_str!("ib.md"),
        }
    }
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    let words = args.field.words();
    let text = match options.report.format {
        Some(Format::Markdown) => words.to_owned(),
        _ => out::rendered(&text::cause(words), options),
    };
    out::print(&text)?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use linerate_ceiling::infiniband::Speed;
    use linerate_units::Rate;

    use super::*;
    use linerate_test::kept;

    #[test]
    fn the_glossary_has_the_same_words() {
        kept::has_part("docs/glossary.md", Field::Ib.words());
    }

    #[test]
    fn each_generation_has_the_data_rate_of_its_ceiling() {
        for (name, speed) in Speed::NAMES {
            let data = Rate((speed.lane() * 4.0).round() as u64);
            let line = format!("- **{name}**: signal ");
            let line = Field::Ib.words().lines().find(|l| l.starts_with(&line));
            assert!(
                line.is_some_and(|line| line.ends_with(&format!(", data {data}"))),
                "{name}: {data}"
            );
        }
    }
}
