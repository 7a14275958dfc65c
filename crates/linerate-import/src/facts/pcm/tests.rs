use super::super::samples::{merged, of, text, words};
use super::rate;

#[test]
fn pcie_traffic_of_sockets_in_words() {
    let (_, notes) = of(&["pcm-pcie/bandwidth.txt"]);
    let words_of = words(&notes);
    assert_eq!(words_of[0], "socket 0: devices read 23.00 GB/s from memory and write 0 B/s to it");
    assert_eq!(
        words_of[1],
        "socket 1: devices read 34.00 MB/s from memory and write 1.99 GB/s to it"
    );
    assert!(
        words_of[2].contains("lines of 64 bytes") && words_of[2].contains("slice"),
        "{words_of:?}"
    );
    // Without -B, pcm-pcie counts cache lines.
    let (_, notes) = of(&["pcm-pcie/events.txt"]);
    assert_eq!(
        words(&notes)[0],
        "socket 0: devices read 1.47 GB/s from memory and write 489.22 kB/s to it"
    );
    let cut = text("pcm-pcie/events.txt").replacen("7644       0       0  ", "7644", 1);
    let (_, notes) = merged(&[&cut]);
    assert!(words(&notes)[0].starts_with("not understood: `0      23 M"), "{notes:?}");
}

#[test]
fn of_several_displays_and_of_parts_of_a_count_the_last_total_counts() {
    let one = text("pcm-pcie/events.txt");
    let later = one.replace(
        "23 M         0       0       0     7644       0       0  ",
        "46 M 0 0 0 0 0 0 (Total)\n 0 1 M 0 0 0 0 0 0 (Miss)",
    );
    let (_, notes) = merged(&[&format!("{one}\n{later}")]);
    let words = words(&notes);
    assert_eq!(words[0], "socket 0: devices read 2.94 GB/s from memory and write 0 B/s to it");
    assert_eq!(words.len(), 3, "{words:?}");
}

#[test]
fn memory_traffic_of_sockets_in_words() {
    let (_, notes) = of(&["pcm-memory/table.txt"]);
    assert_eq!(
        words(&notes),
        [
            "socket 0: memory is read at 10.40 GB/s and written at 1.04 GB/s",
            "socket 1: memory is read at 1.79 GB/s and written at 39.66 MB/s",
        ]
    );
    let newer =
        text("pcm-memory/table.txt").replace("NODE 0", "SKT  0").replace("NODE 1", "SKT  1");
    assert_eq!(words(&merged(&[&newer]).1), words(&notes));
}

#[test]
fn rates_have_units() {
    for (bytes, words) in [(999, "999 B/s"), (1_000, "1.00 kB/s"), (1_472_000_000, "1.47 GB/s")] {
        assert_eq!(rate(bytes), words);
    }
}
