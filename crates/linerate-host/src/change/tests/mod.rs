//! Tests that changes of settings are made, recorded and undone.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use linerate_plan::change::Setting;
use linerate_plan::path::Side;

pub(crate) mod place;

use place::{NEW, OLD, Place, larger};
use tempfile::TempDir;

fn reported(place: &Place) -> Vec<String> {
    std::mem::take(&mut *place.reported.lock().unwrap())
}

/// A linerate process that changed the setting and was killed: its journal is unlocked and still has the entry.
fn killed(place: &Place) {
    let mut changes = Changes::new(place.ledger());
    changes.want(Some(larger()), None).unwrap();
    // After a kill, the kernel closes the journal, which unlocks it; nothing else happens.
    drop(changes.held.take());
    changes.made = None;
}

#[test]
fn a_change_is_written_down_before_it_is_made_and_leaves_nothing_behind() {
    let place = Place::new();
    let mut changes = Changes::new(place.ledger());
    assert!(place.journals().is_empty());
    changes.want(Some(larger()), None).unwrap();
    assert_eq!(place.value(), NEW);
    let journal = fs::read_to_string(&place.journals()[0]).unwrap();
    assert!(journal.contains(OLD) && journal.contains(NEW), "{journal}");
    changes.want(None, None).unwrap();
    assert_eq!(place.value(), OLD);
    assert_eq!(fs::read_to_string(&place.journals()[0]).unwrap(), "");
    changes.want(Some(larger()), None).unwrap();
    drop(changes);
    assert_eq!(place.value(), OLD);
    assert!(place.journals().is_empty());
    assert!(reported(&place).is_empty(), "what goes well is not told");
}

#[test]
fn a_panic_undoes_it() {
    let place = Place::new();
    let mut changes = Changes::new(place.ledger());
    changes.want(Some(larger()), None).unwrap();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _changes = changes;
        panic!("for the test");
    }));
    assert!(outcome.is_err());
    assert_eq!(place.value(), OLD);
}

#[test]
fn the_next_start_undoes_what_a_kill_left_and_says_so() {
    let place = Place::new();
    killed(&place);
    assert_eq!(place.value(), NEW);
    place.ledger().undo_left().unwrap();
    assert_eq!(place.value(), OLD);
    let words =
        format!("undone: net.ipv4.tcp_rmem back to \"{OLD}\" (left by a run that was killed)");
    assert_eq!(reported(&place), [words]);
    assert!(place.journals().is_empty());
    place.ledger().undo_left().unwrap();
    assert!(reported(&place).is_empty());
}

/// A killed process holds its journal until its last thread has ended.
#[test]
fn what_a_dying_process_left_is_undone_once_it_is_dead() {
    let place = Place::new();
    let mut dying = Changes::new(place.ledger());
    dying.want(Some(larger()), None).unwrap();
    dying.made = None;
    let held = dying.held.take();
    let death = thread::spawn(move || {
        thread::sleep(DYING.1 * 2);
        drop(held);
    });
    place.ledger().undo_left().unwrap();
    death.join().unwrap();
    assert_eq!(place.value(), OLD);
    let lines = reported(&place);
    assert!(lines.iter().all(|line| line.starts_with("undone: ")), "{lines:?}");
    assert!(place.journals().is_empty());
}

#[test]
fn the_next_change_undoes_what_a_kill_left_first() {
    let place = Place::new();
    killed(&place);
    let mut changes = Changes::new(place.ledger());
    changes.want(Some(larger()), None).unwrap();
    assert_eq!(reported(&place).len(), 1);
    drop(changes);
    assert_eq!(place.value(), OLD);
}

#[test]
fn what_a_live_process_changed_stays_and_nobody_else_may_change_anything() {
    let place = Place::new();
    let mut live = Changes::new(place.ledger());
    live.want(Some(larger()), None).unwrap();
    place.ledger().undo_left().unwrap();
    assert_eq!(place.value(), NEW);
    let lines = reported(&place);
    assert!(lines.iter().any(|line| line.contains("another linerate")), "{lines:?}");
    let mut other = Changes::new(place.ledger());
    let busy = other.want(Some(larger()), None).unwrap_err();
    assert!(matches!(busy, ChangeError::Busy), "{busy:?}");
    drop(other);
    assert_eq!(place.value(), NEW);
    drop(live);
    assert_eq!(place.value(), OLD);
}

