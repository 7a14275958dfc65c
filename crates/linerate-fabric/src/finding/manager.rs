//! Findings about subnet managers: ports that no manager serves, and networks with several managers.

use std::collections::BTreeMap;

use super::super::mad::Attribute;
use super::super::mad::subnet::{ManagerInfo, ManagerState};
use super::super::network::{Network, Port, PortAt};
use super::Finding;
use linerate_facts::advice::{Advice, Step};
use linerate_facts::infiniband::{Guid, LinkState, commands_of_manager};

/// What is known of the subnet manager of this network.
enum Known {
    /// The master runs at this node.
    Master(usize),
    /// Managers answered, but none is the master: the state of one of them, in words.
    NoMaster(String),
    /// This port reports that a manager runs at it, but the manager did not answer.
    Silent(PortAt),
    /// A part of the network did not answer, so a manager may run there.
    Unseen,
    /// No manager runs, but one has configured ports before; its LID, if a port still has it.
    Gone(Option<u16>),
    /// No port shows a sign of a manager.
    None,
}

impl Known {
    fn of(network: &Network) -> Self {
        let is_master = |of: &ManagerInfo| of.state == ManagerState::Master;
        if let Some((node, _)) = network.managers().find(|(_, of)| is_master(of)) {
            return Self::Master(node);
        }
        if let Some((node, of)) = network.managers().next() {
            let name = network.nodes[node].name();
            return Self::NoMaster(format!("SMInfo of {name}: {}", of.state.name()));
        }
        let here = || network.ports().filter(|(at, _)| network.is_here(*at));
        let info = |port: &Port| port.info;
        let says = |port: &Port| info(port).is_some_and(|info| info.is_manager());
        if let Some((at, _)) = here().find(|(_, port)| says(port)) {
            return Self::Silent(at);
        }
        if network.is_partly_unseen() || here().any(|(_, port)| info(port).is_none()) {
            return Self::Unseen;
        }
        let own = network.own().and_then(|own| network.port(own));
        let all = own.into_iter().chain(here().map(|(_, port)| port));
        let lids = all.filter_map(|port| Some(info(port)?.manager_lid));
        let lid = lids.into_iter().find(|lid| *lid != 0);
        match lid {
            None if sign(network).is_none() => Self::None,
            lid => Self::Gone(lid),
        }
    }
}

/// A sign in words that a manager has configured some port: what the port replied.
fn sign(network: &Network) -> Option<String> {
    let own = network.own();
    let is_active = |(at, port): &(PortAt, &Port)| {
        Some(*at) != own && at.port != 0 && port.peer.is_some() && port.is_active()
    };
    if let Some((at, _)) = network.ports().find(is_active) {
        return Some(format!("{} is Active", network.name(at)));
    }
    let is_named = |(at, port): &(PortAt, &Port)| {
        network.is_here(*at) && port.info.is_some_and(|info| info.manager_lid != 0)
    };
    let (at, _) = network.ports().find(is_named)?;
    let name = network.name(at);
    Some(format!("PortInfo of {name} has the LID of a subnet manager"))
}

/// Finding if the cable of this host's port works, but no subnet manager has configured the port.
pub(super) fn unserved(network: &Network) -> Vec<Finding> {
    let found = network.own().and_then(|own| {
        let port = network.port(own)?;
        let is_armed = port.info.and_then(|info| info.state) == Some(LinkState::Armed);
        if is_armed {
            return Some(armed(network, own));
        }
        waits(port).then(|| nameless(network, own, port).unwrap_or_else(|| waiting(network, own)))
    });
    found.into_iter().collect()
}

