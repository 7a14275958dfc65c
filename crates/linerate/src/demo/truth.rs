//! The truth about a planted fault: goodput with and without it, by the counters of a port.

use std::time::{Duration, Instant};

use linerate_lab::{Cell, Fault};
use linerate_plan::path::Direction;

use super::{Problem, Stage};

/// Least goodput without the fault, over goodput with it, at which the fault counts as the limit.
const BITES: f64 = 1.10;

/// Time between two readings of the port's counter.
const TICK: Duration = Duration::from_millis(50);

/// Time after which a load that should take some seconds counts as hanging.
const LONGEST: Duration = Duration::from_secs(60);

/// Rates at the far host's port, in bits of Ethernet frames per second. For datagrams: rates that the receiving program
/// counted, in bits of payload per second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Truth {
    /// Direction that was loaded.
    pub(crate) direction: Direction,
    /// The program whose load measured the truth.
    pub(crate) loader: Loader,
    /// Where the received data was counted.
    pub(crate) counted: Counted,
    /// Goodput with the fault.
    pub(crate) with: f64,
    /// Goodput without the fault.
    pub(crate) without: f64,
}

impl Truth {
    /// Whether the fault limits the path.
    pub(crate) fn bites(&self) -> bool {
        self.without >= self.with * BITES
    }
}

/// Where the received data was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// The port of the far host.
    Port,
    /// The program that received the data.
    Program,
}

impl Counted {
    /// The words for this counter.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Port => "far's port",
            Self::Program => "the receiving program",
        }
    }
}

/// The program whose load measures the truth; the port counts the delivered data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Loader {
    /// Measure with linerate
    #[value(name = "linerate")]
    Own,
    /// Measure with iperf3, if the planted fault can affect it
    Iperf3,
}

impl Loader {
    /// The program whose load shows the faults of a cell. Cells that send datagrams, or that plant a fault inside
    /// linerate, need linerate's own load.
    fn for_cell(self, cell: &Cell) -> Self {
        let inside = |f: &Fault| matches!(f, Fault::Application { .. } | Fault::Environment { .. });
        if cell.sends_datagrams() || cell.faults.iter().any(inside) { Self::Own } else { self }
    }

    /// The word used in JSON and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Own => "linerate",
            Self::Iperf3 => "iperf3",
        }
    }
}

/// Measures with the faults of the cell, removes them (its other settings stay), and measures again.
pub(super) fn measure(
    stage: &Stage,
    cell: &Cell,
    direction: Direction,
    loader: Loader,
) -> Result<Truth, Problem> {
    let loader = loader.for_cell(cell);
    // A port also counts datagrams that the host drops later, so for datagrams the program's own count is used.
    let counted = if cell.sends_datagrams() { Counted::Program } else { Counted::Port };
    let rate = || match counted {
        Counted::Program => stage.goodput(&own(direction), direction),
        Counted::Port => rate(stage, direction, loader),
    };
    let with = rate()?;
    for fault in &cell.faults {
        stage.remove(fault)?;
    }
    Ok(Truth { direction, loader, counted, with, without: rate()? })
}

/// Rate of one stream once it is steady, by the counter of the port.
fn rate(stage: &Stage, direction: Direction, loader: Loader) -> Result<f64, Problem> {
    let (mut run, mut server) = match loader {
        Loader::Own => stage.load(&own(direction))?,
        Loader::Iperf3 => stage.iperf3(direction)?,
    };
    let mut seen = vec![(Instant::now(), stage.counted(direction)?)];
    let status = loop {
        if let Some(status) = run.wait_for(TICK)? {
            break status;
        }
        if stage.is_stopped() {
            run.kill()?;
            return Err(Problem::Interrupted);
        }
        // A load that never ends (because its other end died, for example) must not block a score forever.
        if seen[0].0.elapsed() > LONGEST {
            return Err(Problem::Endless);
        }
        seen.push((Instant::now(), stage.counted(direction)?));
    };
    server.kill()?;
    // iperf3 fails if no payload is received, which counts as a rate of zero; linerate does not fail then.
    if loader == Loader::Own && !status.success() {
        return Err(Problem::Truth(status));
    }
    Ok(plateau(&seen))
}

/// Arguments of linerate's own load.
fn own(direction: Direction) -> Vec<String> {
    let args = ["--time", "8s", "--no-trials", "--streams", "1"];
    let way = ["--direction", direction.name()];
    args.iter().chain(&way).map(|s| (*s).to_owned()).collect()
}

/// Mean rate over the second half of the time in which payload flowed: the first half may include the start of the
/// stream.
fn plateau(seen: &[(Instant, u64)]) -> f64 {
    let rates: Vec<f64> = seen
        .windows(2)
        .map(|w| (w[1].1.saturating_sub(w[0].1)) as f64 * 8.0 / (w[1].0 - w[0].0).as_secs_f64())
        .collect();
    let most = rates.iter().copied().fold(0.0, f64::max);
    let flows = |r: &f64| *r > most / 5.0;
    let (Some(first), Some(last)) = (rates.iter().position(flows), rates.iter().rposition(flows))
    else {
        return 0.0;
    };
    // The last reading may hold the end of the flow.
    let from = first.midpoint(last);
    let to = last.max(from + 1);
    let bytes = seen[to].1.saturating_sub(seen[from].1);
    bytes as f64 * 8.0 / (seen[to].0 - seen[from].0).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plateau_leaves_out_ramp_and_silence() {
        let start = Instant::now();
        let mut bytes = 0;
        let mut seen = vec![(start, 0)];
        // Silence, a ramp, 1 MB for each reading, silence.
        let each = [0, 0, 100, 400, 800, 1000, 1000, 1000, 1000, 1000, 1000, 0, 0];
        for (i, kilobytes) in each.iter().enumerate() {
            bytes += kilobytes * 1000;
            seen.push((start + TICK * (i as u32 + 1), bytes));
        }
        let rate = plateau(&seen);
        assert!((rate / 160e6 - 1.0).abs() < 0.01, "{rate}");
        assert!(plateau(&seen[..2]).abs() < 1e-9);
    }
}
