//! `/proc/self/mountinfo`: which file system lies where, and on what.

pub use super::text::unescaped;
use super::{Malformed, text};

const WHAT: &str = "mountinfo";

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Number of the device: `254:0`; major 0 where there is no single one.
    pub number: String,
    /// Where it is mounted.
    pub point: String,
    /// Kind: `ext4`, `nfs4`.
    pub kind: String,
    /// What is mounted: `/dev/vda`, `server:/export`.
    pub source: String,
    /// Options of the file system.
    pub options: Vec<String>,
}

/// All mounts, in the order in which they were made.
pub fn parse(text: &[u8]) -> Result<Vec<Mount>, Malformed> {
    text::lines(text, WHAT)
        .map(|line| mount(line?).ok_or(Malformed::Short(WHAT)))
        .collect()
}

/// `36 35 98:0 /root /mnt rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=continue`.
fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = text::fields(line);
    let number = text::trimmed(fields.nth(2)?);
    let point = unescaped(fields.nth(1)?);
    // Options of this mount and optional fields stand before the dash.
    fields.find(|&field| field == b"-")?;
    let kind = text::trimmed(fields.next()?);
    let source = unescaped(fields.next()?);
    let options = fields
        .next()?
        .split(|&b| b == b',')
        .map(text::trimmed)
        .collect();
    Some(Mount {
        number,
        point,
        kind,
        source,
        options,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::parse;

    const SAMPLE: &str = "36 35 98:0 /a /mnt/with\\040blank rw,noatime shared:1 - ext4 /dev/sda1 rw,x=1\n\
        40 36 0:45 / /home rw - nfs4 srv:/home rw,vers=4.2,proto=rdma,nconnect=4\n";

    #[test]
    fn mounts_parse_exactly() {
        let got = parse(SAMPLE.as_bytes()).unwrap();
        assert_eq!((got.len(), got[0].number.as_str()), (2, "98:0"));
        assert_eq!(
            (got[0].point.as_str(), got[0].kind.as_str()),
            ("/mnt/with blank", "ext4")
        );
        assert_eq!(
            (got[0].source.as_str(), &got[0].options[..]),
            ("/dev/sda1", &["rw".to_owned(), "x=1".to_owned()][..])
        );
        assert_eq!(
            (got[1].source.as_str(), got[1].options.len()),
            ("srv:/home", 4)
        );
        assert!(parse(b"36 35 98:0 /a /mnt rw\n").is_err(), "no dash");
        assert!(
            parse(&SAMPLE.as_bytes()[..SAMPLE.len() - 1]).is_err(),
            "cut"
        );
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = parse(&bytes);
            let _ = parse(&[&bytes[..], b" 1 1 1 1 1 - 1 1 1\n"].concat());
        }
    }
}
