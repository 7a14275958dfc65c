//! Reads the output of `lsusb -t`: USB devices, with the speed of their links.

use linerate_facts::usb::Function;
use linerate_units::Rate;

use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::{MOST, decimal, quoted};

pub(crate) static LSUSB: Format = Format {
    id: "lsusb",
    label: "lsusb -t",
    versions: "usbutils 007 to 017",
    evidence: "published: form by the source of usbutils 015 (lsusb-t.c)",
    unknown: "The names of the disks and ports that its devices are.",
    starts: |at| function(at.line).is_some(),
    read,
    ..Format::FACTS
};

/// Classes of hubs: the devices behind a hub are kept, not the hub.
const HUBS: [&str; 2] = ["root_hub", "Hub"];
/// Starts of the further lines that `-v` prints.
const MORE: [&str; 2] = ["ID ", "/sys/bus/usb/"];

/// Reads a line such as `|__ Port 1: Dev 7, If 0, Class=Vendor Specific Class, Driver=lan78xx, 480M`, or that of a
/// root hub: `/:  Bus 01.Port 1: Dev 1, Class=root_hub, Driver=xhci_hcd/4p, 5000M`.
fn function(line: &str) -> Option<Function> {
    let line = line.trim();
    if !line.starts_with("/:") && !line.starts_with("|__") {
        return None;
    }
    let (_, rest) = line.split_once(": Dev ")?.1.split_once("Class=")?;
    let (class, rest) = rest.split_once(", Driver=")?;
    let (driver, speed) = rest.rsplit_once(", ")?;
    // The speed may be 1.5 Mb/s, as that of keyboards.
    let speed = speed.strip_suffix('M')?;
    let mbps = decimal(speed.split('.').next()?)?.checked_mul(1_000_000)?;
    let driver = driver.split('/').next().unwrap_or_default();
    Some(Function {
        class: quoted(class),
        driver: quoted(driver.trim_matches(['[', ']'])),
        speed: Rate(mbps),
    })
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let is_more = |line: &str| MORE.iter().any(|start| line.trim().starts_with(start));
    let is_other =
        |line: &str| !line.trim().is_empty() && function(line).is_none() && !is_more(line);
    let mut reading = Reading::until(section, is_other);
    let found = reading.lines.iter().filter_map(|line| function(line.text));
    let found = found.filter(|one| !HUBS.contains(&one.class.as_str()));
    reading.facts.usb = found.take(MOST).collect();
    if reading.facts.usb.is_empty() {
        reading.notes.whole("nothing but hubs is on USB");
    }
    reading.found("lsusb")
}

#[cfg(test)]
mod tests {
    use super::super::samples::{merged, of, words};
    use super::*;

    fn one(class: &str, driver: &str, mbps: u64) -> Function {
        Function {
            class: class.to_owned(),
            driver: driver.to_owned(),
            speed: Rate(mbps * 1_000_000),
        }
    }

    #[test]
    fn what_is_no_hub_is_a_fact_with_its_speed() {
        let (all, notes) = of(&["lsusb/tree.txt"]);
        assert_eq!(words(&notes), [""; 0]);
        let expected = [
            one("Mass Storage", "uas", 5_000),
            one("Vendor Specific Class", "r8152", 480),
            one("Human Interface Device", "usbhid", 1),
            one("Mass Storage", "usb-storage", 480),
        ];
        assert_eq!(all.usb, expected);
    }

    #[test]
    fn other_forms_of_the_tree_are_read() {
        let text = "/:  Bus 001.Port 001: Dev 001, Class=root_hub, Driver=xhci_hcd/12p, 480M\n    |__ Port 003: Dev 002, If 0, \
            Class=Mass Storage, Driver=usb-storage, 480M\n        ID 0951:1666 Kingston Technology\n        \
            /sys/bus/usb/devices/1-3  /dev/bus/usb/001/002\n    |__ Port 004: Dev 003, If 0, Class=Wireless, Driver=[none], 12M\n";
        let (all, _) = merged(&[text]);
        assert_eq!(all.usb, [one("Mass Storage", "usb-storage", 480), one("Wireless", "none", 12)]);
        for prose in
            ["/: nothing\n", "|__ Port 1: Dev 2, Class=Hub\n", "Class=Hub, Driver=hub/4p, 480M\n"]
        {
            assert!(crate::read(prose.as_bytes()).is_err(), "{prose}");
        }
    }
}
