#![expect(unsafe_code, reason = "a filter of system calls")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;

use super::*;

const WAIT: Duration = Duration::from_millis(100);

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

/// Makes memory whose adjacent bytes differ.
fn payload(len: usize) -> Memory {
    let mut memory = Memory::new(len).unwrap();
    let bytes = memory.bytes_mut().iter_mut();
    bytes.enumerate().for_each(|(at, byte)| *byte = (at * 31 % 251) as u8);
    memory
}

/// Sends `all` bytes in operations of `most` bytes. Every other operation must be sent as a whole.
fn send_all(near: &TcpStream, len: usize, all: usize, most: usize) -> SendCompletions {
    let mut sender = Sender::new(payload(len)).unwrap();
    let (mut completions, mut left) = (SendCompletions::default(), all);
    while left > 0 {
        let whole = left % 2 == 0;
        let sent = sender.send(near.as_fd(), most.min(left), whole, WAIT, &mut completions);
        left -= sent.unwrap().unwrap_or(0);
    }
    completions
}

/// Receives bytes until the other end closes the connection.
fn receive_all(far: &TcpStream, size: u32, count: u16, most: usize) -> Vec<u8> {
    let mut receiver = Receiver::new(size, count).unwrap();
    let mut all = Vec::new();
    loop {
        match receiver.take(far.as_fd(), most, Some(WAIT)).unwrap() {
            Some([]) => return all,
            Some(bytes) => {
                assert!(bytes.len() <= most && bytes.len() <= size as usize);
                all.extend_from_slice(bytes);
            }
            None => {}
        }
    }
}

#[test]
fn what_is_sent_in_any_size_arrives_as_it_is_and_what_became_of_it_is_told() {
    const LEN: usize = 100_000;
    let (near, mut far) = pair();
    let reader = thread::spawn(move || {
        let mut all = Vec::new();
        far.read_to_end(&mut all).map(|_| all)
    });
    let completions = send_all(&near, LEN, 3 * LEN, LEN);
    // The kernel completes a send once its receiver has the bytes.
    assert!(
        completions.copied <= completions.through && completions.through <= 9,
        "{completions:?}"
    );
    let small = send_all(&near, 7, 700, 7);
    assert!(small.through <= 700, "{small:?}");
    near.shutdown(Shutdown::Write).unwrap();
    let all = reader.join().unwrap().unwrap();
    assert_eq!(all.len(), 3 * LEN + 700);
    let mut bytes = payload(LEN);
    let pattern = bytes.bytes_mut();
    let mut at = 0;
    // Every send begins at the start of the memory, and may end anywhere. So each byte either follows the previous one
    // in the pattern, or is the first byte of the pattern.
    for byte in &all[..3 * LEN] {
        if at == LEN || *byte != pattern[at] {
            at = 0;
        }
        assert_eq!(*byte, pattern[at]);
        at += 1;
    }
}

#[test]
fn on_one_machine_the_kernel_copies_and_says_so() {
    let (near, mut far) = pair();
    let mut sender = Sender::new(payload(50_000)).unwrap();
    let mut completions = SendCompletions::default();
    let sent = sender.send(near.as_fd(), 50_000, true, WAIT, &mut completions);
    assert_eq!(sent.unwrap(), Some(50_000));
    far.read_exact(&mut vec![0; 50_000]).unwrap();
    let sent = sender.send(near.as_fd(), 1, true, WAIT, &mut completions);
    assert_eq!(sent.unwrap(), Some(1));
    far.read_exact(&mut [0]).unwrap();
    while completions.through < 2 {
        sender.send(near.as_fd(), 1, true, WAIT, &mut completions).unwrap();
        far.read_exact(&mut [0]).unwrap();
    }
    assert_eq!(completions.copied, completions.through);
}

#[test]
fn a_send_that_does_not_end_in_time_goes_on_and_is_counted_once() {
    let (near, mut far) = pair();
    let mut sender = Sender::new(payload(1 << 20)).unwrap();
    let mut completions = SendCompletions::default();
    let mut all = 0;
    let mut send = |sender: &mut Sender, time| {
        let sent = sender.send(near.as_fd(), 1 << 20, true, time, &mut completions);
        let moved = sent.unwrap();
        all += moved.unwrap_or(0);
        moved.is_some()
    };
    while send(&mut sender, WAIT) {}
    assert!(!send(&mut sender, Duration::from_millis(1)), "nobody reads");
    let other = pair();
    let refused = sender.send(other.0.as_fd(), 1, true, WAIT, &mut SendCompletions::default());
    assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    assert!(sender.send_copied(other.0.as_fd(), 1).is_err());
    let reader = thread::spawn(move || {
        let mut got = Vec::new();
        far.read_to_end(&mut got).map(|_| got.len())
    });
    while !send(&mut sender, WAIT) {}
    near.shutdown(Shutdown::Write).unwrap();
    assert_eq!(reader.join().unwrap().unwrap(), all);
}

