//! Parses `/proc/net/route`: the IPv4 routes, as text.

use super::text;

/// Flag `RTF_UP`: the route can be used.
//= include/uapi/linux/route.h
const UP: u64 = 1;

/// Names of the ports of the default routes with the lowest metric, each once.
pub fn default_ports(text: &[u8]) -> Vec<String> {
    let lines = text::lines(text, "route").filter_map(Result::ok);
    let all: Vec<(u64, String)> = lines.filter_map(default_route).collect();
    let least = all.iter().map(|(metric, _)| *metric).min();
    let best = all.into_iter().filter(|(metric, _)| Some(*metric) == least);
    let mut names: Vec<String> = best.map(|(_, name)| name).collect();
    names.dedup();
    names
}

/// The metric and the port's name, if a line is a default route. Its fields: name, destination, gateway, flags, two
/// counts, metric, mask.
fn default_route(line: &[u8]) -> Option<(u64, String)> {
    let fields: Vec<&[u8]> = text::fields(line).collect();
    let [name, to, _, flags, _, _, metric, mask, ..] = fields[..] else {
        return None;
    };
    let number = text::hexadecimal;
    let is_default = number(to)? == 0 && number(mask)? == 0 && number(flags)? & UP != 0;
    is_default.then_some((text::decimal(metric)?, text::trimmed(name)))
}

/// Overwrites all addresses, and all routes other than default routes.
pub fn mask(text: &mut Vec<u8>) {
    let lines: Vec<&[u8]> = text::lines(text, "route").filter_map(Result::ok).collect();
    let kept = lines.iter().filter(|line| default_route(line).is_some());
    let masked = kept.map(|line| {
        let fields = text::fields(line).enumerate();
        let fields = fields.map(|(at, field)| if at == 2 { b"00000000" } else { field });
        [&fields.collect::<Vec<_>>().join(&b'\t')[..], b"\n"].concat()
    });
    let masked: Vec<Vec<u8>> = masked.collect();
    let head = b"Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n".to_vec();
    *text = [head, masked.concat()].concat();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{default_ports, mask};

    const REAL: &[u8] =
        b"Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        eth0\t00000000\t0100A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
        wlan0\t00000000\t0100A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
        tun0\t00000000\t0100A8C0\t0003\t0\t0\t50\t00000080\t0\t0\t0\n\
        eth0\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";

    #[test]
    fn the_default_route_with_the_lowest_metric_counts() {
        assert_eq!(default_ports(REAL), ["wlan0"]);
        assert_eq!(default_ports(b""), [""; 0]);
        assert_eq!(default_ports(b"eth0 00000000\n"), [""; 0]);
        let mut masked = REAL.to_vec();
        mask(&mut masked);
        assert_eq!(default_ports(&masked), ["wlan0"]);
        let text = String::from_utf8_lossy(&masked);
        assert!(!text.contains("A8C0") && !text.contains("tun0"), "{text}");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = default_ports(&bytes);
            mask(&mut bytes.clone());
        }
    }
}
