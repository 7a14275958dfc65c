//! `linerate disk MOUNT --server HOST`: the disk of a server, the network to it, and the mounted folder, in turn.

use linerate_plan::path::Direction;
use linerate_plan::study::Axis;
use linerate_plan::transport::TCP;
use linerate_plan::{Knobs, Plan};
use linerate_record::Made;
use linerate_session::run::once;
use linerate_show::study::{ACCESS, PLACE, PLACES};

use super::super::exit::{Exit, Failure};
use super::super::options::Options;
use super::super::resolve;
use super::super::session::Stop;
use super::Parts;
use super::rows::{self, Cell, SEQ_1M_Q8, SETTLE};

/// Measures each place in both directions, with operations of the same size, as many in flight.
pub(in super::super) fn run(mount: &str, server: &str, options: &Options) -> Result<Exit, Failure> {
    let mount = &resolve::absolute(mount);
    let ways = [Direction::Reverse, Direction::Forward];
    let axes = vec![
        Axis::of(PLACE, PLACES.iter().map(|place| (*place).to_owned())),
        Axis::of(ACCESS, ways.iter().map(|way| way.access().to_owned())),
    ];
    rows::announce(mount, &ways, options);
    let parts = Parts::measured(axes, false, options, |at, options, stop| {
        let direction = ways[at[1]];
        let time = options.disk.time.map_or(rows::TIME, |time| time.0);
        let done = match at[0] {
            0 => {
                let cell = Cell { target: server, row: &SEQ_1M_Q8, direction, time };
                rows::measured(&cell, options, stop)?
            }
            1 => network(server, direction, options, stop)?,
            _ => {
                let cell = Cell { target: mount, row: &SEQ_1M_Q8, direction, time };
                rows::measured(&cell, options, stop)?
            }
        };
        let exit = if done.measured.unsaved { Exit::NotMeasured } else { Exit::Done };
        Ok((done, exit))
    })?;
    let exit = parts.shown(Some(mount), options)?;
    Ok(if parts.study(Some(mount)).complete() { exit } else { exit.or(Exit::NotMeasured) })
}

/// Measures the network between this host and the server.
fn network(
    server: &str,
    direction: Direction,
    options: &Options,
    stop: &Stop,
) -> Result<super::Done, Failure> {
    let time = options.disk.time.map_or(rows::TIME, |time| time.0);
    let plan = Plan {
        engine: TCP.name.to_owned(),
        peer: Some(server.to_owned()),
        reach: Vec::new(),
        knobs: Knobs { write_size: SEQ_1M_Q8.size, read_size: SEQ_1M_Q8.size, ..Knobs::default() },
        directions: vec![direction],
        time: linerate_units::Nanos(SETTLE.0 + time.0),
        sweep: false,
        trials: false,
    };
    rows::opened(plan, Made::Bw, options, stop, |link, plan, label, sink| {
        once(link, plan, SETTLE, None, label, sink)
    })
}
