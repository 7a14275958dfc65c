//! Every option, declared once: each field here is a flag, an environment variable and an entry of the configuration
//! file. Its default is in `defaults.toml`.
//!
//! A field is an `Option` because a layer need not set it; after [`super::config::resolve`] each option with a default
//! is set. Verbs share groups of options. (Groups have plain comments, because clap would use a doc comment of a group
//! as the description of the verb.)

mod choice;
mod lat;
pub(crate) mod own;

use std::path::PathBuf;

use clap::Args;
use linerate_plan::study::Part;
use linerate_plan::transport::TRANSPORTS;
use serde::{Deserialize, Serialize};

pub(crate) use choice::{
    Color, Format, HandOver, Likeness, LoadDirections, RowSet, RunDirections, SweepFactor,
    TripFactor, TripPattern,
};
pub(crate) use lat::Lat;

use super::note::Note;
use super::quantity::{
    Budget, Buffer, Clients, FileSize, LookTime, LossShare, Network, OpSize, Pace, PortNumber,
    ProbeTime, SegmentSize, Streams, Times, Top,
};
use super::resolve::Needs;

// All groups of options, nested as in the configuration file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Options {
    pub(crate) global: Global,
    pub(crate) peer: Peer,
    pub(crate) run: Run,
    pub(crate) load: LoadOptions,
    pub(crate) engine: own::Own,
    pub(crate) report: Report,
    pub(crate) records: Records,
    pub(crate) serve: Serve,
    pub(crate) bw: Bw,
    pub(crate) lat: Lat,
    pub(crate) disk: Disk,
    pub(crate) flows: Flows,
    pub(crate) demo: Demo,
}

// Options that every verb has.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Global {
    /// When to use colour
    #[arg(long, env = "LINERATE_COLOR", global = true, value_name = "WHEN", help_heading = GLOBAL)]
    pub(crate) color: Option<Color>,

    /// Print no progress to stderr
    #[arg(short, long, env = "LINERATE_QUIET", global = true, value_name = "BOOL", help_heading = GLOBAL)]
    pub(crate) quiet: Option<bool>,

    /// Configuration file [default: $XDG_CONFIG_HOME/linerate/config.toml, if it exists]
    #[arg(long, env = "LINERATE_CONFIG", global = true, value_name = "FILE", help_heading = GLOBAL)]
    #[serde(skip)]
    pub(crate) config: Option<PathBuf>,
}

/// The help of `--engine`: it lists the transports that can carry the traffic in `needs`.
pub(crate) fn engines(needs: Needs) -> String {
    let able = TRANSPORTS.iter().filter(|info| needs.met_by(info));
    let words: Vec<String> = able.map(|info| format!("{} ({})", info.name, info.doc)).collect();
    format!("How bytes are moved: {}", words.join(", "))
}

const GLOBAL: &str = "Global options";
pub(crate) const RESULT: &str = "Result";

// How the near end finds the far end, and how each proves that it has the key.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Peer {
    /// Port of `linerate serve` on the far machine, for control and data
    #[arg(long, env = "LINERATE_PORT", value_name = "PORT")]
    pub(crate) port: Option<PortNumber>,

    /// Use no key: the far machine runs `linerate serve --open`
    #[arg(long, env = "LINERATE_OPEN", value_name = "BOOL")]
    pub(crate) open: Option<bool>,

    /// Use IPv4 only
    #[arg(short = '4', long, env = "LINERATE_IPV4", value_name = "BOOL")]
    pub(crate) ipv4: Option<bool>,

    /// Use IPv6 only
    #[arg(short = '6', long, env = "LINERATE_IPV6", value_name = "BOOL", conflicts_with = "ipv4")]
    pub(crate) ipv6: Option<bool>,
}

