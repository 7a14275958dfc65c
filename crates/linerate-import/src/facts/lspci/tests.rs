use linerate_facts::pci::{Device, PortKind, at, bridges_above};

use super::super::samples::{ids, merged, of, text, words};
use super::device::head;

fn device<'a>(all: &'a [Device], address: &str) -> &'a Device {
    at(all, format!("0000:{address}").parse().unwrap()).unwrap()
}

#[test]
fn a_card_and_its_slot() {
    let (all, notes) = of(&["lspci/slot-narrow.txt"]);
    let card = device(&all.pci, "02:00.0");
    assert_eq!((card.vendor, card.device, card.class), (0x8086, 0x10c9, 0x02_0000));
    assert_eq!(card.max.unwrap().to_string(), "8 GT/s x16");
    assert_eq!(card.now.unwrap().to_string(), "8 GT/s x4");
    assert_eq!(card.kind, Some(PortKind::Endpoint));
    let payload = card.payload.unwrap();
    assert_eq!((payload.now, payload.max, payload.read_request), (256, 512, 512));
    let slot = device(&all.pci, "00:1c.0");
    assert_eq!((slot.kind, slot.buses.unwrap().secondary), (Some(PortKind::Root), 2));
    assert_eq!(card.parent, Some(slot.address));
    assert_eq!(words(&notes), [""; 0]);
}

#[test]
fn a_card_that_is_pasted_alone_has_an_unknown_slot() {
    let (all, notes) = of(&["lspci/alone.txt"]);
    assert_eq!(all.pci.len(), 1);
    assert_eq!(all.pci[0].parent, None);
    assert_eq!(words(&notes), [""; 0]);
    assert_eq!(ids(&all), ["pcie-slot"]);
    let what = linerate_facts::odd::find(&all).remove(0).what;
    assert!(
        what.starts_with(
            "the card could use 8 GT/s x16 (126 Gb/s), and its link runs at 8 GT/s x4 (31.5 Gb/s)"
        ),
        "{what}"
    );
    // Old versions do not mark a link as downgraded.
    let old = text("lspci/alone.txt").replace(" (downgraded)", "");
    let (all, notes) = merged(&[&old]);
    assert!(
        words(&notes)[0].starts_with("0000:02:00.0 runs at 8 GT/s x4 and could do 8 GT/s x16;"),
        "{notes:?}"
    );
    assert_eq!(ids(&all), [""; 0]);
}

#[test]
fn the_chain_to_the_root_is_found_through_switches() {
    let (all, _) = of(&["lspci/switch.txt"]);
    let card = device(&all.pci, "04:00.0");
    let above = bridges_above(&all.pci, card);
    let above: Vec<String> = above.iter().map(|bridge| bridge.address.to_string()).collect();
    assert_eq!(above.len(), 3, "{above:?}");
    assert_eq!(above[1..], ["0000:02:00.0", "0000:00:03.0"]);
    assert_eq!(card.kind, Some(PortKind::Endpoint));
    // If the switch is missing, the root port must not be taken for the slot of the card.
    let whole = text("lspci/switch.txt");
    let blocks =
        whole.split("\n\n").filter(|block| !block.starts_with("02:") && !block.starts_with("03:"));
    let (partial, _) = merged(&[&blocks.collect::<Vec<_>>().join("\n\n")]);
    assert_eq!(device(&partial.pci, "04:00.0").parent, None);
    assert_eq!(ids(&partial), [""; 0]);
}

#[test]
fn without_rights_there_are_no_links_and_no_oddities() {
    let (all, _) = of(&["lspci/server-denied.txt"]);
    let card = device(&all.pci, "02:00.0");
    assert_eq!((card.now, card.payload, card.kind), (None, None, None));
    assert!(all.lacks("facts.pci.links"));
    assert_eq!(all.pci.len(), 37);
}

