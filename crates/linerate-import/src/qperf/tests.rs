use super::*;
use crate::format::Start;
use crate::summary::{all, notes, of, results, sample};
use linerate_record::reported::Transfer;

fn text(name: &str) -> String {
    sample(&format!("qperf/{name}"))
}

fn sizes(measured: &Measured) -> &Sizes {
    match measured {
        Measured::Sizes(sizes) => sizes,
        other => panic!("{other:?}"),
    }
}

fn transfer(measured: &Measured) -> &Transfer {
    match measured {
        Measured::Transfer(transfer) => transfer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn samples_are_read_as_before() {
    insta::assert_snapshot!(all("qperf"));
}

#[test]
fn figures_are_those_of_the_text() {
    let plain = results(&text("0.4.11-plain.txt"));
    assert_eq!(transfer(&plain[0]).goodput.0, 21_200_000_000);
    assert_eq!(sizes(&plain[1]).rows[0].mean.map(|n| n.0), Some(5070));
    // Goodput is the received rate, and not the rate sent.
    assert_eq!(transfer(&plain[2]).goodput.0, 16_800_000_000);
    let wordy = results(&text("0.4.11-vv.txt"));
    let cpu = transfer(&wordy[0]).cpu.sender.unwrap();
    assert!(cpu.of == CpuOf::Machine && (cpu.total - 2.01).abs() < 1e-9);
    assert_eq!(transfer(&wordy[0]).size.map(|n| n.0), Some(65536));
    assert_eq!(notes(&text("0.4.11-vv.txt")), "");
}

#[test]
fn pings_are_halved_and_reads_are_not() {
    let trip = |name: &str| sizes(&results(&format!("{name}:\n    latency  =  2 us\n"))[0]).trip;
    for name in
        ["tcp_lat", "udp_lat", "rc_lat", "rc_rdma_write_lat", "rc_rdma_write_poll_lat", "ud_lat"]
    {
        assert_eq!(trip(name), Trip::Half, "{name}");
    }
    assert_eq!(trip("rc_rdma_read_lat"), Trip::Whole);
}

#[test]
fn rdma_tests_have_their_direction_and_operation() {
    let band = |name: &str| results(&format!("{name}:\n    bw  =  12.1 GB/sec\n")).remove(0);
    let read = band("rc_rdma_read_bw");
    let (read, write) = (transfer(&read), band("uc_rdma_write_bw"));
    assert_eq!(
        (read.direction, read.carrier, read.goodput.0),
        (Direction::Reverse, Carrier::Rdma, 96_800_000_000)
    );
    assert_eq!(transfer(&write).counted, Counted::Sender);
    let both = band("rc_bi_bw");
    assert!(sizes(&both).both && sizes(&both).rows[0].rate.is_some());
    let atomic = results("rc_fetch_add_mr:\n    msg_rate  =  2.5 M/sec\n").remove(0);
    assert_eq!(
        (sizes(&atomic).rows[0].size, sizes(&atomic).rows[0].messages),
        (Bytes(8), Some(2.5e6))
    );
}

#[test]
fn the_size_of_messages_is_said_or_refused() {
    let lat = "tcp_lat:\n    latency  =  5.07 us\n";
    assert!(notes(lat).contains("default was taken, 1 B"));
    assert_eq!(notes(&format!("$ qperf 192.0.2.1 tcp_lat\n{lat}")), "");
    assert!(of(&format!("$ qperf 192.0.2.1 -m 64 tcp_lat\n{lat}")).contains("run it with -vu"));
    assert!(of(&format!("{lat}{lat}")).contains("run it with -vu"));
    let sized = format!("{lat}    msg_size  =  64 bytes\n");
    assert_eq!(sizes(&results(&format!("{sized}{sized}"))[1]).rows[0].size, Bytes(64));
}

#[test]
fn what_is_not_understood_is_said() {
    assert!(
        notes("tcp_bw:\n    bw  =  2 GB/sec\n    new  =  1 furlong\n")
            .contains("`new  =  1 furlong`")
    );
    assert!(of("tcp_bw:\n    bw  =  2 GB\n").contains("no bandwidth"));
    assert!(of("sdp_bw:\n    bw  =  2 GB/sec\n").contains("none of ours"));
    for near in ["tcp_bw: yes\n", "tcp_bw:\nbw = 2\n", "cpu_bw:\n    bw  =  2 GB/sec\n"] {
        assert!(!(FORMAT.starts)(Start::of(near)), "{near}");
    }
}
