//! Rules that compare results with the hardware of the path.

use super::super::{Best, Explained, Hardware, Said};
use super::{Remark, rate};
use linerate_ceiling::pcie::{Slot, lane, line_code};
use linerate_ceiling::{Bounds, Relation};
use linerate_facts::finding::Stands;
use linerate_units::{Rate, Transfers};

/// Largest share of data in a line code at which it shows whether a claim subtracts the code twice.
const CODE_SHOWS: f64 = 0.9;

/// Largest relative difference between a claimed ceiling and the capacity of a slot with its line code subtracted
/// twice.
const SAME_RATE: f64 = 0.02;

pub(super) fn reached(explained: &Explained<'_>) -> Vec<Remark> {
    remark(explained).into_iter().collect()
}

fn remark(explained: &Explained<'_>) -> Option<Remark> {
    let hardware = &explained.material.hardware;
    let ceiling = hardware.goodput()?;
    let best = Best::of(explained.material)?;
    let of = best.rate;
    let best = format!("{} ({})", rate(best.rate), best.file);
    let carries = format!("{} ({})", words(ceiling), hardware.binding().join(" or "));
    let (stands, what) = match Relation::to_ceiling(of, ceiling) {
        Relation::Reached => (
            Stands::Good,
            format!("the ceiling of the hardware as described is reached: {best} of {carries}"),
        ),
        Relation::About => (
            Stands::Good,
            format!(
                "the ceiling of the hardware as described is reached within 10 %: {best} of {carries}"
            ),
        ),
        Relation::Inside => (
            Stands::Good,
            format!(
                "the hardware as described may be the limit: the best is {best}, inside the range of its ceiling, \
                 {carries}"
            ),
        ),
        Relation::Above => (
            Stands::Doubt,
            format!("the best is {best}, more than the hardware as described carries, {carries}"),
        ),
        _ => (
            Stands::Found,
            format!(
                "the hardware as described is not the limit: the best is {best}, and it carries {carries}"
            ),
        ),
    };
    let mut remark = Remark::new(stands, what).because(parts(hardware));
    if stands == Stands::Found {
        remark = remark.because(
            "left are the programs and systems of the hosts, and parts that are not as described",
        );
    }
    Some(remark)
}

/// The ceiling of each part in words: `link 48.2 to 54.2 Gb/s`.
fn parts(hardware: &Hardware) -> String {
    let each = hardware.parts.iter().map(|part| format!("{} {}", part.name, words(part.goodput)));
    each.collect::<Vec<_>>().join("; ")
}

fn words(bits: Bounds) -> String {
    bits.words(|bits| Rate(bits as u64).to_string())
}

pub(super) fn coded_twice(explained: &Explained<'_>) -> Vec<Remark> {
    let claims = explained.material.claims.iter();
    let remark = |claim: &super::super::Claim| {
        let Said::Ceiling(claimed) = claim.said else {
            return None;
        };
        let slots = explained.material.hardware.slots.iter();
        let mut coded = slots.filter_map(|(name, slot)| Some((name, Coded::of(slot)?)));
        let (name, coded) = coded.find(|(_, coded)| coded.is_twice(claimed))?;
        Some(twice(explained, &claim.text, name, &coded))
    };
    claims.filter_map(remark).collect()
}

/// A PCIe slot of known generation and width.
struct Coded {
    lanes: u32,
    /// The line code: number of data bits, and number of bits that carry them.
    code: (u64, u64),
    /// Capacity in bits per second, with the line code subtracted once.
    capacity: f64,
}

impl Coded {
    fn of(slot: &Slot) -> Option<Self> {
        let ([generation], [lanes]) = (slot.generations.as_slice(), slot.lanes.as_slice()) else {
            return None;
        };
        let data = lane(*generation);
        // `lane` is the data rate, which lies below the signalling rate; the code of both is the same.
        let code = line_code(Transfers(data as u64));
        Some(Self { lanes: *lanes, code, capacity: data * f64::from(*lanes) })
    }

    fn share(&self) -> f64 {
        self.code.0 as f64 / self.code.1 as f64
    }

    fn is_twice(&self, claimed: Rate) -> bool {
        let off = claimed.0 as f64 / (self.capacity * self.share()) - 1.0;
        self.share() < CODE_SHOWS && off.abs() < SAME_RATE
    }
}

fn twice(explained: &Explained<'_>, claim: &str, name: &str, coded: &Coded) -> Remark {
    let share = coded.share();
    let what = format!(
        "`{claim}` takes the line code of the {name} off twice: {share} of {}, which its {} lanes carry after \
         {}b/{}b",
        rate(coded.capacity),
        coded.lanes,
        coded.code.0,
        coded.code.1
    );
    let parts = explained.material.hardware.parts.iter();
    let left = parts.filter(|part| part.name == *name).map(|part| {
        let packets = "the headers of packets and the packets of the link itself leave";
        format!("{packets} {}", words(part.goodput))
    });
    let best = Best::of(explained.material);
    let best = best.map(|best| format!("the best is {} ({})", rate(best.rate), best.file));
    let mut remark = Remark::new(Stands::Doubt, what);
    remark.finding.proof.extend(left.chain(best));
    remark.next("show the payload of its packets (MaxPayload)", "lspci -vv -s SLOT")
}
