//! `linerate disk`: how fast a disk is, by the rows that everybody knows.

use clap::Parser;
use linerate_plan::transport::{Setting, file};

use super::exit::{Exit, Failure};
use super::options::{self, Options};
use super::study::{loads, mount, rows};
use linerate_plan::transport::FILE;

// `linerate disk`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// A folder, in which a file of linerate's own is written and read, or a file or a disk, which is only read
    target: String,

    #[command(flatten)]
    pub(crate) disk: options::Disk,

    /// Write data that can be checked, and check what is read from a file of linerate's own; costs CPU time
    #[arg(long, env = "LINERATE_VERIFY", value_name = "BOOL")]
    pub(crate) verify: Option<bool>,

    /// Name the disk that is measured once more, and let it be written. ALL DATA IN THE TESTED PART ARE LOST: on the whole
    /// disk, or in as much of it as --size says from its beginning. Refused while anything uses the disk
    #[arg(long, env = "LINERATE_WRITE_TO", value_name = "PATH")]
    pub(crate) write_to: Option<String>,

    #[command(flatten)]
    pub(crate) reach: options::Peer,
    #[command(flatten)]
    pub(crate) json: options::Json,
    #[command(flatten)]
    pub(crate) records: options::Records,
}

impl Args {
    /// Adds the options of the command line to a layer.
    pub(crate) fn typed(&self, options: &mut Options) {
        options.disk = self.disk.clone();
        options.peer = self.reach.clone();
        let verify = self.verify.map(|on| (file::VERIFY.key, Setting::Switch(on)));
        let write_to = self.write_to.clone().map(|to| (file::WRITE_TO.key, Setting::Word(to)));
        for (key, setting) in verify.into_iter().chain(write_to) {
            options.engine = options.engine.with(key, &setting);
        }
        self.json.typed(&mut options.report);
        options.records = self.records.clone();
    }
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    if let Some(server) = &options.disk.server {
        return mount::run(&args.target, server, options);
    }
    if let Some(factor) = options.disk.sweep {
        let mut options = options.clone();
        options.run.engine = Some(FILE.name.to_owned());
        options.bw.time = options.disk.time;
        return loads::run(Some(&args.target), factor, &options);
    }
    rows::run(&args.target, options)
}
