//! Parses `/proc/self/mountinfo`: the mounted file systems, their mount points and devices.

use super::{Malformed, text};

const WHAT: &str = "mountinfo";

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Number of the device: `254:0`. The major number is 0 if there is no single device.
    pub number: String,
    /// The part of the file system that is mounted: `/` is all of it.
    pub root: String,
    /// Directory where the file system is mounted.
    pub point: String,
    /// Type of the file system: `ext4`, `nfs4`.
    pub kind: String,
    /// The mounted device: `/dev/vda`, `server:/export`.
    pub source: String,
    /// Options of the file system.
    pub options: Vec<String>,
}

/// All mounts, in the order in which they were made.
pub fn parse(text: &[u8]) -> Result<Vec<Mount>, Malformed> {
    text::lines(text, WHAT).map(|line| Mount::of(line?).ok_or(Malformed::Short(WHAT))).collect()
}

impl Mount {
    /// Parses a line such as `36 35 98:0 /root /mnt rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=continue`; `None` if
    /// a field is missing.
    pub fn of(line: &[u8]) -> Option<Self> {
        // The field of the mounted device may be empty, so single spaces separate fields.
        let mut fields = line.split(|&b| b == b' ');
        let number = text::trimmed(fields.nth(2)?);
        let (root, point) = (unescaped(fields.next()?), unescaped(fields.next()?));
        // Options of this mount, and optional fields, are before the dash.
        fields.find(|&field| field == b"-")?;
        let kind = text::trimmed(fields.next()?);
        let source = unescaped(fields.next()?);
        let options = fields.next()?.split(|&b| b == b',');
        Some(Self {
            number,
            root,
            point,
            kind,
            source,
            options: options.map(text::trimmed).collect(),
        })
    }
}

/// Replaces octal escapes such as that of a space (`\040`) by their characters.
fn unescaped(field: &[u8]) -> String {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match tail {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] if byte == b'\\' => {
                plain.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = &tail[3..];
            }
            _ => plain.push(byte),
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::parse;

    const SAMPLE: &str = "36 35 98:0 /a /mnt/with\\040blank rw,noatime shared:1 - ext4 /dev/sda1 rw,x=1\n\
        40 36 0:45 / /home rw - nfs4 srv:/home rw,vers=4.2,proto=rdma,nconnect=4\n";

    #[test]
    fn what_is_mounted_may_be_empty() {
        let got = parse(b"36 35 0:28 / /mnt rw - cgroup2  rw,nsdelegate\n").unwrap();
        assert_eq!((got[0].source.as_str(), got[0].options.len()), ("", 2));
    }

    #[test]
    fn mounts_parse_exactly() {
        let got = parse(SAMPLE.as_bytes()).unwrap();
        assert_eq!((got.len(), got[0].number.as_str()), (2, "98:0"));
        assert_eq!((got[0].point.as_str(), got[0].kind.as_str()), ("/mnt/with blank", "ext4"));
        assert_eq!((got[0].root.as_str(), got[1].root.as_str()), ("/a", "/"));
        assert_eq!(
            (got[0].source.as_str(), &got[0].options[..]),
            ("/dev/sda1", &["rw".to_owned(), "x=1".to_owned()][..])
        );
        assert_eq!((got[1].source.as_str(), got[1].options.len()), ("srv:/home", 4));
        assert!(parse(b"36 35 98:0 /a /mnt rw\n").is_err(), "no dash");
        assert!(parse(&SAMPLE.as_bytes()[..SAMPLE.len() - 1]).is_err(), "cut");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = parse(&bytes);
            let _ = parse(&[&bytes[..], b" 1 1 1 1 1 - 1 1 1\n"].concat());
        }
    }
}
