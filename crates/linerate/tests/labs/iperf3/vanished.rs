//! A path on which large packets vanish: what `bw` reports of a test with an iperf3 server, and with linerate.

use super::*;
use crate::lab::{self, Given};

/// A shell script that waits until a server listens, and prints the document of `bw` for it. Its first argument is the
/// server.
const MEASURED: &str = r#"
target=$1; shift; n=0
until out=$("$PROGRAM" bw "$target" --json --quiet -t 2s "$@"); [ -n "$out" ] || [ $n -gt 100 ]; do
    n=$((n + 1)); sleep 0.1
done
printf '%s' "$out"
"#;

/// The document of `bw` in a lab with a fault, with an iperf3 server on the far host.
fn measured(turn: &Turn, fault: &str, args: &[&str]) -> Given<Value> {
    let home = TempDir::new().unwrap();
    let script = MEASURED.replace("target=$1", "target=iperf3://$1");
    let lab = ["--fault", fault, "--far", "iperf3 -s", "--", "sh", "-c", &script, "sh", "FAR"];
    lab::document(turn, home.path(), &[&lab[..], args].concat())
}

/// The gaps in a document that name vanished packets.
fn named(reported: &Value) -> Vec<&Value> {
    let gaps = reported["unknown"].as_array().unwrap().iter();
    gaps.filter(|gap| gap["hint"].as_str().unwrap().contains("mtu-black-hole")).collect()
}

#[test]
fn a_path_on_which_large_packets_vanish_is_named_with_the_command_that_tells() {
    if !has("iperf3") {
        return;
    }
    let turn = turn();
    let udp = ["--engine", "udp", "--pacing", "5Mbit/s"];
    for (fault, args, way, host) in [
        ("black-hole:1400,forward", &["-d", "forward"][..], "forward", "near"),
        ("black-hole:1400,reverse", &["-d", "reverse"], "reverse", "far"),
        ("black-hole:1400,forward", &udp, "forward", "near"),
    ] {
        ask(&turn, || {
            let Some(reported) = measured(&turn, fault, args)? else {
                return Ok(());
            };
            fits("bw", &reported);
            assert_eq!(reported["directions"][way]["goodput_bps"], 0, "{reported}");
            let named = named(&reported);
            let hint = named.first().map_or("", |gap| gap["hint"].as_str().unwrap());
            assert!(
                hint.contains(&format!("on the {host} host `ping -M do -s 1472 ")),
                "{reported}"
            );
            if args.contains(&"udp") {
                let lost = &reported["directions"][way]["datagrams"]["lost_share"];
                assert_eq!(lost, 1.0, "{reported}");
            }
            Ok(())
        });
    }
}

#[test]
fn a_path_on_which_they_pass_names_nothing() {
    if !has("iperf3") {
        return;
    }
    let turn = turn();
    for args in [
        // In the other direction no packets vanish.
        &["-d", "reverse"][..],
        &["--engine", "udp", "--pacing", "5Mbit/s", "--write-size", "1000B"],
        &["--mss", "1000"],
    ] {
        ask(&turn, || {
            let Some(reported) = measured(&turn, "black-hole:1400,forward", args)? else {
                return Ok(());
            };
            let directions = reported["directions"].as_object().unwrap();
            let way = directions.values().find(|way| !way.is_null()).unwrap();
            assert!(way["goodput_bps"].as_u64() > Some(0), "{args:?}: {reported}");
            assert_eq!(named(&reported), Vec::<&Value>::new(), "{args:?}");
            Ok(())
        });
    }
}
