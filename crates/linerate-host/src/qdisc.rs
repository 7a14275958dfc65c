//! Source `qdisc`: statistics of the queueing disciplines of a port and of their classes, and their configured limits
//! (table `shaper`).

use linerate_facts::Gap;
use linerate_facts::metric::{self, Metric};
use linerate_facts::parse::link::{ETHERNET, LOOPBACK};
use linerate_facts::parse::qdisc::{self, ROOT};
use linerate_facts::parse::{Malformed, shaping};
use linerate_facts::shaping::Shaping;

use super::source::{Row, Source};
use super::{Machine, Query, gap, invalid, port, unreadable};

const HINT: &str = "tc -s qdisc";
const SET: &str = "tc -d qdisc; tc -d class show dev PORT";
const METRICS: &[Metric] = &[
    metric::QDISC_BYTES,
    metric::QDISC_PACKETS,
    metric::QDISC_DROPS,
    metric::QDISC_OVERLIMITS,
    metric::QDISC_BACKLOG,
    metric::QDISC_WAITING,
];

const SHAPING: &[Metric] = &[
    metric::SHAPER_RATE,
    metric::SHAPER_FLOW_RATE,
    metric::SHAPER_FRAME,
    metric::SHAPER_LOSS,
    metric::SHAPER_DELAY,
    metric::SHAPER_LIMIT,
];
/// Size of an Ethernet header in bytes.
const HEADER: i32 = 14;
/// Most classes of a port that are watched: more would fill the record.
const CLASSES_MAX: usize = 64;

/// Reads the disciplines of one port, by its interface index, their classes if these may delay packets, and the
/// configured limits of each.
pub(super) struct Qdisc {
    port: Result<u32, Gap>,
    /// Facts of the port, which are read only once; `None` before.
    known: Option<Known>,
    /// Whether the port has too many classes to be watched.
    crowded: bool,
}

struct Known {
    name: String,
    /// Bytes of a frame before its IP packet.
    header: i32,
}

impl Qdisc {
    /// Makes a reader of the port with this interface index, or with the gap that explains why the index is unknown.
    pub(crate) fn new(port: Result<u32, Gap>) -> Self {
        Self { port, known: None, crowded: false }
    }

    fn learn(&mut self, machine: &dyn Machine, index: u32) -> Result<(), Gap> {
        if self.known.is_none() {
            let what = "the name of the port";
            let reply = machine.query(&Query::Link(index));
            let reply = reply.map_err(|error| unreadable("qdisc", what, &error, HINT))?;
            let link = port::find(&reply, index).map_err(|why| gap("qdisc", &why, HINT))?;
            let framed = matches!(link.hardware, ETHERNET | LOOPBACK);
            self.known = Some(Known {
                name: link.name.into_owned(),
                header: if framed { HEADER } else { 0 },
            });
        }
        Ok(())
    }

    /// Adds a row with the statistics of a discipline or class and, if limits are configured, a row with the limits.
    fn push(
        &self,
        row: &mut Row<'_>,
        qdisc: &qdisc::Qdisc<'_>,
        set: Result<Option<Shaping>, Malformed>,
    ) {
        let Some(Known { name, header }) = &self.known else {
            return;
        };
        let subject = || format!("{name} {} {}", qdisc.kind, qdisc.id());
        let key = [qdisc.port, qdisc.handle, qdisc.parent];
        let stats = qdisc.stats;
        let values = [
            stats.map(|s| s.bytes),
            stats.map(|s| s.packets),
            stats.map(|s| s.drops),
            stats.map(|s| s.overlimits),
            stats.map(|s| s.backlog),
            stats.map(|s| s.waiting),
        ];
        row.push(METRICS, key, subject, &values);
        match set {
            Ok(Some(set)) => {
                let frame = header.saturating_add(set.overhead);
                let values = [
                    set.rate.map_or(0, |rate| rate.0),
                    set.flow_rate.map_or(0, |rate| rate.0),
                    u64::try_from(frame).unwrap_or(0),
                    u64::from(set.loss_ppm.unwrap_or(0)),
                    set.delay.map_or(0, |delay| delay.0),
                    u64::from(set.limit.unwrap_or(0)),
                ];
                row.push(SHAPING, key, subject, &values.map(Some));
            }
            Ok(None) => {}
            Err(error) => row.gaps.push(unreadable("qdisc", &subject(), &invalid(error), SET)),
        }
    }