// Options that determine what a run measures.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Run {
    /// Time for the whole run, experiments included (5s to 60min)
    #[arg(short, long, env = "LINERATE_TIME", value_name = "TIME")]
    pub(crate) time: Option<Budget>,

    /// Same as --time 20s
    #[arg(long, env = "LINERATE_QUICK", value_name = "BOOL")]
    pub(crate) quick: Option<bool>,

    /// Same as --time 5min: for small effects, and for paths whose speed varies
    #[arg(long, env = "LINERATE_THOROUGH", value_name = "BOOL")]
    pub(crate) thorough: Option<bool>,

    /// Direction to measure and judge; forward is to the far machine
    #[arg(short, long, env = "LINERATE_DIRECTION", value_name = "DIRECTION")]
    pub(crate) direction: Option<RunDirections>,

    /// Measure and judge without experiments: only a ceiling that is reached can prove a limit
    #[arg(long, env = "LINERATE_NO_TRIALS", value_name = "BOOL")]
    pub(crate) no_trials: Option<bool>,

    /// Do this many runs, 2 to 100, and compare them; --time is the time of each
    #[arg(long, env = "LINERATE_REPEAT", value_name = "N")]
    pub(crate) repeat: Option<Times>,

    /// Measure the path by RDMA verbs, by TCP sockets, and by an ordinary program with and without
    /// librdmacm's socket preload, and compare them, without a verdict
    #[arg(long, env = "LINERATE_LAYERS", value_name = "BOOL",
          conflicts_with_all = ["repeat", "engine", "stream_json", "expect", "no_trials",
                                "allow_changes", "with_record"])]
    pub(crate) layers: Option<bool>,

    /// Let experiments change settings of the hosts: limits of buffers and queues, offloads and
    /// `rps_cpus`. Needs root. Each setting is restored after its experiment, or by the next start if
    /// linerate is killed. Settings of the far machine need `serve --allow-changes` there
    #[arg(long, env = "LINERATE_ALLOW_CHANGES", value_name = "BOOL")]
    pub(crate) allow_changes: Option<bool>,

    // The help of this option lists the engines that carry a load and time round trips.
    #[arg(long, env = "LINERATE_ENGINE", value_name = "NAME", help = engines(Needs::Both))]
    pub(crate) engine: Option<String>,

    /// Print events as they happen, one JSON object on each line; the last one is the result
    #[arg(long, env = "LINERATE_STREAM_JSON", value_name = "BOOL", help_heading = RESULT,
          conflicts_with = "format")]
    pub(crate) stream_json: Option<bool>,
}

// Settings of the connections of a load.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadOptions {
    /// Number of connections, 1 to 10000 [default: 1, then more to see whether they help]
    #[arg(short = 'P', long, env = "LINERATE_STREAMS", value_name = "N")]
    pub(crate) streams: Option<Streams>,

    /// Bytes of each read and write, such as 128KiB [default: depends on the measured rate]
    #[arg(long, env = "LINERATE_SIZE", value_name = "SIZE")]
    pub(crate) size: Option<OpSize>,

    /// Bytes of each write, if not --size
    #[arg(long, env = "LINERATE_WRITE_SIZE", value_name = "SIZE")]
    pub(crate) write_size: Option<OpSize>,

    /// Bytes of each read, if not --size
    #[arg(long, env = "LINERATE_READ_SIZE", value_name = "SIZE")]
    pub(crate) read_size: Option<OpSize>,

    /// Size of the send buffer, such as 4MiB; without it the kernel tunes the size
    #[arg(long, env = "LINERATE_SEND_BUFFER", value_name = "SIZE")]
    pub(crate) send_buffer: Option<Buffer>,

    /// Size of the receive buffer, such as 4MiB; without it the kernel tunes the size
    #[arg(long, env = "LINERATE_RECV_BUFFER", value_name = "SIZE")]
    pub(crate) recv_buffer: Option<Buffer>,

    /// Largest TCP segment, in bytes (88 to 32767)
    #[arg(long, env = "LINERATE_MSS", value_name = "BYTES")]
    pub(crate) mss: Option<SegmentSize>,

    /// Maximum rate of each stream, such as 1Gbit/s
    #[arg(long, env = "LINERATE_PACING", value_name = "RATE")]
    pub(crate) pacing: Option<Pace>,

    /// Congestion control at both ends, such as cubic or bbr [default: the system's]
    #[arg(long, env = "LINERATE_CONGESTION", value_name = "NAME")]
    pub(crate) congestion: Option<String>,

    /// How the sender passes payload to the kernel
    #[arg(long, env = "LINERATE_COPY", value_name = "HOW")]
    pub(crate) copy: Option<HandOver>,

    /// Send small writes at once (TCP_NODELAY)
    #[arg(long, env = "LINERATE_NODELAY", value_name = "BOOL")]
    pub(crate) nodelay: Option<bool>,
}

// Options that determine how a result is printed and checked.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = RESULT)]
pub(super) struct Report {
    // Set by the flag `--json` of `Json`.
    #[arg(skip)]
    pub(crate) json: Option<bool>,

    // Set by the flag `--format` of `Form`.
    #[arg(skip)]
    pub(crate) format: Option<Format>,

    /// Add all raw readings to the JSON document
    #[arg(long, env = "LINERATE_WITH_RECORD", value_name = "BOOL")]
    pub(crate) with_record: Option<bool>,

