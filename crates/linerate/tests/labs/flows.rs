//! `linerate flows` on transfers of other programs, across the lab.

use linerate_test::program::{Outcome, outcome_of};
use linerate_test::{Turn, ask, has, turn};
use serde_json::Value;
use tempfile::TempDir;

use crate::disturbed::is_disturbed;
use crate::lab;
use crate::schema::fits;

/// Serves one file, so large that its transfer outlasts the observation.
const SERVE: &str =
    "truncate -s 20G \"$HOME/file\"; cd \"$HOME\"; exec python3 -m http.server 8000";

/// The document of `flows` on near for a transfer between near and far, which must have these limits. Repeats the
/// observation if CPUs were taken away meanwhile, or if no limit is named.
fn seen(faults: &[&str], [near, far]: [&str; 2], limits: &[&str]) -> Option<Value> {
    let turn = turn();
    ask(&turn, || {
        let Some(document) = seen_once(&turn, faults, [near, far])? else {
            return Ok(None);
        };
        is_limited(&document, limits).map(|()| Some(document))
    })?
}

/// Checks that the only flow has these limits. A disturbed or unknown one is an `Err`; a wrong limit panics.
fn is_limited(document: &Value, limits: &[&str]) -> Result<(), String> {
    let flow = only(document);
    if is_disturbed(flow) {
        return Err(flow["disturbances"].to_string());
    }
    let named = causes(flow, "limits");
    if named.is_empty() && !limits.is_empty() {
        return Err(format!("unknown instead of {limits:?}"));
    }
    assert_eq!(named, limits, "{flow:#}");
    Ok(())
}

/// Planted: a disturbed flow and one whose limit is unknown are an `Err`; a wrong limit panics.
#[test]
fn only_a_disturbed_or_unknown_flow_is_asked_for_again() {
    let document = |causes: &[&str]| {
        let limits = causes.iter().map(|cause| serde_json::json!({"cause": cause}));
        let limits: Vec<Value> = limits.collect();
        let flow = serde_json::json!({"limits": limits, "disturbances": []});
        serde_json::json!({"flows": [flow]})
    };
    assert!(is_limited(&document(&["cpu-steal"]), &["send-buffer"]).is_err());
    assert!(is_limited(&document(&[]), &["send-buffer"]).is_err());
    assert_eq!(is_limited(&document(&[]), &[]), Ok(()));
    let one = document(&["send-buffer"]);
    assert_eq!(is_limited(&one, &["send-buffer"]), Ok(()));
    for wrong in [&["receive-window"][..], &[]] {
        let failed = outcome_of(|| drop(is_limited(&one, wrong)));
        assert_eq!(failed, Outcome::Failed, "{wrong:?}");
    }
}

fn seen_once(turn: &Turn, faults: &[&str], [near, far]: [&str; 2]) -> lab::Given<Value> {
    if !has("curl") || !has("python3") {
        return Ok(None);
    }
    let home = TempDir::new().unwrap();
    let mut args = vec!["--congestion", "cubic"];
    args.extend(faults.iter().flat_map(|fault| ["--fault", fault]));
    args.extend(["--far", far, "sh", "-c", near, "sh", "FAR"]);
    let document = lab::document(turn, home.path(), &args)?;
    if let Some(document) = &document {
        fits("flows", document);
    }
    Ok(document)
}

/// A script that downloads from far with curl and `options`, and runs `flows` meanwhile.
fn download(options: &str) -> String {
    format!(
        "curl -s --retry 50 --retry-connrefused --retry-delay 1 {options} -o /dev/null \
         \"http://$1:8000/file\" & sleep 3; $PROGRAM flows :8000 --json --time 3s; kill $!"
    )
}

/// The transfer in the document; there must be exactly one.
fn only(document: &Value) -> &Value {
    let flows = document["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 1, "{document:#}");
    &flows[0]
}

fn causes<'a>(flow: &'a Value, key: &str) -> Vec<&'a str> {
    let all = flow[key].as_array().unwrap();
    all.iter().map(|one| one["cause"].as_str().unwrap()).collect()
}

/// Scripts for near and far: near serves a file and runs `flows`, while curl on far downloads the file. Far reads the
/// address of near from a file.
fn upload() -> (String, String) {
    let near = format!(
        "({SERVE}) >/dev/null 2>&1 & ip -4 -o addr show dev eth0 | \
         sed 's/.*inet \\([0-9.]*\\).*/\\1/' >\"$HOME/new\" && mv \"$HOME/new\" \"$HOME/near\"; \
         sleep 4; $PROGRAM flows :8000 --json --time 3s; kill $!"
    );
    let far = "until [ -s \"$HOME/near\" ]; do sleep 0.1; done; \
               exec curl -s --retry 50 --retry-connrefused --retry-delay 1 -o /dev/null \
               \"http://$(cat \"$HOME/near\"):8000/file\"";
    (near, far.to_owned())
}

