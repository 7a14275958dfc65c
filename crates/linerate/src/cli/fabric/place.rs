//! Finds the node or port in a network that a user's words name.

use anyhow::anyhow;
use linerate_fabric::mad::Attribute;
use linerate_fabric::network::{Network, PortAt};
use linerate_facts::infiniband::Guid;

use super::super::exit::Failure;

/// Returns the place that a user's words name: a LID, the GUID of a node or port, the name of a node, or a name with
/// the number of a port (`SRV:2`).
pub(super) fn place(network: &Network, text: &str) -> Result<PortAt, Failure> {
    if let Some(at) = by_number(network, text) {
        return Ok(at);
    }
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if network.by_name(text).is_empty() => (name, port.parse().ok()),
        _ => (text, None),
    };
    match (network.by_name(name).as_slice(), port) {
        ([node], None) if name == text => Ok(of_node(network, *node)),
        ([node], Some(port)) if network.nodes[*node].ports.contains_key(&port) => {
            Ok(PortAt { node: *node, port })
        }
        ([] | [_], _) => Err(unknown(network, text)),
        (several, _) => {
            let names: Vec<String> =
                several.iter().map(|node| network.nodes[*node].info.guid.to_string()).collect();
            Err(Failure::usage(anyhow!("several nodes are called `{name}`"))
                .hint(format!("name one by its GUID: {}", names.join(", "))))
        }
    }
}

/// Returns a place with its LID, by which packets reach it.
pub(super) fn addressed(network: &Network, text: &str) -> Result<(PortAt, u16), Failure> {
    let at = place(network, text)?;
    let name = network.name(at);
    let lid = network.nodes[at.node].lid(at.port).ok_or_else(|| {
        Failure::not_measured(anyhow!("{name} has no LID: no subnet manager serves it"))
            .hint("linerate fabric")
    })?;
    let owners: Vec<String> = network.all_by_lid(lid).map(|at| network.name(at)).collect();
    if owners.len() > 1 {
        let error = anyhow!(
            "several ports have the LID {lid}: {}. A packet reaches one of them",
            owners.join(", ")
        );
        return Err(Failure::not_measured(error).hint("linerate fabric"));
    }
    Ok((at, lid))
}

fn by_number(network: &Network, text: &str) -> Option<PortAt> {
    let number = number(text)?;
    let lid = u16::try_from(number).ok().and_then(|lid| network.by_lid(lid));
    let guid = Guid(number);
    let by_port = || {
        let mut ports = network.ports();
        let found = ports.find(|(_, port)| port.guid == Some(guid));
        found.map(|(at, _)| at)
    };
    let by_node = || Some(of_node(network, network.by_guid(guid)?));
    lid.or_else(by_node).or_else(by_port)
}

/// A number: decimal, hexadecimal with `0x`, or a GUID as the kernel and `ip` print it, with colons.
fn number(text: &str) -> Option<u64> {
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    let digits = text.replace(':', "");
    let is_guid = digits.len() == 16 && digits.len() < text.len();
    if is_guid {
        return u64::from_str_radix(&digits, 16).ok();
    }
    text.parse().ok()
}

/// The port of a node that belongs to this network; port 0 for a switch.
fn of_node(network: &Network, node: usize) -> PortAt {
    let of = &network.nodes[node];
    let port = if of.is_switch() { 0 } else { of.info.local_port };
    PortAt { node, port }
}

/// The failure if no node has the name. If a part of the network did not reply, the node may be in that part.
fn unknown(network: &Network, text: &str) -> Failure {
    let description = Attribute::NodeDescription.name();
    let is_nameless = network.gaps.iter().any(|gap| gap.what == description);
    if network.is_partly_unseen() || is_nameless {
        let error =
            anyhow!("no node that answered is `{text}`, and a part of the network did not answer");
        return Failure::not_measured(error).hint("linerate fabric");
    }
    Failure::usage(anyhow!("no node of this network is `{text}`"))
        .hint("linerate fabric --explain lists all links with the names of both ends")
}

#[cfg(test)]
mod tests {
    use linerate_sim::fabric::Fake;

    use super::*;

    #[test]
    fn places_have_many_names() {
        let mut fake = Fake::star(3);
        fake.manage("H1", 1);
        let network = fake.network("H1");
        let guid = network.nodes[network.by_name("H2")[0]].info.guid;
        let hex = format!("{:016x}", guid.0);
        let groups = [0, 4, 8, 12].map(|at| &hex[at..at + 4]).join(":");
        let names = ["H2", "H2:1", &guid.to_string(), &guid.0.to_string(), &groups, &guid.bytes()];
        for name in names.map(ToOwned::to_owned) {
            let at = place(&network, &name).map_err(|error| error.words());
            assert_eq!(at.map(|at| network.name(at)), Ok("H2 port 1".to_owned()), "{name}");
        }
        assert_eq!(addressed(&network, "SW").map_err(|e| e.words()).unwrap().0.port, 0);
        for wrong in ["H2:2", "H2:", ":1", "H9", "0x", "70000", ""] {
            assert!(place(&network, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_lid_that_two_ports_have_is_no_address() {
        let mut fake = Fake::star(3);
        fake.manage("H1", 1);
        let [a, b] = ["H2", "H3"].map(|name| (fake.node(name), 1));
        fake.port(a).lid = fake.port(b).lid;
        let network = fake.network("H1");
        let error = addressed(&network, "H2").map(|_| ()).map_err(|error| error.words());
        assert!(error.clone().is_err_and(|text| text.contains("several ports")), "{error:?}");
    }
}
