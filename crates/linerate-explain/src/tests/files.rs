//! Tests of the rules about disks, files and their directions.

use super::*;

#[test]
fn the_network_is_cleared_in_the_slow_direction_only_if_it_carries_more_there() {
    assert!(has("direction-cleared", home(375.0, &SWEEP), &[]));
    assert!(!has("direction-cleared", home(375.0, &[(1, 3.73)]), &[]), "TCP is as slow");
    assert!(!has("direction-cleared", home(1200.0, &SWEEP), &[]), "not half as fast");
    let reverse = remarks(home(375.0, &SWEEP), &[]);
    let words = &reverse.iter().find(|(id, _)| *id == "direction-cleared").unwrap().1;
    assert!(words.contains("from client to server"), "{words}");
}

#[test]
fn a_copy_is_compared_with_the_row_of_its_direction() {
    let with = |megabytes: f64| {
        let mut rows = vec![file(Does::Write, 375.0), file(Does::Read, 2201.0)];
        rows.push(DiskRow::new(Access::Copy, Does::Write, megabytes * 1e6));
        vec![source(Side::Near, vec![disk(rows)])]
    };
    assert!(has("copy-above-row", with(562.0), &[]));
    assert!(!has("copy-above-row", with(380.0), &[]));
    // The other host reads faster in that direction, but the row of the host that copies counts.
    let beside = |megabytes: f64| {
        let mut sources = with(megabytes);
        sources.push(source(Side::Far, vec![disk(vec![file(Does::Read, 718.0)])]));
        sources
    };
    assert!(has("copy-above-row", beside(562.0), &[]));
    assert!(!has("copy-above-row", beside(380.0), &[]));
}

#[test]
fn operations_in_flight_are_counted_by_their_time() {
    let with = |micros: u64, at_disk: u64| {
        let mut row = file(Does::Read, 400.0);
        (row.depth, row.operations) = (Some(32), Some(100_000.0));
        row.mean = Some(Nanos::from_micros(micros));
        (row.seconds, row.at_disk) = (Some(10.0), Some(Bytes(at_disk)));
        vec![source(Side::Near, vec![disk(vec![row])])]
    };
    assert!(has("queue-depth", with(100, 4_000_000_000), &[]));
    assert!(!has("queue-depth", with(310, 4_000_000_000), &[]));
    assert!(has("disk-page-cache", with(310, 100_000_000), &[]));
    assert!(!has("disk-page-cache", with(310, 4_000_000_000), &[]));
}

#[test]
fn a_copy_of_unknown_direction_is_beside_the_rows_of_both() {
    let with = |megabytes: f64| {
        let mut sources = home(375.0, &SWEEP);
        let copy = DiskRow::new(Access::Copy, Does::Mix, megabytes * 1e6);
        sources.push(source(Side::Near, vec![disk(vec![copy])]));
        sources
    };
    let evidence = |megabytes: f64| {
        let material = Material { sources: with(megabytes), ..Material::default() };
        let found = explain(&material).remarks.into_iter();
        let copy = found.into_iter().find(|remark| remark.finding.id == "copy-above-row");
        copy.map_or(String::new(), |remark| remark.finding.proof.concat())
    };
    let (slow, fast) = (evidence(562.0), evidence(1012.0));
    assert!(slow.contains("375 MB/s") && !slow.contains("718 MB/s"), "{slow}");
    assert!(fast.contains("at the server has 5.74 Gb/s (718 MB/s)"), "{fast}");
    assert!(!has("copy-above-row", with(400.0), &[]));
}

#[test]
fn disks_of_the_host_itself_say_nothing_of_the_path() {
    let with = |target: &str, at_disk: Option<Bytes>| {
        let mut rows = vec![file(Does::Read, 3000.0), file(Does::Write, 500.0)];
        rows[0].at_disk = at_disk;
        let own = Measured::Disk(Disk { target: target.to_owned(), rows, ..Disk::default() });
        near(vec![own, tcp(1, 18.0)])
    };
    let claim = ["goodput>=20Gbit/s"];
    assert!(has("direction-cleared", with("Z:", None), &[]));
    for (target, at_disk) in [("/dev/nvme0n1", None), ("", Some(Bytes(1)))] {
        assert!(!has("direction-cleared", with(target, at_disk), &[]));
        let all = remarks(with(target, at_disk), &claim);
        let headline = all.iter().find(|(id, _)| *id == "claim-not-reached").unwrap();
        assert!(headline.1.starts_with("no figure reaches"), "{headline:?}");
    }
    let alone = vec![with("/dev/nvme0n1", None).remove(0)];
    let disk = alone.into_iter().map(|mut one| {
        one.results.pop();
        one
    });
    assert!(remarks(disk.collect(), &claim).iter().any(|(_, what)| what.contains("holds")));
}

#[test]
fn bytes_that_bypass_the_cache_are_not_said_to_be_in_it() {
    let with = |direct: Option<bool>| {
        let mut row = file(Does::Read, 400.0);
        (row.seconds, row.at_disk) = (Some(10.0), Some(Bytes(100_000_000)));
        near(vec![Measured::Disk(Disk { direct, rows: vec![row], ..Disk::default() })])
    };
    assert!(
        has("disk-page-cache", with(None), &[]) && has("disk-page-cache", with(Some(false)), &[])
    );
    assert!(!has("disk-page-cache", with(Some(true)), &[]));
}
