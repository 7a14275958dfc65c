//! Tests of the client with servers that break the protocol.

use std::sync::atomic::Ordering::Relaxed;

use super::*;

/// Starts a server that runs `script` with its listener, for one client.
fn fake(script: impl FnOnce(TcpListener) + Send + 'static) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (address, thread::spawn(move || script(listener)))
}

#[test]
fn a_server_that_refuses_while_data_connections_are_made_is_heard() {
    let (address, thread) = fake(|listener| {
        let (mut stream, _) = listener.accept().unwrap();
        // From here on, no data connection is accepted.
        drop(listener);
        stream.read_exact(&mut [0; COOKIE_LEN]).unwrap();
        stream.write_all(&[State::ParamExchange.encode()]).unwrap();
        let mut prefix = [0; 4];
        stream.read_exact(&mut prefix).unwrap();
        let mut params = vec![0; u32::from_be_bytes(prefix) as usize];
        stream.read_exact(&mut params).unwrap();
        let last = [State::CreateStreams, State::ServerTerminate].map(State::encode);
        stream.write_all(&last).unwrap();
        let _ = stream.read(&mut [0]);
    });
    let error = test(address, Direction::Forward, 1).unwrap_err();
    thread.join().unwrap();
    let stage = "while the data connections were made";
    assert!(error.what.ends_with(&format!("was stopped {stage}")), "{error:?}");
}

#[test]
fn a_stop_is_heeded_while_the_server_does_not_take_the_connection() {
    // The queue of this listener is full, and it accepts nothing: the kernel leaves further handshakes unanswered.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let address = listener.local_addr().unwrap();
    let short = Duration::from_millis(200);
    let mut held = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, short) {
        held.push(stream);
        assert!(held.len() < 100, "its queue is never full");
    }
    let stop = Arc::new(AtomicBool::new(false));
    let stopper = {
        let stop = Arc::clone(&stop);
        thread::spawn(move || {
            thread::sleep(short);
            stop.store(true, Relaxed);
        })
    };
    let knobs = Knobs::default();
    let error = tested_unless(address, Protocol::Tcp, Direction::Forward, knobs, &stop);
    stopper.join().unwrap();
    assert_eq!(error.unwrap_err().what, "interrupted");
}