/// Why this host's port waits for a manager.
fn waiting(network: &Network, own: PortAt) -> Finding {
    match Known::of(network) {
        Known::Master(node) => {
            let name = network.nodes[node].name();
            passed_over(network, own, format!("SMInfo of {name}: master"))
        }
        Known::NoMaster(sign) => passed_over(network, own, sign),
        Known::Silent(at) => {
            let name = network.name(at);
            passed_over(network, own, format!("PortInfo of {name}: a subnet manager runs there"))
        }
        Known::Unseen => match sign(network) {
            Some(sign) => passed_over(network, own, sign),
            None => unseen(network, own),
        },
        Known::Gone(lid) if other_served_port(network, own).is_none() => {
            gone_from(network, own, lid)
        }
        Known::Gone(_) | Known::None => not_served(network, own),
    }
}

/// Finding about a port that a manager has configured, but not started.
fn armed(network: &Network, own: PortAt) -> Finding {
    Finding::new(
        "unserved-port",
        network.name(own),
        "was set up by a subnet manager, and was not started",
    )
    .why("the subnet manager stopped half-way, or no packet has arrived yet")
    .because(state(network, own))
    .fix(Advice::new("read the log of the subnet manager, on the host where it runs"))
}

/// Finding about a port whose network did not answer in full: it is unknown whether a manager serves the port.
fn unseen(network: &Network, own: PortAt) -> Finding {
    Finding::new("no-manager", network.name(own), "waits for a subnet manager, and none was seen")
        .why(
            "a manager may run where nobody answered. A second one on the same network \
             would do damage",
        )
        .because(state(network, own))
        .because("a part of the network did not answer, or was not asked")
        .fix(
            Advice::new("see whether a manager answers at a host whose port is active")
                .step(Step::on(None, "sudo sminfo").about("at such a host")),
        )
}

/// Whether a port has a working cable, but no address yet.
fn waits(port: &Port) -> bool {
    let state = port.info.and_then(|info| info.state);
    port.has_link() && state == Some(LinkState::Initializing)
}

/// Finding about a port without a GUID, which managers ignore. To start another manager would not help, and would do
/// damage where one runs.
fn nameless(network: &Network, own: PortAt, port: &Port) -> Option<Finding> {
    (port.guid == Some(Guid::NONE)).then(|| {
        Finding::new("no-guid", network.name(own), "waits for a subnet manager, and has no GUID")
            .why(
                "a virtual function has none until its host gives it one, and subnet \
                 managers pass over a port without a GUID",
            )
            .because(state(network, own))
            .because("NodeInfo of this port: port GUID 0")
            .proved()
            .fix(
                Advice::new(
                    "give this function a GUID on the host that owns the card, then attach the \
                     function again",
                )
                .step(Step::on(None, "ip link show").about("on that host: its functions"))
                .step(Step::by_hand(
                    "sudo ip link set dev PORT vf NUMBER node_guid GUID port_guid GUID",
                )),
            )
    })
}

/// Finding about a port that the manager of its network has not configured.
fn passed_over(network: &Network, own: PortAt, sign: String) -> Finding {
    Finding::new(
        "unserved-port",
        network.name(own),
        "waits for a subnet manager, although one serves this network",
    )
    .why(
        "the manager has not reached this port yet, ignores it, or has stopped \
         since. A second manager on the same network would do damage",
    )
    .because(state(network, own))
    .because(sign)
    .fix(Advice::new("read the log of that manager, on the host where it runs"))
}

/// The adapter port at the other end of the cable of `own`, and another port of that adapter, whose network has a
/// manager.
fn other_served_port(network: &Network, own: PortAt) -> Option<(PortAt, PortAt)> {
    let peer = network.port(own)?.peer?;
    let node = network.nodes.get(peer.node)?;
    if node.is_switch() {
        return None;
    }
    let served = |(number, port): (&u8, &Port)| {
        let manager = port.info.is_some_and(|info| info.manager_lid != 0);
        (*number != peer.port && port.is_active() && manager)
            .then_some(PortAt { node: peer.node, port: *number })
    };
    node.ports.iter().find_map(served).map(|other| (peer, other))
}

