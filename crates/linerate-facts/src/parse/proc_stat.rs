//! Parses `/proc/stat`: how each CPU spent its time.

use super::{Malformed, text};
use crate::cpu::CpuTimes;

const WHAT: &str = "/proc/stat";

/// The times of the CPUs that are online, in the order of the file. The line with the sum over all CPUs is left out.
pub fn cpus(text: &[u8]) -> impl Iterator<Item = Result<CpuTimes, Malformed>> {
    // The lines of CPUs come first, so the long line about interrupts is never read.
    text::lines(text, WHAT)
        .take_while(|line| line.is_err() || line.is_ok_and(|l| l.starts_with(b"cpu")))
        .filter_map(|line| line.and_then(cpu).transpose())
}

fn cpu(line: &[u8]) -> Result<Option<CpuTimes>, Malformed> {
    let mut fields = text::fields(line);
    let name = fields.next().unwrap_or_default();
    if name == b"cpu" {
        return Ok(None);
    }
    let cpu = text::decimal(&name[3..])
        .and_then(|n| u32::try_from(n).ok())
        .ok_or(Malformed::NotANumber(WHAT))?;
    let mut ticks = [0; 8];
    for tick in &mut ticks {
        *tick = text::next_decimal(&mut fields, WHAT)?;
    }
    Ok(Some(CpuTimes { cpu, ticks }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{CpuTimes, cpus};

    const REAL: &[u8] = b"cpu  1837 25 1290 204121 432 0 35 71 0 0\n\
        cpu0 1013 12 580 101811 235 0 25 32 0 0\n\
        cpu1 824 13 709 102309 196 0 9 38 0 0\n\
        intr 163412 0 1\nctxt 1\n";

    fn all(text: &[u8]) -> Result<Vec<CpuTimes>, super::Malformed> {
        cpus(text).collect()
    }

    #[test]
    fn a_real_file_parses_exactly() {
        let got = all(REAL).unwrap();
        assert_eq!(got.len(), 2);
        assert_eq!(got[0].ticks, [1013, 12, 580, 101_811, 235, 0, 25, 32]);
        assert_eq!((got[1].cpu, got[1].ticks[7]), (1, 38));
    }

    #[test]
    fn a_cut_line_is_an_error_never_a_smaller_number() {
        let whole = all(REAL).unwrap();
        for end in 0..REAL.len() {
            if let Ok(got) = all(&REAL[..end]) {
                assert!(whole.starts_with(&got), "cut at {end}: {got:?}");
            }
        }
        assert!(all(b"cpu0 1 2 3 4 5 6 7\n").is_err(), "seven fields");
        assert!(all(b"cpux 1 2 3 4 5 6 7 8\n").is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(text: Vec<u8>, tail: Vec<u8>) {
            let _ = all(&text);
            let _ = all(&[b"cpu", &tail[..]].concat());
        }
    }
}