    fn classes(&mut self, row: &mut Row<'_>, index: u32) -> Result<(), Gap> {
        const WHAT: &str = "the classes of the queueing disciplines";
        const HINT: &str = "tc -s class show dev PORT";
        let reply = row.machine.query(&Query::Classes(index));
        let reply = reply.map_err(|error| unreadable("qdisc", WHAT, &error, HINT))?;
        let all: Vec<_> = qdisc::classes(&reply)
            .filter(|class| class.as_ref().map_or(true, |class| class.port == index))
            .take(CLASSES_MAX + 1)
            .collect::<Result<_, _>>()
            .map_err(|error| unreadable("qdisc", WHAT, &invalid(error), HINT))?;
        self.crowded = all.len() > CLASSES_MAX;
        if self.crowded {
            let why = format!("more than {CLASSES_MAX} classes: they are not watched");
            return Err(gap("qdisc", &why, HINT));
        }
        for class in &all {
            self.push(row, class, shaping::class(class));
        }
        Ok(())
    }
}

impl Source for Qdisc {
    fn observe(&mut self, row: &mut Row<'_>) -> Result<(), Gap> {
        const WHAT: &str = "the queueing disciplines";
        let index = self.port.clone()?;
        self.learn(row.machine, index)?;
        let reply = row.machine.query(&Query::Qdiscs);
        let reply = reply.map_err(|error| unreadable("qdisc", WHAT, &error, HINT))?;
        let all = qdisc::parse(&reply).filter(|q| q.as_ref().map_or(true, |q| q.port == index));
        let all: Vec<_> = all
            .collect::<Result<_, _>>()
            .map_err(|error| unreadable("qdisc", WHAT, &invalid(error), HINT))?;
        if all.is_empty() {
            let name = self.known.as_ref().map_or("", |known| &known.name);
            let why = format!("the kernel lists no queueing discipline of {name}");
            return Err(gap("qdisc", &why, HINT));
        }
        for qdisc in &all {
            let set = shaping::discipline(qdisc);
            if matches!(set, Ok(Some(_))) || !summed_up(qdisc, &all) {
                self.push(row, qdisc, set);
            }
        }
        if !self.crowded && all.iter().any(|q| shaping::has_classes(&q.kind)) {
            // A gap of the classes does not end the source: the readings of the disciplines are valid.
            if let Err(gap) = self.classes(row, index) {
                row.gaps.push(gap);
            }
        }
        row.sweep();
        Ok(())
    }

    fn taken(&mut self) {
        self.crowded = false;
    }
}

/// Returns whether a discipline is one of the queues of `mq` or `mqprio`, whose own statistics are the sum over these
/// queues. A port with 64 queues would fill the record with 64 tables that add nothing. Queues with a limit of their
/// own are recorded anyway.
fn summed_up(qdisc: &qdisc::Qdisc<'_>, all: &[qdisc::Qdisc<'_>]) -> bool {
    let major = |id: u32| id >> 16;
    let hangs_on =
        |other: &&qdisc::Qdisc<'_>| other.parent == ROOT && matches!(&*other.kind, "mq" | "mqprio");
    qdisc.parent != ROOT
        && all.iter().find(hangs_on).is_some_and(|mq| major(qdisc.parent) == major(mq.handle))
}

#[cfg(test)]
mod tests {
    use linerate_facts::metric;

    use crate::Query;
    use crate::testing::{Fake, LOOPBACK, htb, link, qdisc, queueing, route, tbf};

    const ROOT: u32 = u32::MAX;

    /// Returns the tables of the source, by subject, and the number of gaps, for the disciplines that the kernel lists
    /// in each row.
    fn watch(rows: &[&[Vec<u8>]]) -> (Vec<(String, Vec<u64>)>, usize) {
        let replies: Vec<Vec<u8>> = rows.iter().map(|row| row.concat()).collect();
        let replies: Vec<&[u8]> = replies.iter().map(Vec::as_slice).collect();
        let (route, link) = (route(4), link(4, "eth0", &[]));
        let (tables, gaps) = Fake::default()
            .reply(Query::Route(LOOPBACK.into()), &[&route, &route])
            .reply(Query::Link(4), &[&link, &link])
            .reply(Query::Qdiscs, &replies)
            .watch("qdisc", rows.len() as u64);
        assert!(tables.iter().all(|t| t.column(metric::QDISC_BYTES).is_some()));
        (tables.into_iter().map(|t| (t.subject, t.at)).collect(), gaps.len())
    }

    fn subjects(row: &[Vec<u8>]) -> Vec<String> {
        watch(&[row]).0.into_iter().map(|(subject, _)| subject).collect()
    }

    #[test]
    fn only_the_disciplines_of_the_port_are_watched() {
        let row = [qdisc(1, "noqueue", 0, ROOT, 0), qdisc(4, "pfifo_fast", 0, ROOT, 9)];
        assert_eq!(subjects(&row), ["eth0 pfifo_fast 0:"]);
    }

    #[test]
    fn a_port_without_disciplines_is_a_gap() {
        assert_eq!(watch(&[&[qdisc(1, "noqueue", 0, ROOT, 0)]]), (vec![], 1));
    }

