//! Tells what the figures of a record measure. Needed if an import is compared: two programs rarely measure the same
//! thing.

use super::rows::{self, Row};
use crate::{Explained, Table};
use linerate_judge::figure::Subject;
use linerate_plan::Pattern;
use linerate_plan::path::Direction;
use linerate_plan::transport::{self, Feature};
use linerate_record::Record;
use linerate_record::reported::{Carrier, Transfer, Trip};
use linerate_units::{Bytes, Rate};

/// What the figures of a record measure: its round trips, loads and rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Basis {
    /// The round trips on the idle path; `None` if there are none.
    pub trips: Option<Trips>,
    /// The load in each direction that was measured.
    pub loads: Vec<Loaded>,
    /// Whether the record has times of which it is unknown whether they are halves of round trips.
    pub has_unknown_trips: bool,
    /// The rows of the record's results.
    pub(super) rows: Vec<Row>,
}

/// The round trips on the idle path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trips {
    /// The protocol of the messages; `None` if unknown.
    pub carrier: Option<Carrier>,
    /// Whether halves of round trips were reported, which are doubled here.
    pub doubled: bool,
    /// Payload of a message in bytes; `None` if unknown.
    pub size: Option<Bytes>,
    /// The operation of verbs, where the protocol is RDMA: the card answers a read, and a program a send. Else empty.
    pub verb: String,
}

/// The load in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loaded {
    /// The direction of the load.
    pub direction: Direction,
    /// The protocol of the load; `None` if unknown.
    pub carrier: Option<Carrier>,
    /// Number of connections; `None` if unknown.
    pub streams: Option<u32>,
    /// The rate that was requested for all streams together; `None` if there was no such limit, or it is unknown.
    pub requested: Option<Rate>,
    /// Payload of a message or datagram in bytes; `None` if unknown, and for TCP, which has no messages.
    pub size: Option<Bytes>,
}

impl Basis {
    /// What the figures of a run measure.
    pub(super) fn of_record(record: &Record) -> Self {
        let plan = &record.start.plan;
        let carrier = carrier(&plan.engine);
        let mut sizes = record.sets.iter().filter_map(|set| match set.plan.pattern {
            Pattern::PingPong { size, .. } => Some(size),
            Pattern::Stream { .. } | Pattern::Operations { .. } => None,
        });
        let load = |direction: &Direction| Loaded {
            direction: *direction,
            carrier,
            streams: Some(plan.knobs.streams),
            requested: plan.knobs.rate(),
            size: None,
        };
        Self {
            trips: sizes.next().map(|size| Trips {
                carrier,
                doubled: false,
                size: Some(size),
                verb: String::new(),
            }),
            loads: plan.directions.iter().map(load).collect(),
            has_unknown_trips: false,
            rows: rows::of_record(record),
        }
    }

    /// What the figures of an import measure.
    pub fn of_import(explained: &Explained<'_>) -> Self {
        let trips = |table: &Table<'_>| {
            let row = table.smallest()?;
            table.whole(row.time()?).map(|_| Trips {
                carrier: table.sizes.carrier,
                doubled: table.sizes.trip == Trip::Half,
                size: Some(row.size),
                verb: match table.sizes.carrier {
                    Some(Carrier::Rdma) => table.sizes.operation.clone(),
                    _ => String::new(),
                },
            })
        };
        let unknown =
            |table: &Table<'_>| table.sizes.trip == Trip::Unknown && table.smallest().is_some();
        let load = |one: &Transfer| Loaded {
            direction: one.direction,
            carrier: Some(one.carrier),
            streams: one.streams,
            requested: one.requested,
            size: one.size.filter(|_| one.carrier != Carrier::Tcp),
        };
        let loads = Direction::ALL.into_iter();
        Self {
            trips: explained.tables.iter().find_map(trips),
            loads: loads
                .filter_map(|direction| explained.material.base(direction).map(load))
                .collect(),
            has_unknown_trips: explained.tables.iter().any(unknown),
            rows: rows::of_import(explained),
        }
    }

    fn load(&self, direction: Direction) -> Option<&Loaded> {
        self.loads.iter().find(|load| load.direction == direction)
    }
}

/// The protocol of an engine; `None` for an engine whose figures cannot be compared with those of other programs.
pub(super) fn carrier(engine: &str) -> Option<Carrier> {
    let transport = transport::of(engine);
    let is = |feature| transport.has(feature);
    is(Feature::Connections)
        .then_some(Carrier::Tcp)
        .or(is(Feature::Datagrams).then_some(Carrier::Udp))
}

