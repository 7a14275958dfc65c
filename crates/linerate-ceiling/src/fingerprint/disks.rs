//! The links of disks: USB, Serial ATA, SAS, Fibre Channel. An NVMe disk sits in a slot of PCI Express.

use super::table::{Kind, Row, Variant, plain};
use crate::usb;
use linerate_units::Rate;

/// Signalling rates of USB links in Mb/s.
//= Universal Serial Bus Specification 2.0, 3.2 and 4
const USB: [u64; 5] = [480, 5_000, 10_000, 20_000, 40_000];

/// Share of the line code's rate that data packets of USB 3 keep: 1024 bytes of 1056, with header and framing.
//= Universal Serial Bus 3.2 Specification, section 7.2.1
const USB_PACKET: f64 = 1024.0 / 1056.0;

/// Share of the rate of USB 3 after its line code that a program gets at least: 400 of 500 MB/s.
//= Universal Serial Bus 3.0 Specification, section 4.4.11
const USB_PROGRAM: f64 = 0.8;

/// Generations and rates of Serial ATA in Gb/s. Of 10 bits 8 are data.
//= Serial ATA Revision 3.5: generations 1 to 3, 8b/10b
const SATA: [(u32, f64); 3] = [(1, 1.5), (2, 3.0), (3, 6.0)];

/// Signalling rates of one lane of SAS in Gb/s, and the share of data bits after the line code.
//= INCITS 534 (SAS-4): 8b/10b to 12 Gb/s, 128b/150b at 22.5 Gb/s
const SAS: [(f64, f64); 4] =
    [(3.0, 8.0 / 10.0), (6.0, 8.0 / 10.0), (12.0, 8.0 / 10.0), (22.5, 128.0 / 150.0)];

/// Fibre Channel: name, signalling rate in Gb/s, and the share of data bits after line code and error correction.
//= INCITS FC-PI-5, FC-PI-6 and FC-PI-7: signalling rates
//= INCITS FC-FS-3 and FC-FS-5: 8b/10b, then 64b/66b, then 256b/257b with RS(544,514)
const FIBRE_CHANNEL: [(u32, f64, f64); 7] = [
    (1, 1.0625, 8.0 / 10.0),
    (2, 2.125, 8.0 / 10.0),
    (4, 4.25, 8.0 / 10.0),
    (8, 8.5, 8.0 / 10.0),
    (16, 14.025, 64.0 / 66.0),
    (32, 28.05, 64.0 / 66.0),
    (64, 57.8, 256.0 / 257.0 * 514.0 / 544.0),
];

/// Bytes around the payload of a frame of Fibre Channel: delimiters 8, header 24, check 4, six idle words 24.
//= INCITS 470 (FC-FS-3): frames and primitive signals
const FRAME: f64 = 60.0;

/// Payload bytes of full Fibre Channel frames: the largest, and the usual one of disks.
//= INCITS 470 (FC-FS-3): at most 2112 bytes
const FRAMES: [(&str, f64); 2] = [("frames of 2112 B", 2112.0), ("frames of 2048 B", 2048.0)];

/// Table rows of all links of disks.
pub(super) fn disks() -> Vec<Row> {
    let mut rows = Vec::from(USB.map(|mbps| universal(Rate(mbps * 1_000_000))));
    rows.extend(SATA.map(|(generation, gbps)| {
        let rate = gbps * 1e9 * 8.0 / 10.0;
        let name = format!("SATA {generation} ({gbps} Gb/s)");
        plain(Kind::Sata, name, vec![Variant::plain("", rate)])
    }));
    rows.extend(SAS.map(|(gbps, left)| {
        let name = format!("one lane of SAS {gbps} Gb/s");
        plain(Kind::Sas, name, vec![Variant::plain("", gbps * 1e9 * left)])
    }));
    rows.extend(FIBRE_CHANNEL.map(|(name, gbps, left)| {
        let of = |(frame, payload)| {
            let rate = gbps * 1e9 * left * payload / (payload + FRAME);
            Variant::plain(frame, rate)
        };
        let name = format!("Fibre Channel {name}GFC");
        plain(Kind::FibreChannel, name, FRAMES.map(of).to_vec())
    }));
    rows
}

fn universal(signalled: Rate) -> Row {
    let most = usb::leaves(signalled).high();
    let variants = if signalled < usb::GEN1 {
        vec![Variant::plain("", most)]
    } else {
        vec![
            Variant::plain("full packets", most * USB_PACKET),
            Variant::plain("as programs see it", most * USB_PROGRAM),
        ]
    };
    plain(Kind::Usb, format!("USB {signalled}"), variants)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_disks_have_their_published_rates() {
        let rows = disks();
        for (name, megabytes) in [
            ("SATA 3 (6 Gb/s)", 600.0),
            ("one lane of SAS 12 Gb/s", 1200.0),
            ("one lane of SAS 22.5 Gb/s", 2400.0),
            // Nominal rates of Fibre Channel are 100 MB/s for each step of the name, a few percent below the rate
            // on the link.
            ("Fibre Channel 1GFC", 103.3),
            ("Fibre Channel 8GFC", 826.5),
            ("Fibre Channel 16GFC", 1653.0),
            ("Fibre Channel 32GFC", 3306.0),
            ("Fibre Channel 64GFC", 6612.0),
            ("USB 480 Mb/s", 53.2),
            ("USB 5 Gb/s", 484.8),
        ] {
            let row = rows.iter().find(|row| row.name == name).unwrap();
            let off = row.variants[0].rate / 8e6 / megabytes - 1.0;
            assert!(off.abs() < 2e-3, "{name}: {}", row.variants[0].rate / 8e6);
        }
    }
}
