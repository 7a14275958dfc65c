//! The counts of the RDMA ports that carried a load.

use super::ends::{end, index};
use super::readings::{Window, gauge, growth, per_second};
use linerate_facts::infiniband::counted::Meaning;
use linerate_facts::metric as m;
use linerate_facts::rdma::RdmaEnd;
use linerate_plan::path::{ByRole, Direction, Side};
use linerate_record::{Set, Step, Table};

/// Number of parts of the time that show whether events occur throughout.
const QUARTERS: usize = 4;

/// The counts of one end's RDMA port while it carried a load.
#[derive(Debug, Clone, PartialEq)]
pub struct Verbs {
    /// The RDMA port.
    pub port: RdmaEnd,
    /// The port's counters whose meaning is known. Empty if none was read.
    pub counts: Vec<VerbsCount>,
    /// How often the port's link went down in the whole step; `None` if that was not counted.
    pub downs: Option<f64>,
    /// Whether the port was active in all samples of the step; `None` if that was not read.
    pub active: Option<bool>,
}

/// A counter of an RDMA port.
#[derive(Debug, Clone, PartialEq)]
pub struct VerbsCount {
    /// The driver's name of the counter: `out_of_sequence`.
    pub name: String,
    /// What the counter counts.
    pub meaning: Meaning,
    /// Number of events, less those of other programs: as many as the port counted on the idle path in such a time.
    pub count: f64,
    /// These events per second.
    pub per_sec: f64,
    /// Number of quarters of the time, of four, in which the counter grew.
    pub quarters: u8,
}

impl Verbs {
    /// The counters with one of these meanings.
    pub fn of(&self, meanings: &[Meaning]) -> impl Iterator<Item = &VerbsCount> {
        let counts = self.counts.iter();
        counts.filter(|count| meanings.contains(&count.meaning))
    }

    /// Events per second of all counters with one of these meanings; `None` if there is no such counter.
    pub fn per_sec(&self, meanings: &[Meaning]) -> Option<f64> {
        self.of(meanings).map(|count| count.per_sec).reduce(|a, b| a + b)
    }

    /// The counters with one of these meanings that are not 0, each with its value: `out_of_sequence 12`.
    pub fn words(&self, meanings: &[Meaning]) -> Option<String> {
        let counted = self.of(meanings).filter(|count| count.count > 0.0);
        let each: Vec<String> =
            counted.map(|count| format!("{} {:.0}", count.name, count.count)).collect();
        (!each.is_empty()).then(|| each.join(", "))
    }
}

/// The counts of the RDMA ports of both ends; `None` for an end whose port is unknown, and for other transports. `idle`
/// is the step that measured the idle path.
pub(super) fn verbs(
    set: &Set,
    step: &Step,
    idle: Option<&Step>,
    direction: Direction,
    window: Window,
) -> ByRole<Option<Verbs>> {
    let of = |side: Side| {
        let port = set.ends.get(index(side))?.rdma.as_deref()?.clone();
        Some(of_port(port, step, idle, side, window))
    };
    ByRole { sender: of(direction.sender()), receiver: of(direction.receiver()) }
}

fn of_port(port: RdmaEnd, step: &Step, idle: Option<&Step>, side: Side, window: Window) -> Verbs {
    let name = port.id();
    let tables = || tables(step, side);
    let others = |subject: &str| {
        let idle = idle?;
        let mut tables = self::tables(idle, side);
        let table = tables.find(|table| table.subject == subject)?;
        per_second(table, m::RDMA_COUNT, Window::of(idle))
    };
    let own = |table: &'_ Table| {
        let (of, counter) = table.subject.split_once(' ')?;
        (of == name).then(|| counter.to_owned())
    };
    let mut downs = None;
    let mut counts = Vec::new();
    for (table, name) in tables().filter_map(|table| Some((table, own(table)?))) {
        let Some(meaning) = Meaning::of(&name) else {
            continue;
        };
        if meaning == Meaning::LinkDowned {
            downs = growth(table, m::RDMA_COUNT, Window::WHOLE).map(|(grown, _)| grown);
        }
        let others = others(&table.subject).unwrap_or(0.0);
        counts.extend(counted(table, (name, meaning), others, window));
    }
    let state = tables().find(|table| table.subject == name);
    let active = state.and_then(|table| {
        let mut samples = gauge(table, m::RDMA_ACTIVE, Window::WHOLE).peekable();
        samples.peek()?;
        Some(samples.all(|active| active > 0.0))
    });
    Verbs { port, counts, downs, active }
}

