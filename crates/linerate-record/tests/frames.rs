//! The record's file format, tested through the public interface: written data is read back, damage costs only the
//! damaged frames, and no file makes the reader panic.

#![expect(clippy::disallowed_methods, reason = "the kept records are files")]
#![expect(clippy::unwrap_used, reason = "clippy does not recognise helpers of tests")]

mod sample;

use std::ops::Range;

use linerate_record::frame::{
    Cut, Damage, Frame, FrameError, decode, encode, encode_all, header, values,
};
use linerate_record::{FORMAT, Record};
use linerate_units::Nanos;
use proptest::prelude::*;

fn small() -> Record {
    sample::record(1, 4, 7)
}

/// A frame of `kind` with any payload and a correct checksum.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_le_bytes();
    let rest = [&[kind], payload].concat();
    let crc = crc32fast::hash(&[&length[..], &rest].concat()).to_le_bytes();
    [&length[..], &crc, &rest].concat()
}

/// The place where each frame of `record` begins, and the end of the file.
fn borders(record: &Record) -> Vec<usize> {
    let frames = std::iter::once(Frame::Start(&record.start))
        .chain(record.hosts.iter().map(Frame::Host))
        .chain(record.sets.iter().map(Frame::Set))
        .chain(record.trials.iter().map(Frame::Trial))
        .chain(record.steps.iter().map(Frame::Step))
        .chain(record.end.iter().map(Frame::End));
    let mut at = vec![header().len()];
    for frame in frames {
        at.push(at[at.len() - 1] + encode(&frame).expect("whole tables").len());
    }
    at
}

/// The first damaged place.
fn first(damage: Option<Damage>) -> Option<Cut> {
    damage?.cuts.into_iter().next()
}

/// The number of frames of a record.
fn frames_of(record: &Record) -> usize {
    let lists = [record.hosts.len(), record.sets.len(), record.trials.len()];
    1 + lists.iter().sum::<usize>() + record.steps.len() + usize::from(record.end.is_some())
}

/// The first `frames` frames of `record`.
fn front(record: &Record, frames: usize) -> Record {
    let mut left = frames - 1;
    let mut take = |all: usize| {
        let n = all.min(left);
        left -= n;
        n
    };
    Record {
        start: record.start.clone(),
        hosts: record.hosts[..take(record.hosts.len())].to_vec(),
        sets: record.sets[..take(record.sets.len())].to_vec(),
        trials: record.trials[..take(record.trials.len())].to_vec(),
        steps: record.steps[..take(record.steps.len())].to_vec(),
        imported: None,
        end: (take(1) == 1).then(|| record.end.clone()).flatten(),
    }
}

#[test]
fn a_whole_record_comes_back_without_damage() {
    let mut record = small();
    record.steps[0].took = Nanos(7);
    let bytes = encode_all(&record).unwrap();
    assert_eq!(decode(&bytes), Ok((record, None)));
}

#[test]
fn cut_at_any_byte_loses_the_frame_it_is_in_and_says_so() {
    let record = small();
    let bytes = encode_all(&record).unwrap();
    let borders = borders(&record);
    assert_eq!(borders.last(), Some(&bytes.len()));
    for length in 0..bytes.len() {
        let whole = borders.iter().filter(|b| **b <= length).count();
        match decode(&bytes[..length]) {
            Err(FrameError::NotARecord) => assert_eq!(whole, 0),
            Err(FrameError::NoStart(cut)) => {
                assert_eq!((whole, cut.at), (1, borders[0]));
            }
            Err(other) => panic!("{other} at {length}"),
            Ok((read, damage)) => {
                assert_eq!(read, front(&record, whole - 1));
                let border = borders[whole - 1];
                let cut = first(damage).map(|c| (c.at, c.lost));
                let lost = length - border;
                assert_eq!(cut, (lost > 0).then_some((border, lost)));
            }
        }
    }
}

#[test]
fn a_flip_in_any_byte_costs_the_frame_it_is_in() {
    flips_are_noticed(|at| at % 8..at % 8 + 1);
}

mod long {
    #[test]
    fn a_flip_of_any_bit_costs_the_frame_it_is_in() {
        super::flips_are_noticed(|_| 0..8);
    }
}

