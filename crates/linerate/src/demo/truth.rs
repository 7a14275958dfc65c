//! The truth of a planted fault: goodput with it and without it, by the counters of a port.

use std::time::{Duration, Instant};

use linerate_core::plan::Direction;
use linerate_lab::Cell;

use super::{Problem, Stage};

/// A fault binds when taking it out gains at least this much.
const BITES: f64 = 1.10;

/// Time between two readings of the port.
const TICK: Duration = Duration::from_millis(50);

/// What the port of the far host counted, in bits of Ethernet frame per second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Truth {
    /// Direction that was loaded.
    pub(crate) direction: Direction,
    /// With the fault.
    pub(crate) with: f64,
    /// Without it.
    pub(crate) without: f64,
}

impl Truth {
    /// Whether the fault is what holds the path back.
    pub(crate) fn bites(&self) -> bool {
        self.without >= self.with * BITES
    }
}

/// Measures with the cell's faults, takes them out (its scenery stays), and measures again.
pub(super) fn measure(stage: &Stage, cell: &Cell, direction: Direction) -> Result<Truth, Problem> {
    let with = rate(stage, direction)?;
    for fault in &cell.faults {
        stage.remove(fault)?;
    }
    Ok(Truth {
        direction,
        with,
        without: rate(stage, direction)?,
    })
}

/// Rate of one stream while it runs steadily.
fn rate(stage: &Stage, direction: Direction) -> Result<f64, Problem> {
    let args = [
        "--time",
        "8s",
        "--no-trials",
        "--streams",
        "1",
        "--direction",
        direction.name(),
    ];
    let (mut run, mut server) = stage.load(&args.map(str::to_owned))?;
    let mut seen = vec![(Instant::now(), stage.counted(direction)?)];
    while run.wait_for(TICK)?.is_none() {
        seen.push((Instant::now(), stage.counted(direction)?));
    }
    server.kill()?;
    Ok(plateau(&seen))
}

/// Mean rate over the second half of the time in which payload flowed: the first half may hold
/// the ramp.
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
        let each = [
            0, 0, 100, 400, 800, 1000, 1000, 1000, 1000, 1000, 1000, 0, 0,
        ];
        for (i, kilobytes) in each.iter().enumerate() {
            bytes += kilobytes * 1000;
            seen.push((start + TICK * (i as u32 + 1), bytes));
        }
        let rate = plateau(&seen);
        assert!((rate / 160e6 - 1.0).abs() < 0.01, "{rate}");
        assert!(plateau(&seen[..2]).abs() < 1e-9);
    }
}