/// Sends these bytes to the first client after its cookie; returns the client's error.
fn says(bytes: &'static [u8]) -> Failed {
    let (address, thread) = fake(move |listener| {
        let (mut stream, _) = listener.accept().unwrap();
        let mut cookie = [0; COOKIE_LEN];
        stream.read_exact(&mut cookie).unwrap();
        stream.write_all(bytes).unwrap();
        // Sends all bytes, and then reads the client's messages until the client
        // closes the connection. The client may do so after the first byte.
        let _ = stream.shutdown(Shutdown::Write);
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let error = test(address, Direction::Forward, 1).unwrap_err();
    thread.join().unwrap();
    error
}

#[test]
fn what_a_server_says_instead_of_beginning_is_told_in_words() {
    let strange = "does not speak iperf3's protocol";
    assert!(says(b"").what.contains(strange));
    let web = says(b"HTTP/1.1 400 Bad Request\r\n");
    assert!(web.what.contains(strange), "{web:?}");
    assert!(web.hint.contains("5201"));
    assert!(says(b"\xff").what.contains("busy"));
    assert!(says(b"\x0b").what.contains("was stopped"));
    let refused = says(b"\xfe\0\0\0\x8d\0\0\0\0");
    assert!(refused.what.contains("socket buffer"), "{refused:?}");
    let short = says(b"\xfe\0\0\0\x25\0\0\0\0");
    assert!(short.what.contains("its own limit"), "{short:?}");
    assert!(short.hint.contains("--time"));
    let unknown = says(b"\xfe\0\0\0\xff\0\0\0\0");
    assert!(unknown.what.contains("error 255 of iperf3"), "{unknown:?}");
    assert!(says(b"\xfe\0\0").what.contains("lost"));
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let error = test(nobody, Direction::Forward, 1).unwrap_err();
    assert!(error.what.starts_with("no iperf3 server at"), "{error:?}");
    assert!(error.hint.contains("iperf3 -s"));
    let error = test(nobody, Direction::Forward, 129).unwrap_err();
    assert!(error.what.starts_with("129 streams"), "{error:?}");
}

#[test]
fn a_server_that_asks_who_we_are_is_named_so() {
    let login = says(b"\x09\xfe\0\0\0\x8e\0\0\0\0");
    assert!(login.what.contains("a user name and a password"), "{login:?}");
    assert!(!login.hint.is_empty());
}

/// Tests with a server that runs a forward test in order. The server
/// then sends `results`; with `None`, it closes the connection instead.
fn ends_with(results: Option<&'static str>) -> Outcome {
    let (address, thread) = fake(move |listener| {
        let accept = || {
            let mut stream = listener.accept().unwrap().0;
            stream.read_exact(&mut [0; COOKIE_LEN]).unwrap();
            stream
        };
        let mut control = accept();
        control.write_all(&[9]).unwrap();
        let mut length = [0; 4];
        control.read_exact(&mut length).unwrap();
        let mut json = vec![0; u32::from_be_bytes(length) as usize];
        control.read_exact(&mut json).unwrap();
        control.write_all(&[10]).unwrap();
        let mut data = accept();
        control.write_all(&[1, 2]).unwrap();
        data.read_exact(&mut vec![0; 100_000]).unwrap();
        let Some(results) = results else {
            return;
        };
        let drain = thread::spawn(move || std::io::copy(&mut data, &mut std::io::sink()));
        control.read_exact(&mut [0]).unwrap();
        control.write_all(&[13]).unwrap();
        control.read_exact(&mut length).unwrap();
        let mut json = vec![0; u32::from_be_bytes(length) as usize];
        control.read_exact(&mut json).unwrap();
        control.write_all(&frame(results.as_bytes())).unwrap();
        control.write_all(&[14]).unwrap();
        let _ = control.read(&mut [0]);
        drop(control);
        let _ = drain.join();
    });
    let outcome = test(address, Direction::Forward, 1).unwrap();
    thread.join().unwrap();
    outcome
}

#[test]
fn what_was_measured_is_kept_when_a_server_dies_or_tells_nonsense() {
    for results in [None, Some("[]"), Some("{\"streams\":[{\"id\":1}]}")] {
        let outcome = ends_with(results);
        let broken = outcome.broken().unwrap();
        assert!(broken.contains("lost the iperf3 server"), "{broken}");
        assert!(outcome.error.is_some());
        assert!(outcome.bytes(Side::Near) > 0);
        assert_eq!(outcome.goodput(), None);
        assert!(outcome.lacks("goodput"));
    }
}

#[test]
fn an_old_server_lacks_its_time_and_one_that_boasts_is_not_believed() {
    let old = r#"{"cpu_util_total":1,"cpu_util_user":0,"cpu_util_system":1,
        "sender_has_retransmits":-1,"streams":[{"id":1,"bytes":100000,"retransmits":-1,
        "jitter":0,"errors":0,"packets":0}]}"#;
    let outcome = ends_with(Some(old));
    assert_eq!(outcome.broken(), None);
    assert!(outcome.goodput().is_some());
    assert!(outcome.lacks("time of the far end"));

    for boast in [
        r#"{"streams":[{"id":1,"bytes":9000000000000000}]}"#,
        r#"{"streams":[{"id":1,"bytes":100000,"start_time":0,"end_time":0.001}]}"#,
        r#"{"streams":[]}"#,
    ] {
        let outcome = ends_with(Some(boast));
        assert_eq!(outcome.goodput(), None, "{boast}");
        assert!(outcome.lacks("goodput"), "{boast}");
    }
}
