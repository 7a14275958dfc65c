//! Options of `linerate lat`.

use clap::Args;
use serde::{Deserialize, Serialize};

use super::super::quantity::{Message, MessageRate, ProbeTime};
use super::{Likeness, LoadDirections, RESULT, TripFactor, TripPattern};

// Options of a single measurement of round trips.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Lat {
    /// Measuring time (1s to 60min), of a whole sweep too; Ctrl-C stops earlier and keeps the result
    /// [default: 10s, with --sweep 20s]
    #[arg(short, long, env = "LINERATE_LAT_TIME", value_name = "TIME")]
    pub(crate) time: Option<ProbeTime>,

    /// Time round trips with several values of one factor, in turn
    #[arg(long, env = "LINERATE_LAT_SWEEP", value_name = "WHAT")]
    pub(crate) sweep: Option<TripFactor>,

    /// Messages per second, 1 to 1000000, each timed from the moment when it is due (open loop) [default:
    /// send the next message when the answer has arrived (closed loop)]
    #[arg(long, env = "LINERATE_LAT_RATE", value_name = "N")]
    pub(crate) rate: Option<MessageRate>,

    /// Bytes of a message and of its answer, at most 16MiB [default: 64B]
    #[arg(long, env = "LINERATE_LAT_SIZE", value_name = "SIZE")]
    pub(crate) size: Option<Message>,

    /// Poll the sockets at both ends without a pause, instead of sleeping until a message arrives
    #[arg(long, env = "LINERATE_LAT_BUSY_POLL", value_name = "BOOL")]
    pub(crate) busy_poll: Option<bool>,

    /// Send small writes at once (TCP_NODELAY); false leaves Nagle's algorithm on for the timed messages
    #[arg(long, env = "LINERATE_LAT_NODELAY", value_name = "BOOL")]
    pub(crate) nodelay: Option<bool>,

    /// How a message is sent over TCP
    #[arg(long, env = "LINERATE_LAT_PATTERN", value_name = "PATTERN")]
    pub(crate) pattern: Option<TripPattern>,

    /// Print the result in the form of another tool, for scripts that read its tables
    #[arg(long, env = "LINERATE_LAT_LIKE", value_name = "TOOL", help_heading = RESULT,
          conflicts_with_all = ["json", "format", "stream_json"])]
    pub(crate) like: Option<Likeness>,

    /// Load the path in this direction at the same time; forward is to the far machine [default: no load]
    #[arg(long, env = "LINERATE_LAT_BESIDE", value_name = "DIRECTION")]
    pub(crate) beside: Option<LoadDirections>,
}
