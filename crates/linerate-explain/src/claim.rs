//! Claims about results: a rate or a latency, a latency before a change, a ceiling, or the transport.

use std::fmt;
use std::str::FromStr;

use linerate_record::reported::Carrier;
use linerate_units::{Nanos, Rate};

/// A claim about results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The claim as the user typed it.
    pub text: String,
    /// The parsed claim.
    pub said: Said,
}

/// A parsed claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// `goodput>=20Gbit/s`: at least one result reaches this rate.
    Reaches(Rate),
    /// `latency<=2us`: round trips are no longer than this.
    Within(Nanos),
    /// `before.udp.latency=6us`: round trips of this kind took this long, there and back, before a change; `None` if
    /// the claim names no kind.
    Before(Option<Kind>, Nanos),
    /// `ceiling=3.2GB/s`: the hardware carries this much.
    Ceiling(Rate),
    /// `transport=rdma`: the bytes went by RDMA.
    Rdma,
}

/// What sends and answers the messages of a round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A test program that uses this protocol; [`Carrier::Sockets`] is TCP or UDP.
    Test(Carrier),
    /// Two applications; their own work is part of the time.
    Application,
}

/// The words for the kinds of round trips in claims.
const KINDS: [(&str, Kind); 6] = [
    ("tcp", Kind::Test(Carrier::Tcp)),
    ("udp", Kind::Test(Carrier::Udp)),
    ("sockets", Kind::Test(Carrier::Sockets)),
    ("verbs", Kind::Test(Carrier::Rdma)),
    ("messages", Kind::Test(Carrier::Messages)),
    ("application", Kind::Application),
];

/// Why a claim could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a claim: {why}")]
pub struct ClaimError {
    text: String,
    why: String,
}

const FORMS: &str = "expected goodput>=RATE, latency<=TIME, before.KIND.latency=TIME (KIND: tcp, udp, sockets, verbs, messages \
                     or application), ceiling=RATE or transport=rdma";

impl FromStr for Claim {
    type Err = ClaimError;

    fn from_str(text: &str) -> Result<Self, ClaimError> {
        let refuse = |why: String| ClaimError { text: text.to_owned(), why };
        let rate = |value: &str| value.trim().parse::<Rate>().map_err(|e| refuse(e.to_string()));
        let time = |value: &str| value.trim().parse::<Nanos>().map_err(|e| refuse(e.to_string()));
        let forms = ["goodput>=", "latency<=", "before.", "ceiling=", "transport="];
        let spaceless: String = text.chars().filter(|c| *c != ' ').collect();
        let found = forms.iter().find_map(|form| Some((*form, spaceless.strip_prefix(form)?)));
        let said = match found {
            Some(("goodput>=", value)) => Said::Reaches(rate(value)?),
            Some(("latency<=", value)) => Said::Within(time(value)?),
            Some(("before.", rest)) => {
                let (kind, value) = before(rest).ok_or_else(|| refuse(FORMS.to_owned()))?;
                Said::Before(kind, time(value)?)
            }
            Some(("ceiling=", value)) => Said::Ceiling(rate(value)?),
            Some(("transport=", "rdma")) => Said::Rdma,
            _ => return Err(refuse(FORMS.to_owned())),
        };
        Ok(Self { text: text.to_owned(), said })
    }
}

/// The kind and the value in `udp.latency=6us`, or in `latency=6us`, which names no kind.
fn before(rest: &str) -> Option<(Option<Kind>, &str)> {
    let (name, value) = rest.split_once("latency=")?;
    if name.is_empty() {
        return Some((None, value));
    }
    let named = |(word, _): &&(&str, Kind)| name.strip_suffix('.') == Some(*word);
    let (_, kind) = KINDS.iter().find(named)?;
    Some((Some(*kind), value))
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_read_and_others_refused_with_the_forms() {
        let said = |text: &str| text.parse::<Claim>().map(|claim| claim.said);
        assert_eq!(said("goodput >= 20Gbit/s"), Ok(Said::Reaches(Rate(20_000_000_000))));
        assert_eq!(said("latency<=2us"), Ok(Said::Within(Nanos(2_000))));
        let before = |kind| Ok(Said::Before(kind, Nanos(6_500)));
        let udp = Some(Kind::Test(Carrier::Udp));
        assert_eq!(said("before.latency=6.5us"), before(None));
        assert_eq!(said("before.udp.latency = 6.5us"), before(udp));
        assert_eq!(said("before.application.latency=6.5us"), before(Some(Kind::Application)));
        assert_eq!(said("ceiling=3.2GB/s"), Ok(Said::Ceiling(Rate(25_600_000_000))));
        assert_eq!(said("transport=rdma"), Ok(Said::Rdma));
        for wrong in [
            "",
            "fast",
            "goodput<=1Gbit/s",
            "transport=tcp",
            "before.latency<1us",
            "before.fast.latency=1us",
            "before..latency=1us",
            "before.udplatency=1us",
        ] {
            assert!(said(wrong).unwrap_err().to_string().contains("expected goodput>="), "{wrong}");
        }
        assert!(said("goodput>=20").unwrap_err().to_string().contains("no unit"));
    }
}
