//! `linerate lat` with `linerate serve` on this machine.

use super::*;

/// Checks that round trips are timed for all messages that were due, answered or not, within the measured time. A slow
/// machine may end that time late.
fn due_is_timed(reported: &Value) {
    let number = |key: &str| reported[key].as_f64().unwrap();
    let due = number("measured_ns") / number("interval_ns");
    assert!(number("samples") >= due / 2.0, "{due}: {reported}");
    let requested = number("requested_per_sec") * number("interval_ns");
    assert!((requested / 1e9 - 1.0).abs() < 1e-6, "{reported}");
    assert_eq!(reported["unanswered"], 0);
}

/// Options of `lat`: a closed loop waits for answers, an open loop keeps to a schedule; a busy one polls instead of
/// sleeping.
const CLOSED: [&str; 3] = ["lat", "-t", "1s"];
const CLOSED_BUSY: [&str; 4] = ["lat", "-t", "1s", "--busy-poll"];
const OPEN: [&str; 5] = ["lat", "-t", "1s", "--rate", "500"];
const OPEN_BUSY: [&str; 6] = ["lat", "-t", "1s", "--rate", "500", "--busy-poll"];
/// Time between two messages of the open loops, in nanoseconds.
const INTERVAL: u64 = 2_000_000;

/// Checks the document of round trips over a TCP connection.
fn are_timed(far: &Far, args: &[&str], interval: Option<u64>, busy: bool) {
    let Some(reported) = far.json(args, "lat") else {
        return;
    };
    assert_eq!(
        (&reported["interval_ns"], &reported["busy_poll"]),
        (&interval.into(), &busy.into())
    );
    let samples = reported["samples"].as_u64().unwrap();
    match interval {
        None => assert!(samples > 0, "{reported}"),
        Some(_) => due_is_timed(&reported),
    }
    let histogram = reported["histogram"].as_array().unwrap();
    let counted: u64 = histogram.iter().map(|bin| bin[1].as_u64().unwrap()).sum();
    assert_eq!(counted, samples);
}

#[test]
fn lat_times_round_trips_closed_and_open_blocking_and_busy() {
    let far = Far::start();
    are_timed(&far, &CLOSED, None, false);
    let large = [&OPEN_BUSY[..], &["--size", "100KiB"]].concat();
    are_timed(&far, &large, Some(INTERVAL), true);
    let beside = [&CLOSED[..], &["--beside", "forward"]].concat();
    let Some(reported) = far.json(&beside, "lat") else {
        return;
    };
    assert!(reported["beside"][0]["goodput_bps"].as_u64().unwrap() > 0, "{reported}");
}

/// Checks the document of round trips by datagrams.
fn are_timed_by_datagrams(far: &Far, args: &[&str]) {
    let Some(reported) = far.json(&[args, &["--engine", "udp"]].concat(), "lat") else {
        return;
    };
    assert_eq!(reported["engine"], "udp");
    let [samples, lost] = ["samples", "lost"].map(|key| reported[key].as_u64().unwrap());
    assert!(samples > 10 && lost <= samples, "{reported}");
    // A median needs ten samples on either side of it.
    let p50 = |of: &Value| of["percentiles"][0]["ns"].as_u64();
    assert!(p50(&reported["unread"]) < p50(&reported) || samples < 20, "{reported}");
    let histogram = reported["unread"]["histogram"].as_array().unwrap();
    let counted: u64 = histogram.iter().map(|bin| bin[1].as_u64().unwrap()).sum();
    assert_eq!(counted, samples - reported["unanswered"].as_u64().unwrap());
}

#[test]
fn lat_by_datagrams_tells_what_was_lost_and_how_long_answers_were_unread() {
    let far = Far::start();
    are_timed_by_datagrams(&far, &OPEN);
    are_timed_by_datagrams(&far, &CLOSED_BUSY);
    let beside = ["--beside", "forward", "-P", "2", "--pacing", "4Mbit/s"];
    let args = [&CLOSED[..], &beside, &["--engine", "udp"]].concat();
    let Some(reported) = far.json(&args, "lat") else {
        return;
    };
    let load = &reported["beside"][0];
    assert_eq!((&load["streams"], &load["pacing_bps"]), (&2.into(), &4_000_000.into()));
    assert!(load["goodput_bps"].as_u64().unwrap() > 0, "{reported}");
}

/// Round trips during which the server is stopped for the time `stall`, beginning `after` they started.
fn stalled(far: &Far, args: &[&str], after: Duration, stall: Duration) -> Result<Value, String> {
    let args = [&["lat", "-t", "4s", "--json"], args].concat();
    let mut run = Started::new(&mut far.command(&args));
    run.until("round trips on the idle path");
    thread::sleep(after);
    far.server.signal(Signal::STOP);
    thread::sleep(stall);
    far.server.signal(Signal::CONT);
    let output = run.end();
    let reported = serde_json::from_slice(&output.stdout).unwrap_or_default();
    // If the requested rate was not reached, the exit code is 3 too.
    went_as_requested(&output, &reported).map(|()| reported)
}