#[test]
fn what_somebody_else_set_meanwhile_is_left_alone() {
    const THEIRS: &str = "4096 131072 999999";
    let place = Place::new();
    let mut changes = Changes::new(place.ledger());
    changes.want(Some(larger()), None).unwrap();
    place.set(THEIRS);
    let error = changes.want(None, None).unwrap_err();
    assert!(matches!(error, ChangeError::Spoiled), "{error:?}");
    let lines = reported(&place);
    assert!(lines[0].contains(THEIRS) && lines[0].contains(OLD), "{lines:?}");
    // The setting keeps the other program's value, and no further change is made.
    changes.want(None, None).unwrap();
    assert!(changes.want(Some(larger()), None).is_err());
    drop(changes);
    assert_eq!(place.value(), THEIRS);
    assert!(place.journals().is_empty());

    place.set(OLD);
    let mut changes = Changes::new(place.ledger());
    changes.want(Some(larger()), None).unwrap();
    changes.want(Some(larger()), None).unwrap();
    place.set(THEIRS);
    let error = changes.want(Some(larger()), None).unwrap_err();
    assert!(matches!(error, ChangeError::Spoiled), "{error:?}");
    drop(changes);
    assert_eq!((place.value(), reported(&place).len()), (THEIRS.to_owned(), 1));

    place.set(OLD);
    killed(&place);
    place.set(THEIRS);
    place.ledger().undo_left().unwrap();
    assert_eq!(place.value(), THEIRS);
    assert!(reported(&place)[0].starts_with("not undone: "));
}

#[test]
fn an_entry_of_an_earlier_boot_is_dropped() {
    let place = Place::new();
    killed(&place);
    place.boot("a-later-boot");
    place.ledger().undo_left().unwrap();
    assert_eq!(place.value(), NEW, "it may be what the new boot wants");
    assert!(reported(&place).is_empty() && place.journals().is_empty());
}

#[test]
fn a_journal_that_cannot_be_trusted_is_an_error_and_nothing_is_done() {
    let place = Place::new();
    killed(&place);
    let path = place.journals()[0].clone();
    let whole = fs::read_to_string(&path).unwrap();
    for bad in [
        whole.replace("524288", "524289"),
        whole.replace("tcp-rmem", "core-pattern"),
        format!("{whole}x\n"),
        "\u{1b}[2J\n".to_owned(),
        "x".repeat(100_000),
    ] {
        fs::write(&path, &bad).unwrap();
        let error = place.ledger().undo_left().unwrap_err();
        assert!(error.to_string().contains("changes-"), "{error}");
        let mut changes = Changes::new(place.ledger());
        assert!(changes.want(Some(larger()), None).is_err());
        drop(changes);
        assert_eq!(place.value(), NEW, "{bad}");
        assert_eq!(fs::read_to_string(&path).unwrap(), bad, "it is kept for a look");
    }
    fs::write(&path, &whole).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let error = place.ledger().undo_left().unwrap_err();
    assert!(matches!(error, ChangeError::Journal { .. }), "{error:?}");
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
    assert!(place.ledger().undo_left().is_err(), "a link is not followed");
    assert_eq!(place.value(), NEW);
}

#[test]
fn an_entry_that_was_cut_off_was_never_done() {
    let place = Place::new();
    killed(&place);
    place.set(OLD);
    let path = place.journals()[0].clone();
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    place.ledger().undo_left().unwrap();
    assert_eq!(place.value(), OLD);
    assert!(place.journals().is_empty() && reported(&place).is_empty());
}

#[test]
fn what_is_no_change_or_out_of_bounds_is_refused_before_anything_is_touched() {
    let place = Place::new();
    let mut changes = Changes::new(place.ledger());
    let mut refused = |change| changes.want(Some(change), None).unwrap_err();
    let at = |value| HostChange { value, ..larger() };
    assert!(matches!(refused(at(524_288)), ChangeError::Same { .. }));
    assert!(matches!(refused(at(1 << 40)), ChangeError::Bounds { .. }));
    let setting = Setting::SendOffloads;
    let no_port = HostChange { setting, value: 1, ..larger() };
    assert!(matches!(refused(no_port), ChangeError::Bounds { .. }));
    let setting = Setting::TcpWmem;
    let absent = HostChange { setting, ..larger() };
    assert!(matches!(refused(absent), ChangeError::Setting { .. }));
    drop(changes);
    assert_eq!(place.value(), OLD);
}

#[test]
fn only_what_can_be_written_is_offered_and_a_gap_says_why_not() {
    let place = Place::new();
    let (ids, gap) = Changes::new(place.ledger()).possible(None);
    assert_eq!((ids, gap), (vec!["tcp-rmem".to_owned()], None));
    fs::remove_file(place.sysctl()).unwrap();
    let (ids, gap) = Changes::new(place.ledger()).possible(None);
    assert!(ids.is_empty());
    assert!(gap.unwrap().why.contains("net.ipv4.tcp_rmem"));
}

/// Environment variable that is set when a test runs in a network namespace of its own.
const INSIDE: &str = "LINERATE_TEST_NETWORK";

