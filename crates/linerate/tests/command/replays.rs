//! `linerate fabric check` on captured walks through networks that no simulator can make: partitions, GUIDs that two
//! nodes share, and virtual functions. Each has a near miss.

use std::collections::VecDeque;
use std::fs;
use std::time::Duration;

use linerate_fabric::mad::Get;
use linerate_fabric::walk::{PARTS, Part, Walk};
use linerate_host::fabric::{Arrival, Capturing, MadPort, PortError, drive};
use linerate_sim::fabric::{At, Fake};
use linerate_units::Nanos;

use crate::program::{run, words};

/// A port of the fake network, through which a walk sends its requests.
struct Port {
    fake: Fake,
    from: At,
    now: Nanos,
    arrived: VecDeque<Arrival>,
}

impl MadPort for Port {
    fn window(&self) -> usize {
        64
    }

    fn pace(&self) -> u32 {
        u32::MAX
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn send(&mut self, transaction: u32, get: &Get) -> Result<(), PortError> {
        let answer = self.fake.answer(self.from, get.lid(), &get.encode(transaction));
        let lost = Arrival::Lost(transaction);
        let arrival = answer.map_or(lost, |(_, mad)| Arrival::Mad(Box::new(mad)));
        self.arrived.push_back(arrival);
        Ok(())
    }

    fn receive(&mut self, _: Duration) -> Result<Option<Arrival>, PortError> {
        self.now = Nanos(self.now.0 + 10_000);
        Ok(self.arrived.pop_front())
    }

    fn pause(&mut self, time: Duration) {
        self.now = Nanos(self.now.0 + u64::try_from(time.as_nanos()).unwrap());
        self.fake.pass_time();
    }
}

/// The captured file of a walk from port 1 of a host.
fn captured(fake: &Fake, host: &str) -> String {
    let port = Port {
        from: (fake.node(host), 1),
        now: Nanos(0),
        arrived: VecDeque::new(),
        fake: fake.clone(),
    };
    let mut port = Capturing::new(port, &format!("umad0, on {host}"));
    let mut walk = Walk::default();
    let go = |port: &mut Capturing<Port>, walk: &mut Walk| {
        drive(port, walk, Nanos::from_secs(100), &|| false).unwrap();
    };
    go(&mut port, &mut walk);
    for part in PARTS {
        if part == Part::Pause {
            port.pause(Duration::from_secs(1));
        }
        walk.begin(part);
        go(&mut port, &mut walk);
    }
    port.captured(true).encode()
}

/// The exit code and the page of a check of the walk from a host.
fn checked(fake: &Fake, host: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("net.txt");
    fs::write(&file, captured(fake, host)).unwrap();
    let output = run(&["fabric", "check", "--root", file.to_str().unwrap()]);
    assert_eq!(words(&output.stderr), "");
    (output.status.code(), words(&output.stdout))
}

/// A star of four hosts with a subnet manager at `H1`.
fn star() -> Fake {
    let mut fake = Fake::star(4);
    fake.manage("H1", 1);
    fake
}

fn finds(fake: &Fake, host: &str, problem: &str) {
    let (code, page) = checked(fake, host);
    assert_eq!(code, Some(4), "{page}");
    let lines: Vec<&str> = page.lines().skip(1).collect();
    assert_eq!(lines.join(" "), problem, "{page}");
}

fn is_clean(fake: &Fake, host: &str) {
    let (code, page) = checked(fake, host);
    assert_eq!(code, Some(0), "{page}");
    assert!(page.starts_with("nothing is wrong"), "{page}");
}

#[test]
fn a_host_in_no_common_partition() {
    let keyed = |keys: [&[u16]; 4]| {
        let mut fake = star();
        for (n, keys) in keys.into_iter().enumerate() {
            let at = (fake.node(&format!("H{}", n + 1)), 1);
            fake.port(at).keys = keys.to_vec();
        }
        fake
    };
    let all: &[u16] = &[0xffff];
    let problem =
        "H3 port 1: may not talk to any other of the 4 active hosts here   (wrong-partition)";
    finds(&keyed([all, all, &[0x8001], all]), "H2", problem);
    // A limited member can talk to full members, and two groups may be separate on purpose.
    is_clean(&keyed([all, all, &[0x7fff], all]), "H2");
    is_clean(&keyed([&[0x8001], &[0x8001], &[0x8002], &[0x8002]]), "H2");
}

#[test]
fn guids_that_two_nodes_or_two_ports_have() {
    let mut fake = star();
    let [a, b] = ["H3", "H4"].map(|name| fake.node(name));
    is_clean(&fake, "H2");
    let port = fake.port((a, 1)).guid;
    fake.port((b, 1)).guid = port;
    let guid = format!("{port:#018x}");
    let problem =
        format!("H3 port 1, H4 port 1: 2 ports have the port GUID {guid}   (duplicate-guid)");
    finds(&fake, "H2", &problem);
    let mut fake = star();
    let node = fake.nodes[a].guid;
    fake.nodes[b].guid = node;
    let problem = format!("H3: two nodes have the GUID {node:#018x} (duplicate-guid)");
    finds(&fake, "H2", &problem);
    // Two ports of one adapter on the same network share a node GUID.
    let mut fake = Fake::star(2);
    let two = fake.host("TWO", 2);
    let switch = fake.node("SW");
    fake.link((two, 1), (switch, 3));
    fake.link((two, 2), (switch, 4));
    fake.manage("H1", 1);
    is_clean(&fake, "H2");
}

#[test]
fn a_virtual_function_without_a_guid() {
    let waits = |guid: bool| {
        let mut fake = star();
        let own = (fake.node("H2"), 1);
        let port = fake.port(own);
        (port.lid, port.manager_lid, port.states) = (0, 0, [2, 5]);
        if !guid {
            port.guid = 0;
        }
        fake
    };
    let problem = "H2 port 1: waits for a subnet manager, and has no GUID (no-guid)";
    finds(&waits(false), "H2", problem);
    // With a GUID, the port is not served for another reason.
    let (code, page) = checked(&waits(true), "H2");
    assert_eq!(code, Some(4), "{page}");
    assert!(page.contains("(unserved-port)") && !page.contains("no-guid"), "{page}");
    // Unused virtual functions of other hosts are no problem of this port.
    let mut fake = star();
    let other = (fake.node("H3"), 1);
    fake.port(other).guid = 0;
    is_clean(&fake, "H2");
}
