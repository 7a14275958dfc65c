#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_explain::{Material, explain};
use linerate_plan::path::Side;
use linerate_record::reported::{Measured, Outcome, Source};
use linerate_import::read;

/// Longest allowed note, in bytes.
const NOTE: usize = 2_000;
/// Longest allowed text of a remark, in bytes.
const REMARK: usize = 4_000;
/// Most notes that are allowed for one output.
const NOTES: usize = 50;

fuzz_target!(|bytes: &[u8]| {
    let Ok(parsed) = read(bytes) else { return };
    let lines = 1 + bytes.iter().filter(|b| **b == b'\n').count() as u64;
    let mut material = Material {
        claims: CLAIMS.iter().filter_map(|claim| claim.parse().ok()).collect(),
        ..Material::default()
    };
    assert_eq!(material.claims.len(), CLAIMS.len());
    assert!(parsed.notes.len() <= NOTES);
    for (i, part) in parsed.parts.into_iter().enumerate() {
        assert!(part.line <= lines && part.notes.len() <= NOTES);
        assert!(part.notes.iter().all(|note| note.what.len() <= NOTE));
        assert!(
            part.notes.iter().all(|note| note.line.is_none_or(|line| (1..=lines).contains(&line)))
        );
        part.results.iter().for_each(is_sound);
        keeps(&part.results, bytes.len());
        material.sources.push(Source {
            file: "a.txt".to_owned(),
            side: Some([Side::Near, Side::Far][i % 2]),
            label: part.format.label.to_owned(),
            tool: part.tool,
            results: part.results,
            notes: part.notes,
        });
    }
    let explained = explain(&material);
    for remark in &explained.remarks {
        let proof: usize = remark.finding.proof.iter().map(String::len).sum();
        assert!(remark.finding.what.len() + proof <= REMARK, "{remark:?}");
    }
});

const CLAIMS: [&str; 5] = [
    "goodput>=20Gbit/s",
    "latency<=2us",
    "before.latency=6us",
    "ceiling=3.2GB/s",
    "transport=rdma",
];

/// What a record keeps of the results is limited by the size of the input, and decodes to the same results.
fn keeps(results: &Vec<Outcome>, input: usize) {
    let mut kept = Vec::new();
    ciborium::into_writer(results, &mut kept).expect("results are written");
    assert!(kept.len() <= 16 * 1024 + 1_000 * input);
    let repeated: Vec<Outcome> = ciborium::from_reader(&kept[..]).expect("results are read");
    assert_eq!(&repeated, results);
}

/// Checks that every figure is finite and not below zero.
fn is_sound(outcome: &Outcome) {
    let sound = |figure: f64| assert!(figure.is_finite() && figure >= 0.0, "{outcome:?}");
    match &outcome.measured {
        Measured::Counters(_) | Measured::Hops(_) => {}
        Measured::Cpus(cpus) => cpus.iter().for_each(|cpu| {
            sound(cpu.busy);
            sound(cpu.interrupts);
        }),
        Measured::Transfer(one) => {
            let single = [one.seconds, one.tick, one.messages];
            single.into_iter().flatten().for_each(sound);
            one.ticks.iter().chain(&one.each).copied().for_each(sound);
            let cpus = [one.cpu.sender, one.cpu.receiver];
            cpus.into_iter().flatten().for_each(|cpu| sound(cpu.total));
        }
        Measured::Sizes(sizes) => {
            assert!(!sizes.rows.is_empty(), "{outcome:?}");
            sizes.rows.iter().filter_map(|row| row.messages).for_each(sound);
        }
        Measured::Disk(disk) => {
            for row in &disk.rows {
                let known = [Some(row.bytes_per_sec), row.operations, row.seconds];
                known.into_iter().flatten().for_each(sound);
            }
        }
    }
}
