#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_judge::model::derive;
use linerate_record::frame;
use linerate_judge::verdict::judge;

/// Turns the bytes into frames with valid lengths and checksums: random mutations hardly ever make one valid. In the
/// input, each frame begins with its kind and its length.
fn framed(mut bytes: &[u8]) -> Vec<u8> {
    let mut file = frame::header();
    while let Some((head, rest)) = bytes.split_first_chunk::<5>() {
        let [kind, length @ ..] = *head;
        let (payload, rest) = rest.split_at(rest.len().min(u32::from_le_bytes(length) as usize));
        bytes = rest;
        let length = (payload.len() as u32).to_le_bytes();
        let mut sum = crc32fast::Hasher::new();
        for part in [&length[..], &[kind], payload] {
            sum.update(part);
        }
        file.extend(length);
        file.extend(sum.finalize().to_le_bytes());
        file.push(kind);
        file.extend(payload);
    }
    file
}

fuzz_target!(|bytes: &[u8]| {
    // The bytes are read as a file, and as the frames of a file: most inputs would fail at the file header.
    for file in [bytes, &framed(bytes)] {
        if let Ok((record, _)) = frame::decode(file) {
            let _ = judge(&derive(&record));
        }
    }
});
