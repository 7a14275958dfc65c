//! Reads the tables: lines of headings, an empty line, and rows of numbers.

use linerate_plan::path::{ByRole, Direction};
use linerate_record::reported::{
    Carrier, Counted, Cpu, CpuOf, Lost, Measured, SizeRow, Sizes, Transfer, Trip,
};
use linerate_units::{Bytes, Nanos, Rate};

use super::{Banner, Kind, binary, bits, boxed, number};
use crate::format::Section;
use crate::reading::{Notes, sizes};

/// Largest number of lines of a table.
const MOST_LINES: usize = 40;

/// Reads a table. Returns the measured value, and the number of bytes of the table.
pub(super) fn read(
    section: &Section<'_>,
    banner: Banner,
    notes: &mut Notes,
) -> Result<(Measured, usize), String> {
    let mut rows: Vec<Vec<f64>> = Vec::new();
    let (mut unit, mut has_cpu) = (None, false);
    let mut used = 0;
    for line in section.lines().take(MOST_LINES) {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let numbers: Option<Vec<f64>> = words.iter().map(|word| known(word)).collect();
        match numbers {
            _ if words.is_empty() => continue,
            Some(numbers) => rows.push(numbers),
            // Lines after the rows are not part of the table.
            None if !rows.is_empty() => break,
            None => {
                has_cpu |= words.contains(&"remote") || words.contains(&"Utilization");
                unit = words.iter().find(|word| bits(word).is_some()).copied().or(unit);
            }
        }
        used = line.end;
    }
    let measured = match banner.kind {
        Kind::Stream(direction) => {
            let unit = unit.ok_or("its table names no unit of the throughput")?;
            binary(unit, section.line, notes);
            let bits = bits(unit).unwrap_or(1.0);
            let mut transfer =
                stream(&rows, banner, direction, bits).ok_or("its table has no complete row")?;
            if has_cpu {
                transfer.cpu = processors(&rows, direction);
            }
            boxed(transfer)
        }
        Kind::Requests | Kind::Connections => {
            let (sizes, response) =
                requests(&rows, banner).ok_or("its table has no complete row")?;
            if let Some(what) = response {
                notes.at(section.line, what);
            }
            Measured::Sizes(sizes)
        }
        Kind::Omni => {
            return Err("the columns of an omni test are not read: run it with -k".to_owned());
        }
    };
    Ok((measured, used))
}

/// Reads a number; negative (-1) if it is unknown, as netperf writes it.
fn known(word: &str) -> Option<f64> {
    number(word.strip_prefix('-').unwrap_or(word))
        .map(|value| if word.starts_with('-') { -1.0 } else { value })
}

/// CPU time as a share of all CPUs, of client and server: `-c` and `-C` add it after the throughput.
fn processors(rows: &[Vec<f64>], direction: Direction) -> ByRole<Option<Cpu>> {
    let share = |at: usize| {
        let percent = rows.first()?.get(at).copied().filter(|percent| *percent > 0.0)?;
        Some(Cpu { total: percent / 100.0, system: None, of: CpuOf::AllCpus })
    };
    let (client, server) = (share(5), share(6));
    match direction {
        Direction::Forward => [client, server].into(),
        Direction::Reverse => [server, client].into(),
    }
}

/// Reads the row of TCP: receive socket, send socket, message, seconds, throughput. UDP has a row of the sender:
/// socket, message, seconds, messages, errors, throughput; and one of the receiver: socket, seconds, messages,
/// throughput.
fn stream(rows: &[Vec<f64>], banner: Banner, direction: Direction, unit: f64) -> Option<Transfer> {
    let udp = banner.carrier == Carrier::Udp;
    let (size, seconds, rate, counted) = match rows {
        [sent, received, ..] if udp && sent.len() >= 6 && received.len() >= 4 => {
            (sent[1], received[1], received[3], Counted::Receiver)
        }
        // If the row of the receiver is missing, the rate is the sender's.
        [sent] if udp && sent.len() >= 6 => (sent[1], sent[2], sent[5], Counted::Sender),
        [row, ..] if !udp && row.len() >= 5 => (row[2], row[3], row[4], Counted::Receiver),
        _ => return None,
    };
    let goodput = Rate((rate * unit).round() as u64);
    let mut transfer = Transfer::new(banner.carrier, direction, goodput, counted);
    transfer.size = Some(Bytes(size as u64));
    transfer.seconds = Some(seconds).filter(|seconds| *seconds > 0.0);
    if let ([sent, received, ..], true) = (rows, udp) {
        transfer.datagrams = (sent[3] > 0.0).then(|| Lost {
            lost: (sent[3] - received[2]).max(0.0) as u64,
            of: sent[3] as u64,
            jitter: None,
        });
    }
    transfer.streams = Some(1);
    Some(transfer)
}

/// Reads a row of send socket, receive socket, request, response, seconds, transactions per second. The second row
/// has the far end's sockets.
fn requests(rows: &[Vec<f64>], banner: Banner) -> Option<(Sizes, Option<String>)> {
    let row = rows.first().filter(|row| row.len() >= 6 && row[5] > 0.0)?;
    let [request, response, rate] = [row[2], row[3], row[5]];
    // With one request in flight, the mean time of a round trip is one second over the rate.
    let mean = (!banner.burst).then(|| Nanos((1e9 / rate).round() as u64));
    let note = (row[2] as u64 != row[3] as u64).then(|| {
        format!("requests have {request} B and responses {response} B: the size of the row is that of requests")
    });
    let operation = match banner.kind {
        Kind::Connections => "connect, request and response",
        _ => "request and response",
    };
    let size = Bytes(request as u64);
    let row = SizeRow { size, mean, messages: Some(rate), ..SizeRow::default() };
    let table = sizes(operation, Trip::Whole, vec![row]);
    Some((Sizes { carrier: Some(banner.carrier), ..table }, note))
}