#[test]
fn drivers_and_forms_without_them() {
    let (all, _) = of(&["lspci/virtual-vv.txt"]);
    assert_eq!(device(&all.pci, "00:03.0").driver, "virtio-pci");
    assert!(!all.lacks("facts.pci.drivers"));
    let (all, _) = of(&["lspci/virtual-nn.txt"]);
    assert_eq!(device(&all.pci, "00:03.0").vendor, 0x1af4);
    assert!(all.lacks("facts.pci.drivers"));
    let card = "03:00.0 Infiniband controller: Mellanox Technologies MT27500 Family [ConnectX-3]\n";
    assert_eq!(ids(&merged(&[card]).0), [""; 0], "the driver is unknown");
}

#[test]
fn links_without_the_first_line_need_the_address_of_the_command() {
    let lines = "\t\tLnkCap:\tPort #0, Speed 8GT/s, Width x8, ASPM L1\n\t\tLnkSta:\tSpeed 8GT/s (ok), Width x4 (downgraded)\n";
    let session = format!("# lspci -s 02:00.0 -vv | grep Lnk\n{lines}");
    let (all, notes) = merged(&[&session]);
    let card = device(&all.pci, "02:00.0");
    assert_eq!(card.now.unwrap().to_string(), "8 GT/s x4");
    assert_eq!(words(&notes), [""; 0]);
    assert_eq!(ids(&all), ["pcie-slot"]);
    let refused = crate::read(lines.as_bytes()).unwrap_err().to_string();
    assert!(refused.contains("the device is missing"), "{refused}");
}

#[test]
fn first_lines_of_all_forms() {
    let of = |line: &str| {
        head(line).map(|d| (d.address.to_string(), d.class, d.vendor, d.device, d.is_virtual))
    };
    let at = || "0000:01:00.0".to_owned();
    for (line, expected) in [
        ("01:00.0 Ethernet controller: Maker Model (rev 01)", Some((at(), 0x02_0000, 0, 0, false))),
        ("0000:01:00.0 0200: 8086:1521 (rev 01)", Some((at(), 0x02_0000, 0x8086, 0x1521, false))),
        (
            "01:00.0 Ethernet controller [0200]: Intel Corporation Ethernet Virtual Function 700 Series [8086:154c]",
            Some((at(), 0x02_0000, 0x8086, 0x154c, true)),
        ),
        (
            "01:00.0 Ethernet controller [0200]: Mellanox Technologies MT28800 Family [ConnectX-5 Ex VF] [15b3:101a]",
            Some((at(), 0x02_0000, 0x15b3, 0x101a, true)),
        ),
        (
            "01:00.0 Non-Volatile memory controller: Maker SSD (prog-if 02 [NVM Express])",
            Some((at(), 0x01_0802, 0, 0, false)),
        ),
        ("01:00.0 Unassigned class [ffff]: Maker Thing", Some((at(), 0xff_ff00, 0, 0, false))),
        ("01:20.0 Ethernet controller: Maker Model", None),
        ("1:00.0 Ethernet controller: Maker Model", None),
        ("01:00.0 - [1:2]: a", None),
        ("[  5] 0.00-1.00 sec", None),
    ] {
        assert_eq!(of(line), expected, "{line}");
    }
}

#[test]
fn links_of_old_and_new_versions() {
    let link = |line: &str| {
        let text = format!("01:00.0 Ethernet controller: Maker Model\n\tLnkSta:\t{line}\n");
        let (all, notes) = merged(&[&text]);
        (all.pci[0].now.map(|now| now.to_string()), notes.len())
    };
    let known = |text: &str| (Some(text.to_owned()), 0);
    assert_eq!(link("Speed 5GT/s, Width x8, TrErr- Train- SlotClk+"), known("5 GT/s x8"));
    assert_eq!(link("Speed 2.5GT/s (downgraded), Width x1 (ok)"), known("2.5 GT/s x1"));
    assert_eq!(link("Speed 16GT/s, Width x16 (overdriven)"), known("16 GT/s x16"));
    assert_eq!(link("Speed unknown, Width x8"), known("x8"));
    assert_eq!(link("Speed unknown (downgraded), Width x0 (downgraded)"), (None, 0));
    assert_eq!(link("Speed fast, Width x8"), (None, 1));
}
