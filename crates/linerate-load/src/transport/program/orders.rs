//! The orders of an ordinary program: one line that it reads first.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// Random bytes that prove that a connection comes from the other end of the set.
pub(super) type Token = [u8; 16];

/// How the program gets its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meet {
    /// The program listens at the address, at any free port.
    Listen,
    /// The program connects to the address.
    Connect,
}

/// What the program does with its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// The program sends messages and measures the round trips.
    Ask,
    /// The program answers messages.
    Answer,
    /// The program sends payload.
    Send,
    /// The program receives payload.
    Receive,
}

/// The orders of a program: how it gets its connection, and what it does with the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Orders {
    pub(super) meet: Meet,
    pub(super) address: SocketAddr,
    pub(super) token: Token,
    pub(super) work: Work,
    /// Bytes of a message or of a write. The first byte shows whether this is the end mark of a step.
    pub size: u32,
}

const MEETS: [(Meet, &str); 2] = [(Meet::Listen, "listen"), (Meet::Connect, "connect")];
const WORKS: [(Work, &str); 4] = [
    (Work::Ask, "ask"),
    (Work::Answer, "answer"),
    (Work::Send, "send"),
    (Work::Receive, "receive"),
];

/// Returns the word for a value in a table.
fn word<T: PartialEq>(rows: &[(T, &'static str)], of: &T) -> &'static str {
    let row = rows.iter().find(|(one, _)| one == of);
    row.map_or("", |(_, word)| word)
}

/// Returns the value for a word in a table; `None` if the word is unknown.
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
