//! Reads lines with a name and a value, which `-k` requests: `THROUGHPUT=10141.54`.

use linerate_plan::path::Direction;
use linerate_record::reported::{Carrier, Counted, Measured, SizeRow, Sizes, Transfer, Trip};
use linerate_units::{Bytes, Nanos, Rate};

use super::{Banner, Kind, binary, bits, boxed, number};
use crate::format::Section;
use crate::reading::{Notes, sizes};

/// Reads the values, if the output has any. Returns the measured value, and the number of bytes of the output.
pub(super) fn read(
    section: &Section<'_>,
    banner: Banner,
    notes: &mut Notes,
) -> Option<Result<(Measured, usize), String>> {
    let mut pairs = Vec::new();
    let mut used = 0;
    for line in section.lines() {
        match line.trimmed().split_once('=') {
            Some((name, value)) if is_name(name) => {
                pairs.push((name, value));
                used = line.end;
            }
            _ if pairs.is_empty() || line.trimmed().is_empty() => {}
            _ => break,
        }
    }
    if pairs.is_empty() {
        return None;
    }
    let pairs = Pairs(pairs);
    Some(pairs.measured(banner, notes, section.line).map(|measured| (measured, used)))
}

fn is_name(name: &str) -> bool {
    let known = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    !name.is_empty() && name.bytes().all(known)
}

struct Pairs<'a>(Vec<(&'a str, &'a str)>);

impl Pairs<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| *known == name)?;
        Some(found.1.trim())
    }

    fn number(&self, name: &str) -> Option<f64> {
        number(self.text(name)?)
    }

    fn carrier(&self, banner: Banner) -> Carrier {
        match self.text("PROTOCOL") {
            Some("UDP") => Carrier::Udp,
            Some("SCTP") => Carrier::Sctp,
            Some("TCP") => Carrier::Tcp,
            _ => banner.carrier,
        }
    }

    fn measured(&self, banner: Banner, notes: &mut Notes, line: u64) -> Result<Measured, String> {
        let direction = match (self.text("DIRECTION"), banner.kind) {
            (_, Kind::Stream(direction)) => Some(direction),
            (Some("Send"), Kind::Omni) => Some(Direction::Forward),
            (Some("Receive" | "Recv"), Kind::Omni) => Some(Direction::Reverse),
            _ => None,
        };
        match direction {
            Some(direction) => self.transfer(banner, direction, notes, line).map(boxed),
            None => self.requests(banner),
        }
    }

    fn transfer(
        &self,
        banner: Banner,
        direction: Direction,
        notes: &mut Notes,
        line: u64,
    ) -> Result<Transfer, String> {
        let rate = self.number("THROUGHPUT").ok_or("its values have no THROUGHPUT")?;
        let unit = self.text("THROUGHPUT_UNITS").ok_or("its values have no THROUGHPUT_UNITS")?;
        let bits = bits(unit).ok_or_else(|| format!("its unit `{unit}` is unknown"))?;
        binary(unit, line, notes);
        let goodput = Rate((rate * bits).round() as u64);
        let mut transfer =
            Transfer::new(self.carrier(banner), direction, goodput, Counted::Receiver);
        // LOCAL in a name is the end that runs netperf.
        let sender = if direction == Direction::Forward { "LOCAL" } else { "REMOTE" };
        let of_sender = |name: &str| self.number(&format!("{sender}_{name}"));
        transfer.streams = Some(1);
        transfer.seconds = self.number("ELAPSED_TIME").filter(|s| *s > 0.0);
        transfer.retransmits = of_sender("TRANSPORT_RETRANS").map(|n| n as u64);
        transfer.segment = self.number("TRANSPORT_MSS").filter(|n| *n > 0.0).map(|n| n as u32);
        transfer.size = of_sender("SEND_SIZE").filter(|n| *n > 0.0).map(|n| Bytes(n as u64));
        let congestion = self.text(&format!("{sender}_CONG_CONTROL"));
        transfer.congestion =
            congestion.filter(|name| !name.is_empty() && name.len() < 40).map(str::to_owned);
        Ok(transfer)
    }

    fn requests(&self, banner: Banner) -> Result<Measured, String> {
        let size = self.number("REQUEST_SIZE").ok_or("its values have no REQUEST_SIZE")?;
        let micros = |name: &str| {
            let time = self.number(name).filter(|time| *time > 0.0)?;
            Some(Nanos((time * 1e3).round() as u64))
        };
        let row = SizeRow {
            size: Bytes(size as u64),
            least: micros("MIN_LATENCY"),
            typical: micros("P50_LATENCY"),
            mean: micros("MEAN_LATENCY"),
            deviation: micros("STDDEV_LATENCY"),
            p99: micros("P99_LATENCY"),
            most: micros("MAX_LATENCY"),
            messages: self.number("TRANSACTION_RATE"),
            ..SizeRow::default()
        };
        if row.time().is_none() && row.messages.is_none() {
            return Err("its values have neither a latency nor a rate".to_owned());
        }
        Ok(Measured::Sizes(Sizes {
            carrier: Some(self.carrier(banner)),
            ..sizes("request and response", Trip::Whole, vec![row])
        }))
    }
}
