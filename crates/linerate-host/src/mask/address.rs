//! The hardware addresses of ports and the outer addresses of tunnels in a capture, and the numbers that replace them.

use std::net::IpAddr;

use super::super::Toward;

/// Number of hexadecimal digits of an address in the name of a port: an Ethernet address, or a GUID.
const DIGITS: [usize; 2] = [12, 16];

/// The addresses found so far. The position of an address determines the number that replaces it.
#[derive(Default)]
pub(super) struct Addresses(Vec<Vec<u8>>);

impl Addresses {
    /// Overwrites an address with the number that replaces it. An address of zeros stays.
    pub(super) fn replace(&mut self, address: &mut [u8]) {
        if address.iter().all(|&b| b == 0) {
            return;
        }
        let known = self.0.iter().position(|known| known == address);
        let at = known.unwrap_or_else(|| {
            self.0.push(address.to_vec());
            self.0.len() - 1
        });
        address.fill(0);
        for (to, from) in address.iter_mut().rev().zip((at + 1).to_le_bytes()) {
            *to = from;
        }
    }

    /// Overwrites the addresses in a query for a route.
    pub(super) fn of_ends(&mut self, toward: &mut Toward) {
        let Toward { peer, own } = toward;
        for ip in std::iter::once(peer).chain(own) {
            *ip = match *ip {
                IpAddr::V4(ip) => {
                    let mut octets = ip.octets();
                    self.replace(&mut octets);
                    octets.into()
                }
                IpAddr::V6(ip) => {
                    let mut octets = ip.octets();
                    self.replace(&mut octets);
                    octets.into()
                }
            };
        }
    }

    /// Replaces an address in the text form of /sys, such as `02:00:00:00:00:07`. Text that is not an address is
    /// emptied.
    pub(super) fn in_text(&mut self, text: &mut Vec<u8>) {
        let line = std::str::from_utf8(text).unwrap_or_default().trim_end();
        let bytes: Result<Vec<u8>, _> =
            line.split(':').map(|b| u8::from_str_radix(b, 16)).collect();
        let mut bytes = bytes.unwrap_or_default();
        self.replace(&mut bytes);
        let bytes: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
        *text = format!("{}\n", bytes.join(":")).into_bytes();
    }

    /// Replaces the address in the text form of a GUID, or of a GID, whose lower half is a GUID: groups of four digits.
    /// Returns whether the text is a GUID or a GID. The upper half of a GID names a subnet; only the default subnet
    /// stays.
    pub(super) fn in_groups(&mut self, text: &mut Vec<u8>) -> bool {
        const LINK_LOCAL: [u8; 8] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0];
        let line = String::from_utf8_lossy(text);
        let group = |group: &str| {
            let is_group = group.len() == 4 && group.bytes().all(|b| b.is_ascii_hexdigit());
            is_group.then(|| u16::from_str_radix(group, 16).ok())?
        };
        let groups: Option<Vec<u16>> = line.trim_end().split(':').map(group).collect();
        let Some(groups) = groups.filter(|groups| [4, 8].contains(&groups.len())) else {
            return false;
        };
        let mut bytes: Vec<u8> = groups.into_iter().flat_map(u16::to_be_bytes).collect();
        for half in bytes.chunks_mut(8).filter(|half| **half != LINK_LOCAL) {
            self.replace(half);
        }
        let groups: Vec<String> =
            bytes.chunks(2).map(|pair| format!("{:02x}{:02x}", pair[0], pair[1])).collect();
        *text = format!("{}\n", groups.join(":")).into_bytes();
        true
    }

    /// Replaces addresses in names of ports that udev makes: at least one letter, an `x`, and all digits of the address
    /// (`enx020000000007`).
    pub(super) fn in_names(&mut self, text: &mut [u8]) {
        let mut at = 0;
        while at + 2 < text.len() {
            let start = at + 2;
            at += 1;
            if !(text[start - 2].is_ascii_lowercase() && text[start - 1] == b'x') {
                continue;
            }
            let digits = text[start..].iter().take_while(|b| b.is_ascii_hexdigit());
            let length = digits.count();
            if DIGITS.contains(&length) {
                self.in_digits(&mut text[start..start + length]);
            }
        }
    }

    fn in_digits(&mut self, digits: &mut [u8]) {
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let mut bytes: Vec<u8> = digits.chunks(2).filter_map(byte).collect();
        self.replace(&mut bytes);
        for (pair, byte) in digits.chunks_mut(2).zip(bytes) {
            pair.copy_from_slice(format!("{byte:02x}").as_bytes());
        }
    }

    /// Replaces addresses in one name or path as [`Addresses::in_names`] does, and returns the result.
    pub(super) fn in_name(&mut self, name: &str) -> String {
        let mut bytes = name.as_bytes().to_vec();
        self.in_names(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::Addresses;

    #[test]
    fn an_address_is_the_same_number_wherever_it_stands() {
        let mut all = Addresses::default();
        let mut raw = [2, 0, 0, 0, 0, 7];
        all.replace(&mut raw);
        assert_eq!(raw, [0, 0, 0, 0, 0, 1]);
        let mut text = b"02:00:00:00:00:07\n".to_vec();
        all.in_text(&mut text);
        assert_eq!(text, b"00:00:00:00:00:01\n");
        assert_eq!(all.in_name("/a/enx020000000007/b"), "/a/enx000000000001/b");
        assert_eq!(all.in_name("wlx020000000008"), "wlx000000000002");
        let mut none = [0; 6];
        all.replace(&mut none);
        assert_eq!(none, [0; 6]);
    }

    #[test]
    fn a_guid_is_the_same_number_in_the_gid_of_its_port() {
        let mut all = Addresses::default();
        let mut masked = |text: &str| {
            let mut bytes = format!("{text}\n").into_bytes();
            assert!(all.in_groups(&mut bytes), "{text}");
            String::from_utf8(bytes).unwrap().trim_end().to_owned()
        };
        assert_eq!(masked("0002:c903:004c:5e32"), "0000:0000:0000:0001");
        let link_local = masked("fe80:0000:0000:0000:0002:c903:004c:5e32");
        assert_eq!(link_local, "fe80:0000:0000:0000:0000:0000:0000:0001");
        let subnet = masked("fec0:0000:0000:0007:0002:c903:004c:5e33");
        assert_eq!(subnet, "0000:0000:0000:0002:0000:0000:0000:0003");
        // Zeros stay: they identify nobody.
        assert_eq!(masked("0000:0000:0000:0000"), "0000:0000:0000:0000");
        let none = "fe80:0000:0000:0000:0000:0000:0000:0000";
        assert_eq!(masked(none), none);
        for other in ["", "0002:c903:004c", "0002:c903:004c:5e3x", "+002:c903:004c:5e32"] {
            let mut bytes = other.as_bytes().to_vec();
            assert!(!all.in_groups(&mut bytes), "{other}");
        }
    }

    #[test]
    fn what_is_no_address_stays_or_is_emptied() {
        let mut all = Addresses::default();
        for name in ["enx02000000000", "enx0200000000077", "0x020000000007", "eth0", "x"] {
            assert_eq!(all.in_name(name), name);
        }
        for text in ["\n", "nothing\n"] {
            let mut bytes = text.as_bytes().to_vec();
            all.in_text(&mut bytes);
            assert_eq!(bytes, b"\n");
        }
    }
}
