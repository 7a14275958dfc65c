//! PCI Express: the payload capacity of a slot's lanes.
//!
//! A card that receives from the network writes memory. A card that sends reads memory, and its read requests cross
//! the slot in the other direction. The ends of each interval follow pcie-bench: at the upper end the link carries
//! only data packets, at the lower end also acknowledgements and flow control credits as often as recommended.

use super::{Bounds, Cost};
use linerate_units::Transfers;

/// Bytes around the payload of a memory write: framing and data link 8, header 4, address 12.
//= Neugebauer et al., Understanding PCIe performance for end host networking, SIGCOMM 2018, section 3
const WRITE: f64 = 24.0;
/// Bytes of a read request, which has no payload.
//= Neugebauer et al., Understanding PCIe performance for end host networking, SIGCOMM 2018, section 3
const REQUEST: f64 = 24.0;
/// Bytes around the payload of a completion, the packet that answers a read request.
//= Neugebauer et al., Understanding PCIe performance for end host networking, SIGCOMM 2018, section 3
const COMPLETION: f64 = 20.0;
/// Bytes of an acknowledgement, or of an update of flow control credits.
//= PCI Express Base Specification 3.0, section 3.4
const DLLP: f64 = 8.0;
/// Share of the time that ordered sets for clock compensation take: 4 symbols in 1538.
//= PCI Express Base Specification 3.0, section 4.2.7
const SKIP: f64 = 4.0 / 1538.0;
/// Bytes that the specification adds to the payload when it computes how often to acknowledge.
//= PCI Express Base Specification 3.0, section 3.5.3.1
const TLP: f64 = 28.0;

/// Possible numbers of lanes of a link.
pub const WIDTHS: [u32; 6] = [1, 2, 4, 8, 12, 16];

/// Usual largest payloads of a packet, in bytes, if the negotiated one is not known.
pub const USUAL_PAYLOADS: [u32; 3] = [128, 256, 512];

/// Largest payloads and sizes of read requests that the specification allows, in bytes.
//= PCI Express Base Specification 3.0, section 7.8.4
pub const SIZES: [u32; 6] = [128, 256, 512, 1024, 2048, 4096];

/// All generations of PCI Express.
pub const GENERATIONS: [u32; 7] = [1, 2, 3, 4, 5, 6, 7];

/// A slot with all possible values of each unknown property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Possible generations, from [`GENERATIONS`].
    pub generations: Vec<u32>,
    /// Possible numbers of lanes, from [`WIDTHS`].
    pub lanes: Vec<u32>,
    /// Possible values of the largest payload of a packet in bytes, from [`SIZES`].
    pub payloads: Vec<u32>,
    /// Possible values of the largest read request in bytes, from [`SIZES`].
    pub requests: Vec<u32>,
}

/// The line code at a speed of a lane: number of data bits, and number of transferred bits that carry them.
//= PCI Express Base Specification 6.0, section 4.2: 8b/10b, 128b/130b from 8 GT/s on, flits from 64 on
pub fn line_code(speed: Transfers) -> (u64, u64) {
    match speed.0 {
        0..=5_000_000_000 => (8, 10),
        5_000_000_001..=32_000_000_000 => (128, 130),
        _ => (242, 256),
    }
}

/// Data rate of one lane in bits per second, after the line code; 0 for an unknown generation.
//= PCI Express Base Specification 6.0, section 4.2: 2.5, 5, 8 GT/s, then twice the one before
pub fn lane(generation: u32) -> f64 {
    let giga = match generation {
        1 => 2.5,
        2 => 5.0,
        3..=7 => f64::from(1u32 << generation),
        _ => return 0.0,
    };
    let speed = giga * 1e9;
    let (data, coded) = line_code(Transfers(speed as u64));
    speed * data as f64 / coded as f64
}

/// The generation whose lanes have this speed; `None` if there is none.
pub fn generation(speed: Transfers) -> Option<u32> {
    let tenths = speed.0 / 100_000_000;
    GENERATIONS.into_iter().find(|generation| match generation {
        1 => tenths == 25,
        2 => tenths == 50,
        _ => tenths == 10 << generation,
    })
}

