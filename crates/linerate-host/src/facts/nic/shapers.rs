//! Limits, delays and losses that are configured in the queueing disciplines of ports.

use std::collections::BTreeSet;

use linerate_facts::nic::{Nic, SHAPERS_MAX};
use linerate_facts::parse::qdisc::{self, Qdisc};
use linerate_facts::parse::{Malformed, shaping};
use linerate_facts::shaping::{Shaper, Shaping};

use super::Reader;
use crate::{Query, invalid};

impl Reader<'_> {
    /// Reads the limits, delays and losses that are configured in the disciplines and classes of ports.
    pub(super) fn shapers(&mut self, nics: &mut [Nic]) {
        const WHAT: &str = "the queueing disciplines";
        const HINT: &str = "tc -d qdisc; tc -d class show dev PORT";
        let requested = self.machine.query(&Query::Qdiscs);
        let Some(reply) =
            requested.map_err(|error| self.miss("nic.shapers", WHAT, &error, HINT)).ok()
        else {
            return;
        };
        let mut found: Vec<(u32, Shaper)> = Vec::new();
        let mut classful: BTreeSet<u32> = BTreeSet::new();
        for qdisc in qdisc::parse(&reply) {
            let set = qdisc.and_then(|qdisc| Ok((shaping::discipline(&qdisc)?, qdisc)));
            match set {
                Ok((set, qdisc)) => {
                    found.extend(set.map(|set| (qdisc.port, shaper(&qdisc, set))));
                    if shaping::has_classes(&qdisc.kind) {
                        classful.insert(qdisc.port);
                    }
                }
                Err(error) => self.miss("nic.shapers", WHAT, &invalid(error), HINT),
            }
        }
        for port in classful {
            let classes = self.machine.query(&Query::Classes(port));
            let classes = classes.and_then(|reply| classes_of(port, &reply).map_err(invalid));
            match classes {
                Ok(classes) => found.extend(classes),
                Err(error) => self.miss("nic.shapers", WHAT, &error, HINT),
            }
        }
        for (port, shaper) in found {
            let nic = nics.iter_mut().find(|nic| nic.index == port);
            if let Some(nic) = nic.filter(|nic| nic.shapers.len() < SHAPERS_MAX) {
                nic.shapers.push(shaper);
            }
        }
    }
}

fn shaper(qdisc: &Qdisc<'_>, set: Shaping) -> Shaper {
    Shaper { kind: qdisc.kind.to_string(), id: qdisc.id(), set }
}

/// Returns the classes of a port that have a configured limit.
fn classes_of(port: u32, reply: &[u8]) -> Result<Vec<(u32, Shaper)>, Malformed> {
    let mut found = Vec::new();
    for class in qdisc::classes(reply) {
        let class = class?;
        let set = shaping::class(&class)?.filter(|_| class.port == port);
        found.extend(set.map(|set| (port, shaper(&class, set))));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use linerate_facts::nic::Network;

    use crate::testing::{Fake, htb, link, qdisc, queueing, tbf};
    use crate::{Query, Replay, network};

    const ROOT: u32 = u32::MAX;

    /// Returns the shapers of each port, and whether there is a gap for shapers.
    fn shapers(fake: Fake) -> (Vec<Vec<String>>, bool) {
        let links = [link(4, "eth0", &[]), link(5, "eth1", &[])].concat();
        let fake = fake.reply(Query::Links, &[&links]);
        let Network { nics, gaps, .. } = network(&Replay::new(fake.0));
        let reported = nics.iter().map(|nic| nic.shapers.iter().map(ToString::to_string).collect());
        (reported.collect(), gaps.iter().any(|gap| gap.what == "facts.nic.shapers"))
    }

    #[test]
    fn each_port_has_its_own_shapers_and_those_of_its_classes() {
        let disciplines = [
            queueing(36, "tbf", [5, 0x1_0000, ROOT], 9, &tbf(62_500_000)),
            qdisc(4, "htb", 0x1_0000, ROOT, 9),
        ];
        let fake = || Fake::default().reply(Query::Qdiscs, &[&disciplines.concat()]);
        let class = queueing(40, "htb", [4, 0x1_0010, 0x1_0000], 9, &htb(12_500_000));
        let (reported, gap) = shapers(fake().reply(Query::Classes(4), &[&class]));
        let want = [["htb 1:10 100 Mb/s (50 Mb/s assured)"], ["tbf 1: 500 Mb/s"]];
        assert_eq!((reported, gap), (want.map(|w| w.map(String::from).to_vec()).to_vec(), false));
        let (reported, gap) = shapers(fake());
        assert_eq!((reported[0].len(), reported[1].len(), gap), (0, 1, true));
    }

    #[test]
    fn disciplines_that_cannot_be_read_are_a_gap() {
        assert!(shapers(Fake::default()).1);
    }
}
