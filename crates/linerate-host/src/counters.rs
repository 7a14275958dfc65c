//! Source `driver`: counters of a port's driver for drops, pauses and limits of a cloud provider.

use std::io;

use linerate_facts::Gap;
use linerate_facts::metric::{self, Metric};
use linerate_facts::nic::Counter;
use linerate_facts::nic::counted::{Meaning, grouped, own_meaning};
use linerate_facts::parse::{driver, ethtool};

use super::source::{Row, Source};
use super::{Ethtool, Machine, Query, invalid};

const METRICS: &[Metric] = &[metric::DRIVER_COUNT];
/// Number of rows of the sampler per reading: some drivers query their firmware for each counter.
const EVERY: usize = 10;
/// Most counters of a port that are recorded.
const COUNTERS_MAX: usize = 32;
/// Meanings of the counters that causes need.
const NEEDED: [Meaning; 7] = [
    Meaning::PauseReceived,
    Meaning::PauseSent,
    Meaning::PausedMicros,
    Meaning::Allowance,
    Meaning::RingFull,
    Meaning::BufferFull,
    Meaning::SendDropped,
];

/// Reads the driver's counters of one port.
pub(super) struct Counters {
    port: u32,
    name: String,
    /// The driver of the port, which determines the names of its counters.
    driver: Option<String>,
    /// Whether the first reading found none of the requested counters; then they are not read again.
    mute: bool,
}

impl Counters {
    /// Makes a reader of the port with this index and name.
    pub(crate) fn new(port: u32, name: String) -> Self {
        Self { port, name, driver: None, mute: false }
    }

    /// Reads the counters that a run needs, added up over all queues: the driver's own and, if the driver has no pause
    /// counters, the kernel's common ones. A driver without counters is no gap of the run; a cause that needs the
    /// counters reports it.
    fn read(&mut self, machine: &dyn Machine) -> Vec<Counter> {
        let own = || -> io::Result<Vec<Counter>> {
            let reply = machine.query(&Query::DriverCounters(self.port))?;
            driver::counters(&reply).map_err(invalid)
        };
        let port = self.port;
        let driver = self.driver.get_or_insert_with(|| {
            let reply = machine.query(&Query::Driver(port)).ok();
            let info = reply.and_then(|reply| driver::info(&reply).ok());
            info.unwrap_or_default().driver
        });
        let requested = |counter: &Counter| {
            let meaning = own_meaning(driver, &counter.name);
            meaning.is_some_and(|meaning| NEEDED.contains(&meaning))
        };
        let mut counters = own().unwrap_or_default();
        counters.retain(requested);
        let mut counters = grouped(counters);
        let is_pause = |counter: &Counter| {
            let meaning = own_meaning(driver, &counter.name);
            matches!(meaning, Some(Meaning::PauseReceived | Meaning::PauseSent))
        };
        // The kernel's common counters are only a substitute: ixgbe adds the ends of pauses to them.
        if !counters.iter().any(is_pause) {
            let reply = machine.query(&Query::Ethtool(Ethtool::Pause, self.port));
            let pause = reply.ok().and_then(|reply| ethtool::pause(&reply).ok());
            let pause = pause.unwrap_or_default();
            let common =
                [("rx_pause_frames", pause.rx_frames), ("tx_pause_frames", pause.tx_frames)];
            counters.extend(common.into_iter().filter_map(|(name, value)| {
                Some(Counter { name: name.to_owned(), value: value? })
            }));
        }
        counters.truncate(COUNTERS_MAX);
        counters
    }
}

impl Source for Counters {
    fn every(&self) -> usize {
        EVERY
    }

