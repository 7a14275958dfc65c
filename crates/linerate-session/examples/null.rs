//! Measures how many operations a second the loop of a measurement makes if moving
//! payload costs nothing: one pinned thread of the null transport, with the counters,
//! the advice and the stop flag of any other transport, in batches of 1 and of 32.
//!
//! `cargo run --release -p linerate-session --example null [STEPS]`

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use linerate_facts::metric::WORKER_OPS;
use linerate_host::Live;
use linerate_load::BATCH;
use linerate_load::transport::NoLines;
use linerate_plan::path::{Direction, Side};
use linerate_plan::subject::Subject;
use linerate_plan::{Knobs, Pattern, Purpose, SetPlan, StepPlan};
use linerate_record::EndReadings;
use linerate_session::end::LocalEnd;
use linerate_units::Nanos;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Number of steps for each batch size.
const STEPS: usize = 10;

fn main() -> Outcome<()> {
    let steps = std::env::args().nth(1);
    let steps = steps.map_or(Ok(STEPS), |arg| arg.parse())?;
    let cpu = std::thread::available_parallelism()?.get() as u32 - 1;
    let mut ends = [1, BATCH].map(|batch| (batch, end(batch), Vec::new()));
    for (_, end, _) in &mut ends {
        connect(end, cpu)?;
    }
    for _ in 0..steps {
        for (_, end, rates) in &mut ends {
            let mut running = end.arm(&step())?;
            running.go();
            rates.push(rate(&running.finish())?);
        }
    }
    println!("million operations a second on CPU {cpu}, median of {steps} steps (least and most):");
    for (batch, _, rates) in &mut ends {
        rates.sort_by(f64::total_cmp);
        let [least, middle, most] = [0, steps / 2, steps - 1].map(|at| rates[at] / 1e6);
        println!("batches of {batch}: {middle:.0} ({least:.0} to {most:.0})");
    }
    Ok(())
}

fn end(batch: usize) -> LocalEnd {
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let mut end = LocalEnd::new(Side::Near, "null", Arc::new(Live::new()), here);
    end.offer(batch);
    end
}

/// Connects one stream on the given CPU; fails if the thread cannot be kept there.
fn connect(end: &mut LocalEnd, cpu: u32) -> Outcome<()> {
    let plan = SetPlan {
        id: 0,
        pattern: Pattern::Stream { direction: Direction::Forward },
        knobs: Knobs { sender_cpus: vec![cpu], ..Knobs::default() },
    };
    let offer = end.prepare(&plan)?;
    let got = end.connect(plan.id, &offer, &mut NoLines(&Subject::Host))?;
    if got.cpus != [cpu] {
        return Err(format!("the thread is not on CPU {cpu}: {:?}", got.gaps).into());
    }
    Ok(())
}

/// Makes a step as long as the steps of a run, and with as many rows.
fn step() -> StepPlan {
    StepPlan {
        index: 0,
        purpose: Purpose::Base { direction: Direction::Forward },
        sets: vec![0],
        washout: Nanos::from_millis(200),
        measure: Nanos::from_secs(1),
        tick: Nanos::from_millis(100),
    }
}

/// Returns the operations per second between the row after the washout and the last row.
fn rate(end: &EndReadings) -> Outcome<f64> {
    let worker = end.tables.iter().find(|table| table.source == "worker");
    let worker = worker.ok_or("no table of the worker")?;
    let ops = worker.column(WORKER_OPS).ok_or("no operations")?;
    let (Some([_, first, .., last]), Some([_, from, .., to])) = (Some(ops), Some(&worker.at[..]))
    else {
        return Err("fewer than three rows".into());
    };
    Ok((last - first) as f64 * 1e9 / (to - from) as f64)
}
