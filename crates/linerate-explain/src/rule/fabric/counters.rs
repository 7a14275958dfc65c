//! A rule about the errors that InfiniBand ports count.

use super::super::super::Explained;
use super::super::Remark;
use linerate_facts::finding::Stands;
use linerate_facts::infiniband::{IbDevice, IbPort};
use linerate_facts::nic::Counter;

/// Least share of packets with an error that makes a path slower.
const ERRORS_MATTER: f64 = 1e-4;
/// Share of bits with an error above which a cable or port violates its specification.
//= InfiniBand Architecture Specification 1.4, volume 2, chapter 6: at most one error in 10^12 bits
const BIT_ERRORS: f64 = 1e-12;

/// Counters of errors, each with the counter of packets that they are a share of.
const SHARES: [(&str, &str); 3] = [
    ("port_rcv_errors", "port_rcv_packets"),
    ("symbol_error", "port_rcv_packets"),
    ("port_xmit_discards", "port_xmit_packets"),
];

fn value(counters: &[Counter], name: &str) -> Option<u64> {
    let found = counters.iter().find(|counter| counter.name == name);
    found.map(|counter| counter.value)
}

/// The growth of a counter between two readings; `None` if there is only one reading.
fn grown(port: &IbPort, name: &str) -> Option<u64> {
    value(&port.counters, name)?.checked_sub(value(&port.before, name)?)
}

/// Remarks on the errors of ports, as shares of the packets that the ports counted.
pub(in crate::rule) fn errors(explained: &Explained<'_>) -> Vec<Remark> {
    let devices = explained.material.rdma_devices();
    let ports = devices.flat_map(|(side, device)| {
        let ports = device.ports.iter();
        ports.map(move |port| (side, (device, port)))
    });
    ports.filter_map(|(side, port)| Some(damaged(port)?.at_if(side))).collect()
}

fn damaged((device, port): (&IbDevice, &IbPort)) -> Option<Remark> {
    let name = format!("{} port {}", device.called(), port.number);
    let two = SHARES
        .iter()
        .filter_map(|(errors, of)| Some((*errors, grown(port, errors)?, grown(port, of)?)));
    let mut two = two.collect::<Vec<_>>();
    two.retain(|(_, errors, _)| *errors > 0);
    let share = |errors: u64, of: u64| errors as f64 / (of as f64).max(1.0);
    if let Some((counter, errors, of)) =
        two.iter().max_by(|a, b| share(a.1, a.2).total_cmp(&share(b.1, b.2)))
    {
        let what = format!(
            "{name}: {counter} grew by {errors} between two readings, beside {of} packets ({:.2} %)",
            share(*errors, *of) * 100.0
        );
        let remark = Remark::new(Stands::Found, what)
            .because("a cable, a transceiver or a port is bad, or the other end discards");
        return Some(if share(*errors, *of) >= ERRORS_MATTER {
            remark.names(&["path-loss"])
        } else {
            remark
        });
    }
    once(port, &name)
}

/// Remark on errors that cannot be compared with the packets between two readings: they may be old.
fn once(port: &IbPort, name: &str) -> Option<Remark> {
    let read = |counter: &str| value(&port.counters, counter).filter(|count| *count > 0);
    let all = SHARES.iter().filter_map(|(errors, of)| Some((*errors, read(errors)?, *of)));
    let (counter, errors, of) = all.max_by_key(|(_, errors, _)| *errors)?;
    let share = read(of).map(|packets| errors as f64 / packets as f64);
    let words = share.map_or(String::new(), |share| format!(", {share:.1e} of {of}"));
    let bits = value(&port.counters, "port_rcv_data").map(|data| data as f64 * 32.0);
    let is_bad =
        counter == "symbol_error" && bits.is_some_and(|bits| errors as f64 > bits * BIT_ERRORS);
    let grown = grown(port, counter);
    let about = match grown {
        None => "one reading does not show whether they still grow".to_owned(),
        Some(0) => "they did not grow between the two readings: they are old".to_owned(),
        Some(more) => format!("they grew by {more} between the two readings"),
    };
    let stands = if grown.is_some_and(|more| more > 0) { Stands::Found } else { Stands::Doubt };
    let mut remark = Remark::new(stands, format!("{name}: {counter} {errors}{words}: {about}"));
    if is_bad {
        remark = remark.because("that is more than one error in 10^12 bits, which the standard allows, if all of them are of this time");
    }
    Some(match grown {
        None => remark
            .next("the same twice, a minute apart, while the path is in use", "sudo perfquery"),
        Some(_) => remark,
    })
}