/// Flips `bits` of each byte of a record, one at a time, and checks that exactly the frame with that byte is lost.
fn flips_are_noticed(bits: impl Fn(usize) -> Range<usize>) {
    let record = small();
    let mut bytes = encode_all(&record).unwrap();
    let borders = borders(&record);
    for at in 0..bytes.len() {
        for bit in bits(at) {
            bytes[at] ^= 1 << bit;
            let before = borders.iter().filter(|b| **b <= at).count();
            match decode(&bytes) {
                Ok((read, damage)) => {
                    let damage = damage.unwrap();
                    // Only the frame with this byte is lost, even if the byte is part of its length.
                    assert_eq!(damage.cuts.len(), 1, "{damage}");
                    let cut = &damage.cuts[0];
                    let lost = borders[before] - borders[before - 1];
                    assert_eq!((cut.at, cut.lost), (borders[before - 1], lost));
                    assert_eq!(frames_of(&read) + 1, borders.len() - 1);
                }
                Err(FrameError::NotARecord) => assert!(at < 8),
                Err(FrameError::UnknownFormat { .. }) => assert!((8..12).contains(&at)),
                Err(FrameError::NoStart(cut)) => assert_eq!((before, cut.at), (1, 12)),
                Err(other) => panic!("{other}"),
            }
            bytes[at] ^= 1 << bit;
        }
    }
}

#[test]
fn two_damaged_places_are_both_told() {
    let record = small();
    let mut bytes = encode_all(&record).unwrap();
    let borders = borders(&record);
    let [one, other] = [1, borders.len() - 3];
    for frame in [one, other] {
        bytes[borders[frame] + 20] ^= 4;
    }
    let (read, damage) = decode(&bytes).unwrap();
    let damage = damage.unwrap();
    let at: Vec<usize> = damage.cuts.iter().map(|cut| cut.at).collect();
    assert_eq!(at, [borders[one], borders[other]]);
    assert_eq!(frames_of(&read), borders.len() - 3);
    assert!(read.end.is_some(), "{damage}");
}

#[test]
fn the_search_for_a_frame_among_claims_of_frames_ends() {
    let record = small();
    let start = encode(&Frame::Start(&record.start)).unwrap();
    let mut bytes = [header(), start].concat();
    // Every ten bytes, what looks like a frame of 256 KiB begins.
    for _ in 0..60_000 {
        bytes.extend([0, 0, 4, 0, 1, 2, 3, 4, 5, 0xa0]);
    }
    let (_, damage) = decode(&bytes).unwrap();
    assert_eq!(damage.unwrap().cuts.len(), 1);
}

#[test]
fn garbage_behind_a_record_costs_nothing_but_itself() {
    let record = small();
    let mut bytes = encode_all(&record).unwrap();
    let length = bytes.len();
    bytes.extend([0x5a; 77]);
    let (read, damage) = decode(&bytes).unwrap();
    assert_eq!(read, record);
    let damage = damage.unwrap();
    assert_eq!(damage.cuts.first().map(|c| (c.at, c.lost)), Some((length, 77)));
    assert!(damage.to_string().contains("77 bytes"), "{damage}");
}

#[test]
fn frames_of_an_unknown_kind_are_skipped_and_counted() {
    let record = small();
    let bytes = encode_all(&record).unwrap();
    let border = borders(&record)[2];
    let newer = [&bytes[..border], &frame(200, b"from the future"), &bytes[border..]].concat();
    let skipped = Damage { skipped: 1, cuts: Vec::new() };
    assert_eq!(decode(&newer), Ok((record, Some(skipped))));
}

#[test]
fn the_start_is_read_without_what_follows_it() {
    let record = small();
    let bytes = encode_all(&record).unwrap();
    let end = borders(&record)[1];
    let start = linerate_record::frame::start;
    assert_eq!(start(&bytes[..end]), Ok(record.start));
    let cut = start(&bytes[..end - 1]);
    assert!(matches!(cut, Err(FrameError::NoStart(_))), "{cut:?}");
}

#[test]
fn a_newer_format_is_refused_by_its_number() {
    let mut bytes = encode_all(&small()).unwrap();
    bytes[8..12].copy_from_slice(&(FORMAT + 1).to_le_bytes());
    let error = decode(&bytes).unwrap_err();
    assert_eq!(error, FrameError::UnknownFormat { found: FORMAT + 1 });
    assert!(error.to_string().contains(&(FORMAT + 1).to_string()));
}

#[test]
fn a_second_start_is_passed_over() {
    let record = small();
    let start = encode(&Frame::Start(&record.start)).unwrap();
    let bytes = [header(), start.clone(), start].concat();
    let (_, damage) = decode(&bytes).unwrap();
    let cut = first(damage).unwrap();
    assert!(cut.what.contains("second start"), "{cut}");
}

