//! The hello: what each end of a queue pair sends to the other one before they are connected.

use linerate_plan::transport::rdma::Addressing;
use linerate_sys::ibverbs::Remote;

/// Size of a hello in bytes.
pub(super) const HELLO_BYTES: usize = 80;

/// Beginning of a hello: name and version.
const MAGIC: [u8; 5] = *b"lnrv\x01";

/// What an end sends instead of a hello if it has no queue pair.
pub(super) const NONE: [u8; HELLO_BYTES] = [0; HELLO_BYTES];

/// One end's queue pair, with its port and its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) addressing: Addressing,
    /// Payload of the largest packet on the port's link, in bytes.
    pub(super) mtu: u16,
    pub(super) lid: u16,
    /// Most RDMA reads that this end answers at a time.
    pub(super) reads_in: u8,
    /// Number of the queue pair, which has 24 bits.
    pub(super) number: u32,
    /// Sequence number of its first packet, which has 24 bits.
    pub(super) first_packet: u32,
    pub(super) gid: [u8; 16],
    pub(super) memory: Remote,
}

impl Hello {
    /// Encodes the hello, with numbers in network byte order.
    pub(super) fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut raw = [0; HELLO_BYTES];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            raw[at..][..bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&MAGIC);
        put(&[self.addressing as u8, self.reads_in]);
        put(&self.mtu.to_be_bytes());
        put(&self.lid.to_be_bytes());
        put(&self.number.to_be_bytes());
        put(&self.first_packet.to_be_bytes());
        put(&self.gid);
        put(&self.memory.address.to_be_bytes());
        put(&self.memory.key.to_be_bytes());
        put(&self.memory.len.to_be_bytes());
        raw
    }

    /// Decodes a hello that [`Hello::encode`] encoded. The error explains what is wrong, as a lowercase fragment.
    pub(super) fn decode(raw: &[u8; HELLO_BYTES]) -> Result<Self, String> {
        if *raw == NONE {
            // The other end reports the reason why it has no queue pair.
            return Err("given up by the other end, which has no queue pair".to_owned());
        }
        let mut rest = &raw[..];
        if take::<5>(&mut rest) != MAGIC {
            return Err("the other end introduced no queue pair".to_owned());
        }
        let [addressing, reads_in] = take(&mut rest);
        let addressing = Addressing::ALL
            .into_iter()
            .find(|known| *known as u8 == addressing)
            .ok_or_else(|| format!("the other end has ports of an unknown kind, {addressing}"))?;
        let hello = Self {
            addressing,
            reads_in,
            mtu: u16::from_be_bytes(take(&mut rest)),
            lid: u16::from_be_bytes(take(&mut rest)),
            number: u32::from_be_bytes(take(&mut rest)),
            first_packet: u32::from_be_bytes(take(&mut rest)),
            gid: take(&mut rest),
            memory: Remote {
                address: u64::from_be_bytes(take(&mut rest)),
                key: u32::from_be_bytes(take(&mut rest)),
                len: u64::from_be_bytes(take(&mut rest)),
            },
        };
        hello.check()?;
        Ok(hello)
    }

    /// Returns whether another queue pair uses the same port and has the same limits.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        let of = |hello: &Self| (hello.addressing, hello.mtu, hello.lid, hello.reads_in, hello.gid);
        of(self) == of(other)
    }

    fn check(&self) -> Result<(), String> {
        if !(256..=4096).contains(&self.mtu) || !self.mtu.is_power_of_two() {
            return Err(format!("the other end has packets of {} B", self.mtu));
        }
        if self.number >> 24 > 0 || self.first_packet >> 24 > 0 {
            return Err("the other end has a number of more than 24 bits".to_owned());
        }
        Ok(())
    }
}

/// Takes the next N bytes. There are always enough, because the size of a hello is fixed.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (taken, left) = rest.split_at(N);
    *rest = left;
    let mut bytes = [0; N];
    bytes.copy_from_slice(taken);
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hello() -> impl Strategy<Value = Hello> {
        let numbers = (0_u32..1 << 24, 0_u32..1 << 24);
        let memory = (any::<u64>(), any::<u32>(), any::<u64>());
        let port = (0_usize..3, 8_u32..13, any::<u16>(), any::<u8>(), any::<[u8; 16]>());
        (numbers, memory, port).prop_map(|((number, first_packet), (address, key, len), port)| {
            let (addressing, mtu, lid, reads_in, gid) = port;
            Hello {
                addressing: Addressing::ALL[addressing],
                mtu: 1 << mtu,
                lid,
                reads_in,
                number,
                first_packet,
                gid,
                memory: Remote { address, key, len },
            }
        })
    }

    proptest! {
        #[test]
        fn a_hello_is_read_as_it_was_written(hello in hello()) {
            prop_assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
        }

        #[test]
        fn any_bytes_are_a_hello_or_an_error(raw in any::<[u8; HELLO_BYTES]>(), is_hello in any::<bool>()) {
            let mut raw = raw;
            if is_hello {
                raw[..5].copy_from_slice(&MAGIC);
            }
            if let Ok(hello) = Hello::decode(&raw) {
                prop_assert!(hello.number < 1 << 24 && hello.mtu >= 256);
            }
        }
    }

    #[test]
    fn an_end_without_a_queue_pair_says_so() {
        assert!(Hello::decode(&NONE).unwrap_err().contains("given up"));
    }

    #[test]
    fn numbers_are_bounded_on_both_sides() {
        let good = Hello {
            addressing: Addressing::RoceV2,
            mtu: 1024,
            lid: 0,
            reads_in: 1,
            number: (1 << 24) - 1,
            first_packet: 0,
            gid: [0; 16],
            memory: Remote::default(),
        };
        let decoded = |hello: Hello| Hello::decode(&hello.encode()).is_ok();
        assert!(decoded(good));
        assert!(!decoded(Hello { number: 1 << 24, ..good }));
        assert!(!decoded(Hello { first_packet: 1 << 24, ..good }));
        for (mtu, is_good) in
            [(128, false), (256, true), (4096, true), (8192, false), (1500, false)]
        {
            assert_eq!(decoded(Hello { mtu, ..good }), is_good, "{mtu}");
        }
    }
}
