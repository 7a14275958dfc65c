//! The cryptography of connections: the Noise handshake of control connections, and the proofs of data connections.
//!
//! The prologue of the handshake is the whole preamble, including the server's nonce. A message recorded on one
//! connection is therefore worthless on another, and the versions cannot be changed on the path.

use hmac::{Hmac, Mac};
use linerate_record::wire::message::Secret;
use linerate_record::wire::preamble::{HELLO_LEN, REPLY_LEN};
use linerate_record::wire::proof::{CLAIM_LEN, Claim, PROOF_LEN, Prover, transcript};
use sha2::Sha256;
use snow::{Builder, HandshakeState, TransportState};
use subtle::ConstantTimeEq;

use super::keys::Key;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";

/// Size in bytes of each of the two handshake messages: a public key and an empty encrypted payload.
pub(crate) const MESSAGE_LEN: usize = 48;

/// Status byte that the server sends before its handshake message.
pub(crate) mod status {
    /// The server accepts the connection; its handshake message follows.
    pub(crate) const OK: u8 = 0;
    /// The client's key is not the key of the server.
    pub(crate) const WRONG_KEY: u8 = 1;
    /// The server has reached its limit of open sessions.
    pub(crate) const BUSY: u8 = 2;
}

/// The preamble of one connection: the near end's hello and the server's reply.
#[derive(Clone, Copy)]
pub(crate) struct Preamble {
    pub(crate) hello: [u8; HELLO_LEN],
    pub(crate) reply: [u8; REPLY_LEN],
}

impl Preamble {
    fn handshake(&self, key: &Key, initiator: bool) -> Result<HandshakeState, snow::Error> {
        let prologue = [&self.hello[..], &self.reply[..]].concat();
        let params = PATTERN.parse()?;
        let builder = Builder::new(params).prologue(&prologue)?.psk(0, key.bytes())?;
        if initiator { builder.build_initiator() } else { builder.build_responder() }
    }

    /// Makes the near end's handshake message. Returns it with the state that is needed to read the far end's message.
    pub(crate) fn initiate(
        &self,
        key: &Key,
    ) -> Result<([u8; MESSAGE_LEN], HandshakeState), snow::Error> {
        let mut state = self.handshake(key, true)?;
        let mut message = [0; MESSAGE_LEN];
        state.write_message(&[], &mut message)?;
        Ok((message, state))
    }

    /// Returns the far end's handshake message and the encryption state. Fails if the near end does not hold the key.
    pub(crate) fn respond(
        &self,
        key: &Key,
        message: &[u8; MESSAGE_LEN],
    ) -> Result<([u8; MESSAGE_LEN], TransportState), snow::Error> {
        let mut state = self.handshake(key, false)?;
        state.read_message(message, &mut [])?;
        let mut answer = [0; MESSAGE_LEN];
        state.write_message(&[], &mut answer)?;
        Ok((answer, state.into_transport_mode()?))
    }

    /// Computes the proof that the end `prover`, which makes or accepts `claim`, holds the secret.
    pub(crate) fn prove(&self, prover: Prover, secret: &Secret, claim: &Claim) -> [u8; PROOF_LEN] {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&secret.0).expect("an HMAC takes keys of any size");
        mac.update(&transcript(prover, &self.hello, &self.reply, claim));
        mac.finalize().into_bytes().into()
    }

    /// Returns whether `proof` is the proof that [`Self::prove`] computes.
    pub(crate) fn verify(
        &self,
        prover: Prover,
        secret: &Secret,
        claim: &Claim,
        proof: &[u8; PROOF_LEN],
    ) -> bool {
        self.prove(prover, secret, claim).ct_eq(proof).into()
    }
}

/// Finishes the near end's handshake with the far end's message.
pub(crate) fn conclude(
    mut state: HandshakeState,
    answer: &[u8; MESSAGE_LEN],
) -> Result<TransportState, snow::Error> {
    state.read_message(answer, &mut [])?;
    state.into_transport_mode()
}

/// Returns random bytes that nobody can predict.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("Linux always has random numbers");
    bytes
}

// A claim on the wire contains a proof; its size is part of the protocol.
const _: () = assert!(CLAIM_LEN == 40 + PROOF_LEN);

#[cfg(test)]
mod tests {
    use super::*;

    fn preamble(seed: u8) -> Preamble {
        Preamble { hello: [seed; HELLO_LEN], reply: [seed; REPLY_LEN] }
    }

    fn shake(near: (&Preamble, &Key), far: (&Preamble, &Key)) -> Option<[TransportState; 2]> {
        let (message, state) = near.0.initiate(near.1).ok()?;
        let (answer, far) = far.0.respond(far.1, &message).ok()?;
        Some([conclude(state, &answer).ok()?, far])
    }

    #[test]
    fn equal_keys_and_preambles_meet() {
        let (p, key) = (preamble(1), Key::generate());
        let [mut near, mut far] = shake((&p, &key), (&p, &key)).unwrap();
        let (mut sealed, mut plain) = ([0; 64], [0; 64]);
        let n = near.write_message(b"hello", &mut sealed).unwrap();
        let n = far.read_message(&sealed[..n], &mut plain).unwrap();
        assert_eq!(&plain[..n], b"hello");
    }

    #[test]
    fn another_key_or_preamble_does_not() {
        let (p, key) = (preamble(1), Key::generate());
        assert!(shake((&p, &key), (&p, &Key::generate())).is_none());
        assert!(shake((&p, &key), (&preamble(2), &key)).is_none());
    }

    #[test]
    fn a_proof_holds_for_its_prover_secret_and_claim_alone() {
        let (p, secret) = (preamble(1), Secret([5; 32]));
        let claim = Claim::decode(&[9; CLAIM_LEN]);
        let proof = p.prove(Prover::Near, &secret, &claim);
        assert!(p.verify(Prover::Near, &secret, &claim, &proof));
        assert!(!p.verify(Prover::Far, &secret, &claim, &proof));
        assert!(!p.verify(Prover::Near, &Secret([6; 32]), &claim, &proof));
        assert!(!preamble(2).verify(Prover::Near, &secret, &claim, &proof));
        let other = Claim { stream: 0, ..claim };
        assert!(!p.verify(Prover::Near, &secret, &other, &proof));
    }
}
