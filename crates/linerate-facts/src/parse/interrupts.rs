//! Parses `/proc/interrupts`: the name of each interrupt, and the CPUs that served it.

use std::collections::BTreeMap;

use super::{Malformed, text};

const WHAT: &str = "/proc/interrupts";

/// A numbered interrupt. Interrupts of the CPUs themselves (`LOC`, `RES`) are skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupt {
    /// Number of the interrupt.
    pub number: u32,
    /// How often the interrupt arrived since boot, over all CPUs.
    pub total: u64,
    /// The CPU that served the interrupt most often; `None` if the interrupt never arrived.
    pub busiest: Option<u32>,
    /// The controller that delivers the interrupt: `PCI-MSIX-0000:03:00.0`, `IO-APIC`.
    pub chip: String,
    /// The name that the driver gives the interrupt: `eth0-TxRx-3`; empty without a driver.
    pub name: String,
}

/// All numbered interrupts in the file.
pub fn parse(text: &[u8]) -> Result<Vec<Interrupt>, Malformed> {
    let mut all = Vec::new();
    each(text, |number, cpus, fields| {
        all.push(interrupt(number, cpus, fields)?);
        Ok(())
    })?;
    Ok(all)
}

/// How many interrupts each CPU served, by group and CPU. `group` assigns an interrupt to a group, or to none.
pub fn by_cpu(
    text: &[u8],
    group: impl Fn(u32) -> Option<u32>,
) -> Result<BTreeMap<(u32, u32), u64>, Malformed> {
    let mut counts = BTreeMap::new();
    each(text, |number, cpus, mut fields| {
        let Some(group) = group(number) else {
            return Ok(());
        };
        for &cpu in cpus {
            let count = text::next_decimal(&mut fields, WHAT)?;
            let sum: &mut u64 = counts.entry((group, cpu)).or_default();
            *sum = sum.saturating_add(count);
        }
        Ok(())
    })?;
    Ok(counts)
}

/// Calls `take` with the number of each numbered interrupt, the CPUs in the head line, and the fields after the number.
fn each<'a>(
    text: &'a [u8],
    mut take: impl FnMut(u32, &[u32], &mut dyn Iterator<Item = &'a [u8]>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut lines = text::lines(text, WHAT);
    let header = lines.next().ok_or(Malformed::Missing(WHAT))??;
    let cpus: Vec<u32> = text::fields(header).map(cpu).collect::<Result<_, _>>()?;
    for line in lines {
        let mut fields = text::fields(line?);
        let label = fields.next().and_then(|label| label.strip_suffix(b":"));
        let Some(number) = label.and_then(text::decimal) else {
            continue;
        };
        let number = u32::try_from(number).map_err(|_| Malformed::NotANumber(WHAT))?;
        take(number, &cpus, &mut fields)?;
    }
    Ok(())
}

/// Parses the name of a CPU, such as `CPU3`, into its number.
fn cpu(field: &[u8]) -> Result<u32, Malformed> {
    let number = field.strip_prefix(b"CPU").and_then(text::decimal);
    let number = number.and_then(|number| u32::try_from(number).ok());
    number.ok_or(Malformed::NotANumber(WHAT))
}

fn interrupt<'a>(
    number: u32,
    cpus: &[u32],
    mut fields: impl Iterator<Item = &'a [u8]>,
) -> Result<Interrupt, Malformed> {
    let (mut total, mut most, mut busiest) = (0u64, 0, None);
    for &cpu in cpus {
        let count = text::next_decimal(&mut fields, WHAT)?;
        total = total.saturating_add(count);
        if count > most {
            (most, busiest) = (count, Some(cpu));
        }
    }
    let chip = fields.next().map(text::trimmed).unwrap_or_default();
    let rest: Vec<&[u8]> = fields.collect();
    // Between the chip and the name there are the interrupt's number at the chip and how it triggers, joined or not.
    // Very old kernels have neither.
    let named = rest.iter().position(|field| is_trigger(field)).map_or(0, |at| at + 1);
    let name: Vec<String> = rest[named..].iter().map(|field| text::trimmed(field)).collect();
    Ok(Interrupt { number, total, busiest, chip, name: name.join(" ") })
}

