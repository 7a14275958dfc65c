//! Source `qdisc`: queueing disciplines of the port that the path leaves by.

use linerate_core::facts::Gap;
use linerate_core::metric::{self, Metric};
use linerate_core::parse::qdisc::{self, ROOT};
use linerate_core::record::Table;

use super::sheet::Sheets;
use super::sources::Source;
use super::{Machine, Query, gap, invalid, port, unreadable};

const HINT: &str = "tc -s qdisc";
const METRICS: &[Metric] = &[
    metric::QDISC_BYTES,
    metric::QDISC_PACKETS,
    metric::QDISC_DROPS,
    metric::QDISC_OVERLIMITS,
    metric::QDISC_BACKLOG,
];

/// Reads the disciplines of one port by its index.
pub(super) struct Qdisc {
    port: Result<u32, Gap>,
    /// The port's name, read once.
    name: Option<String>,
    /// By handle and parent.
    sheets: Sheets<(u32, u32)>,
}

impl Qdisc {
    /// The port with this index, or why it is not known.
    pub(super) fn new(port: Result<u32, Gap>) -> Self {
        Self {
            port,
            name: None,
            sheets: Sheets::new(METRICS, ""),
        }
    }

    fn name(&mut self, machine: &dyn Machine, index: u32) -> Result<String, Gap> {
        if self.name.is_none() {
            let what = "the name of the port";
            let reply = machine.query(&Query::Link(index));
            let reply = reply.map_err(|error| unreadable("qdisc", what, &error, HINT))?;
            let link = port::find(&reply, index).map_err(|why| gap("qdisc", &why, HINT))?;
            self.name = Some(link.name.into_owned());
        }
        Ok(self.name.clone().unwrap_or_default())
    }
}

impl Source for Qdisc {
    fn observe(&mut self, machine: &dyn Machine, at: u64, gaps: &mut Vec<Gap>) -> Result<(), Gap> {
        const WHAT: &str = "the queueing disciplines";
        let index = self.port.clone()?;
        let name = self.name(machine, index)?;
        let reply = machine.query(&Query::Qdiscs);
        let reply = reply.map_err(|error| unreadable("qdisc", WHAT, &error, HINT))?;
        let all = qdisc::parse(&reply).filter(|q| q.as_ref().map_or(true, |q| q.port == index));
        let all: Vec<_> = all
            .collect::<Result<_, _>>()
            .map_err(|error| unreadable("qdisc", WHAT, &invalid(error), HINT))?;
        if all.is_empty() {
            return Err(gap(
                "qdisc",
                &format!("the kernel names no discipline of {name}"),
                HINT,
            ));
        }
        for qdisc in all.iter().filter(|q| !summed_up(q, &all)) {
            let stats = qdisc.stats;
            let values = [
                stats.map(|s| s.bytes),
                stats.map(|s| s.packets),
                stats.map(|s| s.drops),
                stats.map(|s| s.overlimits),
                stats.map(|s| s.backlog),
            ];
            let subject = || format!("{name} {} {}", qdisc.kind, handle(qdisc));
            self.sheets
                .push((qdisc.handle, qdisc.parent), subject, at, &values, gaps);
        }
        self.sheets.sweep(gaps);
        Ok(())
    }

    fn take(&mut self) -> Vec<Table> {
        self.sheets.take()
    }
}

/// True for a queue of `mq`, whose own statistics are the sum over its queues: a port with 64 of
/// them would fill the record with 64 tables that say nothing more.
fn summed_up(qdisc: &qdisc::Qdisc<'_>, all: &[qdisc::Qdisc<'_>]) -> bool {
    let major = |id: u32| id >> 16;
    let hangs_on =
        |other: &&qdisc::Qdisc<'_>| other.parent == ROOT && matches!(&*other.kind, "mq" | "mqprio");
    qdisc.parent != ROOT
        && all
            .iter()
            .find(hangs_on)
            .is_some_and(|mq| major(qdisc.parent) == major(mq.handle))
}

/// The handle as `tc` writes it; the class it hangs on where it has none of its own.
fn handle(qdisc: &qdisc::Qdisc<'_>) -> String {
    if qdisc.handle == 0 && qdisc.parent != ROOT {
        return format!("{:x}:{:x}", qdisc.parent >> 16, qdisc.parent & 0xffff);
    }
    format!("{:x}:", qdisc.handle >> 16)
}
