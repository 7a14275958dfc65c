//! USB: the payload rate that a network adapter reaches, computed from its signalling rate.

use super::Bounds;
use linerate_units::Rate;

/// Share of the signalling rate that every adapter reaches: some controllers lose half of the rate.
//= Universal Serial Bus Specification 2.0, section 5.8.4: 53 of 60 MB/s at the most
pub const LEAST: f64 = 0.5;

/// Signalling rate and payload bytes per second of bulk transfers: at full speed 19 packets of 64 bytes in a frame
/// of 1 ms, at high speed 13 packets of 512 bytes in a microframe of 125 us.
//= Universal Serial Bus Specification 2.0, section 5.8.4, tables 5-9 and 5-10
const BULK: [(u64, f64); 2] =
    [(12_000_000, 19.0 * 64.0 * 1_000.0), (480_000_000, 13.0 * 512.0 * 8_000.0)];

/// Highest signalling rate that is taken for USB 3.x Gen 1 (5 Gb/s), whose line code carries 8 bits in 10.
//= Universal Serial Bus 3.2 Specification, section 6.3: 8b/10b for Gen 1, 128b/132b for Gen 2
pub const GEN1: Rate = Rate(5_000_000_000);

/// Bits per second of payload that a USB link carries in each direction: from the rate that every controller
/// reaches, to the rate that the line code allows.
pub fn leaves(signalled: Rate) -> Bounds {
    let bits = signalled.0 as f64;
    let bulk = BULK.iter().find(|(speed, _)| *speed == signalled.0);
    let most = match bulk {
        Some((_, bytes)) => bytes * 8.0,
        None if signalled <= GEN1 => bits * 8.0 / 10.0,
        None => bits * 128.0 / 132.0,
    };
    Bounds::new(most.min(bits * LEAST), most)
}

/// The formula of the highest payload rate that a USB link allows.
pub fn words(signalled: Rate) -> String {
    match signalled.0 {
        12_000_000 => "19 packets of 64 B in 1 ms".to_owned(),
        480_000_000 => "13 packets of 512 B in 125 us".to_owned(),
        _ if signalled <= GEN1 => format!("{signalled} x 8/10"),
        _ => format!("{signalled} x 128/132"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_speed_leaves_what_its_specification_says() {
        for (mbps, most) in
            [(12, 9.728e6), (480, 425.984e6), (5_000, 4e9), (10_000, 9.697e9), (20_000, 19.394e9)]
        {
            let leaves = leaves(Rate(mbps * 1_000_000));
            assert!((leaves.high() / most - 1.0).abs() < 1e-3, "{mbps}: {leaves:?}");
            assert!(leaves.low() <= leaves.high() && leaves.low() > 0.0, "{mbps}");
        }
        let low = leaves(Rate(480_000_000)).low();
        assert!((low / 240e6 - 1.0).abs() < 1e-9, "{low}");
        assert_eq!(words(Rate(5_000_000_000)), "5 Gb/s x 8/10");
        assert_eq!(words(Rate(10_000_000_000)), "10 Gb/s x 128/132");
    }
}