fn not_served(network: &Network, own: PortAt) -> Finding {
    let Some((peer, other)) = other_served_port(network, own) else {
        return none(network, own);
    };
    let node = &network.nodes[peer.node];
    let name = node.name();
    let info = network.port(other).and_then(|port| port.info);
    let lid = info.map_or(0, |info| info.manager_lid);
    let runs_there = info.is_some_and(|info| info.is_manager() || info.lid == lid);
    let (why, fix) = if runs_there {
        (
            format!(
                "this cable ends in {name} port {}, and the subnet manager on {name} serves port {} only. Each cable between \
                 two hosts is a network of its own, and needs a manager",
                peer.port, other.port
            ),
            "let the manager serve this cable too: start one for the other port",
        )
    } else {
        (
            format!(
                "this cable ends in {name} port {}. Only port {} of {name} is on a network with a subnet manager, and each \
                 cable between two hosts is a network of its own",
                peer.port, other.port
            ),
            "start a subnet manager for this cable, at one of its ends",
        )
    };
    let guid = network.port(peer).and_then(|port| port.guid);
    Finding::new("wrong-port", network.name(own), "no subnet manager serves this cable")
        .why(why)
        .because(state(network, own))
        .because(format!(
            "NodeInfo across the cable: {name} port {}{}",
            peer.port,
            guid.map_or_else(String::new, |g| format!(", port GUID {g}"))
        ))
        .because(format!(
            "PortInfo of {name} port {}: active, LID of the manager {lid}",
            other.port
        ))
        .proved()
        .host(name)
        .fix(start(Advice::new(fix), guid))
}

/// Finding if there is no sign of any manager.
fn none(network: &Network, own: PortAt) -> Finding {
    let guid = network.port(own).and_then(|port| port.guid);
    let nodes = network.nodes.len();
    Finding::new("no-manager", network.name(own), "no subnet manager serves this network")
        .why("without one no port gets an address, and no data pass")
        .because(state(network, own))
        .because(format!("none of {nodes} nodes runs a manager or has an active port here"))
        .proved()
        .fix(start(Advice::new("start a subnet manager on one host of this network"), guid))
}

/// Adds the command that starts a manager for a port, and the command that stops it.
fn start(advice: Advice, guid: Option<Guid>) -> Advice {
    let Some(guid) = guid.filter(|guid| *guid != Guid::NONE) else {
        return advice;
    };
    let [start, end] = commands_of_manager(&guid.to_string());
    advice.step(Step::set(None, start)).undo_on(None, end)
}

fn state(network: &Network, at: PortAt) -> String {
    let info = network.port(at).and_then(|port| port.info);
    let state = info.and_then(|info| info.state).map_or("unknown", LinkState::name);
    let lid = info.map_or(0, |info| info.lid);
    format!("PortInfo of {}: {state}, LID {lid}", network.name(at))
}

/// Findings about ports of other hosts that wait for a manager, while another port of that host has one.
pub(super) fn other_port(network: &Network) -> Vec<Finding> {
    let waiting = network.ports().filter(|(at, port)| {
        let node = &network.nodes[at.node];
        let is_served = node.ports.values().any(Port::is_active);
        !node.is_switch() && is_served && !network.is_here(*at) && waits(port)
    });
    let found = waiting.map(|(at, _)| {
        let name = network.nodes[at.node].name();
        Finding::new("wrong-port", network.name(at), "has a link and no address yet")
            .why(
                "it is not on this network, and whether a subnet manager serves its own is \
                 not seen from here",
            )
            .because(state(network, at))
            .host(name)
            .fix(
                Advice::new(
                    "look at the network of that port from its own host, which says what helps",
                )
                .step(
                    Step::on(None, format!("sudo linerate fabric --device DEVICE:{}", at.port))
                        .about("DEVICE is the name of the adapter there, such as mlx5_0"),
                ),
            )
    });
    found.collect()
}