#[test]
fn a_column_of_another_length_than_its_times_is_not_written() {
    let mut record = small();
    record.steps[1].ends[0].tables[0].columns[0].values.pop();
    assert!(matches!(encode_all(&record), Err(FrameError::Ragged { .. })));
}

#[test]
fn a_claimed_length_allocates_nothing() {
    let record = small();
    let start = encode(&Frame::Start(&record.start)).unwrap();
    // CBOR heads that claim 2^62 bytes, list items, map entries or bytes of text.
    for major in [0x5b, 0x9b, 0xbb, 0x7b] {
        let payload = [&[major][..], &(1_u64 << 62).to_be_bytes(), b"x"].concat();
        for kind in 2..=6 {
            let bytes = [header(), start.clone(), frame(kind, &payload)].concat();
            let (_, damage) = decode(&bytes).unwrap();
            assert!(first(damage).is_some());
        }
    }
}

#[test]
fn deep_nesting_is_refused() {
    let record = small();
    let start = encode(&Frame::Start(&record.start)).unwrap();
    let bytes = [header(), start, frame(5, &vec![0x81; 100_000])].concat();
    let (_, damage) = decode(&bytes).unwrap();
    assert!(first(damage).is_some());
}

#[test]
fn readings_take_less_than_two_bytes_a_value() {
    let record = sample::record(8, 600, 11);
    let count: u64 = record.steps.iter().map(values).sum();
    let bytes = encode_all(&record).unwrap().len() as u64;
    assert!(count > 400_000, "{count}");
    assert!(bytes < count * 2, "{bytes} bytes for {count} values");
}

/// If LINERATE_WRITE_GOLDEN is set, this test first writes the file: only for a format that was never released.
#[test]
fn a_record_of_format_1_is_read_for_ever() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/records/format-1.lnr");
    let expected = sample::record(2, 12, 1);
    if std::env::var_os("LINERATE_WRITE_GOLDEN").is_some() {
        std::fs::write(path, encode_all(&expected).unwrap()).unwrap();
    }
    let golden = std::fs::read(path).unwrap();
    // `assert!` and not `assert_eq!`, which would print both whole records.
    assert!(decode(&golden) == Ok((expected, None)), "the golden file reads differently");
}

proptest! {
    #[test]
    fn records_of_any_shape_come_back(streams in 0..4_u32, rows in 0..40_usize, seed: u64) {
        let record = sample::record(streams, rows, seed);
        let bytes = encode_all(&record).unwrap();
        prop_assert_eq!(decode(&bytes), Ok((record, None)));
    }

    #[test]
    fn any_values_come_back(
        at in prop::collection::vec(any::<u64>(), 0..20),
        values in prop::collection::vec(any::<i64>(), 20),
    ) {
        let mut record = small();
        let table = &mut record.steps[1].ends[0].tables[0];
        table.columns[0].values = values[..at.len()].to_vec();
        table.columns[1].values = values[20 - at.len()..].to_vec();
        table.at = at;
        let bytes = encode_all(&record).unwrap();
        prop_assert_eq!(decode(&bytes), Ok((record, None)));
    }

    #[test]
    fn hostile_payloads_with_right_checksums_are_errors_in_words(
        kind in 0..8_u8,
        payload in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let record = small();
        let start = encode(&Frame::Start(&record.start)).unwrap();
        let bytes = [header(), start, frame(kind, &payload)].concat();
        let (read, damage) = decode(&bytes).unwrap();
        prop_assert_eq!(read.start, record.start);
        if let Some(Cut { at, lost, .. }) = first(damage) {
            prop_assert_eq!(at + lost, bytes.len());
        }
    }

    #[test]
    fn edited_steps_with_right_checksums_do_no_harm(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let record = small();
        let start = encode(&Frame::Start(&record.start)).unwrap();
        let mut payload = encode(&Frame::Step(&record.steps[1])).unwrap()[9..].to_vec();
        for (at, byte) in edits {
            let at = at.index(payload.len());
            payload[at] = byte;
        }
        let bytes = [header(), start, frame(5, &payload)].concat();
        let (read, _) = decode(&bytes).unwrap();
        for table in read.steps.iter().flat_map(|s| &s.ends).flat_map(|e| &e.tables) {
            prop_assert!(table.columns.iter().all(|c| c.values.len() == table.at.len()));
        }
    }
}
