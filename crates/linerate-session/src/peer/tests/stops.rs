//! Tests of servers that are stopped, at every step of the protocol.

use linerate_plan::path::{Direction, Side};

use super::sessions::{go_on, step, stream};
use super::*;
use crate::link::{Link, LinkError, StepControl};

fn lost<T: std::fmt::Debug>(result: Result<T, LinkError>) -> String {
    match result {
        Err(LinkError::Lost { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

fn session() -> (Harness, Client) {
    let server = Harness::keyed();
    let client = server.connect_with(server.key.as_ref()).unwrap();
    (server, client)
}

#[test]
fn between_requests() {
    let (server, mut client) = session();
    client.prepare(&stream(0, Direction::Forward, 1)).unwrap();
    server.stop.request();
    assert!(eventually(|| server.server.sessions() == 0));
    let what = lost(client.release(0));
    assert!(what.contains("127.0.0.1"), "{what}");
    // The session stays lost, and each later request fails at once.
    assert_eq!(lost(client.prepare(&stream(1, Direction::Forward, 1))), what);
    assert_eq!(lost(client.step(&step(&[0], 50), &mut go_on)), what);
}

#[test]
fn in_mid_step_what_was_read_here_is_kept() {
    for direction in Direction::ALL {
        let (server, mut client) = session();
        client.prepare(&stream(0, direction, 1)).unwrap();
        let began = Instant::now();
        let mut looks = 0;
        let step = client.step(&step(&[0], 60_000), &mut |_| {
            looks += 1;
            if looks == 2 {
                server.stop.request();
            }
            StepControl::Continue
        });
        let step = step.unwrap();
        assert!(began.elapsed() < LONG, "it ran to its planned end");
        assert_eq!(step.ends.len(), 1);
        let total = step.ends[0].totals[0];
        assert!(total.sent + total.received > 0);
        let trouble = step.trouble.unwrap();
        assert_eq!(trouble.side, Side::Far);
        assert!(trouble.what.contains("lost the far end"), "{trouble:?}");
        lost(client.release(0));
    }
}

#[test]
fn before_anything_is_asked() {
    let (server, mut client) = session();
    server.stop.request();
    lost(client.prepare(&stream(0, Direction::Forward, 1)));
    drop(server);
    drop(client);
}