#[test]
fn the_kernels_own_settings_are_changed_and_set_back() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let name = "change::tests::the_kernels_own_settings_are_changed_and_set_back";
    let unshare = || {
        let mut command = std::process::Command::new("unshare");
        command.args(["--map-root-user", "--net"]);
        command
    };
    let possible = unshare().arg("true").output();
    if !possible.is_ok_and(|o| o.status.success()) {
        let why = "no network namespaces here (needs unshare)";
        return linerate_test::skip("namespaces", why);
    }
    let own = std::env::current_exe().unwrap();
    let mut child = unshare();
    child.arg(own).args(["--exact", name]).env(INSIDE, "1");
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// The test itself, in a network namespace whose only port is a loopback of its own.
fn inside() {
    let dir = TempDir::new().unwrap();
    let ledger = Ledger::new(dir.path(), Arc::new(|line| panic!("{line}")));
    let host = Host::below(Path::new("/")).unwrap();
    assert!(host.network.starts_with("cookie-") || host.network.starts_with("inode-"));
    let rmem = host.read(Setting::TcpRmem.row(), "").unwrap();
    for (setting, value) in
        [(Setting::TcpRmem, rmem[2] * 2), (Setting::SendOffloads, 0), (Setting::ReceiveOffloads, 0)]
    {
        let row = setting.row();
        let before = host.read(row, "lo").unwrap();
        let change = HostChange { side: Side::Near, setting, value };
        let mut changes = Changes::new(ledger.clone());
        changes.want(Some(change), Some("lo")).unwrap();
        let now = host.read(row, "lo").unwrap();
        assert_eq!(now, row.changed(&before, value));
        assert_ne!(now, before, "{}", row.id);
        let offered = changes.possible(Some("lo")).0;
        assert!(offered.iter().any(|id| id == row.id), "{offered:?}");
        drop(changes);
        assert_eq!(host.read(row, "lo").unwrap(), before);
    }
    let offered = Changes::new(ledger).possible(Some("lo")).0;
    assert!(!offered.iter().any(|id| id.ends_with("offloads")), "all are on");
    queues();
    port_of_this_network();
}

/// Runs a command of iproute2 and returns its output.
fn run_tc(words: &str) -> String {
    let mut words = words.split(' ');
    let mut command = std::process::Command::new(words.next().unwrap());
    let output = command.args(words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Changes limits of root disciplines of the loopback, and checks that they are restored.
fn queues() {
    const SHOW: &str = "tc -d qdisc show dev lo";
    let dir = TempDir::new().unwrap();
    let ledger = Ledger::new(dir.path(), Arc::new(|line| panic!("{line}")));
    let bucket = "tbf rate 1gbit burst 65537 limit 20000";
    for (kind, setting, value) in
        [("pfifo limit 8", Setting::QueuePackets, 1_000), (bucket, Setting::QueueBytes, 1 << 20)]
    {
        let offered = || {
            let ids = Changes::new(ledger.clone()).possible(Some("lo")).0;
            ids.iter().any(|id| id == setting.row().id)
        };
        assert!(!offered(), "what the kernel put there has no handle");
        run_tc(&format!("tc qdisc add dev lo root handle 7: {kind}"));
        let before = run_tc(SHOW);
        assert!(offered());
        let change = HostChange { side: Side::Near, setting, value };
        let mut changes = Changes::new(ledger.clone());
        for _ in 0..3 {
            changes.want(Some(change), Some("lo")).unwrap();
            assert_ne!(run_tc(SHOW), before);
            changes.want(None, Some("lo")).unwrap();
            assert_eq!(run_tc(SHOW), before);
        }
        changes.want(Some(change), Some("lo")).unwrap();
        drop(changes);
        assert_eq!(run_tc(SHOW), before);
        run_tc("tc qdisc del dev lo root");
    }
}

/// A folder in sysfs belongs to a port only if both its index and its MAC address are the port's.
fn port_of_this_network() {
    let add = "ip link add v0 index 77 address 02:00:00:00:00:07 type veth peer name v1";
    run_tc(add);
    let root = TempDir::new().unwrap();
    let found = |port: &str, index: u32, address: &str| {
        let folder = root.path().join("sys/class/net").join(port);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("ifindex"), format!("{index}\n")).unwrap();
        fs::write(folder.join("address"), format!("{address}\n")).unwrap();
        spread::folder(root.path(), port).is_ok()
    };
    assert!(found("v0", 77, "02:00:00:00:00:07"));
    assert!(!found("v0", 78, "02:00:00:00:00:07"));
    assert!(!found("v0", 77, "02:00:00:00:00:08"));
    assert!(!found("lo", 1, "00:00:00:00:00:00"), "every network has one");
    assert!(!found("v2", 77, "02:00:00:00:00:07"));
}
