//! `linerate disk`: how fast a disk is, by the rows that everybody knows.

use clap::Parser;

use super::exit::{Exit, Failure};
use super::options::{self, Options};
use super::study::rows;

// `linerate disk`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// A folder, in which a file of linerate's own is written and read, or a file or a disk, which is only read
    target: String,

    #[command(flatten)]
    pub(crate) disk: options::Disk,
    #[command(flatten)]
    pub(crate) json: options::Json,
    #[command(flatten)]
    pub(crate) records: options::Records,
}

impl Args {
    /// Adds the options of the command line to a layer.
    pub(crate) fn typed(&self, options: &mut Options) {
        options.disk = self.disk.clone();
        self.json.typed(&mut options.report);
        options.records = self.records.clone();
    }
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    rows::run(&args.target, options)
}
