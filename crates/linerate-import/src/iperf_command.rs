//! What the command of iperf 2 or iperf3 says of a transfer.

use linerate_record::reported::{Carrier, Transfer};
use linerate_units::{Bytes, Rate};

use crate::iperf_row::number;
use crate::launch::{behind, bound};
use crate::reading::{flag, option};

/// Bits per second that each stream of datagrams has where none are asked for.
//= iperf3: iperf.h, UDP_RATE; iperf2: Settings.cpp, kDefault_UDPRate
const UDP_RATE: f64 = 1024.0 * 1024.0;

/// What the options of the command say of a transfer: the output has it only with `-V`.
pub(crate) fn asked(one: &mut Transfer, command: &str) {
    let count = |names: &[&str]| option(command, names).and_then(|text| text.parse::<u32>().ok());
    if let Some(streams) = count(&["-P", "--parallel"]).filter(|n| *n > 0) {
        one.streams.get_or_insert(streams);
    }
    if flag(command, &["-u", "--udp"]) {
        one.carrier = Carrier::Udp;
    }
    // Each stream has the rate that was asked for.
    let streams = one.streams.unwrap_or(1).max(1);
    let rate =
        option(command, &["-b", "--bitrate", "--bandwidth"]).and_then(|text| scaled(text, 1e3));
    let rate = rate.filter(|rate| *rate > 0.0).map(|rate| rate * f64::from(streams));
    let has = |start: &str| command.split_whitespace().any(|word| word.starts_with(start));
    let is_usual = one.carrier == Carrier::Udp && has("-c") && !has("-b") && !has("--b");
    let usual = is_usual.then_some(UDP_RATE * f64::from(streams));
    one.asked = one.asked.or(rate.or(usual).map(|rate| Rate(rate as u64)));
    let binary = |names: &[&str]| option(command, names).and_then(|text| scaled(text, 1024.0));
    let bytes = |names: &[&str]| binary(names).map(|bytes| Bytes(bytes as u64));
    one.buffer = one.buffer.or(bytes(&["-w", "--window"]));
    one.size = one.size.or(bytes(&["-l", "--length"]));
    one.segment = one.segment.or(count(&["-M", "--set-mss"]));
    let (cpu, node) = bound(command);
    // `-A 3,5`: the CPU of this end, and that of the other one.
    let own = option(command, &["-A", "--affinity"]).and_then(|list| list.split([',', '/']).next());
    one.setup.cpu = cpu.or_else(|| own?.parse().ok());
    one.setup.node = node;
    if node.is_some() || cpu.is_some() {
        one.setup.command = behind(command);
    }
    let congestion = option(command, &["-C", "--congestion"]).map(str::to_owned);
    one.congestion = one.congestion.take().or(congestion);
}

/// `500M`, `1.5G`, `64k`, with the step from one letter to the next one.
//= iperf3: units.c, unit_atof and unit_atof_rate
fn scaled(text: &str, step: f64) -> Option<f64> {
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (value, unit) = text.split_at(end);
    let power = match unit.to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    Some(number(value)?.0 * step.powi(power))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_plan::path::Direction;
    use linerate_record::reported::Counted;

    #[test]
    fn options_are_facts_of_a_transfer() {
        let of = |command: &str| {
            let mut one =
                Transfer::new(Carrier::Tcp, Direction::Forward, Rate(1), Counted::Receiver);
            asked(&mut one, command);
            one
        };
        let one = of("iperf3 -c h -P 4 -b 500M -w 2M -l 128k -M 1400 -C bbr");
        assert_eq!((one.streams, one.asked), (Some(4), Some(Rate(2_000_000_000))));
        assert_eq!((one.buffer, one.size), (Some(Bytes(2 << 20)), Some(Bytes(128 << 10))));
        assert_eq!((one.segment, one.congestion.as_deref()), (Some(1400), Some("bbr")));
        let one = of("iperf3 -u -c h --bitrate=1.5g -P2");
        assert_eq!(
            (one.carrier, one.streams, one.asked),
            (Carrier::Udp, Some(2), Some(Rate(3_000_000_000)))
        );
        // Datagrams have a rate without one, of a client.
        assert_eq!(of("iperf3 -u -c h").asked, Some(Rate(1_048_576)));
        assert_eq!(of("iperf -s -u").asked, None);
        let of_place = |command: &str| (of(command).setup.cpu, of(command).setup.node);
        assert_eq!(of_place("numactl -N 1 iperf3 -c h -C bbr"), (None, Some(1)));
        assert_eq!(of_place("taskset -c 3 iperf3 -c h"), (Some(3), None));
        assert_eq!(of_place("iperf3 -c h -A 7,9"), (Some(7), None));
        // What is bound is compared with the same command alone.
        assert_eq!(of("sudo numactl -N 1 iperf3 -c h -t 3").setup.command, "iperf3 -c h -t 3");
        assert_eq!(of("iperf3 -c h -t 3").setup.command, "");
        // No limit, and no number.
        assert_eq!((of("iperf3 -c h -b 0").asked, of("iperf3 -c h -b x").asked), (None, None));
    }
}
