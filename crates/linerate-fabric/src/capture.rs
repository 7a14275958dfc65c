//! The file of a walk: requests with their replies as lines of text, so that the walk can be evaluated again elsewhere.
//!
//! The first line is `linerate fabric capture 1`; the second names the port from which the network was walked. Each
//! other line has the time of the reply in nanoseconds since the walk began, the request, and the reply or `lost`.
//! Datagrams are written in hexadecimal digits, without the zeros at their end. The last line is `end` if the walk was
//! not cut short; without it, it is unknown what else the network has.

use std::fmt::Write;

use super::mad::LEN;
use linerate_units::Nanos;

/// First line of the file.
const HEAD: &str = "linerate fabric capture 1";

/// Largest file that is read, in bytes.
pub const LARGEST: u64 = 256 << 20;

/// Most requests in a file that is read: twice those of the largest network, with counters.
const MOST: usize = 2_000_000;

/// Bytes of a request up to the end of its attribute number.
const HEADER: usize = 18;

/// Longest walk that is accepted, as the time of its last reply.
const LONGEST: Nanos = Nanos::from_secs(86_400);

const LOST: &str = "lost";
const END: &str = "end";

/// A management datagram (MAD).
pub type Mad = [u8; LEN];

/// A request with its reply, if there was one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The time of the reply since the walk began.
    pub at: Nanos,
    /// The request, with a transaction number of zero.
    pub request: Box<Mad>,
    /// The reply; `None` if there was none.
    pub reply: Option<Box<Mad>>,
}

/// A captured walk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The port from which the network was walked, in words.
    pub through: String,
    /// All requests that had a reply or were lost, in the order of their replies.
    pub exchanges: Vec<Exchange>,
    /// Whether the walk was not cut short and its file is complete.
    pub whole: bool,
}

/// Why a file is not a captured walk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// The first line is not the one that marks a capture.
    #[error("this is no capture of a network: the first line is not `{HEAD}`")]
    Head,
    /// There are more requests than any network needs.
    #[error("more than {MOST} requests")]
    TooMany,
    /// A line is not a valid request with its reply; the number is that of the line.
    #[error("line {0} is damaged")]
    Line(usize),
}

impl Captured {
    /// Encodes the walk as the text of a file.
    pub fn encode(&self) -> String {
        let through = self.through.replace(char::is_control, " ");
        let mut text = format!("{HEAD}\n{through}\n");
        for Exchange { at, request, reply } in &self.exchanges {
            let reply = reply.as_ref().map_or_else(|| LOST.to_owned(), |mad| hex(mad));
            let _ = writeln!(text, "{} {} {reply}", at.0, hex(request));
        }
        if self.whole {
            text.push_str(END);
            text.push('\n');
        }
        text
    }

    /// Decodes the text of a file.
    pub fn decode(text: &str) -> Result<Self, CaptureError> {
        let mut lines = text.lines().enumerate();
        if lines.next().map(|(_, line)| line) != Some(HEAD) {
            return Err(CaptureError::Head);
        }
        let through = lines.next().map_or("", |(_, line)| line).replace(char::is_control, " ");
        if text.len() / 40 > MOST && text.lines().count() > MOST {
            return Err(CaptureError::TooMany);
        }
        let whole = text.lines().next_back() == Some(END);
        let lines = lines.take_while(|(_, line)| *line != END);
        let exchanges = lines.map(|(n, line)| exchange(line).ok_or(CaptureError::Line(n + 1)));
        Ok(Self { through, exchanges: exchanges.collect::<Result<_, _>>()?, whole })
    }
}

fn exchange(line: &str) -> Option<Exchange> {
    let mut fields = line.split(' ');
    let (at, request, reply) = (fields.next()?, fields.next()?, fields.next()?);
    let reply = match reply {
        LOST => None,
        digits => Some(mad(digits)?),
    };
    let at = Nanos(at.parse().ok()?);
    let is_request = request.len() >= 2 * HEADER && at <= LONGEST;
    (fields.next().is_none() && is_request).then_some(Exchange {
        at,
        request: mad(request)?,
        reply,
    })
}

fn hex(mad: &Mad) -> String {
    let end = mad.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
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

    /// The second exchange of [`two`] as a line of its file.
    const LAST: &str = "9 010400000000000000000000000000000012 lost";

    /// The first bytes of a request: its class and its attribute.
    fn request(class: u8, attribute: u8) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        (bytes[0], bytes[1], bytes[HEADER - 1]) = (1, class, attribute);
        bytes
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
                exchange(7, &request(0x81, 0x11), Some(&[1, 0x81, 1, 0x81])),
                exchange(9, &request(4, 0x12), None),
            ],
            whole: true,
        }
    }

    #[test]
    fn a_capture_is_read_as_it_was_written() {
        let text = two().encode();
        let expected = "linerate fabric capture 1\nibsim, as CLB\n7 018100000000000000000000000000000011 01810181\n9 010400000000000000000000000000000012 lost\nend\n";
        assert_eq!(text, expected);
        assert_eq!(Captured::decode(&text), Ok(two()));
        // A walk that was cut short, or a file whose end is missing.
        for cut in ["end\n", "nd\n"] {
            let text = text.strip_suffix(cut).unwrap();
            let is_whole = Captured::decode(text).map(|captured| captured.whole);
            assert_ne!(is_whole, Ok(true), "{cut}");
        }
    }

    #[test]
    fn a_damaged_line_has_its_number() {
        for (old, new) in [
            (LAST, "9 010400000000000000000000000000000012"),
            (LAST, "9 010400000000000000000000000000000012 lost lost"),
            (LAST, "x 010400000000000000000000000000000012 lost"),
            (LAST, "9 10400000000000000000000000000000012 lost"),
            (LAST, "9 0104000000000000000000000000000000g2 lost"),
            (LAST, "9 010400000000000000000000000000000012 loss"),
            (LAST, "9 0104 lost"),
            (LAST, "86400000000001 010400000000000000000000000000000012 lost"),
        ] {
            let text = two().encode().replace(old, new);
            assert_eq!(Captured::decode(&text), Err(CaptureError::Line(4)), "{new}");
        }
        assert_eq!(Captured::decode("linerate host"), Err(CaptureError::Head));
        assert_eq!(Captured::decode(""), Err(CaptureError::Head));
    }

    #[test]
    fn a_datagram_has_256_bytes_at_most() {
        let line = |bytes| format!("{HEAD}\n\n1 {} {}\n", "01".repeat(18), "01".repeat(bytes));
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
