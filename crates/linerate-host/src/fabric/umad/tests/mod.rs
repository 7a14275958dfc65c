use std::io;

use linerate_fabric::mad::{Attribute, Route, To};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};

use super::*;

const SOON: Duration = Duration::from_secs(10);

/// Makes a port whose device is one socket of a pair, and returns the kernel's end of the pair. Like a device, these
/// sockets keep packets separate.
fn port() -> (Umad, OwnedFd) {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (file, kernel) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    let port = Umad {
        file,
        name: Name { device: "mlx5_0".to_owned(), port: 1 },
        others: Vec::new(),
        subnet: 3,
        general: 4,
        unsent: VecDeque::new(),
        opened: Instant::now(),
    };
    (port, kernel)
}

fn own_node() -> Get {
    Get { to: To::Route(Route::default()), attribute: Attribute::NodeInfo }
}

/// Makes a packet with this status and `length` bytes of a datagram whose transaction is `transaction`.
fn packet(status: u32, transaction: u32, length: usize) -> Vec<u8> {
    let mut packet = vec![0; HEADER + 16];
    packet[4..8].copy_from_slice(&status.to_ne_bytes());
    packet[HEADER + 12..].copy_from_slice(&transaction.to_be_bytes());
    packet.resize(HEADER + length, 0);
    packet
}

fn arrived(port: &mut Umad, kernel: &OwnedFd, packet: &[u8]) -> Option<Arrival> {
    rustix::io::write(kernel, packet).unwrap();
    port.receive(SOON).unwrap()
}

#[test]
fn each_service_has_the_agent_of_its_queue_pair() {
    let (mut port, kernel) = port();
    let to = To::Lid(7);
    for (attribute, agent) in [
        (Attribute::NodeInfo, 3_u32),
        (Attribute::ManagerInfo, 3),
        (Attribute::Counters(1), 4),
        (Attribute::CounterSupport, 4),
    ] {
        let get = Get { to: to.clone(), attribute };
        port.send(9, &get).unwrap();
        let mut sent = [0; 2 * (HEADER + LEN)];
        let length = rustix::io::read(&kernel, &mut sent).unwrap();
        assert_eq!(length, HEADER + LEN);
        assert_eq!(sent[..4], agent.to_ne_bytes());
        // The kernel must not repeat a request: the walk repeats requests itself.
        assert_eq!(sent[12..16], [0; 4]);
        assert_eq!(sent[HEADER..length], get.encode(9));
    }
}

#[test]
fn a_datagram_is_handed_over_and_a_time_out_is_a_loss() {
    let (mut port, kernel) = port();
    let timeout = Errno::TIMEDOUT.raw_os_error().cast_unsigned();
    // A whole datagram arrives even if more bytes follow it: Omni-Path has longer datagrams.
    for length in [LEN, LEN + 1, LONGEST] {
        match arrived(&mut port, &kernel, &packet(0, 5, length)) {
            Some(Arrival::Mad(mad)) => assert_eq!(transaction(&mad[..]), Some(5)),
            other => panic!("{length}: {other:?}"),
        }
    }
    // For a request without a reply, the kernel returns its first 24 bytes.
    for (status, length) in [(timeout, 24), (timeout, LEN), (1, LEN), (0, LEN - 1), (0, 16)] {
        let got = arrived(&mut port, &kernel, &packet(status, 6, length));
        assert!(matches!(got, Some(Arrival::Lost(6))), "{length}: {got:?}");
    }
    // A packet that is too short to contain a transaction is ignored.
    for length in [1, HEADER - 1, HEADER, HEADER + 15] {
        let cut = &packet(0, 6, 16)[..length];
        assert!(arrived(&mut port, &kernel, cut).is_none(), "{length}");
    }
    assert!(port.receive(Duration::ZERO).unwrap().is_none());
}

#[test]
fn a_device_that_is_removed_ends_the_walk() {
    let (mut port, kernel) = port();
    drop(kernel);
    let error = port.receive(SOON).unwrap_err();
    let want = "the device of mlx5_0 port 1 was removed";
    assert_eq!(error.to_string(), want);
    assert_eq!(error.hint(), "dmesg says why");
}

#[test]
fn a_request_that_the_kernel_refuses_is_given_up() {
    // A timer's file descriptor cannot be written: it refuses each request with the same error as the kernel refuses an
    // address.
    let (mut port, _kernel) = port();
    let (clock, flags) = (TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK);
    port.file = timerfd_create(clock, flags).unwrap();
    let get = Get { to: To::Lid(u16::MAX), attribute: Attribute::NodeInfo };
    assert_eq!(refusal(&port, &get), Errno::INVAL);
    port.send(11, &get).unwrap();
    port.send(12, &get).unwrap();
    for want in [11, 12] {
        let got = port.receive(Duration::ZERO).unwrap();
        assert!(matches!(got, Some(Arrival::NotPossible(n)) if n == want), "{got:?}");
    }
}

/// Returns the error with which the device refuses a request.
fn refusal(port: &Umad, get: &Get) -> Errno {
    let packet = header::encode(0, 1, get, PATIENCE.duration());
    rustix::io::write(&port.file, &packet).unwrap_err()
}

#[test]
fn an_error_of_the_device_is_passed_on() {
    let (mut port, _kernel) = port();
    port.file = rustix::fs::open("/dev/null", OFlags::RDONLY, Mode::empty()).unwrap();
    let error = port.send(1, &own_node()).unwrap_err();
    assert_eq!(error.to_string(), "sending through mlx5_0 port 1 failed");
}

#[test]
fn a_device_that_cannot_be_opened_says_why() {
    let error = opened("/dev/infiniband/no-such-device").unwrap_err();
    assert!(error.to_string().starts_with("/dev/infiniband/no-such-device does not exist"));
    assert!(error.hint().contains("--device /dev/infiniband/no-such-device"));
    // A folder cannot be opened for writing, not even by root.
    let error = opened("/").unwrap_err();
    assert_eq!(error.to_string(), "opening / failed");
    let source = std::error::Error::source(&error).unwrap();
    let kind = source.downcast_ref::<io::Error>().unwrap().kind();
    assert_eq!(kind, io::ErrorKind::IsADirectory);
}

#[test]
fn a_device_of_another_user_names_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("umad0");
    std::fs::write(&path, "").unwrap();
    let mode = Mode::from_raw_mode(0o640);
    rustix::fs::chmod(&path, mode).unwrap();
    let stat = rustix::fs::stat(&path).unwrap();
    let denied = |is_root| UmadError::Denied {
        path: "/dev/infiniband/umad0".to_owned(),
        owner: Owner::of(&stat),
        is_root,
    };
    let (user, group) = (stat.st_uid, stat.st_gid);
    let want = format!(
        "no permission to open /dev/infiniband/umad0, which belongs to user {user} and group {group}, mode 0640"
    );
    assert_eq!(denied(false).to_string(), want);
    assert_eq!(denied(false).hint(), "sudo linerate fabric");
    // Root in a container lacks the device file, not the permission.
    assert!(denied(true).hint().contains("docker run --device /dev/infiniband/umad0"));
}
