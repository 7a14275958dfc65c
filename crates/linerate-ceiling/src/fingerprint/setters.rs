//! The settings and clocks that may have set a timer, found by its period.

use super::facts::Facts;
use super::table::Carrier;
use linerate_units::Nanos;

/// A setting or a clock that may delay messages until a timer runs out.
#[derive(Debug, PartialEq)]
pub struct Setter {
    /// Name of the setting or clock, in words.
    pub name: &'static str,
    /// The command that shows the value of the setting. `PORT` is the port's name.
    pub look: &'static str,
    /// The command that ends the waiting; empty if no command fits each system.
    pub off: &'static str,
    /// Possible periods of the timer.
    periods: Periods,
    /// The only drivers that have this setting; empty if any driver can.
    drivers: &'static [&'static str],
    /// The only carrier that this timer delays; `None` if it delays sockets and verbs.
    carrier: Option<Carrier>,
}

/// Possible periods of a setter, in microseconds.
#[derive(Debug, PartialEq)]
enum Periods {
    /// One of these periods.
    Of(&'static [f64]),
    /// Any period from the first to the second value: the period is the value of the setting.
    From(f64, f64),
    /// A whole multiple of the first value, at most this many times.
    Units(f64, u32),
}

/// How far a measured period may be from a period of a setter, as a share.
const OFF: f64 = 0.02;

/// Number of timers that a measured period may sum up: one, or one at each end of the path.
const TIMER_COUNTS: [f64; 2] = [1.0, 2.0];

/// Longest time in microseconds for which a card may hold interrupts back; drivers allow a few milliseconds at most.
const LONGEST: f64 = 10_000.0;

/// Default fields of a setter: any driver and any carrier may have it, and no command ends it.
const BASE: Setter =
    Setter { name: "", look: "", off: "", periods: Periods::Of(&[]), drivers: &[], carrier: None };

/// Everything that may set a timer; setters with few possible periods come first.
static SETTERS: [Setter; 11] = [
    //= Linux, drivers/net/ethernet/natsemi/ns83820.c: ihr in units of 100 us, 0 to 127, 2 by default
    Setter {
        name: "driver ns83820, its parameter ihr in units of 100 us, 2 by default: it holds interrupts back",
        look: "modinfo -p ns83820; grep -rs ns83820 /etc/modprobe.d /proc/cmdline",
        off: "echo options ns83820 ihr=0 | sudo tee /etc/modprobe.d/ns83820.conf",
        periods: Periods::Units(100.0, 127),
        drivers: &["ns83820"],
        ..BASE
    },
    //= Linux, Documentation/networking/device_drivers/ethernet/intel/e1000.rst: dynamic from 4000 to 20000
    //= interrupts a second; 8000 was the default of older versions
    Setter {
        name: "driver e1000 or e1000e, its parameter InterruptThrottleRate: 4000 to 20000 interrupts a second, once 8000",
        look: "ethtool -c PORT; grep -rs e1000 /etc/modprobe.d /proc/cmdline",
        periods: Periods::From(50.0, 250.0),
        drivers: &["e1000", "e1000e"],
        ..BASE
    },
    //= Linux, kernel/Kconfig.hz
    Setter {
        name: "tick of a Linux kernel with HZ of 1000, 300, 250 or 100",
        look: "grep CONFIG_HZ= /boot/config-$(uname -r)",
        periods: Periods::Of(&[1_000.0, 10_000.0 / 3.0, 4_000.0, 10_000.0]),
        ..BASE
    },
    //= Microsoft, timeBeginPeriod and GetSystemTimeAdjustment: 64 ticks a second
    Setter {
        name: "tick of Windows",
        look: "powercfg /energy",
        periods: Periods::Of(&[15_625.0]),
        ..BASE
    },
    //= Linux, include/net/tcp.h, TCP_DELACK_MIN: HZ / 25
    Setter {
        name: "delayed acknowledgement of Linux: a small message waits for that of the one before",
        look: "ss -tin",
        periods: Periods::Of(&[40_000.0]),
        carrier: Some(Carrier::Sockets),
        ..BASE
    },
    //= RFC 1122, section 4.2.3.2: at most 500 ms; 200 ms in BSD and in Windows
    Setter {
        name: "delayed acknowledgement of another system than Linux",
        look: "netsh interface tcp show supplemental",
        periods: Periods::Of(&[200_000.0]),
        carrier: Some(Carrier::Sockets),
        ..BASE
    },
    //= Linux, include/net/tcp.h, TCP_RTO_MIN: HZ / 5
    Setter {
        name: "shortest retransmission timeout of Linux's TCP: packets are lost",
        look: "nstat -az TcpExtTCPTimeouts",
        periods: Periods::Of(&[200_000.0]),
        carrier: Some(Carrier::Sockets),
        ..BASE
    },
    //= ethtool(8), --coalesce
    Setter {
        name: "interrupt coalescing of a card: rx-usecs or tx-usecs is this time",
        look: "ethtool -c PORT",
        off: "sudo ethtool -C PORT adaptive-rx off adaptive-tx off rx-usecs 0 tx-usecs 0",
        periods: Periods::From(1.0, LONGEST),
        ..BASE
    },
    //= Linux, Documentation/networking/napi.rst, gro_flush_timeout in nanoseconds
    Setter {
        name: "deferred interrupts of NAPI: gro_flush_timeout is this time",
        look: "cat /sys/class/net/PORT/gro_flush_timeout /sys/class/net/PORT/napi_defer_hard_irqs",
        periods: Periods::From(1.0, LONGEST),
        ..BASE
    },
    //= rdma-dev(8), adaptive-moderation; ibv_modify_cq(3)
    Setter {
        name: "moderation of completions, by the driver or by a program with ibv_modify_cq",
        look: "rdma dev show",
        periods: Periods::From(1.0, LONGEST),
        carrier: Some(Carrier::Verbs),
        ..BASE
    },
    //= Microsoft, NDIS, interrupt moderation: the driver chooses the time
    Setter {
        name: "interrupt moderation of a card under Windows",
        look: "Get-NetAdapterAdvancedProperty -RegistryKeyword *InterruptModeration",
        periods: Periods::From(1.0, 1_000.0),
        ..BASE
    },
];

/// Start of a word in the model of a card or in a driver's name, in lower case; and the driver.
//= Linux, the PCI identifiers of each driver and their help in Kconfig
const DRIVERS: [(&str, &str); 10] = [
    ("ns83820", "ns83820"),
    ("dp83820", "ns83820"),
    ("ge1000tc", "ns83820"),
    ("acenic", "acenic"),
    ("ga620", "acenic"),
    ("e1000e", "e1000e"),
    ("e1000", "e1000"),
    ("pro/1000", "e1000"),
    ("connectx", "mlx"),
    ("mlx", "mlx"),
];

/// What may set a timer of this period: setters of the card's driver come first, and those of other drivers are
/// left out if the driver is known.
pub fn setters(period: Nanos, facts: &Facts) -> Vec<&'static Setter> {
    let micros = period.0 as f64 / 1e3;
    let drivers = facts.card.as_deref().map(drivers).unwrap_or_default();
    let is_known = facts.all_drivers || !drivers.is_empty();
    let is_own = |setter: &Setter| setter.drivers.iter().any(|d| drivers.contains(d));
    let may = |setter: &&Setter| {
        let is_others = !setter.drivers.is_empty() && is_known && !is_own(setter);
        let is_carried = match (setter.carrier, facts.carrier) {
            (Some(its), Some(ours)) => its == ours,
            _ => true,
        };
        setter.periods.has(micros) && is_carried && !is_others
    };
    let mut found: Vec<&'static Setter> = SETTERS.iter().filter(may).collect();
    found.sort_by_key(|setter| !is_own(setter));
    found
}

