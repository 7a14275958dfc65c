//! Loads of files and disks.

use linerate_judge::model::{Load, Model};
use linerate_plan::transport::FILE;

use super::{load, model, outcome};

/// A load of a file of which this share of the bytes passed the disk.
fn passed(share: f64) -> Model {
    let base = load();
    let disk_bytes = Some(base.goodput.mean / 8.0 * share);
    model(Load { transport: &FILE, disk_bytes, ..base })
}

#[test]
fn the_page_cache_carries_a_load_whose_bytes_do_not_pass_the_disk() {
    for (share, expected) in [
        (0.0, "enough"),
        (0.04, "enough"),
        (0.06, "suspect"),
        (0.49, "suspect"),
        (0.51, "clear"),
        (1.2, "clear"),
    ] {
        assert_eq!(outcome(&passed(share), "disk-page-cache"), expected, "{share}");
    }
    let unread = model(Load { transport: &FILE, ..load() });
    assert_eq!(outcome(&unread, "disk-page-cache"), "unknown", "no disk was read");
}
