//! Every option, declared once: a field here is a flag, an environment variable and an entry of
//! the configuration file. Its default stands in `defaults.toml`.
//!
//! Fields are `Option`s because a layer may leave them open; after [`super::config::resolve`] the
//! ones with a default are set. Groups are shared by the verbs that need them. (They carry plain
//! comments: clap would take a doc comment of a group for the description of the verb.)

mod choice;
pub(crate) mod own;

use std::path::PathBuf;

use clap::Args;
use linerate_core::transport::TRANSPORTS;
use serde::{Deserialize, Serialize};

pub(crate) use choice::{Color, Format, HandOver, LoadDirections, RunDirections, SweepFactor};

use super::quantity::{
    Budget, Buffer, Clients, LookTime, LossShare, Message, MessageRate, Network, OpSize, Pace,
    PortNumber, ProbeTime, SegmentSize, Streams, Times, Top,
};
use super::resolve::Needs;

// All groups, as they nest in the file.
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
    pub(crate) flows: Flows,
    pub(crate) demo: Demo,
}

// What every verb takes.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Global {
    /// When to use colour
    #[arg(long, env = "LINERATE_COLOR", global = true, value_name = "WHEN", help_heading = GLOBAL)]
    pub(crate) color: Option<Color>,

    /// Print no progress on stderr
    #[arg(short, long, env = "LINERATE_QUIET", global = true, help_heading = GLOBAL,
          num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_name = "BOOL", hide_possible_values = true)]
    pub(crate) quiet: Option<bool>,

    /// Configuration file [default: $XDG_CONFIG_HOME/linerate/config.toml, if it exists]
    #[arg(long, env = "LINERATE_CONFIG", global = true, value_name = "FILE", help_heading = GLOBAL)]
    #[serde(skip)]
    pub(crate) config: Option<PathBuf>,
}

/// The help of `--engine`: the transports that can do what is needed of any command that has it.
pub(crate) fn engines(needs: Needs) -> String {
    let able = TRANSPORTS.iter().filter(|info| needs.met_by(info));
    let words: Vec<String> = able
        .map(|info| format!("{} ({})", info.name, info.doc))
        .collect();
    format!("Way to move bytes: {}", words.join(", "))
}

const GLOBAL: &str = "Global options";
pub(crate) const RESULT: &str = "Result";

// How the two ends find and trust each other.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Peer {
    /// Port of the serving end, for control and data
    #[arg(long, env = "LINERATE_PORT", value_name = "PORT")]
    pub(crate) port: Option<PortNumber>,

    /// Use no key, for a far end that runs `linerate serve --open`
    #[arg(long, env = "LINERATE_OPEN", value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub(crate) open: Option<bool>,

    /// Use IPv4 only
    #[arg(short = '4', long, env = "LINERATE_IPV4", value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub(crate) ipv4: Option<bool>,

    /// Use IPv6 only
    #[arg(short = '6', long, env = "LINERATE_IPV6", value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true", hide_possible_values = true,
          conflicts_with = "ipv4")]
    pub(crate) ipv6: Option<bool>,
}

// What a run does.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Run {
    /// Budget of the whole run, trials included (5s to 60min)
    #[arg(
        short,
        long,
        env = "LINERATE_TIME",
        value_name = "TIME",
        allow_hyphen_values = true
    )]
    pub(crate) time: Option<Budget>,

    /// A short look: a budget of 20 s
    #[arg(long, env = "LINERATE_QUICK", value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub(crate) quick: Option<bool>,

    /// A long look, for small effects and wandering paths: a budget of 5 min
    #[arg(long, env = "LINERATE_THOROUGH", value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub(crate) thorough: Option<bool>,

    /// Direction to judge; forward is from here to the peer
    #[arg(short, long, env = "LINERATE_DIRECTION", value_name = "WAY")]
    pub(crate) direction: Option<RunDirections>,

    /// Measure and judge, but prove nothing by experiment
    #[arg(long, env = "LINERATE_NO_TRIALS", value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub(crate) no_trials: Option<bool>,

    /// Run so many times, 2 to 100, and tell what the runs have in common; --time is that of each
    #[arg(
        long,
        env = "LINERATE_REPEAT",
        value_name = "N",
        allow_hyphen_values = true
    )]
    pub(crate) repeat: Option<Times>,

    /// Try settings of the hosts too: limits of buffers and queues, offloads, `rps_cpus`. This needs
    /// root; each is set back at the end, or by the next start after a kill. The far host needs `serve
    /// --allow-changes`
    #[arg(long, env = "LINERATE_ALLOW_CHANGES", value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub(crate) allow_changes: Option<bool>,

    // Its help lists those that carry a load and time round trips.
    #[arg(long, env = "LINERATE_ENGINE", value_name = "NAME", help = engines(Needs::Both))]
    pub(crate) engine: Option<String>,

    /// Print what happens as it does, a JSON object on each line; the last one has the result
    #[arg(long, env = "LINERATE_STREAM_JSON", value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true", hide_possible_values = true,
          help_heading = RESULT, conflicts_with = "format")]
    pub(crate) stream_json: Option<bool>,
}

