//! Parses `/proc/net/softnet_stat`: packets that each CPU received from its backlog and from rings.

use super::{Malformed, text};

const WHAT: &str = "/proc/net/softnet_stat";

/// Packet counters of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Softnet {
    /// Number of the CPU; `None` on kernels before 5.10, which list only the online CPUs and without numbers.
    pub cpu: Option<u32>,
    /// Packets that the CPU processed.
    pub processed: u64,
    /// Packets dropped because the backlog was full.
    pub dropped: u64,
    /// Number of times that the packet budget was used up while packets were left.
    pub squeezed: u64,
}

/// Parses the file: one entry for each line.
pub fn parse(text: &[u8]) -> impl Iterator<Item = Result<Softnet, Malformed>> {
    text::lines(text, WHAT).map(|line| line.and_then(cpu))
}

fn cpu(line: &[u8]) -> Result<Softnet, Malformed> {
    let mut fields = text::fields(line);
    let mut next = || {
        let field = fields.next().ok_or(Malformed::Short(WHAT))?;
        text::hexadecimal(field).ok_or(Malformed::NotANumber(WHAT))
    };
    let (processed, dropped, squeezed) = (next()?, next()?, next()?);
    // Field 13 is the number of the CPU (net/core/net-procfs.c, softnet_seq_show).
    let cpu = fields.nth(9).map(|f| text::hexadecimal(f).and_then(|n| u32::try_from(n).ok()));
    Ok(Softnet {
        cpu: cpu.map(|c| c.ok_or(Malformed::NotANumber(WHAT))).transpose()?,
        processed,
        dropped,
        squeezed,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Softnet, parse};

    const REAL: &[u8] = b"0000000b 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000\n\
        00001228 00000002 0000000a 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000011 00000000 00000000\n";

    fn all(text: &[u8]) -> Result<Vec<Softnet>, super::Malformed> {
        parse(text).collect()
    }

    #[test]
    fn fields_are_hexadecimal_and_the_cpu_is_named() {
        let got = all(REAL).unwrap();
        assert_eq!((got[0].cpu, got[0].processed), (Some(0), 11));
        let second = Softnet { cpu: Some(17), processed: 0x1228, dropped: 2, squeezed: 10 };
        assert_eq!(got[1], second);
    }

    #[test]
    fn an_old_kernel_names_no_cpu() {
        let got = all(b"0000000b 00000000 00000001 0 0 0 0 0 0 0\n").unwrap();
        assert_eq!((got[0].cpu, got[0].squeezed), (None, 1));
    }

    #[test]
    fn a_cut_line_is_an_error() {
        let whole = all(REAL).unwrap();
        for end in 0..REAL.len() {
            if let Ok(got) = all(&REAL[..end]) {
                assert!(whole.starts_with(&got), "cut at {end}");
            }
        }
        assert!(all(b"1 2\n").is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(text: Vec<u8>) {
            let _ = all(&text);
        }
    }
}
