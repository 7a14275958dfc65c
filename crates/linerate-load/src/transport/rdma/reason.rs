//! Errors for calls and requests that failed, with the causes that can be checked at this end.

use linerate_ceiling::roce;
use linerate_facts::infiniband::{Layer, LinkState};
use linerate_facts::parse::{infiniband, sysctl};
use linerate_facts::rdma::RdmaEnd;
use linerate_sys::ibverbs::{Completion, Queue, Refused, Status};

use crate::LoadError;
use crate::transport::line::Line;
use linerate_host::{Live, Machine};

/// What was found at this end after a request had failed.
#[derive(Debug, Clone, Copy)]
struct Found {
    /// Whether the other end has closed the TCP connection.
    closed: bool,
    /// State of the RDMA port; `None` if it could not be read.
    state: Option<LinkState>,
    /// MTU of the network port; `None` if there is no network port, or if it could not be read.
    mtu: Option<u32>,
}

/// Calls that lock memory. The device also reads queues from memory, so making a queue locks memory too.
const PINS: [&str; 3] = ["ibv_reg_mr", "ibv_create_cq", "ibv_create_qp"];

/// Makes the error for a verbs call that failed.
#[cold]
pub(super) fn failed(line: &Line, Refused { call, source }: Refused) -> LoadError {
    let is_unpinned = PINS.contains(&call)
        && source.raw_os_error() == Some(rustix::io::Errno::NOMEM.raw_os_error());
    let error = line.failed(call, source);
    if !is_unpinned {
        return error;
    }
    LoadError::Failed {
        what: error.to_string(),
        hint: "raise the limit of locked memory (`ulimit -l` shows it in KiB): memlock in \
               /etc/security/limits.conf, LimitMEMLOCK= of a service",
    }
}

/// Makes the error for a request that was completed with an error.
#[cold]
pub(super) fn ended(
    line: &Line,
    port: &RdmaEnd,
    (queue, completion): (Queue, Completion),
) -> LoadError {
    let kind = match queue {
        Queue::Sent => "request",
        Queue::Received => "receive request",
    };
    let status = completion.status();
    let vendor = match completion.vendor_error() {
        0 => String::new(),
        code => format!(" (vendor error 0x{code:x})"),
    };
    let checked = match checked(line, port, status) {
        found if found.is_empty() => found,
        found => format!("; {found}"),
    };
    let Line { stream, set, .. } = line;
    LoadError::Failed {
        what: format!(
            "a {kind} of stream {stream} of set {set} ended with {status}{vendor}{checked}"
        ),
        hint: match status {
            Status::RETRIES_EXCEEDED => {
                "compare the MTU of both ports and of the switches between them, and let UDP port 4791 (RoCE) pass"
            }
            _ => "",
        },
    }
}

/// Checks the likely causes one by one, and returns the one that was found, as a fragment. If none was found, returns
/// for a request without acknowledgement which causes were excluded, and an empty text for others.
fn checked(line: &Line, end: &RdmaEnd, status: Status) -> String {
    let machine = Live::new();
    let path = format!("/sys/class/infiniband/{}/ports/{}/state", end.device, end.port);
    let state = machine.file(&path).ok();
    let state = state.and_then(|text| LinkState::of(infiniband::state(&text).ok()?));
    let path = format!("/sys/class/net/{}/mtu", end.netdev_name());
    let mtu = machine.file(&path).ok();
    let mtu = mtu.and_then(|text| u32::try_from(sysctl::number(&text).ok()?).ok());
    let closed = line.receive(&mut [0], false).is_err();
    let found = Found { closed, state, mtu };
    let gone = gone(end, found);
    gone.unwrap_or_else(|| match status {
        Status::RETRIES_EXCEEDED => unanswered(end, found),
        _ => String::new(),
    })
}

/// Returns what is gone: the other end's program, or this end's link; `None` if neither.
fn gone(end: &RdmaEnd, found: Found) -> Option<String> {
    if found.closed {
        return Some("the other end has closed its connection: its program has ended".to_owned());
    }
    let is_down = found.state.is_some_and(|state| !state.is_active());
    is_down.then(|| {
        let port = end.name();
        format!("{port} is no longer active: its link is down, or its subnet manager is gone")
    })
}

/// Returns why packets may not have been acknowledged, and which causes were excluded.
fn unanswered(end: &RdmaEnd, found: Found) -> String {
    let port = end.name();
    let packets = end.mtu;
    let netdev = end.netdev_name();
    let is_ethernet = end.layer == Some(Layer::Ethernet);
    if let Some(mtu) = found.mtu.filter(|_| is_ethernet)
        && roce::payload(mtu) < Some(packets)
    {
        return format!("packets of {packets} B do not fit into the MTU of {netdev}, {mtu} B");
    }
    let state = match found.state {
        Some(_) => format!("{port} is active"),
        None => format!("{port} could not be looked at"),
    };
    let fits = found.mtu.filter(|_| is_ethernet);
    let fits = fits.map_or_else(String::new, |mtu| {
        format!(", packets of {packets} B fit into the MTU of {netdev}, {mtu} B")
    });
    let path = if is_ethernet {
        "the other end's port is down, or the path loses packets, or those of UDP port 4791, or those of this size"
    } else {
        "the other end's port is down, or the path loses packets (`linerate fabric` shows its links)"
    };
    format!("{state}{fits}, and the other end's connection is open: {path}")
}

#[cfg(test)]
mod tests {
    use linerate_facts::rdma::Netdev;

    use super::*;

    fn result_of(layer: Layer, found: Found) -> String {
        let end = RdmaEnd {
            device: "mlx5_0".to_owned(),
            port: 1,
            layer: Some(layer),
            mtu: 4096,
            netdev: Some(Netdev { name: "eth0".to_owned(), ..Netdev::default() }),
            ..RdmaEnd::default()
        };
        gone(&end, found).unwrap_or_else(|| unanswered(&end, found))
    }

    #[test]
    fn the_first_cause_that_is_found_is_told() {
        let good = Found { closed: false, state: Some(LinkState::Active), mtu: Some(4200) };
        let closed = Found { closed: true, state: Some(LinkState::Down), ..good };
        let down = Found { state: Some(LinkState::Down), ..good };
        let small = Found { mtu: Some(4191), ..good };
        let unread = Found { state: None, mtu: None, ..good };
        for (layer, found, wanted) in [
            (Layer::Ethernet, closed, "its program has ended"),
            (Layer::Ethernet, down, "mlx5_0 port 1 is no longer active"),
            (Layer::Ethernet, small, "4096 B do not fit into the MTU of eth0, 4191 B"),
            (Layer::Ethernet, good, "UDP port 4791"),
            (Layer::Ethernet, unread, "could not be looked at"),
            (Layer::InfiniBand, small, "linerate fabric"),
        ] {
            let reported = result_of(layer, found);
            assert!(reported.contains(wanted), "{found:?}: {reported}");
        }
    }
}