    /// Exit with code 4 unless this condition holds, such as 'goodput>=9Gbit/s'; may be repeated
    ///
    /// The left side is a figure or `cause`. Figures: `goodput`; `operations` and `messages` per second,
    /// such as 'messages>=100k/s'; `latency.p50`, `latency.p90`, `latency.p99` and `latency.p99.9`;
    /// `retransmits`; `loss` of datagrams, such as 'loss<0.1%'; `near.cpu` and `far.cpu`, the CPU time
    /// per byte, such as 'near.cpu<0.5ns/B'. A prefix `forward.` or `reverse.` selects one direction.
    /// Without a prefix, `latency` is that of the idle path, and every other figure must hold in each
    /// direction that is measured. `forward.latency` is the round trip during the forward load.
    /// `cause=ID` holds if that cause limits the path; `cause=contended` and `cause=interrupted` also
    /// hold if they disturbed the measurement. Only `run` looks for causes. A condition on a figure that
    /// was not measured does not hold.
    #[arg(long, env = "LINERATE_EXPECT", value_name = "EXPR")]
    pub(crate) expect: Option<Vec<crate::expect::Expect>>,
}

// The form in which people read a result. `causes` and `explain` have only this group: they have no JSON.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Form {
    /// Print the result as text or as Markdown
    #[arg(long, env = "LINERATE_FORMAT", value_name = "FORM", help_heading = RESULT)]
    format: Option<Format>,
}

impl Form {
    pub(crate) fn typed(&self, report: &mut Report) {
        report.format = self.format;
    }
}

// The flags that choose the form of a result: text or Markdown for people, JSON for programs.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Json {
    #[command(flatten)]
    form: Form,

    /// Print one JSON document instead of text
    #[arg(long, env = "LINERATE_JSON", value_name = "BOOL", help_heading = RESULT, conflicts_with = "format")]
    json: Option<bool>,
}

impl Json {
    /// These flags, combined with those typed after a verb within this command, which take precedence.
    pub(crate) fn or(&self, behind: &Self) -> Self {
        Self {
            form: Form { format: behind.form.format.or(self.form.format) },
            json: behind.json.or(self.json),
        }
    }

    pub(crate) fn typed(&self, report: &mut Report) {
        self.form.typed(report);
        report.json = self.json;
    }
}

// Where records are saved, and with which note.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Record")]
pub(crate) struct Records {
    /// Directory to save the record in [default: $XDG_STATE_HOME/linerate/records]
    #[arg(long, env = "LINERATE_SAVE", value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,

    /// Do not save a record
    #[arg(long, env = "LINERATE_NO_SAVE", value_name = "BOOL", conflicts_with = "save")]
    pub(crate) no_save: Option<bool>,

    /// Note to find the record by, at most 100 characters: `linerate show TEXT`, `linerate list TEXT`
    #[arg(long, env = "LINERATE_NOTE", value_name = "TEXT", conflicts_with = "no_save")]
    pub(crate) note: Option<Note>,

    /// The study of which the record is a part; set by the program, never by the user.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) study: Option<Part>,
}

// Options that only `serve` has.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Serve {
    /// Address to listen on [default: all addresses of this host]
    #[arg(long, env = "LINERATE_LISTEN", value_name = "ADDRESS")]
    pub(crate) listen: Option<std::net::IpAddr>,

    /// Accept clients only from this network or address, such as 10.1.0.0/16; may be repeated [default:
    /// accept all]
    #[arg(long, env = "LINERATE_ALLOW", value_name = "CIDR", value_delimiter = ',')]
    pub(crate) allow: Option<Vec<Network>>,

    /// Maximum number of clients at the same time, 1 to 1024; others get an answer that the server is busy
    #[arg(long, env = "LINERATE_MAX_CLIENTS", value_name = "N")]
    pub(crate) max_clients: Option<Clients>,

    /// Require no key: anyone who can reach the port can load this host and its network
    #[arg(long, env = "LINERATE_SERVE_OPEN", value_name = "BOOL")]
    pub(crate) open: Option<bool>,

    /// Also serve iperf3 clients, at port 5201 or this one. iperf3 has no keys: anyone who can reach
    /// that port can load this host and its network
    #[arg(long, env = "LINERATE_SERVE_IPERF3", value_name = "PORT", num_args = 0..=1,
          require_equals = true, default_missing_value = "5201")]
    pub(crate) iperf3: Option<PortNumber>,

    /// Let clients measure the disk that holds this folder, by a file of linerate's own there, of 16 GiB at
    /// most. It has no name, and is gone when the client leaves
    #[arg(long, env = "LINERATE_SERVE_STORAGE", value_name = "DIR")]
    pub(crate) storage: Option<String>,

    /// Let clients change settings of this host for experiments: limits of buffers and queues, offloads
    /// and `rps_cpus`. Needs root. Each setting is restored after its experiment or session, or by the
    /// next start if linerate is killed
    #[arg(long, env = "LINERATE_SERVE_ALLOW_CHANGES", value_name = "BOOL")]
    pub(crate) allow_changes: Option<bool>,

    /// Serve the program that started this one, as `linerate run ssh://HOST` does: read the key from the
    /// first line of stdin, use another port if this one is in use, and stop when stdin closes
    #[arg(long, env = "LINERATE_SERVE_ATTACHED", value_name = "BOOL")]
    pub(crate) attached: Option<bool>,

    /// Read the key from stdin instead of the key file
    #[arg(long, env = "LINERATE_KEY_STDIN", value_name = "BOOL")]
    pub(crate) key_stdin: Option<bool>,
}

