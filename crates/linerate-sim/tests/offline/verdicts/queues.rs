//! Tests of streams that the far end's port distributes over receive queues by their source ports.

use linerate_facts::metric::{self, Metric};
use linerate_plan::{Pattern, SetPlan, StepPlan};
use linerate_record::{Host, Record, Set, Step, Table};
use linerate_session::link::{Link, LinkError, Live, StepControl};

use super::*;

/// A path whose far port has two receive queues, served by CPUs 2 and 3 of four. One queue can receive 1 Gb/s. The
/// number of a set determines which queues its two streams get, as their TCP ports would.
struct Queues {
    sim: Sim,
    /// Whether two streams in one queue share the queue's 1 Gb/s.
    narrow: bool,
    /// How often a set with two streams was made.
    pairs: u32,
}

/// Returns whether both streams of a set get the first queue.
fn collide(set: u32) -> bool {
    [1, 2].contains(&(set % 5))
}

impl Link for Queues {
    fn now(&self) -> Nanos {
        self.sim.now()
    }

    fn hosts(&mut self) -> Result<Vec<Host>, LinkError> {
        let mut hosts = self.sim.hosts()?;
        let port = hosts[1].facts.port.as_mut();
        port.expect("a port").served_by = vec![2, 3];
        Ok(hosts)
    }

    fn prepare(&mut self, plan: &SetPlan) -> Result<Set, LinkError> {
        let mut made = plan.clone();
        if matches!(plan.pattern, Pattern::Stream { .. }) {
            self.pairs += u32::from(plan.knobs.streams == 2);
            // Streams that share a full queue are simulated by giving each of them a pace.
            let shared = if collide(plan.id) && self.narrow { plan.knobs.streams } else { 1 };
            made.knobs.pacing = Some(Rate(1_000_000_000 / u64::from(shared)));
        }
        let set = self.sim.prepare(&made)?;
        Ok(Set { plan: plan.clone(), ..set })
    }

    fn step(
        &mut self,
        plan: &StepPlan,
        watch: &mut dyn FnMut(Live) -> StepControl,
    ) -> Result<Step, LinkError> {
        let mut step = self.sim.step(plan, watch)?;
        let into_one = plan.sets.iter().all(|set| collide(*set));
        for table in &mut step.ends[1].tables {
            deal(table, into_one);
        }
        let pace = metric::TCP_MAX_PACING_RATE.name;
        for table in step.ends.iter_mut().flat_map(|end| &mut end.tables) {
            table.columns.retain(|column| column.name != pace);
        }
        Ok(step)
    }

    fn release(&mut self, set: u32) -> Result<(), LinkError> {
        self.sim.release(set)
    }
}

/// Adds the counters of two receive queues to a table of the far host. CPU 2 spends nearly all its time on packets. The
/// CPU of the other queue does so too, unless all streams get one queue (`into_one`).
fn deal(table: &mut Table, into_one: bool) {
    let rows = table.at.len();
    let at = table.at.clone();
    let mut put = |metric: Metric, values: Vec<i64>| {
        for column in &mut table.columns {
            if column.name == metric.name {
                column.values.clone_from(&values);
            }
        }
    };
    let number = table.subject.rsplit('/').next().and_then(|n| n.parse::<i64>().ok());
    match (table.source.as_str(), number) {
        ("socket", Some(stream)) => {
            let cpu = if into_one { 2 } else { 2 + stream % 2 };
            put(metric::SOCKET_CPU, vec![cpu; rows]);
        }
        ("cpu", Some(cpu @ 2..)) => {
            let full = cpu == 2 || !into_one;
            // Converts to CPU ticks of 10 ms.
            let ticks = |share: f64| -> Vec<i64> {
                let so_far = |at: &u64| (*at as f64 / 1e7 * share) as i64;
                at.iter().map(so_far).collect()
            };
            let softirq = if full { 0.97 } else { 0.02 };
            put(metric::CPU_SOFTIRQ, ticks(softirq));
            put(metric::CPU_IDLE, ticks(1.0 - softirq));
        }
        _ => {}
    }
}

/// Runs linerate with two streams; returns the record, and how often a set with two streams was made.
fn dealt(narrow: bool) -> (Record, u32) {
    let mut link = Queues { sim: Sim::new(SimPath::default(), 7), narrow, pairs: 0 };
    let knobs = Knobs { streams: 2, ..Knobs::default() };
    let (record, error) =
        run(&mut link, plan(knobs), linerate_session::run::Label::default(), &mut ());
    assert!(error.is_none(), "{error:?}");
    (record, link.pairs)
}

fn named(record: &Record) -> (Vec<(&'static str, Certainty)>, String) {
    let verdict = judge(&derive(record));
    let all = verdict.limits.iter().map(|l| (l.cause, l.certainty));
    (all.collect(), explain(&verdict))
}

#[test]
fn streams_that_fell_into_one_queue_gain_by_other_ports() {
    let (record, pairs) = dealt(true);
    let (limits, why) = named(&record);
    assert_eq!(limits, [("hash-collision", Certainty::Proved)], "{why}");
    let kinds: Vec<&str> = record.trials.iter().map(|t| t.kind.as_str()).collect();
    assert_eq!(kinds, ["other-ports"]);
    // One set is for the base load. Both settings of the trial make new sets until the ports are as the setting needs
    // them.
    assert!(pairs > 3, "{pairs} sets of two streams");
}

#[test]
fn a_full_cpu_that_other_ports_do_not_relieve_is_no_collision() {
    let (record, _) = dealt(false);
    let (limits, why) = named(&record);
    let tried = record.trials.iter().any(|t| t.kind == "other-ports");
    assert!(tried && limits.iter().all(|l| l.0 != "hash-collision"), "{why}");
}
