//! `linerate run --layers` on an RDMA path: within one guest, without a wire between the ends, and between two guests.

use linerate_lab::vm::{Cable, CableEnd, Spec};
use linerate_test::unwrapped;
use serde_json::Value;

use super::guest::{Guest, PROGRAM};
use super::rdma::{beside, serving};
use super::schema::fits;

const LAYERS: [&str; 4] = ["verbs", "sockets", "program", "preload"];

/// Measures all layers within one guest: verbs, sockets, and an ordinary program with and without the preload.
pub(crate) fn one_guest(guest: &mut Guest) {
    beside(guest, |guest| {
        guest.ask("modprobe rdma_ucm");
        measured(guest, "10.9.8.1");
        without_preload(guest);
    });
}

/// Makes the RDMA port of a guest at one end of a cable; ADDRESS is replaced by the guest's address.
const PORT: &str = "modprobe -a rdma_rxe ib_uverbs rdma_ucm
ip addr add ADDRESS/24 dev eth0
ip link set eth0 up
rdma link add rxe0 type rxe netdev eth0";

/// Measures all layers between two guests with a cable: first without RDMA on the far host, then with it.
pub(crate) fn two_guests(_: &mut Guest) {
    let folder = tempfile::tempdir().unwrap();
    let [mut near, mut far] = [CableEnd::First, CableEnd::Second].map(|end| {
        let socket = folder.path().join("cable");
        let cable = Some(Cable { socket, end });
        Guest::boot_as(&Spec { cable, ..Spec::default() }).unwrap()
    });
    near.ask(&PORT.replace("ADDRESS", "10.9.6.1"));
    serving(&mut far, &PORT.replace("ADDRESS", "10.9.6.2"));

    far.ask("rdma link delete rxe0");
    let words = "bw 10.9.6.2 --open --engine rdma --time 1s --quiet";
    let reported = near.ask(&format!("{PROGRAM} {words} 2>&1 && exit 9 || true"));
    let wanted = "the far end refused: the far host has no RDMA device";
    assert!(unwrapped(&reported).contains(wanted), "{reported}");
    let layers = run(&mut near, "10.9.6.2", "--json || test $? = 3");
    let layers: Value = serde_json::from_str(&layers).unwrap();
    fits("study", &layers);
    for (name, has) in LAYERS.into_iter().zip([false, true, true, false]) {
        let lacks = |point: &Value| !point["not_measured"].is_null();
        assert_eq!(!layer(&layers, name).any(lacks), has, "{name}: {layers}");
    }

    far.ask("rdma link add rxe0 type rxe netdev eth0");
    measured(&mut near, "10.9.6.2");
    println!("{}", run(&mut near, "10.9.6.2", ""));
}

/// The points of the layer `name`.
fn layer<'a>(layers: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    let all = layers["points"].as_array().unwrap();
    let of: Vec<_> = all.iter().filter(|point| point["values"][0] == name).collect();
    of.into_iter()
}

fn run(guest: &mut Guest, far: &str, rest: &str) -> String {
    guest.ask(&format!("{PROGRAM} run {far} --layers --open --events --time 30s --quiet {rest}"))
}

/// Checks that all layers were measured.
fn measured(guest: &mut Guest, far: &str) {
    let reported = run(guest, far, "--json");
    let reported: Value = serde_json::from_str(&reported).unwrap();
    fits("study", &reported);
    assert_eq!(reported["complete"], true, "{reported}");
    for name in LAYERS {
        for point in layer(&reported, name) {
            assert!(point["samples"].as_u64() > Some(0), "{point}");
            let figure = point["figures"][0]["value"].as_f64();
            assert!(figure > Some(0.0), "{point}");
        }
    }
}

/// Checks runs without the preload library, and with a preload that leaves the connection to TCP: other layers must
/// still be measured.
fn without_preload(guest: &mut Guest) {
    let args = "lat 10.9.8.1 --open --engine program --preload --time 1s --quiet 2>&1";
    let ends_in = |guest: &mut Guest, before: &str, wanted: &str| {
        let reported = guest.ask(&format!("{before} {PROGRAM} {args} && exit 9 || true"));
        assert!(unwrapped(&reported).contains(wanted), "{reported}");
    };
    // The mount hides the library only from this script, not from the server.
    let hidden = "mount -t tmpfs hidden /usr/lib/x86_64-linux-gnu/rsocket;";
    ends_in(guest, hidden, "no librspreload");
    let reported = guest.ask(&format!(
        "{hidden} {PROGRAM} run 10.9.8.1 --layers --open --events --time 20s --quiet || test $? = 3"
    ));
    let words = unwrapped(&reported);
    assert!(words.contains("no librspreload") && words.contains("verbs"), "{reported}");
    let no_device = "mount -t tmpfs hidden /dev/infiniband;";
    ends_in(guest, no_device, "connect failed through the preload library");
}