/// The tables of an end about RDMA ports.
fn tables(step: &Step, side: Side) -> impl Iterator<Item = &Table> {
    let tables = end(step, side).into_iter();
    tables.flat_map(|end| end.about("rdma", |_| true))
}

/// The growth of a counter, less `others` events per second that belong to other programs.
fn counted(
    table: &Table,
    (name, meaning): (String, Meaning),
    others: f64,
    window: Window,
) -> Option<VerbsCount> {
    let (count, secs) = growth(table, m::RDMA_COUNT, window)?;
    let count = (count - others * secs).max(0.0);
    let values: Vec<f64> = gauge(table, m::RDMA_COUNT, window).collect();
    let at = |quarter: usize| values.get((values.len().saturating_sub(1)) * quarter / QUARTERS);
    let grew = (0..QUARTERS).filter(|quarter| at(*quarter) < at(quarter + 1)).count();
    Some(VerbsCount { name, meaning, count, per_sec: count / secs, quarters: grew as u8 })
}

#[cfg(test)]
mod tests {
    use super::super::local::tests::loaded;
    use super::super::testing::{WHOLE, table};
    use super::*;

    /// The counts of `rxe0/1` that are derived from these tables.
    fn read(tables: Vec<Table>) -> Verbs {
        let step = loaded(tables);
        let port = RdmaEnd { device: "rxe0".to_owned(), port: 1, ..RdmaEnd::default() };
        of_port(port, &step, None, Side::Far, WHOLE)
    }

    #[test]
    fn what_is_counted_on_the_idle_path_is_of_other_programs() {
        let port = RdmaEnd { device: "rxe0".to_owned(), port: 1, ..RdmaEnd::default() };
        let counted = |name: &str, grown: i64| {
            let subject = format!("rxe0/1 {name}");
            loaded(vec![table(&subject, &[(m::RDMA_COUNT, [5, 5 + grown])])])
        };
        let missing = |idle: &Step| {
            let verbs =
                of_port(port.clone(), &counted("rcvd_seq_err", 100), Some(idle), Side::Far, WHOLE);
            let count = &verbs.counts[0];
            (count.count, count.per_sec)
        };
        assert_eq!(missing(&counted("rcvd_seq_err", 0)), (100.0, 100.0));
        assert_eq!(missing(&counted("rcvd_seq_err", 60)), (40.0, 40.0));
        assert_eq!(missing(&counted("rcvd_seq_err", 110)), (0.0, 0.0));
        assert_eq!(missing(&counted("send_rnr_err", 60)), (100.0, 100.0));
        assert_eq!(missing(&loaded(Vec::new())), (100.0, 100.0));
    }

    #[test]
    fn only_the_own_port_and_counters_with_a_meaning_count() {
        let count = |subject: &str, values| table(subject, &[(m::RDMA_COUNT, values)]);
        let verbs = read(vec![
            table("rxe0/1", &[(m::RDMA_ACTIVE, [1, 1])]),
            count("rxe0/1 rcvd_seq_err", [5, 12]),
            count("rxe0/1 send_rnr_err", [0, 0]),
            count("rxe0/1 link_downed", [1, 2]),
            count("rxe0/1 ack_deferred", [5, 9]),
            count("rxe1/1 out_of_seq_request", [5, 9]),
        ]);
        let missing = [Meaning::MissingReported];
        assert_eq!(verbs.per_sec(&missing), Some(7.0));
        assert_eq!(verbs.words(&missing).as_deref(), Some("rcvd_seq_err 7"));
        assert_eq!(verbs.of(&missing).next().map(|c| c.quarters), Some(1));
        assert_eq!(verbs.per_sec(&[Meaning::NotReadySent]), Some(0.0));
        assert_eq!(verbs.words(&[Meaning::NotReadySent]), None);
        assert_eq!(verbs.per_sec(&[Meaning::OutOfOrder]), None);
        assert_eq!((verbs.downs, verbs.active), (Some(1.0), Some(true)));
        assert_eq!(verbs.counts.len(), 3);
    }

    #[test]
    fn without_readings_nothing_is_known() {
        let verbs = read(Vec::new());
        assert_eq!((verbs.downs, verbs.active), (None, None));
        assert!(verbs.counts.is_empty());
        let verbs = read(vec![table("rxe0/1", &[(m::RDMA_ACTIVE, [1, 0])])]);
        assert_eq!(verbs.active, Some(false));
        // A counter that falls was reset, and is left out.
        let verbs = read(vec![table("rxe0/1 rcvd_seq_err", &[(m::RDMA_COUNT, [9, 3])])]);
        assert!(verbs.counts.is_empty());
    }
}
