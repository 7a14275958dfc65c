//! The file of a walk: requests with their replies, as lines of text, so that a walk can be repeated elsewhere.
//!
//! The first line is `linerate fabric capture 1`, the second says where the network was asked from. Each other line has the time of the
//! reply in nanoseconds since the walk began, the request, and the reply or `lost`. Datagrams are written in hexadecimal
//! digits, without the zeros at their end.

use std::fmt::Write;

use super::mad::LEN;
use crate::units::Nanos;

/// First line of the file.
const HEAD: &str = "linerate fabric capture 1";

/// Largest file that is read, in bytes.
pub const LARGEST: u64 = 256 << 20;

const LOST: &str = "lost";

/// A datagram.
pub type Mad = [u8; LEN];

/// A request and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The time of the reply since the walk began.
    pub at: Nanos,
    /// The request, with a transaction of zero.
    pub request: Box<Mad>,
    /// The reply; `None` if there was none.
    pub reply: Option<Box<Mad>>,
}

/// A captured walk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// Where the network was asked from, in words.
    pub through: String,
    /// All requests that were answered or lost, in the order of their replies.
    pub exchanges: Vec<Exchange>,
}

/// Why a file is no captured walk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// The first line is another one.
    #[error("this is no capture of a network: the first line is not `{HEAD}`")]
    Head,
    /// A line is not as it should be.
    #[error("line {0} is damaged")]
    Line(usize),
}

impl Captured {
    /// Writes the file.
    pub fn encode(&self) -> String {
        let through = self.through.replace(char::is_control, " ");
        let mut text = format!("{HEAD}\n{through}\n");
        for Exchange { at, request, reply } in &self.exchanges {
            let reply = reply
                .as_ref()
                .map_or_else(|| LOST.to_owned(), |mad| hex(mad));
            let _ = writeln!(text, "{} {} {reply}", at.0, hex(request));
        }
        text
    }

    /// Reads the file.
    pub fn decode(text: &str) -> Result<Self, CaptureError> {
        let mut lines = text.lines().enumerate();
        if lines.next().map(|(_, line)| line) != Some(HEAD) {
            return Err(CaptureError::Head);
        }
        let through = lines
            .next()
            .map_or("", |(_, line)| line)
            .replace(char::is_control, " ");
        let exchanges = lines.map(|(n, line)| exchange(line).ok_or(CaptureError::Line(n + 1)));
        Ok(Self {
            through,
            exchanges: exchanges.collect::<Result<_, _>>()?,
        })
    }
}

fn exchange(line: &str) -> Option<Exchange> {
    let mut fields = line.split(' ');
    let (at, request, reply) = (fields.next()?, fields.next()?, fields.next()?);
    let reply = match reply {
        LOST => None,
        digits => Some(mad(digits)?),
    };
    fields.next().is_none().then_some(Exchange {
        at: Nanos(at.parse().ok()?),
        request: mad(request)?,
        reply,
    })
}

fn hex(mad: &Mad) -> String {
    let end = mad
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    mad[..end].iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn mad(digits: &str) -> Option<Box<Mad>> {
    let digits = digits.as_bytes();
    if digits.len() > 2 * LEN || !digits.len().is_multiple_of(2) {
        return None;
    }
    let mut mad = Box::new([0; LEN]);
    for (byte, pair) in mad.iter_mut().zip(digits.chunks(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = (digit(0)? << 4 | digit(1)?) as u8;
    }
    Some(mad)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn some(bytes: &[u8]) -> Box<Mad> {
        let mut mad = Box::new([0; LEN]);
        mad[..bytes.len()].copy_from_slice(bytes);
        mad
    }

    fn two() -> Captured {
        let exchange = |at, request: &[u8], reply: Option<&[u8]>| Exchange {
            at: Nanos(at),
            request: some(request),
            reply: reply.map(some),
        };
        Captured {
            through: "ibsim, as CLB".to_owned(),
            exchanges: vec![
                exchange(7, &[1, 0x81, 1, 1, 0, 9], Some(&[1, 0x81, 1, 0x81])),
                exchange(9, &[1, 4], None),
            ],
        }
    }

    #[test]
    fn a_capture_is_read_as_it_was_written() {
        let text = two().encode();
        let expected =
            "linerate fabric capture 1\nibsim, as CLB\n7 018101010009 01810181\n9 0104 lost\n";
        assert_eq!(text, expected);
        assert_eq!(Captured::decode(&text), Ok(two()));
    }

    #[test]
    fn a_damaged_line_has_its_number() {
        for (old, new) in [
            ("9 0104 lost", "9 0104"),
            ("9 0104 lost", "9 0104 lost lost"),
            ("9 0104 lost", "x 0104 lost"),
            ("9 0104 lost", "9 014 lost"),
            ("9 0104 lost", "9 01g4 lost"),
            ("9 0104 lost", "9 0104 loss"),
        ] {
            let text = two().encode().replace(old, new);
            assert_eq!(Captured::decode(&text), Err(CaptureError::Line(4)), "{new}");
        }
        assert_eq!(Captured::decode("linerate host"), Err(CaptureError::Head));
        assert_eq!(Captured::decode(""), Err(CaptureError::Head));
    }

    #[test]
    fn a_datagram_has_256_bytes_at_most() {
        let line = |bytes| format!("{HEAD}\n\n1 01 {}\n", "01".repeat(bytes));
        assert!(Captured::decode(&line(LEN)).is_ok());
        assert_eq!(Captured::decode(&line(LEN + 1)), Err(CaptureError::Line(3)));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(linerate fabric capture 1\n\n)?[0-9a-f los\n]*") {
            let _ = Captured::decode(&text);
        }
    }
}
