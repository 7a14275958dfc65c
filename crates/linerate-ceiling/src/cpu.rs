//! Processors: the cost of each packet. An estimate, never a ceiling: the number of cycles for a packet is not
//! a property of the hardware.

use super::Bounds;

/// Packets per second that carry a goodput in bits per second, with `payload` bytes in each packet.
pub fn packets(goodput: Bounds, payload: Bounds) -> Bounds {
    let per_second = |bits: f64, bytes: f64| bits / 8.0 / bytes.max(1.0);
    Bounds::new(
        per_second(goodput.low(), payload.high()),
        per_second(goodput.high(), payload.low()),
    )
}

/// Cycles that one core of `clock` Hz has for each packet if it processes all of them.
pub fn cycles(clock: f64, packets: Bounds) -> Bounds {
    let each = |packets: f64| clock / packets.max(f64::MIN_POSITIVE);
    Bounds::new(each(packets.high()), each(packets.low()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_gigabits_of_large_packets_leave_2160_cycles() {
        let packets = packets(Bounds::exact(100e9), Bounds::exact(9001.0));
        assert!((packets.low() / 1.39e6 - 1.0).abs() < 1e-3, "{packets:?}");
        let cycles = cycles(3e9, packets);
        assert!((cycles.low() - 2160.0).abs() < 1.0, "{cycles:?}");
    }

    #[test]
    fn nothing_sent_leaves_no_infinity() {
        let none = packets(Bounds::exact(0.0), Bounds::exact(0.0));
        assert!(cycles(3e9, none).high().is_finite());
    }
}