    fn observe(&mut self, row: &mut Row<'_>) -> Result<(), Gap> {
        if self.mute {
            return Ok(());
        }
        let counters = self.read(row.machine);
        self.mute = counters.is_empty();
        for Counter { name, value } in counters {
            let subject = || format!("{} {name}", self.name);
            row.push(METRICS, name.clone(), subject, &[Some(value)]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::EVERY;
    use crate::testing::{Fake, of};
    use crate::{Ethtool, Query};

    /// Makes the reply to a query of counters: `struct ethtool_gstrings`, then `struct ethtool_stats`.
    fn reply(counters: &[(&str, u64)]) -> Vec<u8> {
        let count = u32::try_from(counters.len()).unwrap();
        let words = |words: [u32; 2]| words.into_iter().flat_map(u32::to_ne_bytes);
        let mut raw: Vec<u8> = words([0x1b, 1]).chain(count.to_ne_bytes()).collect();
        for (name, _) in counters {
            let mut field = name.as_bytes().to_vec();
            field.resize(32, 0);
            raw.extend(field);
        }
        raw.extend(words([0x1d, count]));
        raw.extend(counters.iter().flat_map(|(_, value)| value.to_ne_bytes()));
        raw
    }

    #[test]
    fn every_tenth_row_reads_what_causes_ask_for() {
        let counters = |n| {
            let all = [
                ("rx_bytes", 9),
                ("rx_pause", n),
                ("bw_in_allowance_exceeded", 0),
                ("conntrack_allowance_available", 900),
            ];
            reply(&all)
        };
        let fake = Fake::default().reply(Query::DriverCounters(4), &[&counters(5), &counters(8)]);
        let mut sources = fake.sources();
        sources.watch_drivers([(4, "eth0".to_owned())]);
        (0..=EVERY as u64).for_each(|at| sources.observe(at));
        let (tables, gaps) = of("driver", sources.take());
        assert_eq!(gaps, []);
        let reported: Vec<_> =
            tables.iter().map(|t| (t.subject.as_str(), t.columns[0].values.as_slice())).collect();
        let want: [(&str, &[i64]); 2] =
            [("eth0 rx_pause", &[5, 8]), ("eth0 bw_in_allowance_exceeded", &[0, 0])];
        assert_eq!(reported, want);
        assert_eq!(tables[0].at, [0, EVERY as u64]);
    }

    #[test]
    fn drops_are_known_by_the_driver_and_summed_over_queues() {
        let mut info = vec![0; 196];
        info[4..8].copy_from_slice(b"igb\0");
        let counted = [
            ("rx_queue_0_drops", 2),
            ("rx_queue_0_alloc_failed", 7),
            ("rx_queue_1_drops", 3),
            ("rx_pause", 0),
        ];
        let fake = Fake::default()
            .reply(Query::Driver(4), &[&info])
            .reply(Query::DriverCounters(4), &[&reply(&counted)]);
        let mut sources = fake.sources();
        sources.watch_drivers([(4, "eth0".to_owned())]);
        sources.observe(0);
        let (tables, gaps) = of("driver", sources.take());
        assert_eq!(gaps, []);
        let reported: Vec<_> =
            tables.iter().map(|t| (t.subject.as_str(), t.columns[0].values[0])).collect();
        assert_eq!(reported, [("eth0 rx_queue_*_drops", 5), ("eth0 rx_pause", 0)]);
    }

    #[test]
    fn pauses_that_the_driver_counts_by_another_name_are_counted_once() {
        use crate::testing::{attr, msg};
        let stats = [attr(2, &7u64.to_ne_bytes()), attr(3, &8u64.to_ne_bytes())].concat();
        let pause = msg(21, &[vec![0; 4], attr(5, &stats)].concat());
        let result_of = |names: &[(&str, u64)]| {
            let fake = Fake::default()
                .reply(Query::DriverCounters(4), &[&reply(names)])
                .reply(Query::Ethtool(Ethtool::Pause, 4), &[&pause]);
            let mut sources = fake.sources();
            sources.watch_drivers([(4, "eth0".to_owned())]);
            sources.observe(0);
            let (tables, _) = of("driver", sources.take());
            let subjects = tables.iter().map(|table| table.subject.clone());
            subjects.collect::<Vec<_>>()
        };
        for name in ["rx_flow_control_xoff", "port.link_xoff_tx", "link_xoff_rx.nic"] {
            assert_eq!(result_of(&[(name, 3)]), [format!("eth0 {name}")]);
        }
        // Counters of a single priority, and other names that contain these words, do not replace the common counters.
        assert_eq!(
            result_of(&[("rx_prio3_pause", 3), ("rx_global_pause_duration", 3)]),
            ["eth0 rx_global_pause_duration", "eth0 rx_pause_frames", "eth0 tx_pause_frames"]
        );
    }

    #[test]
    fn pauses_that_the_driver_does_not_name_are_asked_of_the_kernel() {
        use crate::testing::{attr, msg};
        let stats = [attr(2, &7u64.to_ne_bytes()), attr(3, &8u64.to_ne_bytes())].concat();
        let pause = msg(21, &[vec![0; 4], attr(5, &stats)].concat());
        let fake = Fake::default().reply(Query::Ethtool(Ethtool::Pause, 4), &[&pause]);
        let mut sources = fake.sources();
        sources.watch_drivers([(4, "eth0".to_owned())]);
        sources.observe(0);
        let (tables, gaps) = of("driver", sources.take());
        let reported: Vec<_> =
            tables.iter().map(|t| (t.subject.as_str(), t.columns[0].values[0])).collect();
        assert_eq!(reported, [("eth0 rx_pause_frames", 8), ("eth0 tx_pause_frames", 7)]);
        assert_eq!(gaps, []);
    }
}