/// Python that connects to port 7001 of the first argument.
const CONNECT: &str = "import socket, sys, time
for _ in range(100):
    try:
        s = socket.create_connection((sys.argv[1], 7001))
        break
    except OSError:
        time.sleep(0.1)
";

/// Python that accepts one connection at port 7001.
const ACCEPT: &str = "import socket
c, _ = socket.create_server((\"\", 7001)).accept()
";

/// The document of `flows` for a connection between two Python programs, one on near and one on far, which must have
/// these limits.
fn between(faults: &[&str], [near, far]: [&str; 2], limits: &[&str]) -> Option<Value> {
    let far = format!("exec python3 -c '{ACCEPT}{far}'");
    let near = format!(
        "python3 -c '{CONNECT}{near}' \"$1\" & sleep 3; $PROGRAM flows :7001 --json --time 3s; kill $!"
    );
    seen(faults, [&near, &far], limits)
}

/// Python that reads until the sender closes the connection.
const SINK: &str = "while c.recv(1 << 18): pass
";

/// The document for an exchange of 1130 bytes for an answer of one byte, after the setting `set`; `limit` must be its
/// limit.
fn exchange(set: &str, limit: &str) -> Option<Value> {
    let far = "while True:
    n = 0
    while n < 1130: n += len(c.recv(1130))
    c.sendall(b\"k\")
";
    let near = format!(
        "{set}while True:
    s.sendall(bytes(1000))
    s.sendall(bytes(130))
    s.recv(1)
"
    );
    between(&["delay:5ms"], [&near, far], &[limit])
}

#[test]
fn small_writes_that_wait_for_a_delayed_acknowledgement_are_nagles_algorithm() {
    let Some(document) = exchange("", "latency-nagle") else {
        return;
    };
    let flow = only(&document);
    assert!(flow["held"]["nagle"].as_f64().unwrap() > 0.5, "{flow:#}");
    let advice = flow["limits"][0]["advice"][0]["do"].as_str().unwrap();
    assert!(advice.contains("TCP_NODELAY"), "{advice}");
}

/// Python that first writes more than the buffers of both ends hold, and then reads.
const WRITES: &str = "_.sendall(bytes(1 << 28))
while _.recv(1 << 18): pass
";

#[test]
fn two_programs_that_both_send_first_are_a_deadlock_and_no_slow_reader() {
    let programs = ["s", "c"].map(|socket| WRITES.replace('_', socket));
    let programs = [&*programs[0], &*programs[1]];
    let Some(document) = between(&["delay:1ms"], programs, &["exchange-deadlock"]) else {
        return;
    };
    let flow = only(&document);
    let advice = flow["limits"][0]["advice"][0]["do"].as_str().unwrap();
    assert!(advice.contains("read while it sends"), "{advice}");
    assert!(flow["prove"].is_null(), "no load of linerate's shows it");
}

/// The near miss: the other program does not read either, but has written nothing.
#[test]
fn a_program_that_writes_to_one_that_does_nothing_is_no_deadlock() {
    let writes = WRITES.replace('_', "s");
    let faults = ["delay:1ms"];
    let programs = [&*writes, "import time\ntime.sleep(60)\n"];
    let far = format!("exec python3 -c '{ACCEPT}{}'", programs[1]);
    let near = format!(
        "python3 -c '{CONNECT}{}' \"$1\" & sleep 3; $PROGRAM flows :7001 --json --time 3s; kill $!",
        programs[0]
    );
    let turn = turn();
    let Some(document) = seen_once(&turn, &faults, [&near, &far]).unwrap() else {
        return;
    };
    let named = causes(only(&document), "limits");
    assert!(!named.contains(&"exchange-deadlock"), "{document:#}");
}

mod long {
    use super::*;

    #[test]
    fn a_program_that_reads_slowly_is_named_and_no_window() {
        let programs = [&download("--limit-rate 2M"), SERVE];
        let Some(document) = seen(&["delay:5ms"], programs, &["receiver-app"]) else {
            return;
        };
        let flow = only(&document);
        assert_eq!(flow["limits"][0]["side"], "near");
    }

    #[test]
    fn a_rate_of_the_path_stays_in_play_with_what_speaks_for_it() {
        let (near, far) = upload();
        let faults = ["delay:5ms", "path-rate:50Mb/s,deep,forward"];
        let Some(document) = seen(&faults, [&near, &far], &[]) else {
            return;
        };
        let flow = only(&document);
        assert_eq!(causes(flow, "suspects")[0], "path-rate", "{flow:#}");
        assert_eq!(flow["suspects"][0]["outcome"], "finding");
        let rate = flow["sent_bps"].as_f64().unwrap();
        assert!(rate < 50e6, "{rate}");
    }

    #[test]
    fn a_cap_of_each_flow_and_a_rate_of_the_path_both_stay_in_play() {
        let (near, far) = upload();
        let faults = ["delay:5ms", "flow-rate:50Mb/s,shaped,forward"];
        let Some(document) = seen(&faults, [&near, &far], &[]) else {
            return;
        };
        let flow = only(&document);
        let suspects = flow["suspects"].as_array().unwrap().iter();
        let found = suspects.filter(|s| s["outcome"] == "finding");
        let found: Vec<_> = found.map(|s| s["cause"].as_str().unwrap()).collect();
        let both = found.contains(&"path-rate") && found.contains(&"flow-rate-cap");
        assert!(both, "{flow:#}");
        assert!(flow["sent_bps"].as_f64().unwrap() < 50e6, "{flow:#}");
        let prove = flow["prove"].as_str().unwrap();
        assert!(prove.ends_with(" --direction forward"), "{prove}");
    }

    #[test]
    fn a_send_buffer_that_the_program_fixed_is_named() {
        let near = "s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 150000)
while True: s.sendall(bytes(65536))
";
        let limits = ["send-buffer"];
        let Some(document) = between(&["delay:50ms"], [near, SINK], &limits) else {
            return;
        };
        let flow = only(&document);
        let advice = flow["limits"][0]["advice"][0]["do"].as_str().unwrap();
        assert!(advice.contains("SO_SNDBUF"), "{advice}");
    }

    #[test]
    fn small_writes_that_are_sent_at_once_wait_for_the_answer_only() {
        let set = "s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)\n";
        exchange(set, "sender-app");
    }

    #[test]
    fn of_what_the_far_host_alone_knows_no_cause_is_named() {
        let (near, far) = upload();
        let faults = ["delay:20ms", "receive-window:far,128KiB"];
        let Some(document) = seen(&faults, [&near, &far], &[]) else {
            return;
        };
        let flow = only(&document);
        let suspects = causes(flow, "suspects");
        assert!(suspects.contains(&"receive-window") && suspects.contains(&"receiver-app"));
        assert!(!suspects.contains(&"path-rate"), "{flow:#}");
        assert!(flow["held"]["window"].as_f64().unwrap() > 0.5, "{flow:#}");
    }

    #[test]
    fn a_window_of_the_program_is_no_send_buffer() {
        // At most 600 kB may wait for the far program, which reports what it has read, as in SSH.
        let far = "n = 0
while True:
    got = len(c.recv(1 << 18))
    n += got
    if not got: break
    if n >= 98304:
        c.sendall(n.to_bytes(8, \"big\"))
        n = 0
";
        let near = "back = s.makefile(\"rb\")
room = 600000
while True:
    while room < 32768: room += int.from_bytes(back.read(8), \"big\")
    s.sendall(bytes(32768))
    room -= 32768
";
        let limits = ["sender-app"];
        let Some(document) = between(&["delay:50ms"], [near, far], &limits) else {
            return;
        };
        let flow = only(&document);
        assert_eq!(flow["direction"], "forward");
        assert_eq!(flow["prove"], Value::Null, "no experiment tells of a program");
    }

    #[test]
    fn a_small_window_of_a_download_is_named() {
        let faults = ["delay:20ms", "receive-window:near,128KiB"];
        let Some(document) = seen(&faults, [&download(""), SERVE], &["receive-window"]) else {
            return;
        };
        let flow = only(&document);
        assert_eq!(flow["limits"][0]["side"], "near");
        assert_eq!(flow["processes"][0]["name"], "curl");
        assert_eq!(flow["direction"], "reverse");
        let advice = flow["limits"][0]["advice"][0]["do"].as_str().unwrap();
        assert!(advice.contains("net.ipv4.tcp_rmem"), "{advice}");
        let prove = flow["prove"].as_str().unwrap();
        assert!(prove.starts_with("linerate run ") && prove.ends_with(" --direction reverse"));
    }
}