/// Findings if this host's port is active, but its manager no longer runs: existing connections work on, and new ones
/// fail.
pub(super) fn gone(network: &Network) -> Vec<Finding> {
    let own = network.own().filter(|own| network.port(*own).is_some_and(Port::is_active));
    let found = own.and_then(|own| match Known::of(network) {
        Known::Gone(lid) => Some(gone_from(network, own, lid)),
        Known::NoMaster(sign) => {
            let found = not_master("managers answer, and none of them is the master");
            Some(found.because(state(network, own)).because(sign))
        }
        Known::Silent(at) if is_silent(network, at) => {
            let name = network.name(at);
            let found = not_master("the subnet manager does not answer")
                .because(format!("PortInfo of {name}: a subnet manager runs there"))
                .because(format!("SMInfo of {name}: no reply"));
            Some(found.host(network.nodes[at.node].name()))
        }
        Known::Silent(_) | Known::Master(_) | Known::Unseen | Known::None => None,
    });
    found.into_iter().collect()
}

const STANDS: &str = "what was set up goes on, but a port that is new gets no address, and a connection that is new finds \
                      no path";

/// Whether the request for the state of the manager at a port had no reply.
fn is_silent(network: &Network, at: PortAt) -> bool {
    let what = Attribute::ManagerInfo.name();
    let mut gaps = network.gaps.iter();
    gaps.any(|gap| gap.node == Some(at.node) && gap.what == what && gap.why.is_silent())
}

/// Finding about a network whose managers run, but do not manage. A manager that starts, or takes over, does not answer
/// for a moment, so no reply proves the finding.
fn not_master(what: &str) -> Finding {
    Finding::new("manager-gone", "this network", what).why(STANDS).fix(Advice::new(
        "look again in a minute; if it stays so, read the log of the manager and \
         start it again",
    ))
}

/// Finding if no manager runs any more. `lid` is the LID that it had. A manager that restarts is gone for a moment.
fn gone_from(network: &Network, own: PortAt, lid: Option<u16>) -> Finding {
    let ran = lid.and_then(|lid| network.by_lid(lid));
    let nodes = network.nodes.len();
    let none =
        format!("PortInfo of the ports of {nodes} nodes: at none of them runs a subnet manager");
    let ran_at = match (ran, lid) {
        (Some(at), Some(lid)) => format!(". It ran at {} (LID {lid})", network.name(at)),
        (None, Some(lid)) => format!(". It ran at LID {lid}, which no port has"),
        (_, None) => String::new(),
    };
    let guid = network.port(ran.unwrap_or(own)).and_then(|port| port.guid);
    let look = Step::on(None, "pgrep -a opensm").about("whether it runs");
    let fix = Advice::new("start the subnet manager again, unless it runs").step(look);
    Finding::new("manager-gone", "this network", "no subnet manager runs any more")
        .why(format!("{STANDS}{ran_at}"))
        .because(state(network, own))
        .because(none)
        .host(ran.map_or_else(String::new, |at| network.nodes[at.node].name()))
        .fix(start(fix, guid))
}

/// Finds several managers that are each in the state master. For a moment this is normal: while one hands over to
/// another.
pub(super) fn several(network: &Network) -> Vec<Finding> {
    let masters: BTreeMap<Guid, (usize, &ManagerInfo)> = network
        .managers()
        .filter(|(_, of)| of.state == ManagerState::Master)
        .map(|(node, of)| (of.guid, (node, of)))
        .collect();
    let masters: Vec<String> = masters
        .into_values()
        .map(|(node, of)| {
            format!(
                "{} (priority {}, port GUID {})",
                network.nodes[node].name(),
                of.priority,
                of.guid
            )
        })
        .collect();
    if masters.len() < 2 {
        return Vec::new();
    }
    vec![
        Finding::new(
            "two-managers",
            "this network",
            format!("{} subnet managers are masters at the same time", masters.len()),
        )
        .why("each gives out addresses of its own, so that connections break at any time")
        .proof(masters.iter().map(|m| format!("SMInfo of {m}: master")).collect())
        .fix(Advice::new(
            "look again in a minute; if it stays so, end all managers but one; a \
             manager of the same kind would stand by by itself",
        )),
    ]
}