#[test]
fn a_send_under_way_ends_when_the_connection_is_shut_down() {
    let (near, _far) = pair();
    let mut sender = Sender::new(payload(1 << 20)).unwrap();
    let mut completions = SendCompletions::default();
    let mut send = || sender.send(near.as_fd(), 1 << 20, true, WAIT, &mut completions);
    while send().unwrap().is_some() {}
    near.shutdown(Shutdown::Both).unwrap();
    // The part that was accepted before the error counts as sent; the next send returns the error.
    let ended = (0..9).map(|_| send()).find_map(Result::err).unwrap();
    assert_eq!(ended.raw_os_error(), Some(libc::EPIPE));
}

#[test]
fn bytes_are_received_in_their_order_whatever_the_size_of_buffers() {
    const LEN: usize = 200_000;
    for (size, count, most) in [(65_536, 12, 100_000), (5, 2, 3), (1000, 3, 7), (1, 64, 9)] {
        let (mut near, far) = pair();
        let len = if size < 10 { LEN / 10 } else { LEN };
        let writer = thread::spawn(move || near.write_all(payload(len).bytes_mut()));
        let all = receive_all(&far, size, count, most);
        writer.join().unwrap().unwrap();
        let same = all == payload(len).bytes_mut();
        assert!(same, "{size} {count} {most}: {} bytes", all.len());
    }
}

#[test]
fn nothing_comes_in_time_and_then_the_other_end_closes() {
    let (near, far) = pair();
    let mut receiver = Receiver::new(10, 2).unwrap();
    assert_eq!(receiver.take(far.as_fd(), 9, None).unwrap(), None);
    let time = Some(Duration::from_millis(1));
    assert_eq!(receiver.take(far.as_fd(), 9, time).unwrap(), None);
    let other = receiver.take(near.as_fd(), 9, time).unwrap_err();
    assert_eq!(other.kind(), io::ErrorKind::InvalidInput);
    drop(near);
    for _ in 0..2 {
        let closed = receiver.take(far.as_fd(), 9, Some(WAIT)).unwrap();
        assert_eq!(closed, Some([].as_slice()));
    }
}

#[test]
fn what_ends_in_order_leaves_the_connection_and_bytes_that_nobody_took_are_told() {
    let (mut near, mut far) = pair();
    let mut receiver = Receiver::new(10, 2).unwrap();
    near.write_all(b"abc").unwrap();
    let took = receiver.take(far.as_fd(), 9, Some(WAIT)).unwrap();
    assert_eq!(took, Some(b"abc".as_slice()));
    receiver.end().unwrap();
    near.write_all(b"de").unwrap();
    let mut got = [0; 2];
    far.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"de", "nobody else receives any more");

    let mut receiver = Receiver::new(10, 2).unwrap();
    near.write_all(b"fgh").unwrap();
    let took = receiver.take(far.as_fd(), 2, Some(WAIT)).unwrap();
    assert_eq!(took, Some(b"fg".as_slice()));
    assert_eq!(receiver.end().unwrap_err().kind(), io::ErrorKind::InvalidData);
}

#[test]
fn one_that_is_dropped_in_the_middle_receives_no_more() {
    let (mut near, mut far) = pair();
    let mut receiver = Receiver::new(10, 2).unwrap();
    assert_eq!(receiver.take(far.as_fd(), 9, Some(Duration::ZERO)).unwrap(), None);
    drop(receiver);
    near.write_all(b"abc").unwrap();
    let mut got = [0; 3];
    far.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"abc");
}

#[test]
fn a_socket_that_cannot_says_so() {
    let (near, _far) = UnixStream::pair().unwrap();
    let mut sender = Sender::new(payload(10)).unwrap();
    let refused = sender.send(near.as_fd(), 10, true, WAIT, &mut SendCompletions::default());
    assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EOPNOTSUPP));
}