/// The drivers that a text names, directly or by the model of a card.
fn drivers(card: &str) -> Vec<&'static str> {
    let card = card.to_lowercase();
    let words = || card.split(|c: char| c.is_whitespace() || ",;()[]".contains(c));
    let is_named = |start: &str| words().any(|word| word.starts_with(start));
    let named = DRIVERS.iter().filter(|(start, _)| is_named(start));
    named.map(|(_, driver)| *driver).collect()
}

impl Periods {
    fn has(&self, micros: f64) -> bool {
        TIMER_COUNTS.iter().any(|ends| self.has_one(micros / ends))
    }

    fn has_one(&self, micros: f64) -> bool {
        let near = |own: f64| (micros / own - 1.0).abs() <= OFF;
        match self {
            Self::Of(all) => all.iter().any(|own| near(*own)),
            Self::From(least, most) => (least * (1.0 - OFF)..=most * (1.0 + OFF)).contains(&micros),
            Self::Units(unit, most) => {
                let count = (micros / unit).round();
                (1.0..=f64::from(*most)).contains(&count) && near(count * unit)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(micros: u64, facts: &Facts) -> Vec<&'static str> {
        let found = setters(Nanos(micros * 1_000), facts);
        found.iter().map(|setter| setter.name).collect()
    }

    fn card(card: &str) -> Facts {
        Facts { card: Some(card.to_owned()), ..Facts::default() }
    }

    #[test]
    fn a_known_card_puts_its_driver_first_and_drops_the_others() {
        for text in ["GE1000TC or GA620T", "ns83820", "Planex GE1000TC"] {
            let found = names(200, &card(text));
            assert!(found[0].starts_with("driver ns83820, its parameter ihr"), "{found:?}");
            assert!(!found.iter().any(|name| name.contains("e1000")), "{found:?}");
            assert!(found.iter().any(|name| name.starts_with("interrupt coalescing")));
        }
        let found = names(125, &card("Intel PRO/1000 MT"));
        assert!(found[0].starts_with("driver e1000"), "{found:?}");
        assert!(!found.iter().any(|name| name.contains("ns83820")), "{found:?}");
    }

    #[test]
    fn an_unknown_card_drops_no_driver() {
        for facts in [Facts::default(), card("a card of 2004")] {
            let found = names(200, &facts);
            for part in ["ns83820", "e1000", "rx-usecs", "gro_flush_timeout", "completions"] {
                assert!(found.iter().any(|name| name.contains(part)), "{part}: {found:?}");
            }
            assert!(!found.iter().any(|name| name.contains("tick")), "{found:?}");
        }
    }

    #[test]
    fn each_clock_has_its_period_and_twice_that() {
        for (micros, part) in [
            (1_000, "HZ of 1000"),
            (3_333, "HZ of 1000"),
            (4_000, "HZ of 1000"),
            (10_000, "HZ of 1000"),
            (20_000, "HZ of 1000"),
            (15_625, "tick of Windows"),
            (40_000, "delayed acknowledgement of Linux"),
            (200_000, "another system"),
            (200_000, "retransmission"),
            (400_000, "retransmission"),
        ] {
            let found = |micros| names(micros, &Facts::default()).iter().any(|n| n.contains(part));
            assert!(found(micros), "{micros} {part}");
            assert!(
                found(micros * 1_015 / 1_000) && !found(micros * 1_030 / 1_000),
                "{micros} {part}"
            );
        }
        assert_eq!(names(60_000, &Facts::default()), [""; 0]);
    }

    #[test]
    fn units_end_where_the_parameter_does() {
        let is_named =
            |micros| names(micros, &card("ns83820"))[..].iter().any(|n| n.contains("ihr"));
        assert!(is_named(100) && is_named(12_700) && is_named(25_400));
        assert!(!is_named(150) && !is_named(50) && !is_named(26_200));
    }

    #[test]
    fn verbs_wait_for_no_acknowledgement_of_tcp() {
        let verbs = Facts { carrier: Some(Carrier::Verbs), ..Facts::default() };
        assert_eq!(names(40_000, &verbs), [""; 0]);
        assert_eq!(setters(Nanos(0), &verbs), [] as [&Setter; 0]);
    }
}
