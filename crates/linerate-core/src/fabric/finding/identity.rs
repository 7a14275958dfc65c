//! Nodes with the same GUID, and nodes that do not answer.

use std::collections::BTreeMap;

use super::super::network::Network;
use super::Finding;
use crate::advice::Advice;

/// Nodes that share a GUID with another one.
pub(super) fn doubled(network: &Network) -> Vec<Finding> {
    let nodes = network.nodes.iter().filter(|node| node.doubled);
    nodes
        .map(|node| Finding {
            id: "duplicate-guid",
            subject: node.name(),
            what: format!("two nodes have the GUID {}", node.info.guid),
            why: "managers and tools take both for one node, and send packets to the wrong one".to_owned(),
            proof: vec!["NodeInfo across two cables: the same node, with the same port".to_owned()],
            now: true,
            host: String::new(),
            fix: Advice::new(
                "give one of both nodes its own GUID again: read it from the label of the card, and write it with the \
                 maker's tool for firmware",
            ),
        })
        .collect()
}

/// Nodes that left requests without a reply.
pub(super) fn silent(network: &Network) -> Vec<Finding> {
    let mut by_node: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for gap in &network.gaps {
        let subject = match (gap.node, gap.from) {
            (Some(node), _) => network.nodes[node].name(),
            (None, Some(from)) => format!("the node across the cable of {}", network.name(from)),
            (None, None) => "this host's port".to_owned(),
        };
        by_node
            .entry(subject)
            .or_default()
            .push(format!("{}: {}", gap.what, gap.why));
    }
    let found = by_node.into_iter().map(|(subject, mut proof)| {
        let count = proof.len();
        proof.sort();
        proof.dedup();
        proof.truncate(3);
        Finding {
            id: "silent-node",
            subject,
            what: format!(
                "left {count} request{} without a useful reply",
                if count == 1 { "" } else { "s" }
            ),
            why:
                "it loses management packets, is too busy for them, or does not know these requests"
                    .to_owned(),
            proof,
            now: true,
            host: String::new(),
            fix: Advice::new("look at the errors of its link, then at its load and firmware"),
        }
    });
    found.collect()
}