// What the connections are made with.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadOptions {
    /// Connections of the load, 1 to 10000 [default: 1, then more to see whether they help]
    #[arg(
        short = 'P',
        long,
        env = "LINERATE_STREAMS",
        value_name = "N",
        allow_hyphen_values = true
    )]
    pub(crate) streams: Option<Streams>,

    /// Payload of each read and each write, such as 128KiB [default: chosen by the rate seen]
    #[arg(
        long,
        env = "LINERATE_SIZE",
        value_name = "SIZE",
        allow_hyphen_values = true
    )]
    pub(crate) size: Option<OpSize>,

    /// Payload of each write, where it differs from --size
    #[arg(
        long,
        env = "LINERATE_WRITE_SIZE",
        value_name = "SIZE",
        allow_hyphen_values = true
    )]
    pub(crate) write_size: Option<OpSize>,

    /// Payload of each read, where it differs from --size
    #[arg(
        long,
        env = "LINERATE_READ_SIZE",
        value_name = "SIZE",
        allow_hyphen_values = true
    )]
    pub(crate) read_size: Option<OpSize>,

    /// Send buffer, such as 4MiB; turns the kernel's autotuning off
    #[arg(
        long,
        env = "LINERATE_SEND_BUFFER",
        value_name = "SIZE",
        allow_hyphen_values = true
    )]
    pub(crate) send_buffer: Option<Buffer>,

    /// Receive buffer, such as 4MiB; turns the kernel's autotuning off
    #[arg(
        long,
        env = "LINERATE_RECV_BUFFER",
        value_name = "SIZE",
        allow_hyphen_values = true
    )]
    pub(crate) recv_buffer: Option<Buffer>,

    /// Largest TCP segment, in bytes (88 to 32767)
    #[arg(
        long,
        env = "LINERATE_MSS",
        value_name = "BYTES",
        allow_hyphen_values = true
    )]
    pub(crate) mss: Option<SegmentSize>,

    /// Upper bound of each stream's rate, such as 1Gbit/s
    #[arg(
        long,
        env = "LINERATE_PACING",
        value_name = "RATE",
        allow_hyphen_values = true
    )]
    pub(crate) pacing: Option<Pace>,

    /// Congestion control of both ends, such as cubic or bbr [default: the system's]
    #[arg(long, env = "LINERATE_CONGESTION", value_name = "NAME")]
    pub(crate) congestion: Option<String>,

    /// How the sender hands its payload to the kernel
    #[arg(long, env = "LINERATE_COPY", value_name = "HOW")]
    pub(crate) copy: Option<HandOver>,

    /// Send small writes at once (TCP_NODELAY)
    #[arg(long, env = "LINERATE_NODELAY", value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub(crate) nodelay: Option<bool>,
}

// How a result leaves the tool.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = RESULT)]
pub(crate) struct Report {
    // Flags of `Json`.
    #[arg(skip)]
    pub(crate) json: Option<bool>,

    // A flag of `Form`.
    #[arg(skip)]
    pub(crate) format: Option<Format>,

    /// Put the raw readings into the JSON document too
    #[arg(long, env = "LINERATE_WITH_RECORD", value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub(crate) with_record: Option<bool>,