/// Number of symbols after which an acknowledgement is due. Later generations use the values of generation 3, as
/// pcie-bench does.
//= PCI Express Base Specification 3.0, section 3.5.3.1, tables 3-7 to 3-9
fn acknowledge_after(generation: u32, lanes: u32, payload: u32) -> f64 {
    let internal = match generation {
        1 => 19.0,
        2 => 70.0,
        _ => 115.0,
    };
    let factor = match (payload, lanes) {
        (..=256, ..=4) => 1.4,
        (..=256, 8) => 2.5,
        (..=256, _) => 3.0,
        (_, ..=8) => 1.0,
        (_, _) => 2.0,
    };
    ((f64::from(payload) + TLP) * factor / f64::from(lanes) + internal).floor()
}

/// Share of the link's rate that remains for data packets if acknowledgements and flow control credits are sent as
/// often as recommended.
fn kept(generation: u32, lanes: u32, payload: u32) -> f64 {
    let after = acknowledge_after(generation, lanes, payload);
    1.0 - DLLP / after - DLLP / after - SKIP
}

impl Slot {
    /// Bits per second of network frames that the slot can carry in each direction: from the minimum when the card
    /// writes memory to the maximum when it reads memory.
    pub fn leaves(&self) -> Bounds {
        let (capacity, write, read) = (self.capacity(), self.write(), self.read());
        Bounds::new(
            capacity.low() * 8.0 / write.per_byte.high(),
            capacity.high() * 8.0 / read.per_byte.low(),
        )
    }

    /// Bytes per second that the slot carries in each direction, after the line code.
    pub fn capacity(&self) -> Bounds {
        let rates = self.links().map(|(g, l)| f64::from(l) * lane(g) / 8.0);
        Bounds::of(rates)
    }

    fn links(&self) -> impl Iterator<Item = (u32, u32)> {
        let lanes = |g: u32| self.lanes.iter().map(move |l| (g, *l));
        self.generations.iter().flat_map(move |g| lanes(*g))
    }

    /// Share of the link's rate that remains for data packets, for each possible generation, width and payload.
    fn kept(&self) -> impl Iterator<Item = f64> {
        let of = |p: u32| self.links().map(move |(g, l)| kept(g, l, p));
        self.payloads.iter().flat_map(move |p| of(*p))
    }

    /// Bytes in the direction to memory for each payload byte that a card writes to memory, as a receiving card does.
    pub fn write(&self) -> Cost {
        self.data(WRITE)
    }

    /// Bytes in the direction to the card for each payload byte that a card reads from memory, as a sending card does.
    pub fn read(&self) -> Cost {
        self.data(COMPLETION)
    }

    /// Bytes in the direction to memory for each payload byte that a sending card requests to read.
    pub fn request(&self) -> Cost {
        let costs = self.requests.iter().flat_map(|size| {
            let bare = REQUEST / f64::from(*size);
            self.kept().map(move |kept| bare / kept).chain([bare])
        });
        Cost::bytes(Bounds::of(costs))
    }

    fn data(&self, header: f64) -> Cost {
        let costs = self.payloads.iter().flat_map(|payload| {
            let bare = 1.0 + header / f64::from(*payload);
            let with_dllps = self.links().map(move |(g, l)| bare / kept(g, l, *payload));
            with_dllps.chain([bare])
        });
        Cost::bytes(Bounds::of(costs))
    }

    /// The formula of the goodput that the slot allows a receiving card.
    pub fn write_words(&self) -> String {
        self.words(WRITE)
    }

    /// The formula of the goodput that the slot allows a sending card.
    pub fn read_words(&self) -> String {
        self.words(COMPLETION)
    }

    fn words(&self, header: f64) -> String {
        let lanes = range(&self.lanes);
        let s = if self.lanes == [1] { "" } else { "s" };
        let lane = Bounds::of(self.generations.iter().map(|g| lane(*g) / 1e9));
        let four = |gigabits: f64| (gigabits * 1e4).round() / 1e4;
        let lane = if lane.is_exact() {
            four(lane.low()).to_string()
        } else {
            format!("({} to {})", four(lane.low()), four(lane.high()))
        };
        let payload = range(&self.payloads);
        let most = self.kept().map(|kept| (1.0 - kept) * 100.0).fold(0.0, f64::max);
        format!(
            "{lanes} lane{s} x {lane} Gb/s x {payload}/({payload} + {header}), less up to {most:.0} % for link packets"
        )
    }
}

