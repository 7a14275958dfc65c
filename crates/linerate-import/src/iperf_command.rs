//! Settings of a transfer, from the command of iperf 2 or iperf3.

use linerate_record::reported::{Carrier, Transfer};
use linerate_units::{Bytes, Rate};

use crate::iperf_row::number;
use crate::launch::{behind, bound};
use crate::reading::{flag, option};

/// Rate of each stream of datagrams in bits per second, if the command requests none.
//= iperf3: iperf.h, UDP_RATE; iperf2: Settings.cpp, kDefault_UDPRate
const UDP_RATE: f64 = 1024.0 * 1024.0;

/// Adds what the options of the command request. The output itself prints it only with `-V`.
pub(crate) fn requested(one: &mut Transfer, command: &str) {
    let count = |names: &[&str]| option(command, names).and_then(|text| text.parse::<u32>().ok());
    if let Some(streams) = count(&["-P", "--parallel"]).filter(|n| *n > 0) {
        one.streams.get_or_insert(streams);
    }
    if flag(command, &["-u", "--udp"]) {
        one.carrier = Carrier::Udp;
    }
    // Each stream has the requested rate.
    let streams = one.streams.unwrap_or(1).max(1);
    let rate =
        option(command, &["-b", "--bitrate", "--bandwidth"]).and_then(|text| scaled(text, 1e3));
    let rate = rate.filter(|rate| *rate > 0.0).map(|rate| rate * f64::from(streams));
    let has = |start: &str| command.split_whitespace().any(|word| word.starts_with(start));
    let is_usual = one.carrier == Carrier::Udp && has("-c") && !has("-b") && !has("--b");
    let usual = is_usual.then_some(UDP_RATE * f64::from(streams));
    one.requested = one.requested.or(rate.or(usual).map(|rate| Rate(rate as u64)));
    let binary = |names: &[&str]| option(command, names).and_then(|text| scaled(text, 1024.0));
    let bytes = |names: &[&str]| binary(names).map(|bytes| Bytes(bytes as u64));
    one.buffer = one.buffer.or(bytes(&["-w", "--window"]));
    one.size = one.size.or(bytes(&["-l", "--length"]));
    one.segment = one.segment.or(count(&["-M", "--set-mss"]));
    let (cpu, node) = bound(command);
    // `-A 3,5` gives the CPU of this end, and that of the far end.
    let own = option(command, &["-A", "--affinity"]).and_then(|list| list.split([',', '/']).next());
    one.setup.cpu = cpu.or_else(|| own?.parse().ok());
    one.setup.node = node;
    if node.is_some() || cpu.is_some() {
        one.setup.command = behind(command);
    }
    let congestion = option(command, &["-C", "--congestion"]).map(str::to_owned);
    one.congestion = one.congestion.take().or(congestion);
}

/// Reads a number such as `500M`, `1.5G` or `64k`; `step` is the factor from one letter to the next.
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
            requested(&mut one, command);
            one
        };
        let one = of("iperf3 -c h -P 4 -b 500M -w 2M -l 128k -M 1400 -C bbr");
        assert_eq!((one.streams, one.requested), (Some(4), Some(Rate(2_000_000_000))));
        assert_eq!((one.buffer, one.size), (Some(Bytes(2 << 20)), Some(Bytes(128 << 10))));
        assert_eq!((one.segment, one.congestion.as_deref()), (Some(1400), Some("bbr")));
        let one = of("iperf3 -u -c h --bitrate=1.5g -P2");
        assert_eq!(
            (one.carrier, one.streams, one.requested),
            (Carrier::Udp, Some(2), Some(Rate(3_000_000_000)))
        );
        // Datagrams have a rate even if the command of a client requests none.
        assert_eq!(of("iperf3 -u -c h").requested, Some(Rate(1_048_576)));
        assert_eq!(of("iperf -s -u").requested, None);
        let of_place = |command: &str| (of(command).setup.cpu, of(command).setup.node);
        assert_eq!(of_place("numactl -N 1 iperf3 -c h -C bbr"), (None, Some(1)));
        assert_eq!(of_place("taskset -c 3 iperf3 -c h"), (Some(3), None));
        assert_eq!(of_place("iperf3 -c h -A 7,9"), (Some(7), None));
        // The command without its binding is kept, to compare it with runs of the same command.
        assert_eq!(of("sudo numactl -N 1 iperf3 -c h -t 3").setup.command, "iperf3 -c h -t 3");
        assert_eq!(of("iperf3 -c h -t 3").setup.command, "");
        // A rate of 0 is no limit, and `x` is no number.
        assert_eq!(
            (of("iperf3 -c h -b 0").requested, of("iperf3 -c h -b x").requested),
            (None, None)
        );
    }
}