    /// Exit with code 4 unless this holds, such as 'goodput>=9Gbit/s'; may be repeated
    ///
    /// Left of the comparison stands a figure or `cause`: `goodput`; `operations` and `messages` in a
    /// second, such as 'messages>=100k/s'; `latency.p50`, `latency.p90`, `latency.p99` and
    /// `latency.p99.9`; `retransmits`; `loss` of datagrams, such as 'loss<0.1%'; `near.cpu` and
    /// `far.cpu`, CPU time for each byte, such as 'near.cpu<0.5ns/B'. `forward.` or `reverse.` before it
    /// means one direction; without it `latency` means the idle path, and all others mean every direction
    /// that was asked for. `forward.latency` is of round trips beside the forward load. `cause=ID`
    /// holds if that cause limits the path, or if it is `contended` or `interrupted` and disturbed the
    /// measurement; only `run` looks for causes. What was not measured does not hold.
    #[arg(long, env = "LINERATE_EXPECT", value_name = "EXPR")]
    pub(crate) expect: Option<Vec<crate::expect::Expect>>,
}

// In which form people read a result. `causes` takes it alone: it has no JSON.
#[derive(Debug, Clone, Args)]
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

// Whether a result is for people, and in which form, or for programs.
#[derive(Debug, Clone, Args)]
pub(crate) struct Json {
    #[command(flatten)]
    form: Form,

    /// Print one JSON document instead of text
    #[arg(long, env = "LINERATE_JSON", value_name = "BOOL", num_args = 0..=1, help_heading = RESULT,
          require_equals = true, default_missing_value = "true", hide_possible_values = true,
          conflicts_with = "format")]
    json: Option<bool>,
}

impl Json {
    pub(crate) fn typed(&self, report: &mut Report) {
        self.form.typed(report);
        report.json = self.json;
    }
}

// Where records are kept.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Record")]
pub(crate) struct Records {
    /// Directory that the record is kept in [default: $XDG_STATE_HOME/linerate/records]
    #[arg(long, env = "LINERATE_SAVE", value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,

    /// Keep no record
    #[arg(long, env = "LINERATE_NO_SAVE", value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true", hide_possible_values = true,
          conflicts_with = "save")]
    pub(crate) no_save: Option<bool>,
}

// What the serving end alone takes.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Serve {
    /// Address to listen on [default: all of this host]
    #[arg(long, env = "LINERATE_LISTEN", value_name = "ADDRESS")]
    pub(crate) listen: Option<std::net::IpAddr>,

    /// Network that clients may come from, such as 10.1.0.0/16, or an address; may be repeated.
    /// Others are closed at once [default: all]
    #[arg(
        long,
        env = "LINERATE_ALLOW",
        value_name = "CIDR",
        value_delimiter = ','
    )]
    pub(crate) allow: Option<Vec<Network>>,

    /// Clients that are served at a time, 1 to 1024; the next is told that the server is busy
    #[arg(
        long,
        env = "LINERATE_MAX_CLIENTS",
        value_name = "N",
        allow_hyphen_values = true
    )]
    pub(crate) max_clients: Option<Clients>,

    /// Ask for no key: anyone who reaches the port can load this host and its network
    #[arg(long, env = "LINERATE_SERVE_OPEN", value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub(crate) open: Option<bool>,

    /// Serve iperf3 clients too, at port 5201 or the one named; iperf3 knows no key: anyone who
    /// reaches that port can load this host and its network
    #[arg(long, env = "LINERATE_SERVE_IPERF3", value_name = "PORT", num_args = 0..=1,
          require_equals = true, default_missing_value = "5201")]
    pub(crate) iperf3: Option<PortNumber>,

    /// Let runs try settings of this host: limits of buffers and queues, offloads, `rps_cpus`. This
    /// needs root; each is set back when the trial or its session ends, or by the next start after a kill
    #[arg(long, env = "LINERATE_SERVE_ALLOW_CHANGES", value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub(crate) allow_changes: Option<bool>,

    /// Serve whoever started this program: the key is the first line of stdin, another port does where
    /// somebody has this one, and all ends when stdin is closed; so `linerate run ssh://HOST` starts it
    #[arg(long, env = "LINERATE_SERVE_ATTACHED", value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub(crate) attached: Option<bool>,

    /// Read the key from stdin instead of the key file
    #[arg(long, env = "LINERATE_KEY_STDIN", value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub(crate) key_stdin: Option<bool>,
}

