//! Parses `/proc/PID/task/TID/stat`: the CPU times of one thread, and the CPU on which it ran last.

use super::{Malformed, text};

const WHAT: &str = "thread stat";

/// The fields of a thread's `stat` file that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskStat {
    /// State of the thread: `R` running, `S` sleeping, `Z` ended but not yet reaped ...
    pub state: u8,
    /// User time in clock ticks, field 14.
    pub user_ticks: u64,
    /// System time in clock ticks, field 15.
    pub system_ticks: u64,
    /// The CPU that the thread last ran on, field 39.
    pub cpu: u64,
}

/// Id and name of the thread, fields 1 and 2.
pub fn identity(text: &[u8]) -> Option<(u32, String)> {
    let open = text.iter().position(|&b| b == b'(')?;
    let close = text.iter().rposition(|&b| b == b')')?;
    let pid = text::decimal(text[..open].trim_ascii())?;
    let name = text::trimmed(text.get(open + 1..close)?);
    Some((u32::try_from(pid).ok()?, name))
}

/// Parses the only line of the file. The name in field 2 may contain spaces, brackets and line ends, so fields are
/// counted from the last closing bracket.
pub fn parse(text: &[u8]) -> Result<TaskStat, Malformed> {
    let line = text.strip_suffix(b"\n").ok_or(Malformed::Short(WHAT))?;
    let bracket = line.iter().rposition(|&b| b == b')');
    let after = &line[bracket.ok_or(Malformed::Missing(WHAT))? + 1..];
    // `nth` counts from the field after the last one read; the state is field 3.
    let mut fields = text::fields(after);
    let state = fields.next().ok_or(Malformed::Short(WHAT))?;
    let &[state] = state else {
        return Err(Malformed::Missing(WHAT));
    };
    let mut skip = |n: usize| {
        let field = fields.nth(n).ok_or(Malformed::Short(WHAT))?;
        text::decimal(field).ok_or(Malformed::NotANumber(WHAT))
    };
    Ok(TaskStat { state, user_ticks: skip(10)?, system_ticks: skip(0)?, cpu: skip(23)? })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{identity, parse};

    const REAL: &[u8] = b"712 (tokio) S (x) R 1 712 712 0 -1 4194368 2017 0 3 0 118 97 0 0 20 0 9 0 \
        8651 1091 1221 18446744073709551615 1 1 0 0 0 0 0 4096 17642 0 0 0 17 5 0 0 0 0 0 0 0 0 0 0 \
        0 0 0\n";

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let got = parse(REAL).unwrap();
        assert_eq!((got.state, got.user_ticks, got.system_ticks, got.cpu), (b'R', 118, 97, 5));
    }

    #[test]
    fn a_name_is_all_between_the_outer_brackets() {
        assert_eq!(identity(REAL), Some((712, "tokio) S (x".to_owned())));
        assert_eq!(identity(b")("), None);
        assert_eq!(identity(b"x (a)"), None);
    }

    #[test]
    fn a_cut_line_is_an_error() {
        for end in 0..REAL.len() {
            assert!(parse(&REAL[..end]).is_err(), "cut at {end}");
        }
        assert!(parse(b")\n").is_err());
        assert!(parse(b") R 1 2 3\n").is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(text: Vec<u8>) {
            let _ = (parse(&text), identity(&text));
            let _ = parse(&[b"1 (a) ", &text[..], b"\n"].concat());
        }
    }
}
