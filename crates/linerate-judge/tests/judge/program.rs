//! Tests of connections that other programs made, and whose programs wait although there is room: a window of their
//! own, small writes.

use linerate_facts::metric::{self as m, Metric};
use linerate_judge::model::flow;
use linerate_judge::verdict::Verdict;
use linerate_plan::path::Place;
use linerate_record::flow::Flow;

use super::flow::{ROWS, connection, download, in_play, judged, limits, table, upload};
use super::{load, model, outcome};

/// The rows of an upload, with some values replaced.
fn upload_with(others: &[(Metric, i64)]) -> Vec<(Metric, i64)> {
    let mut cells = upload(0);
    for (metric, value) in others {
        let cell = cells.iter_mut().find(|cell| cell.0.name == metric.name);
        cell.expect("it is there").1 = *value;
    }
    cells
}

/// An upload that is all in flight at each sample. `size` and `queued` are the bytes of the send buffer and those in
/// use. By the kernel's timer, the buffer limited the program for `clock` per cent of the time.
fn in_flight(size: i64, queued: i64, clock: i64) -> Flow {
    let tcp = upload_with(&[
        (m::TCP_NOTSENT, 700),
        (m::TCP_APP_LIMITED, 1),
        (m::TCP_SNDBUF_LIMITED, clock * 1000),
        (m::TCP_SND_WND, 1 << 20),
    ]);
    let mut one = connection(&tcp, 0, &[10]);
    let socket = [(m::SOCKET_SNDBUF, size), (m::SOCKET_WMEM_QUEUED, queued), (m::SOCKET_UNREAD, 0)];
    one.readings.tables[1] = table(Flow::SUBJECT, &socket);
    one.facts.buffers.tcp_wmem = Some([4096, 16_384, 4_194_304]);
    one
}

/// A flow as kernels before 4.10 report it: without timers.
fn without_clock(mut one: Flow) -> Flow {
    let new = [m::TCP_SNDBUF_LIMITED, m::TCP_RWND_LIMITED, m::TCP_SND_WND, m::TCP_BYTES_SENT];
    let new = new.map(|metric| metric.name);
    one.readings.tables[0].columns.retain(|column| !new.contains(&column.name.as_ref()));
    one
}

#[test]
fn a_window_of_the_program_is_told_from_a_send_buffer() {
    let (buffer, program) = ("send-buffer", "sender-app");
    for (size, queued, cause) in [
        // Sizes that autotuning chose: if a program finds no room, autotuning makes the buffer larger.
        (110_592, 121_224, program),
        (165_888, 121_224, program),
        (1_304_064, 976_072, program),
        (2_806_272, 2_051_872, program),
        // The maximum of autotuning, with in use: all of it, just above the threshold, in between, below the threshold.
        (4_194_304, 4_194_304, buffer),
        (4_194_304, 2_900_000, buffer),
        (4_194_304, 3_400_000, program),
        (4_194_304, 2_700_000, program),
        // Sizes that a program requested.
        (200_000, 200_000, buffer),
        (200_000, 199_999, program),
        (200_000, 143_000, buffer),
        (200_000, 144_000, program),
        (200_000, 133_400, buffer),
        (200_000, 133_300, program),
        (8_000_000, 8_100_000, buffer),
    ] {
        let one = in_flight(size, queued, 0);
        let expected = [(cause, Place::Near)];
        assert_eq!(limits(&judged(&one)), expected, "{queued} of {size}");
        let old = judged(&without_clock(one));
        assert_eq!(limits(&old), expected, "{queued} of {size}, no clock");
    }
}

#[test]
fn the_clock_of_the_send_buffer_is_believed() {
    // First a buffer that autotuning may make larger, then one of fixed size.
    let of = |size, queued, clock| limits(&judged(&in_flight(size, queued, clock)));
    assert_eq!(of(165_888, 121_224, 50), [("send-buffer", Place::Near)]);
    assert_eq!(of(165_888, 121_224, 19), [("sender-app", Place::Near)]);
    assert_eq!(of(200_000, 160_000, 1), [("send-buffer", Place::Near)]);
    assert_eq!(of(200_000, 160_000, 0), [("sender-app", Place::Near)]);
    // The buffer limits the program for some of the time: neither cause is sure.
    assert_eq!(of(165_888, 121_224, 49), []);
}

#[test]
fn without_clock_and_memory_nothing_tells_whether_there_was_room() {
    let mut one = without_clock(in_flight(200_000, 200_000, 0));
    one.readings.tables[1].columns.truncate(0);
    let verdict = judged(&one);
    assert_eq!(limits(&verdict), []);
    let rest = in_play(&verdict);
    assert!(rest.contains(&"send-buffer") && rest.contains(&"sender-app"), "{rest:?}");
}

/// The evidence and the advice of the only limit, as text.
fn words(verdict: &Verdict) -> String {
    let [limit] = &verdict.limits[..] else { panic!("{verdict:?}") };
    let advice = limit.advice.iter().map(linerate_facts::advice::Advice::text);
    let all: Vec<String> = limit.evidence.iter().cloned().chain(advice).collect();
    all.join("; ")
}