/// Whether a field shows how an interrupt triggers: `1-edge`, `-event`, or a single word as on Arm: `Edge`.
fn is_trigger(field: &[u8]) -> bool {
    if [&b"Edge"[..], b"Level", b"None"].contains(&field) {
        return true;
    }
    let Some(dash) = field.iter().position(|&b| b == b'-') else {
        return false;
    };
    let (number, word) = (&field[..dash], &field[dash + 1..]);
    number.iter().all(u8::is_ascii_digit)
        && !word.is_empty()
        && word.iter().all(u8::is_ascii_alphabetic)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Interrupt, by_cpu, parse};

    const SAMPLE: &str = "           CPU0       CPU2\n \
        24:          1          0  IO-APIC   5-edge      ACPI:Ged\n \
        38:          0       3455 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n \
        39:         12         12  GICv3  27 Level     arch_timer, other\n \
        40:          0          0  xen-dyn    -event     eth0-q0-tx\n \
        41:          7          9  PCI-MSI-edge      eth1\n \
        42:          0          0  IO-APIC   6-fasteoi\n\
        NMI:          0          0   Non-maskable interrupts\n\
        ERR:          0\n";

    #[test]
    fn interrupts_parse_exactly_on_all_kernels() {
        let row = |number, total, busiest, chip: &str, name: &str| Interrupt {
            number,
            total,
            busiest,
            chip: chip.to_owned(),
            name: name.to_owned(),
        };
        let want = [
            row(24, 1, Some(0), "IO-APIC", "ACPI:Ged"),
            row(38, 3455, Some(2), "PCI-MSIX-0000:00:03.0", "virtio2-input.0"),
            row(39, 24, Some(0), "GICv3", "arch_timer, other"),
            row(40, 0, None, "xen-dyn", "eth0-q0-tx"),
            row(41, 16, Some(2), "PCI-MSI-edge", "eth1"),
            row(42, 0, None, "IO-APIC", ""),
        ];
        assert_eq!(parse(SAMPLE.as_bytes()).unwrap(), want);
    }

    #[test]
    fn counts_are_summed_by_group_and_cpu() {
        let group = |irq| [(24, 1), (39, 1), (41, 2)].iter().find(|g| g.0 == irq).map(|g| g.1);
        let got = by_cpu(SAMPLE.as_bytes(), group).unwrap();
        let got: Vec<_> = got.into_iter().collect();
        assert_eq!(got, [((1, 0), 13), ((1, 2), 12), ((2, 0), 7), ((2, 2), 9)]);
        assert!(by_cpu(SAMPLE.as_bytes(), |_| None).unwrap().is_empty());
        assert!(by_cpu(b"CPU0 CPU1\n 1: 5\n", Some).is_err(), "fewer counts than CPUs");
    }

    #[test]
    fn a_cut_file_is_an_error_and_an_empty_one_too() {
        assert!(parse(b"").is_err());
        assert!(parse(b"CPU0 CPU1\n 1: 5\n").is_err(), "fewer counts than CPUs");
        let end = SAMPLE.rfind("ERR").unwrap();
        assert!(parse(&SAMPLE.as_bytes()[..end]).is_ok());
        assert!(parse(&SAMPLE.as_bytes()[..end - 1]).is_err());
    }

    proptest! {
        #[test]
        fn mutated_files_never_panic(changes: Vec<(prop::sample::Index, u8)>, end: prop::sample::Index) {
            let mut text = SAMPLE.as_bytes().to_vec();
            for (at, byte) in changes {
                let at = at.index(text.len());
                text[at] = byte;
            }
            let part = &text[..end.index(text.len() + 1)];
            let _ = (parse(part), by_cpu(part, Some));
        }
    }
}
