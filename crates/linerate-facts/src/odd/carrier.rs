//! Rules about ports that are faster than the PCI Express link or the USB that carries their traffic to memory.

use super::Finding;
use crate::advice::{Advice, Step};
use crate::carrier::{Carrier, PortLoad, Via};
use crate::crossing::{Crossing, is_default};
use crate::pci::{Address, Link};
use linerate_ceiling::usb;
use linerate_units::Rate;

/// Ports that exceed a PCI Express link or USB. Links that run below the best of either end are left out: the rules for
/// slots and links report them.
pub(super) fn beyond(all: &[Carrier<'_>]) -> Vec<Finding> {
    let capped = all.iter().filter_map(|carrier| {
        let excess = Excess::of(carrier)?;
        match &carrier.via {
            // Several ports that share default link figures are ports inside the processor, without a real link.
            Via::Link(link) if matches!(excess, Excess::Together(_)) && is_default(link) => None,
            Via::Link(link) if is_short(link) => None,
            Via::Link(link) => Some(by_link(carrier, link, &excess)),
            Via::Usb(hub, signals) => Some(by_usb(carrier, (*hub, *signals), &excess)),
        }
    });
    capped.collect()
}

/// Text about the ports that exceed the link whose end towards memory is at `slot` (`eth0 (25 Gb/s) alone is faster`),
/// and their names. `None` if no ports exceed the link.
pub(super) fn excess(all: &[Carrier<'_>], slot: Address) -> Option<(String, Vec<String>)> {
    let here = |carrier: &&Carrier<'_>| match &carrier.via {
        Via::Link(link) => link.slot.address == slot,
        Via::Usb(..) => false,
    };
    let excess = Excess::of(all.iter().find(here)?)?;
    Some((excess.words(), excess.names()))
}

/// Whether a link runs below the best speed and width of one of its ends.
pub(super) fn is_short(link: &Crossing<'_>) -> bool {
    let below = |now: Link, best: Link| now.rate() < best.rate();
    link.best().is_some_and(|best| {
        below(link.now, best) || link.device.max.is_some_and(|own| below(best, own))
    })
}

/// The ports that exceed a carrier: each port alone, or only all ports together.
enum Excess<'a> {
    Alone(Vec<&'a PortLoad>),
    Together(Vec<&'a PortLoad>),
}

impl<'a> Excess<'a> {
    fn of(carrier: &'a Carrier<'_>) -> Option<Self> {
        match carrier.exceeded_by() {
            alone if alone.is_empty() => carrier.exceeded_by_all().map(Self::Together),
            alone => Some(Self::Alone(alone)),
        }
    }

    fn loads(&self) -> &[&'a PortLoad] {
        match self {
            Self::Alone(loads) | Self::Together(loads) => loads,
        }
    }

    fn names(&self) -> Vec<String> {
        self.loads().iter().map(|load| load.name.clone()).collect()
    }

    /// The excess in words: `eth0 (25 Gb/s) alone is faster`; `eth0 (10 Gb/s) and eth1 (10 Gb/s) are faster together`.
    fn words(&self) -> String {
        let port = |load: &&PortLoad| {
            let down = if load.up { "" } else { " once it is up" };
            format!("{} ({}{down})", load.name, load.rate)
        };
        let ports: Vec<String> = self.loads().iter().map(port).collect();
        let ports = ports.join(" and ");
        match self {
            Self::Alone(loads) if loads.len() == 1 => format!("{ports} alone is faster"),
            Self::Alone(_) => format!("{ports} are faster, each alone"),
            Self::Together(_) => format!("{ports} are faster together, though not each alone"),
        }
    }
}

fn at_most(carrier: &Carrier<'_>) -> Rate {
    Rate(carrier.leaves.high() as u64)
}

/// The finding in a few words: `PCIe leaves 14.8 Gb/s at most; eth0 (25 Gb/s) alone is faster`.
fn brief(by: &str, carrier: &Carrier<'_>, excess: &Excess<'_>) -> String {
    let most = at_most(carrier);
    format!("{by} leaves {most} at most; {}", excess.words())
}

fn by_link(carrier: &Carrier<'_>, link: &Crossing<'_>, excess: &Excess<'_>) -> Finding {
    let (device, slot, now) = (link.device, link.slot, link.now);
    let raw = now.rate().unwrap_or_default();
    let end = match device.buses {
        Some(_) => "the switch above",
        None => "the card",
    };
    Finding::new(
        "port-carrier",
        format!("{} {}", device.address, excess.names().join(" ")),
        format!(
            "the PCIe link between {end} and port {} runs at {now} ({raw}) and leaves \
             {} of frames at most; {}",
            slot.address,
            at_most(carrier),
            excess.words()
        ),
    )
    .brief(brief("PCIe", carrier, excess))
    .why("the card queues or drops what it receives beyond this rate, and cannot send faster")
    .limits(excess.names())
    .fix(match link.best() {
        Some(_) => Advice::new(format!(
            "count on {}, or share the load with a card on another link: {now} is the \
             best that both ends can do",
            at_most(carrier)
        )),
        None => Advice::new("see what both ends support")
            .on(None, format!("sudo lspci -vv -s {}", device.address)),
    })
}

fn by_usb(
    carrier: &Carrier<'_>,
    (hub, signals): (Option<&str>, Rate),
    excess: &Excess<'_>,
) -> Finding {
    let wire = match hub {
        Some(hub) => format!("the USB hub {hub} that it hangs on"),
        None => "the USB that it hangs on".to_owned(),
    };
    // Signalling rates below USB 3 generation 1 are those of USB 2 sockets, hubs or cables.
    let fix = if signals < usb::GEN1 {
        "move it to a socket of USB 3, by a cable and hubs of USB 3"
    } else {
        "use a socket, a cable and hubs that signal more, if the adapter can"
    };
    let seen = Step::on(None, "lsusb -t").about("the signalling rate of each");
    Finding::new(
        "port-carrier",
        excess.names().join(" "),
        format!(
            "{wire} signals {signals}, which leaves {} at most; {}",
            at_most(carrier),
            excess.words()
        ),
    )
    .brief(brief("USB", carrier, excess))
    .why("no traffic of the port can be faster than the USB that it hangs on")
    .limits(excess.names())
    .fix(Advice::new(fix).step(seen))
}
