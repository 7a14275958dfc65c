//! Reads the documents that `--out_json` writes: valid JSON, or, up to 4.5, a similar layout with words without
//! quotes.

use std::collections::BTreeMap;

use linerate_record::reported::SizeRow;
use linerate_units::Bytes;

use super::{Test, are_no_cycles};
use crate::format::{Format, Found, Section};
use crate::reading::{
    MEBIBYTE, MICRO, Notes, SECOND, count, drop_unsupported, flag, nanos, number, rate,
};

/// The entry in the table of formats.
pub(crate) static JSON: Format = Format {
    id: "perftest-json",
    label: "perftest, --out_json",
    versions: "4.5 (bare words, no valid JSON), 25.01 (valid JSON)",
    evidence: "published: https://github.com/linux-rdma/perftest/issues/216 (bare words); published: the \
        example in a network test for Kubernetes, a public repository (valid JSON); run here: 4.5+0.17 over \
        Soft-RoCE: rates of writes (bare words)",
    unknown: "The units, if neither the command nor the figures prove them; which end wrote it; all sizes but the last of a run over several.",
    starts: |at| starts(at.text),
    read,
    ..Format::RESULTS
};

/// Number of bytes within which `test_info` must begin.
const HEAD_BYTES: usize = 64;
/// Largest number of keys in a document.
const MOST_KEYS: usize = 200;

fn starts(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('{') else {
        return false;
    };
    let rest = rest.trim_start_matches([' ', '\t', '\r', '\n', '"']);
    rest.starts_with("test_info") && text.len() - rest.len() < HEAD_BYTES
}

type Pairs = BTreeMap<String, String>;

/// The key under which the names of further objects with results are kept.
const SIDES: &str = "results of one side";

/// The keys and values of all objects, and the number of bytes of the document; `None` if its end is missing.
fn pairs(text: &str) -> (Pairs, Option<usize>) {
    let mut pairs = Pairs::new();
    let mut depth = 0_u32;
    let (mut key, mut word) = (None, String::new());
    let mut is_quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => word.push(c),
            ':' if key.is_none() => key = Some(std::mem::take(&mut word)),
            '{' => {
                depth += 1;
                let name: String = key.take().unwrap_or_default();
                if name.trim().starts_with("results_") {
                    pairs.insert(SIDES.to_owned(), name);
                }
                word = String::new();
            }
            ',' | '}' => {
                let value = std::mem::take(&mut word);
                if let (Some(key), true) = (key.take(), pairs.len() < MOST_KEYS) {
                    pairs.insert(key.trim().to_owned(), value.trim().to_owned());
                }
                depth -= u32::from(c == '}');
                if depth == 0 {
                    return (pairs, Some(at + 1));
                }
            }
            _ if word.len() < 256 => word.push(c),
            _ => {}
        }
    }
    (pairs, None)
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let (pairs, used) = pairs(section.text);
    let used = used.ok_or("the document is cut off")?;
    let name = pairs.get("test").map_or("", String::as_str);
    let test = Test::named(name).ok_or("`test` names no test of latency or bandwidth")?;
    let command = super::command(section);
    let mut row = SizeRow {
        size: Bytes(
            pairs.get("MsgSize").and_then(|size| count(size)).ok_or("it has no `MsgSize`")?,
        ),
        samples: pairs.get("n_iterations").and_then(|n| count(n)),
        ..SizeRow::default()
    };
    if pairs.contains_key(SIDES) {
        return Err("it has results of each side, and none of both together".into());
    }
    let mut notes = Notes::default();
    if test.is_latency {
        times(&mut row, &pairs, test, command)?;
    } else {
        rates(&mut row, &pairs, command)?;
        notes.whole("the document does not say whether a client or a server wrote it");
    }
    if row.time().is_none() && row.rate.is_none() {
        return Err("nothing was measured: its figures are missing, 0, inf or nan".into());
    }
    let mut setup = super::setup(command);
    let queues = pairs.get("Number_of_qps").and_then(|n| n.parse().ok());
    setup.queues = queues.or(setup.queues);
    let result = test.outcome(section.line, vec![row], setup);
    Ok(Found { results: vec![result], ..Found::of("perftest", used, notes) })
}

/// Keys of times of single messages. These times show whether the unit is CPU cycles.
const SINGLES: [&str; 4] = ["t_min", "t_max", "percentile_99", "percentile_99.9"];

fn times(
    row: &mut SizeRow,
    pairs: &Pairs,
    test: Test<'_>,
    command: Option<&str>,
) -> Result<(), String> {
    let value = |key: &str| pairs.get(key).and_then(|value| number(value));
    let singles: Vec<f64> = SINGLES.iter().filter_map(|key| value(key)).collect();
    let a_second =
        value("t_avg").unwrap_or(0.0) * test.halves() * value("tps_average").unwrap_or(0.0);
    let are_micros = are_no_cycles(&singles)
        || agree(a_second, 1e6)
        || command.is_some_and(|command| !flag(command, &["-C", "--report-cycles"]));
    if !are_micros {
        return Err("it names no unit, and its times may be cycles of the CPU: give the command, or the table that perftest prints".into());
    }
    let time = |key: &str| value(key).and_then(|value| nanos(value, MICRO));
    row.least = time("t_min");
    row.most = time("t_max");
    row.typical = time("t_typical");
    row.mean = time("t_avg");
    row.deviation = time("t_stdev").filter(|time| time.0 > 0);
    row.p99 = time("percentile_99");
    row.p999 = time("percentile_99.9");
    drop_unsupported(row);
    Ok(())
}

fn rates(row: &mut SizeRow, pairs: &Pairs, command: Option<&str>) -> Result<(), String> {
    let value = |key: &str| pairs.get(key).and_then(|value| number(value)).unwrap_or(0.0);
    let (rate_of, messages) = (value("BW_average"), value("MsgRate") * 1e6);
    let bits = messages * row.size.0 as f64 * 8.0;
    let fits = |unit: &f64| agree(rate_of * unit, bits);
    let proven = [MEBIBYTE, SECOND].into_iter().find(fits);
    let named =
        command.map(|command| if flag(command, &["--report_gbits"]) { SECOND } else { MEBIBYTE });
    let unit = proven.or(named).ok_or(
        "it names no unit of BW_average, and MsgRate does not prove one: MiB/s and Gb/s have the same keys. Give the command, or the table that perftest prints",
    )?;
    row.rate = rate(rate_of, unit);
    row.messages = (messages > 0.0).then_some(messages);
    Ok(())
}

/// Whether two rounded figures are of the same value.
fn agree(a: f64, b: f64) -> bool {
    a > 0.0 && b > 0.0 && (a / b - 1.0).abs() < 0.05
}