    #[test]
    fn the_queues_of_mq_are_left_to_their_sum_but_classes_are_not() {
        let mq = [
            qdisc(4, "mq", 0x8001_0000, ROOT, 9),
            qdisc(4, "fq_codel", 0, 0x8001_0001, 4),
            qdisc(4, "fq_codel", 0, 0x8001_0002, 5),
            qdisc(4, "ingress", 0xffff_0000, 0xffff_fff1, 0),
        ];
        assert_eq!(subjects(&mq), ["eth0 mq 8001:", "eth0 ingress ffff:"]);
        let htb = [
            qdisc(4, "htb", 0x1_0000, ROOT, 9),
            qdisc(4, "pfifo", 0, 0x1_0010, 4),
            qdisc(4, "fq", 0x20_0000, 0x1_0011, 4),
        ];
        assert_eq!(subjects(&htb), ["eth0 htb 1:", "eth0 pfifo 1:10", "eth0 fq 20:"]);
    }

    /// Returns the configured limits by subject, and the number of gaps.
    fn shapers(disciplines: &[Vec<u8>], classes: Option<Vec<u8>>) -> (Vec<(String, i64)>, usize) {
        let (route, link) = (route(4), link(4, "eth0", &[]));
        let fake = Fake::default()
            .reply(Query::Route(LOOPBACK.into()), &[&route, &route])
            .reply(Query::Link(4), &[&link, &link])
            .reply(Query::Qdiscs, &[&disciplines.concat()]);
        let fake = match classes {
            Some(classes) => fake.reply(Query::Classes(4), &[&classes]),
            None => fake,
        };
        let mut sources = fake.sources();
        sources.observe(0);
        let (tables, gaps) = sources.take();
        let shapers = tables.iter().filter(|t| t.source == "shaper");
        let rates = shapers.map(|t| {
            assert_eq!(t.column(metric::SHAPER_FRAME), Some(&[14][..]), "Ethernet");
            let rate = t.column(metric::SHAPER_RATE).map(|rates| rates[0]);
            (t.subject.clone(), rate.unwrap_or_default())
        });
        let ours = gaps.iter().filter(|g| g.what == "qdisc").count();
        (rates.collect(), ours)
    }

    #[test]
    fn what_a_discipline_or_class_is_set_to_is_read_beside_its_counters() {
        let bucket = queueing(36, "tbf", [4, 0x1_0000, ROOT], 9, &tbf(62_500_000));
        let want = vec![("eth0 tbf 1:".to_owned(), 500_000_000)];
        assert_eq!(shapers(&[bucket], None), (want, 0));
        let plain = qdisc(4, "fq_codel", 0x1_0000, ROOT, 9);
        assert_eq!(shapers(&[plain], None), (vec![], 0));
        let classful = [qdisc(4, "htb", 0x1_0000, ROOT, 9)];
        let class = queueing(40, "htb", [4, 0x1_0010, 0x1_0000], 9, &htb(12_500_000));
        let want = vec![("eth0 htb 1:10".to_owned(), 100_000_000)];
        assert_eq!(shapers(&classful, Some(class)), (want, 0));
        assert_eq!(shapers(&classful, None).1, 1, "classes that cannot be read");
        let broken = queueing(36, "tbf", [4, 0x1_0000, ROOT], 9, &[]);
        assert_eq!(shapers(&[broken], None), (vec![], 1));
    }

    #[test]
    fn a_limit_on_a_queue_of_mq_is_watched_and_too_many_classes_are_not() {
        let mq = [
            qdisc(4, "mq", 0x8001_0000, ROOT, 9),
            queueing(36, "tbf", [4, 0x2_0000, 0x8001_0001], 4, &tbf(1_250_000)),
            qdisc(4, "fq_codel", 0, 0x8001_0002, 5),
        ];
        assert_eq!(subjects(&mq), ["eth0 mq 8001:", "eth0 tbf 2:"]);
        let many = |n: u32| -> Vec<u8> {
            let class = |i| queueing(40, "htb", [4, 0x1_0001 + i, 0x1_0000], 9, &htb(12_500_000));
            (0..n).flat_map(class).collect()
        };
        let classful = [qdisc(4, "htb", 0x1_0000, ROOT, 9)];
        let most = super::CLASSES_MAX as u32;
        assert_eq!(shapers(&classful, Some(many(most))).0.len(), 64);
        let (none, gaps) = shapers(&classful, Some(many(most + 1)));
        assert_eq!((none.len(), gaps), (0, 1));
    }

    #[test]
    fn a_discipline_that_is_replaced_ends_its_table() {
        let before = [qdisc(4, "fq", 0x1_0000, ROOT, 9)];
        let after = [queueing(36, "tbf", [4, 0x2_0000, ROOT], 0, &tbf(1_250_000))];
        let (tables, gaps) = watch(&[&before, &after, &after]);
        let want = [("eth0 fq 1:".to_owned(), vec![0]), ("eth0 tbf 2:".to_owned(), vec![1, 2])];
        assert_eq!(tables, want);
        assert_eq!(gaps, 1);
    }
}