/// The 99.9th percentile of round trips, in nanoseconds.
fn rare(reported: &Value) -> f64 {
    let percentiles = reported["percentiles"].as_array().unwrap();
    let found = percentiles.iter().find(|p| p["percent"] == 99.9);
    found.unwrap()["ns"].as_f64().unwrap()
}

/// Whether these percentiles show a stall in the open loop and not in the closed loop. If the machine itself stood
/// still, both may show it.
fn shows_in_open_alone([open, closed]: [f64; 2], stall: Duration) -> Result<(), String> {
    let half = stall.as_nanos() as f64 / 2.0;
    let shows = open > half && closed < half;
    shows.then_some(()).ok_or_else(|| format!("open {open}, closed {closed} ns"))
}

/// Planted: a stall that both loops show, and one that neither shows.
#[test]
fn a_stall_that_both_loops_or_none_show_is_refused() {
    let shows = |percentiles| shows_in_open_alone(percentiles, Duration::from_millis(200));
    assert_eq!(shows([190e6, 1e5]), Ok(()));
    assert!(shows([190e6, 190e6]).is_err());
    assert!(shows([1e5, 1e5]).is_err());
}

#[test]
fn lat_times_connections_and_tells_how_many_are_made_in_a_second() {
    let far = Far::start();
    let args = ["lat", "-t", "1s", "--engine", "connect"];
    let small = [&args[..], &["--size", "1B"]].concat();
    let Some(reported) = far.json(&small, "lat") else {
        return;
    };
    let number = |key: &str| reported[key].as_f64().unwrap();
    assert!(number("samples") > 10.0 && number("answered_per_sec") > 10.0);
    assert_eq!((&reported["lost"], &reported["size_bytes"]), (&0.into(), &1.into()));
    let page = String::from_utf8(far.run(&args).stdout).unwrap();
    assert!(page.contains("connections with 64 B there and back"), "{page}");
    assert!(page.contains("connections a second, one after another"), "{page}");
    for (more, why) in [
        (&["--beside", "forward"][..], "cannot carry a load"),
        (&["--rate", "100"], "one after another"),
        (&["--size", "1MiB"], "16 KiB"),
    ] {
        let output = far.run(&[&args[..], more].concat());
        let reported = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && reported.contains(why), "{reported}");
    }
}

mod long {
    use super::*;

    #[test]
    fn the_other_loops_time_round_trips_as_well() {
        let far = Far::start();
        are_timed(&far, &CLOSED_BUSY, None, true);
        are_timed(&far, &OPEN, Some(INTERVAL), false);
        are_timed_by_datagrams(&far, &CLOSED);
        are_timed_by_datagrams(&far, &[&OPEN_BUSY[..], &["--size", "1KiB"]].concat());
    }

    #[test]
    fn a_stall_that_covers_the_end_is_seen_in_either_loop() {
        // The washout of 1 s and the measured time of 4 s end in the middle of the stall.
        let (after, stall) = (Duration::from_secs(4), Duration::from_millis(1500));
        let far = Far::start();
        for args in [&["--rate", "5000"][..], &[]] {
            let reported = ask(&far.turn, || stalled(&far, args, after, stall));
            let Some(reported) = reported else {
                return;
            };
            let most = reported["most_ns"].as_f64().unwrap();
            assert!(most > stall.as_nanos() as f64 / 2.0, "{args:?}: {reported}");
        }
    }

    #[test]
    fn an_open_loop_shows_a_stall_of_the_server_that_a_closed_one_hides() {
        let far = Far::start();
        let stall = Duration::from_millis(200);
        // The stall begins in the middle of the time that counts.
        let after = Duration::from_secs(3);
        ask(&far.turn, || {
            let open = stalled(&far, &["--rate", "5000"], after, stall)?;
            let closed = stalled(&far, &[], after, stall)?;
            shows_in_open_alone([rare(&open), rare(&closed)], stall)
        });
    }

    #[test]
    fn a_rate_that_is_not_achieved_is_told_and_what_was_due_is_late() {
        let far = Far::start();
        let args = ["lat", "-t", "1s", "--rate", "1000000", "--size", "16KiB"];
        let output = far.run(&[&args[..], &["--json"]].concat());
        assert_eq!(output.status.code(), Some(3));
        let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
        fits("lat", &reported);
        let number = |key: &str| reported[key].as_f64().unwrap();
        assert_eq!(reported["complete"], false);
        let due = number("measured_ns") / number("interval_ns");
        assert!(number("samples") >= due / 2.0, "{reported}");
        // Possibly none of them is answered, because messages that were due in the washout are sent first.
        assert!(number("unanswered") > 0.0 && number("unanswered") <= number("samples"));
        assert!(number("answered_per_sec") < number("requested_per_sec"));
        let why = reported["unknown"].to_string();
        assert!(why.contains("1000000 a second were requested"), "{why}");
        let page = String::from_utf8(far.run(&args).stdout).unwrap();
        assert!(page.contains("1000000 a second requested"), "{page}");
    }
}
