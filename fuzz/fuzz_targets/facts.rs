#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_explain::{Material, explain};
use linerate_facts::Inventory;
use linerate_plan::path::{Direction, Side};
use linerate_record::reported::{Carrier, Counted, Measured, Outcome, Source, Tool, Transfer};
use linerate_units::Rate;
use linerate_import::{merge, read};

/// Longest allowed note, in bytes.
const NOTE: usize = 2_000;

fuzz_target!(|bytes: &[u8]| {
    let (Ok(parsed), Ok(repeated)) = (read(bytes), read(bytes)) else {
        return;
    };
    let mut host = Inventory::default();
    for part in parsed.parts {
        let notes = merge(&mut host, part.facts);
        assert!(notes.iter().all(|note| note.what.len() <= NOTE));
    }
    assert!(size(&host) <= 16 * 1024 + 1_000 * bytes.len());
    // The same facts merged twice, as from a file that is named twice, do not make a host larger.
    let mut twice = host.clone();
    for part in repeated.parts {
        merge(&mut twice, part.facts);
    }
    assert!(size(&twice) <= size(&host), "{host:?} {twice:?}");
    let mut material = Material { sources: vec![transfer()], near: host, ..Material::default() };
    let _ = explain(&material).remarks;
    material.far = std::mem::take(&mut material.near);
    let _ = explain(&material).remarks;
});

/// Length of all facts of a host, as debug text in bytes.
fn size(host: &Inventory) -> usize {
    format!("{host:?}").len()
}

/// A TCP transfer, so that the judge compares the facts with a rate.
fn transfer() -> Source {
    let each = |direction| {
        let one = Transfer::new(Carrier::Tcp, direction, Rate(9_400_000_000), Counted::Receiver);
        Outcome { title: String::new(), line: 1, measured: Measured::Transfer(Box::new(one)) }
    };
    Source {
        file: "a.txt".to_owned(),
        side: Some(Side::Near),
        label: "iperf3, text".to_owned(),
        tool: Tool::named("iperf3"),
        results: Direction::ALL.into_iter().map(each).collect(),
        notes: Vec::new(),
    }
}
