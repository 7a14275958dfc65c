//! Parses `/proc/cpuinfo`: the CPU's model, for which each architecture has its own key, its clocks, and whether it
//! runs in a guest.

use super::{sysctl, text};
use linerate_units::Hertz;

/// Cores of Arm processors: number of the designer, number of the core, and name.
const ARM: [(u64, u64, &str); 10] = [
    (0x41, 0xd03, "Arm Cortex-A53"),
    (0x41, 0xd08, "Arm Cortex-A72"),
    (0x41, 0xd0b, "Arm Cortex-A76"),
    (0x41, 0xd0c, "Arm Neoverse-N1"),
    (0x41, 0xd40, "Arm Neoverse-V1"),
    (0x41, 0xd49, "Arm Neoverse-N2"),
    (0x41, 0xd4f, "Arm Neoverse-V2"),
    (0x46, 0x001, "Fujitsu A64FX"),
    (0x48, 0xd01, "HiSilicon TaiShan v110"),
    (0xc0, 0xac3, "Ampere-1"),
];

/// The name of an Arm core; the file has only numbers instead of it.
fn arm(text: &[u8]) -> Option<String> {
    let number = |key| {
        let value = sysctl::value(text, key)?;
        text::hexadecimal(value.strip_prefix(b"0x")?)
    };
    let (implementer, part) = (number("CPU implementer")?, number("CPU part")?);
    let known = ARM.iter().find(|(i, p, _)| (*i, *p) == (implementer, part));
    Some(known.map_or_else(
        || format!("Arm core, implementer {implementer:#x}, part {part:#x}"),
        |(_, _, name)| (*name).to_owned(),
    ))
}

/// The model of the first CPU; `None` if the file does not contain it.
pub fn model(text: &[u8]) -> Option<String> {
    ["model name", "Model Name", "cpu model", "cpu", "uarch"]
        .iter()
        .find_map(|key| sysctl::value_text(text, key))
        .filter(|model| !model.is_empty())
        .or_else(|| arm(text))
}

/// Whether the CPUs run under a hypervisor; `None` if the architecture does not show it.
pub fn is_guest(text: &[u8]) -> Option<bool> {
    let flags = sysctl::value(text, "flags")?;
    Some(text::fields(flags).any(|flag| flag == b"hypervisor"))
}

/// The number of each CPU and its present clock, where the architecture reports one.
pub fn clocks(text: &[u8]) -> Vec<(u32, Option<Hertz>)> {
    let mut all: Vec<(u32, Option<Hertz>)> = Vec::new();
    for line in text::lines(text, "cpuinfo").map_while(Result::ok) {
        let mut parts = line.splitn(2, |&b| b == b':').map(<[u8]>::trim_ascii);
        let (Some(key), Some(value)) = (parts.next(), parts.next()) else {
            continue;
        };
        match key {
            b"processor" => {
                let id = text::decimal(value).and_then(|id| u32::try_from(id).ok());
                all.extend(id.map(|id| (id, None)));
            }
            b"cpu MHz" => {
                if let Some((_, clock)) = all.last_mut() {
                    *clock = megahertz(value);
                }
            }
            _ => {}
        }
    }
    all
}

/// Parses a clock in MHz: `2300.000`.
fn megahertz(text: &[u8]) -> Option<Hertz> {
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (0.0..1e6).contains(&value).then_some(Hertz((value * 1e6) as u64)).filter(|h| h.0 > 0)
}

/// The clock at the end of a model name: `Intel(R) Xeon(R) CPU @ 2.70GHz`.
pub fn nominal(model: &str) -> Option<Hertz> {
    let (_, text) = model.rsplit_once('@')?;
    let value: f64 = text.trim().strip_suffix("GHz")?.trim().parse().ok()?;
    (0.0..100.0).contains(&value).then_some(Hertz((value * 1e9) as u64)).filter(|h| h.0 > 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Hertz, clocks, is_guest, model, nominal};

    #[test]
    fn the_key_depends_on_the_architecture() {
        let x86 = b"processor\t: 0\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R) CPU\n";
        assert_eq!(model(x86).unwrap(), "Intel(R) Xeon(R) CPU");
        let power = b"processor\t: 0\ncpu\t\t: POWER9, altivec supported\n";
        assert_eq!(model(power).unwrap(), "POWER9, altivec supported");
        let arm = |part: &str| {
            let text = format!("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: {part}\n");
            model(text.as_bytes())
        };
        assert_eq!(arm("0xd0c").unwrap(), "Arm Neoverse-N1");
        assert_eq!(arm("0xfff").unwrap(), "Arm core, implementer 0x41, part 0xfff");
        assert_eq!((arm("fff"), arm("")), (None, None));
        assert_eq!(model(b""), None);
    }

    #[test]
    fn clocks_belong_to_the_processor_above_them() {
        let text = b"processor\t: 0\ncpu MHz\t\t: 2300.000\nflags\t: fpu hypervisor sse\n\n\
            processor\t: 5\ncpu MHz\t\t: unknown\nprocessor\t: 6\ncpu MHz : 12";
        let want = [(0, Some(Hertz(2_300_000_000))), (5, None), (6, None)];
        assert_eq!(clocks(text), want);
        assert_eq!(is_guest(text), Some(true));
        assert_eq!(is_guest(b"flags\t: fpu\n"), Some(false));
        assert_eq!(is_guest(b"Features\t: fp\n"), None);
        assert_eq!(nominal("Intel(R) Xeon(R) CPU @ 2.70GHz"), Some(Hertz(2_700_000_000)));
        assert_eq!(nominal("AMD EPYC 7R13 Processor"), None);
        assert_eq!(nominal("x @ NaNGHz"), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(text: Vec<u8>, words: String) {
            let _ = (model(&text), is_guest(&text), clocks(&text), nominal(&words));
            let _ = clocks(&[b"processor: 1\ncpu MHz:", &text[..], b"\n"].concat());
        }
    }
}