/// A single value as `8`, several as `(128 to 512)`.
fn range(values: &[u32]) -> String {
    let (low, high) = (values.iter().min(), values.iter().max());
    match (low, high) {
        (Some(low), Some(high)) if low == high => low.to_string(),
        (Some(low), Some(high)) => format!("({low} to {high})"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(generation: u32, lanes: u32, payloads: &[u32]) -> Slot {
        Slot {
            generations: vec![generation],
            lanes: vec![lanes],
            payloads: payloads.to_vec(),
            requests: vec![512],
        }
    }

    /// Goodput in Gb/s of a slot in a direction with this cost.
    fn goodput(slot: &Slot, cost: &Cost) -> Bounds {
        let capacity = slot.capacity().low() * 8.0 / 1e9;
        Bounds::new(capacity / cost.per_byte.high(), capacity / cost.per_byte.low())
    }

    fn about(got: f64, published: f64) {
        assert!((got - published).abs() <= 0.051, "{got} is not {published}");
    }

    #[test]
    fn the_published_table_of_sixteen_lanes_comes_out() {
        // Raw rate; lower end of writes with payloads of 128, 256, 512; lower end of reads and upper end of writes
        // with 256.
        for (generation, raw, writes, read, upper) in [
            (3, 126.0, [94.1, 104.0, 109.5], 105.5, 115.2),
            (4, 252.1, [188.1, 207.9, 219.0], 210.9, 230.5),
            (5, 504.1, [376.3, 415.8, 438.0], 421.8, 460.9),
            (6, 968.0, [722.5, 798.4, 841.0], 810.0, 885.0),
        ] {
            for (payload, published) in [128, 256, 512].into_iter().zip(writes) {
                let slot = slot(generation, 16, &[payload]);
                about(slot.capacity().low() * 8.0 / 1e9, raw);
                about(goodput(&slot, &slot.write()).low(), published);
            }
            let slot = slot(generation, 16, &[256]);
            about(goodput(&slot, &slot.read()).low(), read);
            about(goodput(&slot, &slot.write()).high(), upper);
        }
    }

    #[test]
    fn generations_are_known_by_their_speed() {
        let of = |tenths: u64| generation(Transfers(tenths * 100_000_000));
        let known = [25, 50, 80, 160, 320, 640, 1280].map(of);
        assert_eq!(known, GENERATIONS.map(Some));
        assert_eq!([0, 26, 100].map(of), [None; 3]);
    }

    #[test]
    fn eight_lanes_agree_with_the_paper() {
        let slot = slot(3, 8, &[256]);
        about(slot.capacity().low() * 8.0 / 1e9, 63.02);
        about(63.015 * kept(3, 8, 256), 57.88);
        let limits = [128, 256, 512].map(|p| acknowledge_after(3, 8, p) as u32);
        assert_eq!(limits, [163, 203, 182]);
        let limits = [128, 256, 512].map(|p| acknowledge_after(3, 16, p) as u32);
        assert_eq!(limits, [144, 168, 182]);
    }

    #[test]
    fn a_slot_leaves_what_both_ways_and_all_payloads_allow() {
        // 63.02 Gb/s x 256/280 less 8 % at the lower end, and x 256/276 at the upper end.
        let known = slot(3, 8, &[256]).leaves();
        about(known.low() / 1e9, 52.91);
        about(known.high() / 1e9, 58.45);
        let open = slot(3, 8, &USUAL_PAYLOADS).leaves();
        assert!(open.low() < known.low() && known.high() < open.high());
    }

    #[test]
    fn storage_over_a_second_generation_slot_is_inside_the_estimate() {
        let slot = slot(2, 8, &[128]);
        let estimate = goodput(&slot, &slot.write());
        for megabytes in [3148.0, 3300.0] {
            assert!(estimate.contains(megabytes * 8.0 / 1e3), "{estimate:?}");
        }
        about(estimate.high(), 26.95);
    }

    #[test]
    fn reads_of_four_lanes_explain_the_trading_system() {
        let slot = slot(2, 4, &[128]);
        about(goodput(&slot, &slot.read()).high(), 13.84);
    }

    #[test]
    fn what_is_not_known_widens_the_interval_and_never_narrows_it() {
        let known = slot(3, 8, &[256]);
        let open = slot(3, 8, &USUAL_PAYLOADS);
        let (a, b) = (goodput(&known, &known.write()), goodput(&open, &open.write()));
        assert!(b.low() < a.low() && a.high() < b.high());
        let any = Slot { generations: GENERATIONS.to_vec(), lanes: WIDTHS.to_vec(), ..open };
        assert!(any.capacity().contains(known.capacity().low()));
        assert!(any.write().per_byte.high() >= known.write().per_byte.high());
        assert_eq!(
            known.write_words(),
            "8 lanes x 7.8769 Gb/s x 256/(256 + 24), less up to 8 % for link packets"
        );
    }
}