/// Why two values of a figure cannot be compared; `None` if they can. `of` is the direction or idle path of the figure.
pub(super) fn unlike(before: &Basis, after: &Basis, of: Subject) -> Option<&'static str> {
    match of.direction {
        None => {
            let (a, b) = (before.trips.as_ref()?, after.trips.as_ref()?);
            protocols(a.carrier, b.carrier)
                .or((a.verb != b.verb).then_some("another operation"))
                .or((a.size != b.size).then_some("messages of another size"))
        }
        Some(direction) => {
            let (a, b) = (before.load(direction)?, after.load(direction)?);
            protocols(a.carrier, b.carrier)
                .or((a.streams != b.streams).then_some("another number of streams"))
                .or((a.requested != b.requested).then_some("another rate was asked for"))
                .or(a.size.zip(b.size).filter(|(a, b)| a != b).map(|_| "messages of another size"))
        }
    }
}

fn protocols(before: Option<Carrier>, after: Option<Carrier>) -> Option<&'static str> {
    let (Some(a), Some(b)) = (before, after) else {
        return Some("a protocol is not known");
    };
    match (a == Carrier::Rdma, b == Carrier::Rdma) {
        (true, false) => Some("verbs before, an application after"),
        (false, true) => Some("an application before, verbs after"),
        _ => (a != b).then_some("another protocol"),
    }
}

/// Notes that a reader needs about the round trips of a record: which times are doubled, and which are left out.
pub(super) fn notes(which: &str, basis: &Basis) -> Vec<String> {
    let doubled = basis.trips.as_ref().is_some_and(|trips| trips.doubled);
    let doubled = doubled.then(|| {
        format!("the {which} record reports halves of round trips: twice of them stands here")
    });
    let unknown = basis.has_unknown_trips.then(|| {
        format!("the {which} record has times that may be halves of round trips: they are left out")
    });
    doubled.into_iter().chain(unknown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn basis(change: impl FnOnce(&mut Trips, &mut Loaded)) -> Basis {
        let carrier = Some(Carrier::Tcp);
        let mut trips =
            Trips { carrier, doubled: false, size: Some(Bytes(64)), verb: String::new() };
        let mut load = Loaded {
            direction: Direction::Forward,
            carrier,
            streams: Some(1),
            requested: None,
            size: None,
        };
        change(&mut trips, &mut load);
        Basis { trips: Some(trips), loads: vec![load], has_unknown_trips: false, rows: Vec::new() }
    }

    #[test]
    fn figures_of_one_kind_compare_and_others_say_why_not() {
        let plain = basis(|_, _| ());
        let idle = |other: &Basis| unlike(&plain, other, Subject::default());
        let loaded = |other: &Basis| unlike(&plain, other, Subject::load(Direction::Forward));
        let same = basis(|trips, _| trips.doubled = true);
        assert_eq!((idle(&same), loaded(&same)), (None, None));
        let verbs = basis(|trips, _| trips.carrier = Some(Carrier::Rdma));
        assert_eq!(idle(&verbs), Some("an application before, verbs after"));
        let of = |verb: &str| {
            basis(|trips, _| {
                trips.carrier = Some(Carrier::Rdma);
                trips.verb = verb.to_owned();
            })
        };
        let verbs_of = |a, b| unlike(&of(a), &of(b), Subject::default());
        assert_eq!(verbs_of("RDMA read", "RDMA read"), None);
        assert_eq!(verbs_of("RDMA read", "send"), Some("another operation"));
        let larger = basis(|trips, _| trips.size = Some(Bytes(65)));
        assert_eq!(idle(&larger), Some("messages of another size"));
        let unknown = basis(|trips, _| trips.carrier = None);
        assert_eq!(idle(&unknown), Some("a protocol is not known"));
        let udp = basis(|_, load| load.carrier = Some(Carrier::Udp));
        assert_eq!(loaded(&udp), Some("another protocol"));
        let more = basis(|_, load| load.streams = Some(2));
        assert_eq!(loaded(&more), Some("another number of streams"));
        let paced = basis(|_, load| load.requested = Some(Rate(1)));
        assert_eq!(loaded(&paced), Some("another rate was asked for"));
        let of = |bytes| basis(|_, load| load.size = Some(Bytes(bytes)));
        let other = unlike(&of(1400), &of(64), Subject::load(Direction::Forward));
        assert_eq!(other, Some("messages of another size"));
        assert_eq!(loaded(&of(1400)), None);
    }

    #[test]
    fn one_must_know_of_halves() {
        assert_eq!(notes("first", &basis(|_, _| ())), [""; 0]);
        let halves = basis(|trips, _| trips.doubled = true);
        let open = Basis { has_unknown_trips: true, ..halves };
        assert_eq!(notes("first", &open).len(), 2);
    }
}