/// Makes a system call fail for this thread from now on, as a container may.
fn forbid(call: libc::c_long, errno: i32) {
    let step = |code: u32, jf, k| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    // The number of the system call is the first field of `struct seccomp_data`.
    let mut filter = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, call as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel copies the filter during the call; both calls affect only the calling thread (prctl(2)).
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    assert!(set, "{}", io::Error::last_os_error());
}

#[test]
fn where_it_is_forbidden_that_is_told() {
    assert!(may_send().is_ok() && may_receive().is_ok());
    for errno in [libc::EPERM, libc::ENOSYS] {
        let reported = thread::spawn(move || {
            forbid(libc::SYS_io_uring_setup, errno);
            [may_send(), may_receive()].map(|may| may.unwrap_err().raw_os_error())
        });
        assert_eq!(reported.join().unwrap(), [Some(errno); 2]);
    }
}

/// A file of so many bytes, each the number of its block of 4 KiB.
fn numbered(blocks: u8) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    (0..blocks).for_each(|block| file.write_all(&[block; 4096]).unwrap());
    file
}

/// Completes until nothing is in flight, and returns each completion: its slot, what moved, and the first byte.
fn drain(ring: &mut FileRing) -> Vec<(u32, io::Result<u32>, u8)> {
    let mut all = Vec::new();
    while ring.in_flight() > 0 {
        ring.complete(WAIT, |one| all.push((one.slot, one.moved, one.block[0]))).unwrap();
    }
    all
}

#[test]
fn blocks_of_a_file_are_read_and_written_where_they_belong() {
    let file = numbered(8);
    let mut ring = FileRing::new(file.as_file().as_fd(), 4, 4096).unwrap();
    let slots: Vec<u32> = (0..4)
        .map(|n| ring.start(Access::Read, n * 2 * 4096, |_, _| unreachable!()).unwrap().unwrap())
        .collect();
    assert_eq!((ring.has_room(), ring.in_flight()), (false, 4));
    assert_eq!(ring.start(Access::Read, 0, |_, _| ()).unwrap(), None, "all blocks are in use");
    let ended = drain(&mut ring);
    for (slot, moved, first) in &ended {
        let number = slots.iter().position(|one| one == slot).unwrap();
        assert_eq!((moved.as_ref().unwrap(), *first), (&4096, number as u8 * 2));
    }
    assert_eq!(ended.len(), 4);
    for sync in [false, true] {
        let write = Access::Write { sync };
        ring.start(write, 4096, |_, block| block.fill(70 + u8::from(sync))).unwrap().unwrap();
        assert_eq!(drain(&mut ring).len(), 1);
        let text = std::fs::read(file.path()).unwrap();
        let firsts: Vec<u8> = text.chunks(4096).map(|block| block[0]).collect();
        assert_eq!(firsts, [0, 70 + u8::from(sync), 2, 3, 4, 5, 6, 7]);
    }
}

#[test]
fn the_end_of_a_file_moves_nothing_and_a_refusal_is_an_error() {
    let file = numbered(1);
    let mut ring = FileRing::new(file.as_file().as_fd(), 2, 4096).unwrap();
    ring.start(Access::Read, 4096, |_, _| ()).unwrap();
    assert!(matches!(drain(&mut ring)[..], [(_, Ok(0), _)]));
    let read_only = std::fs::File::open(file.path()).unwrap();
    let mut ring = FileRing::new(read_only.as_fd(), 2, 4096).unwrap();
    ring.start(Access::Write { sync: false }, 0, |_, _| ()).unwrap();
    let [(_, Err(error), _)] = &drain(&mut ring)[..] else { panic!("it was written") };
    assert_eq!(error.raw_os_error(), Some(libc::EBADF));
}

#[test]
fn a_file_that_cannot_be_polled_says_so_when_it_is_read() {
    // Without O_DIRECT nothing is polled, whatever the device.
    let file = numbered(1);
    let mut ring = FileRing::polled(file.as_file().as_fd(), 1, 4096).unwrap();
    ring.start(Access::Read, 0, |_, _| ()).unwrap();
    let [(_, Err(error), _)] = &drain(&mut ring)[..] else { panic!("it was polled") };
    assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
}

#[test]
fn where_io_uring_is_forbidden_a_file_ring_says_so() {
    let refused = thread::spawn(|| {
        forbid(libc::SYS_io_uring_setup, libc::EPERM);
        FileRing::new(numbered(1).as_file().as_fd(), 1, 4096).err().unwrap().raw_os_error()
    });
    assert_eq!(refused.join().unwrap(), Some(libc::EPERM));
}