// What a single measurement of throughput takes.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Bw {
    /// How long payload flows (1s to 60min), or all of a sweep; Ctrl-C ends it with what was measured until
    /// then [default: 10s, with --sweep 60s]
    #[arg(
        short,
        long,
        env = "LINERATE_BW_TIME",
        value_name = "TIME",
        allow_hyphen_values = true
    )]
    pub(crate) time: Option<ProbeTime>,

    /// Direction to measure; forward is from here to the far end
    #[arg(short, long, env = "LINERATE_BW_DIRECTION", value_name = "WAY")]
    pub(crate) direction: Option<LoadDirections>,

    /// Measure with each way to hand payload over, with each size of operations, or with 1, 2, 4 and so on
    /// to --streams connections, in turn
    #[arg(long, env = "LINERATE_SWEEP", value_name = "WHAT")]
    pub(crate) sweep: Option<SweepFactor>,

    /// Let the receiver's kernel drop payload instead of copying it to the program (MSG_TRUNC), as iperf3's
    /// --skip-rx-copy does: what is left is the price of everything else
    #[arg(long, env = "LINERATE_DISCARD", value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub(crate) discard: Option<bool>,

    /// Search for the highest rate at which no more than this share of datagrams is lost, such as 0.1%;
    /// none where it is left out (the throughput of RFC 2544). --pacing bounds the rates that are tried
    #[arg(long, env = "LINERATE_FIND_RATE", value_name = "SHARE", num_args = 0..=1,
          require_equals = true, default_missing_value = "0%")]
    pub(crate) find_rate: Option<LossShare>,
}

// What a single measurement of round trips takes.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Lat {
    /// How long round trips are timed (1s to 60min); Ctrl-C ends it with what was measured until then
    #[arg(
        short,
        long,
        env = "LINERATE_LAT_TIME",
        value_name = "TIME",
        allow_hyphen_values = true
    )]
    pub(crate) time: Option<ProbeTime>,

    /// Messages due in a second, each timed from when it was due (open loop), 1 to 1000000 [default: the
    /// next one when the answer is in (closed loop)]
    #[arg(
        long,
        env = "LINERATE_LAT_RATE",
        value_name = "N",
        allow_hyphen_values = true
    )]
    pub(crate) rate: Option<MessageRate>,

    /// Payload of a message, each way, to 16MiB [default: 64B]
    #[arg(
        long,
        env = "LINERATE_LAT_SIZE",
        value_name = "SIZE",
        allow_hyphen_values = true
    )]
    pub(crate) size: Option<Message>,

    /// Spin on the sockets of both ends instead of sleeping until a message is there
    #[arg(long, env = "LINERATE_LAT_BUSY_POLL", value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub(crate) busy_poll: Option<bool>,

    /// Load the path meanwhile; forward is from here to the far end [default: the idle path]
    #[arg(long, env = "LINERATE_LAT_BESIDE", value_name = "WAY")]
    pub(crate) beside: Option<LoadDirections>,
}

// What a look at connections takes.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Flows {
    /// How long to look (1s to 10min); Ctrl-C shows what was seen until then
    #[arg(
        short,
        long,
        env = "LINERATE_FLOWS_TIME",
        value_name = "TIME",
        allow_hyphen_values = true
    )]
    pub(crate) time: Option<LookTime>,

    /// How many connections to show, those that carry most, 1 to 100
    #[arg(
        long,
        env = "LINERATE_TOP",
        value_name = "N",
        allow_hyphen_values = true
    )]
    pub(crate) top: Option<Top>,
}

// What the demonstration alone takes.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Demo {
    /// Budget of the demonstration's run (5s to 60min)
    #[arg(
        short,
        long,
        env = "LINERATE_DEMO_TIME",
        value_name = "TIME",
        allow_hyphen_values = true
    )]
    pub(crate) time: Option<Budget>,

    /// Draw the fault, its side and its severity from this number, to see the same again
    #[arg(long, env = "LINERATE_SEED", value_name = "N")]
    pub(crate) seed: Option<u64>,
}