#[test]
fn no_data_is_said_only_where_nothing_stands_unsent() {
    let said = |unsent| {
        let mut one = in_flight(1_304_064, 976_072, 0);
        set(&mut one, m::TCP_NOTSENT, |_| unsent);
        words(&judged(&one))
    };
    let without = "left the connection without data in 100 %";
    assert!(said(0).contains(without));
    let some = said(700);
    assert!(
        !some.contains("without data") && some.contains("too little to send in 100 %"),
        "{some}"
    );
    assert!(some.contains("SSH"), "{some}");
}

/// Sets a column of the connection's table; `value` gets the number of the row.
fn set(one: &mut Flow, metric: Metric, value: impl Fn(i64) -> i64) {
    let columns = &mut one.readings.tables[0].columns;
    let column = columns.iter_mut().find(|column| column.name == metric.name);
    column.expect("it is there").values = (0..ROWS).map(value).collect();
}

/// A program with small writes: the second one waits 40 ms for the acknowledgement of the first, on a path of 50 us.
fn small_writes() -> Flow {
    let mut one = in_flight(4_194_304, 6_000, 0);
    for (metric, value) in [
        (m::TCP_NOTSENT, 130),
        (m::TCP_UNACKED, 1),
        (m::TCP_RTT, 21_000),
        (m::TCP_MIN_RTT, 50),
        (m::TCP_CWND, 10),
    ] {
        set(&mut one, metric, |_| value);
    }
    one
}

#[test]
fn a_small_write_that_waits_for_a_late_acknowledgement_is_nagles_algorithm() {
    let verdict = judged(&small_writes());
    assert_eq!(limits(&verdict), [("latency-nagle", Place::Near)]);
    let said = words(&verdict);
    for reported in ["TCP_NODELAY", "TCP_QUICKACK", "100 % of the samples", "21 ms"] {
        assert!(said.contains(reported), "{said}");
    }
    let nagle = [("latency-nagle", Place::Near)];
    let program = [("sender-app", Place::Near)];
    // Values just inside and just outside of each threshold.
    for (metric, named, silent) in [
        (m::TCP_NOTSENT, 1, 0),
        (m::TCP_NOTSENT, 1447, 1448),
        (m::TCP_UNACKED, 1, 2),
        (m::TCP_CWND, 2, 1),
        (m::TCP_RTT, 10_050, 10_049),
    ] {
        for (value, expected) in [(named, nagle), (silent, program)] {
            let mut one = small_writes();
            set(&mut one, metric, |_| value);
            assert_eq!(limits(&judged(&one)), expected, "{} {value}", metric.name);
        }
    }
    // On a long path, the acknowledgement is late by less than a round trip.
    for (least, expected) in [(10_500, nagle), (10_501, program)] {
        let mut one = small_writes();
        set(&mut one, m::TCP_MIN_RTT, |_| least);
        assert_eq!(limits(&judged(&one)), expected, "{least}");
    }
}

#[test]
fn what_the_window_has_no_room_for_does_not_wait_for_an_acknowledgement() {
    // By the kernel's counters, 1000 bytes are in flight.
    let at = |window| {
        let mut one = small_writes();
        set(&mut one, m::TCP_BYTES_SENT, |row| row * 1000 + 1000);
        set(&mut one, m::TCP_BYTES_ACKED, |row| row * 1000);
        set(&mut one, m::TCP_SND_WND, |_| window);
        judged(&one)
    };
    assert_eq!(limits(&at(1130)), [("latency-nagle", Place::Near)]);
    assert_ne!(limits(&at(1129)), [("latency-nagle", Place::Near)]);
    let closed = at(1100);
    assert!(in_play(&closed).contains(&"receive-window"), "{closed:?}");
}

#[test]
fn nagles_algorithm_is_named_where_it_holds_half_of_the_samples() {
    let of = |rows: i64| {
        let mut one = small_writes();
        set(&mut one, m::TCP_NOTSENT, |row| if row < rows { 130 } else { 0 });
        let model = flow(&one).expect("two rows");
        (outcome(&model, "latency-nagle"), limits(&judged(&one)))
    };
    let (nagle, program) = (("latency-nagle", Place::Near), ("sender-app", Place::Near));
    assert_eq!(of(3), ("clear", vec![program]));
    assert_eq!(of(4), ("suspect", vec![program]));
    assert_eq!(of(9), ("suspect", vec![program]));
    assert_eq!(of(11), ("enough", vec![nagle]));
}

#[test]
fn a_corked_write_is_the_programs_doing() {
    let of = |unacked| {
        let mut one = small_writes();
        set(&mut one, m::TCP_UNACKED, |_| unacked);
        set(&mut one, m::TCP_RTT, |_| 60);
        judged(&one)
    };
    let corked = of(0);
    assert_eq!(limits(&corked), [("sender-app", Place::Near)]);
    let said = words(&corked);
    assert!(said.contains("TCP_CORK or MSG_MORE delays it"), "{said}");
    assert!(said.contains("turn TCP_CORK off"), "{said}");
    assert!(!words(&of(1)).contains("TCP_CORK"));
}

#[test]
fn the_receiving_end_cannot_tell_and_a_run_has_none() {
    let verdict = judged(&connection(&download(350_000), 0, &[10]));
    assert!(in_play(&verdict).contains(&"latency-nagle"));
    assert_eq!(outcome(&model(load()), "latency-nagle"), "clear");
}
