//! Tests of which processes may share memory with a server.

use super::*;

#[test]
fn memory_is_shared_with_no_stranger_whoever_has_the_key() {
    let far = Harness::keyed();
    let options = ClientOptions { engine: "shm".into(), ..far.options(far.key.as_ref()) };
    let Err(PeerError::Refused { what, hint, .. }) = Client::connect(&options).map(drop) else {
        panic!("it is for the process that started the server alone");
    };
    assert!(what.contains("engine `shm` works within one host only"), "{what}");
    assert!(hint.contains("leave out the far end"), "{hint}");
    far.logged("works within one host only");
    far.still_serves();
}

#[test]
fn an_engine_that_a_server_does_not_have_is_refused_in_words() {
    let far = Harness::keyed();
    let options =
        ClientOptions { engine: "carrier-pigeon".into(), ..far.options(far.key.as_ref()) };
    let error = Client::connect(&options).map(drop).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("the server at {} refused: it has no engine `carrier-pigeon`", far.address)
    );
    assert_eq!(error.hint(), "update linerate on the far host");
}