// Options of a single measurement of throughput.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Bw {
    /// Measuring time (1s to 60min), of a whole sweep too; Ctrl-C stops earlier and keeps the result
    /// [default: 10s, with --sweep 60s]
    #[arg(short, long, env = "LINERATE_BW_TIME", value_name = "TIME")]
    pub(crate) time: Option<ProbeTime>,

    /// Direction to measure; forward is to the far machine
    #[arg(short, long, env = "LINERATE_BW_DIRECTION", value_name = "DIRECTION")]
    pub(crate) direction: Option<LoadDirections>,

    /// Measure with several values of one factor, in turn
    #[arg(long, env = "LINERATE_SWEEP", value_name = "WHAT")]
    pub(crate) sweep: Option<SweepFactor>,

    /// Let the receiver's kernel drop payload instead of copying it to the program (MSG_TRUNC, as iperf3's
    /// --skip-rx-copy): shows the cost without that copy
    #[arg(long, env = "LINERATE_DISCARD", value_name = "BOOL")]
    pub(crate) discard: Option<bool>,

    /// Search for the highest rate at which at most this share of datagrams is lost, such as 0.1%. Without
    /// a share no datagram may be lost (the throughput of RFC 2544). --pacing is the highest rate to try
    #[arg(long, env = "LINERATE_FIND_RATE", value_name = "SHARE", num_args = 0..=1,
          require_equals = true, default_missing_value = "0%")]
    pub(crate) find_rate: Option<LossShare>,
}

// Options of an observation of existing connections.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Flows {
    /// Observation time (1s to 10min); Ctrl-C stops earlier and shows the result
    #[arg(short, long, env = "LINERATE_FLOWS_TIME", value_name = "TIME")]
    pub(crate) time: Option<LookTime>,

    /// Number of connections to show, 1 to 100; those that carry most come first
    #[arg(long, env = "LINERATE_TOP", value_name = "N")]
    pub(crate) top: Option<Top>,
}

// Options of a measurement of a disk.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Disk {
    /// The rows: those of a version of CrystalDiskMark, or of its profiles [default: cdm9]
    #[arg(long, env = "LINERATE_ROWS", value_name = "SET", value_enum)]
    pub(crate) rows: Option<RowSet>,

    /// Measuring time of each row and direction [default: 3s, and less for writes of a fast disk]
    #[arg(short, long, env = "LINERATE_DISK_TIME", value_name = "TIME")]
    pub(crate) time: Option<ProbeTime>,

    /// Size of the file that is made in a folder [default: 1GiB], or of the part of a disk that --write-to lets be
    /// overwritten, from its beginning [default: the whole disk]
    #[arg(short, long, env = "LINERATE_DISK_SIZE", value_name = "SIZE")]
    pub(crate) size: Option<FileSize>,

    /// Measure with each value of one factor in turn, in place of rows, up to where more gain nothing
    #[arg(
        long,
        env = "LINERATE_DISK_SWEEP",
        value_name = "FACTOR",
        value_enum,
        conflicts_with = "rows"
    )]
    pub(crate) sweep: Option<SweepFactor>,

    /// Server of a mounted folder, where `linerate serve --storage DIR` runs: its disk, the network and the
    /// mount are measured in turn, and the least is named
    #[arg(long, env = "LINERATE_DISK_SERVER", value_name = "HOST")]
    pub(crate) server: Option<String>,
}

// Options that only the demonstration has.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Demo {
    /// Time for the run of the demo (5s to 60min)
    #[arg(short, long, env = "LINERATE_DEMO_TIME", value_name = "TIME")]
    pub(crate) time: Option<Budget>,

    /// Draw the fault, its place and its severity from this number; the same number gives the same fault
    #[arg(long, env = "LINERATE_SEED", value_name = "N")]
    pub(crate) seed: Option<u64>,
}
