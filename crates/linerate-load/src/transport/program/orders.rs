//! What a program is told to do: one line, before anything else.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// Proof that a connection comes from the other end of the set.
pub(super) type Token = [u8; 16];

/// How a program gets its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meet {
    /// It listens at the address, at any port.
    Listen,
    /// It connects to the address.
    Connect,
}

/// What a program does with its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// It sends messages and times their answers.
    Ask,
    /// It answers messages.
    Answer,
    /// It sends payload.
    Send,
    /// It receives payload.
    Receive,
}

/// The orders of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Orders {
    pub(super) meet: Meet,
    pub(super) address: SocketAddr,
    pub(super) token: Token,
    pub(super) work: Work,
    /// Bytes of a message, or of a write. The first of them says whether it is the end of a step.
    pub size: u32,
}

const MEETS: [(Meet, &str); 2] = [(Meet::Listen, "listen"), (Meet::Connect, "connect")];
const WORKS: [(Work, &str); 4] = [
    (Work::Ask, "ask"),
    (Work::Answer, "answer"),
    (Work::Send, "send"),
    (Work::Receive, "receive"),
];

/// The word of a row.
fn word<T: PartialEq>(rows: &[(T, &'static str)], of: &T) -> &'static str {
    let row = rows.iter().find(|(one, _)| one == of);
    row.map_or("", |(_, word)| word)
}

/// The value of the row with a word.
fn value<T: Copy>(rows: &[(T, &str)], word: &str) -> Option<T> {
    rows.iter().find(|(_, own)| *own == word).map(|(one, _)| *one)
}

impl fmt::Display for Orders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (meet, work) = (word(&MEETS, &self.meet), word(&WORKS, &self.work));
        let token = u128::from_be_bytes(self.token);
        write!(f, "{meet} {} {token:032x} {work} {}", self.address, self.size)
    }
}

impl FromStr for Orders {
    type Err = &'static str;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        const NOT: &str = "these are no orders";
        let mut words = line.split_whitespace();
        let mut next = || words.next().ok_or(NOT);
        let meet = value(&MEETS, next()?).ok_or(NOT)?;
        let address = next()?.parse().map_err(|_| NOT)?;
        let token = u128::from_str_radix(next()?, 16).map_err(|_| NOT)?;
        let work = value(&WORKS, next()?).ok_or(NOT)?;
        let size = next()?.parse().map_err(|_| NOT)?;
        Ok(Self { meet, address, token: token.to_be_bytes(), work, size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_as_they_were_written() {
        for ((meet, _), (work, _)) in MEETS.into_iter().zip(WORKS) {
            let orders = Orders {
                meet,
                address: "[fe80::1%3]:4000".parse().unwrap(),
                token: [7; 16],
                work,
                size: 64,
            };
            assert_eq!(orders.to_string().parse(), Ok(orders));
        }
        for bad in ["", "listen", "listen x 0 ask 1", "listen [::]:0 0 ask -1"] {
            assert!(bad.parse::<Orders>().is_err(), "{bad}");
        }
    }
}
