//! A measured path as a case file: the hardware found in its record, so that the effect of a change can be
//! computed. Hardware missing from the record is left out of the case, which widens the result to an interval.

use toml::{Table, Value};

use super::CaseError;
use crate::Material;
use linerate_ceiling::ethernet::{Ip, Transport};
use linerate_ceiling::{Link, pcie};
use linerate_facts::crossing::{Crossing, is_default, is_made_up};
use linerate_facts::route::Route;
use linerate_facts::underlay::Underlay;
use linerate_judge::model::{DirectionModel, Model, derive};
use linerate_plan::path::Side;
use linerate_record::reported::{Carrier, Transfer};
use linerate_record::{Host, Record};
use linerate_units::Rate;

/// The text of the case file that describes the path of a record.
pub fn measured(record: &Record) -> Result<String, CaseError> {
    let engine = &record.start.plan.engine;
    if engine != "tcp" {
        let why = format!("the engine `{engine}` has no ceilings: only runs over TCP do");
        return Err(CaseError(why));
    }
    of_model(&derive(record))
}

/// The text of the case file that describes the path of imported results.
pub fn imported(material: &Material) -> Result<String, CaseError> {
    let refuse = |why: &str| Err(CaseError(why.to_owned()));
    let model = material.model();
    let is_tcp = |(_, one): (_, &Transfer)| one.carrier == Carrier::Tcp;
    let has_tables = material.has_tables();
    let mut others = material.transfers().filter(|one| !is_tcp(*one)).peekable();
    if !material.transfers().any(is_tcp) && (has_tables || others.peek().is_some()) {
        return refuse("it has no transfer over TCP, and only paths of TCP are computed");
    }
    if model.hosts.iter().all(|host| host.facts.port.is_none()) {
        return refuse(
            "the port of the path is not known at either host: import the output of ethtool or lspci too, and name the \
             port with --near-port or --far-port if there are several",
        );
    }
    of_model(&model)
}

fn of_model(model: &Model) -> Result<String, CaseError> {
    let mut case = Table::new();
    let name = |side| model.host(side).map_or("?", |host| &host.facts.name);
    put(&mut case, "title", title(name(Side::Near), name(Side::Far)));
    put(&mut case, "story", story(model));
    put(&mut case, "protocol", "tcp");
    packets(&mut case, model);
    if let Some(base) = model.directions.first().map(|d| &d.base) {
        put(&mut case, "streams", i64::from(base.streams));
    }
    for side in [Side::Near, Side::Far] {
        let host = model.host(side).map(|h| host(h, model)).transpose()?;
        case.insert(side.name().to_owned(), Value::Table(host.unwrap_or_default()));
    }
    let tags = model.hosts.iter().filter_map(|h| h.facts.route.as_ref());
    let tags = tags.map(Route::tags).max().unwrap_or(0);
    if tags > 0 {
        let mut net = Table::new();
        put(&mut net, "vlans", i64::from(tags));
        case.insert("net".to_owned(), Value::Table(net));
    }
    Ok(case.to_string())
}

fn put(table: &mut Table, key: &str, value: impl Into<Value>) {
    table.insert(key.to_owned(), value.into());
}

fn title(near: &str, far: &str) -> String {
    format!("{near} to {far}, as measured")
}

/// The measured figures in words, to compare a ceiling with.
fn story(model: &Model) -> String {
    let each = |d: &DirectionModel| {
        let goodput = Rate(d.base.goodput.mean.max(0.0) as u64);
        let s = if d.base.streams == 1 { "" } else { "s" };
        format!("{goodput} {}, {} stream{s}", d.direction.name(), d.base.streams)
    };
    let all: Vec<String> = model.directions.iter().map(each).collect();
    if all.is_empty() {
        return "Nothing was measured on it.".to_owned();
    }
    format!("Measured: {}.", all.join("; "))
}

/// Writes the version of IP, and whether TCP carries timestamps, from the sizes of the largest packets.
fn packets(case: &mut Table, model: &Model) {
    let peers = model.hosts.iter().filter_map(|h| h.facts.route.as_ref()?.peer);
    let Some(peer) = peers.into_iter().next() else {
        return;
    };
    let (version, ip) = if peer.is_ipv4() { (4, Ip::V4) } else { (6, Ip::V6) };
    put(case, "ip", version);
    let sizes = model.directions.first().and_then(|d| d.base.packets);
    let headers = sizes.and_then(|sizes| sizes.path_mtu?.0.checked_sub(sizes.payload.0));
    let has = |timestamps| {
        let transport = Transport::Tcp { timestamps };
        headers == Some(u64::from(ip.header() + transport.header()))
    };
    if let Some(timestamps) = [false, true].into_iter().find(|with| has(*with)) {
        put(case, "timestamps", timestamps);
    }
}

fn host(host: &Host, model: &Model) -> Result<Table, CaseError> {
    let facts = &host.facts;
    let mut port = Table::new();
    let sizes = model.directions.first().and_then(|d| d.base.packets);
    let mtu = sizes.and_then(|sizes| Some(sizes.path_mtu?.0));
    // A larger MTU is that of the loopback interface, not of a port.
    if let Some(mtu) = mtu.and_then(|mtu| i64::try_from(mtu).ok()).filter(|m| *m < 65_536) {
        put(&mut port, "mtu", mtu);
    }
    match facts.route.as_ref().and_then(|r| Some((r, r.wires()?))) {
        Some((route, wires)) => {
            put(&mut port, "card", wires[0].driver.clone());
            let speeds: Option<Vec<Rate>> = wires.iter().map(|w| sound(w.link.speed)).collect();
            cards(&mut port, route, &wires, speeds.as_deref())?;
        }
        None => of_port(&mut port, host),
    }
    let mut table = Table::new();
    put(&mut table, "name", facts.name.clone());
    table.insert("port".to_owned(), Value::Table(port));
    Ok(table)
}

/// Writes what is known of a port that has no route with cards: driver, and link speed of Ethernet.
fn of_port(table: &mut Table, host: &Host) {
    let Some(port) = &host.facts.port else {
        return;
    };
    put(table, "card", port.driver.clone());
    if port.is_virtual {
        // What is below a bridge or a tunnel is unknown, so the slot is left unspecified.
        if host.facts.underlay() == Underlay::Nothing {
            put(table, "pcie", "none");
        }
        return;
    }
    let speed = port.speed_mbps.and_then(|mbps| mbps.checked_mul(1_000_000));
    if let Some(speed) = sound(speed.map(Rate)).filter(|_| port.is_ethernet) {
        put(table, "link", speed.exact());
    }
}

/// The speed if it is one that a case accepts. A record of another host may hold any number.
fn sound(speed: Option<Rate>) -> Option<Rate> {
    speed.filter(|speed| speed.exact().parse::<Link>().is_ok())
}

/// Writes the cards of a host with their links. A case describes cards of one kind only, so others are refused.
fn cards(
    table: &mut Table,
    route: &Route,
    wires: &[&linerate_facts::nic::Nic],
    speeds: Option<&[Rate]>,
) -> Result<(), CaseError> {
    if let Some([first, rest @ ..]) = speeds {
        if rest.iter().any(|speed| speed != first) {
            return Err(CaseError(
                "its bond has ports of different speeds, and a case describes ports of one kind"
                    .to_owned(),
            ));
        }
        put(table, "link", first.exact());
    }
    let chains: Vec<Vec<Crossing<'_>>> = wires.iter().map(|nic| route.crossings(nic)).collect();
    let mut slots: Vec<_> = chains.iter().filter_map(|c| Some(c.first()?.slot.address)).collect();
    slots.sort_unstable();
    slots.dedup();
    let cards = slots.len().max(1);
    if wires.len() > 1 && wires.len().is_multiple_of(cards) {
        put(table, "cards", cards as i64);
        put(table, "ports", (wires.len() / cards) as i64);
    }
    let speed = speeds.and_then(|s| s.first()).copied().unwrap_or_default();
    let is_shared = slots.len() < wires.len();
    let own = chains.first().and_then(|chain| chain.first());
    let is_placeholder = is_shared && own.is_some_and(is_default);
    if wires.iter().all(|nic| nic.pci.is_empty()) || is_made_up(&chains[0], speed) || is_placeholder
    {
        put(table, "pcie", "none");
    } else {
        slot(table, &chains[0]);
    }
    Ok(())
}

/// Writes the slowest PCIe link on the way to a card, if a case file can express it.
fn slot(table: &mut Table, chain: &[Crossing<'_>]) {
    let Some(narrow) = chain.iter().min_by_key(|crossing| crossing.rate()) else {
        return;
    };
    let generation = narrow.now.speed.and_then(pcie::generation);
    let lanes = narrow.now.width.map(u32::from);
    let lanes = lanes.filter(|lanes| pcie::WIDTHS.contains(lanes));
    let words: Vec<String> =
        [generation.map(|g| format!("gen{g}")), lanes.map(|l| format!("x{l}"))]
            .into_iter()
            .flatten()
            .collect();
    if !words.is_empty() {
        put(table, "pcie", words.concat());
    }
    if let Some(payload) = chain[0].device.payload {
        for (key, size) in [("mps", payload.now), ("mrrs", payload.read_request)] {
            if pcie::SIZES.contains(&size) {
                put(table, key, i64::from(size));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Case;
    use super::*;
    use linerate_facts::nic::Nic;
    use linerate_facts::pci::{Buses, Device, Link, Payload, PortKind, find_parents};
    use linerate_facts::{HostFacts, Port};
    use linerate_plan::path::Direction;
    use linerate_plan::{Knobs, Plan};
    use linerate_record::{FORMAT, Start};
    use linerate_units::{Nanos, Transfers};

    fn record(facts: &HostFacts) -> Record {
        let plan = Plan {
            engine: "tcp".to_owned(),
            peer: None,
            reach: Vec::new(),
            knobs: Knobs::default(),
            directions: Direction::ALL.to_vec(),
            time: Nanos::from_secs(1),
            sweep: false,
            trials: false,
        };
        Record {
            start: Start {
                format: FORMAT,
                linerate: String::new(),
                wall_secs: 0,
                plan,
                made: linerate_record::Made::default(),
                note: String::new(),
                study: None,
            },
            hosts: [Side::Near, Side::Far].map(|side| Host { side, facts: facts.clone() }).into(),
            sets: Vec::new(),
            trials: Vec::new(),
            steps: Vec::new(),
            imported: None,
            end: None,
        }
    }

    /// A host whose name looks like a key of the case file, with a card of 100 Gb/s in a slot of x8.
    fn facts() -> HostFacts {
        let link = Some(Link { speed: Some(Transfers(8_000_000_000)), width: Some(8) });
        let card = Device {
            address: "0000:01:00.0".parse().unwrap(),
            kind: Some(PortKind::Endpoint),
            now: link,
            max: link,
            payload: Some(Payload { now: 256, max: 512, read_request: 512 }),
            ..Device::default()
        };
        let root = Device {
            address: "0000:00:01.0".parse().unwrap(),
            kind: Some(PortKind::Root),
            buses: Some(Buses { secondary: 1, subordinate: 1 }),
            now: link,
            max: link,
            ..Device::default()
        };
        let mut pci = vec![root, card];
        find_parents(&mut pci);
        let mut nic = Nic {
            index: 1,
            driver: "mlx5_core".to_owned(),
            device: "0000:01:00.0".to_owned(),
            pci: "0000:01:00.0".to_owned(),
            up: true,
            ..Nic::default()
        };
        nic.link.speed = Some(Rate(100_000_000_000));
        HostFacts {
            name: "a\"\nstreams = 7\n".to_owned(),
            port: Some(Port::default()),
            route: Some(Route {
                peer: Some([192, 0, 2, 1].into()),
                ports: vec![nic],
                pci,
                ..Route::default()
            }),
            ..HostFacts::default()
        }
    }

    fn read(facts: &HostFacts, sets: &[&str]) -> Case {
        Case::read(&measured(&record(facts)).unwrap(), sets).unwrap()
    }

    #[test]
    fn the_hardware_of_a_record_is_a_case_on_which_changes_work() {
        let case = read(&facts(), &[]);
        let port = &case.near.port;
        assert_eq!(port.card, "mlx5_core");
        assert_eq!(port.link.map(|l| l.to_string()).as_deref(), Some("100 Gb/s"));
        assert_eq!(port.pcie.map(|p| p.to_string()).as_deref(), Some("gen3x8"));
        assert_eq!((port.mps, port.mrrs), (Some(256), Some(512)));
        assert_eq!(case.streams, None, "a name is a name");
        let most = |sets: &[&str]| {
            let answer = super::super::answer(&read(&facts(), sets)).unwrap();
            let solved = answer.forward.unwrap();
            (solved.goodput.high(), solved.binding[0].clone())
        };
        let (slow, first) = most(&[]);
        let (fast, _) = most(&["near.port.pcie=gen3x16", "far.port.pcie=gen3x16"]);
        assert!(slow < 60e9 && first.ends_with("slot"), "{slow} {first}");
        assert!(fast > 90e9, "{fast}");
    }

    #[test]
    fn ports_behind_the_default_figures_of_the_processor_have_no_slot() {
        let slot = |ports: u8, width: u8| {
            let mut facts = facts();
            let route = facts.route.as_mut().unwrap();
            for device in &mut route.pci {
                device.max =
                    Some(Link { speed: Some(Transfers(2_500_000_000)), width: Some(width) });
                device.now = device.max;
            }
            let card = route.pci[1].clone();
            route.ports[0].link.speed = Some(Rate(1_000_000_000));
            let first = route.ports[0].clone();
            for function in 1..ports {
                let mut device = card.clone();
                device.address.function = function;
                let mut port = first.clone();
                port.index = 1 + u32::from(function);
                port.pci = device.address.to_string();
                route.pci.push(device);
                route.ports.push(port);
            }
            let bond = Nic {
                index: 9,
                kind: "bond".to_owned(),
                is_virtual: true,
                stack: linerate_facts::nic::Stack {
                    below: (1..=u32::from(ports)).collect(),
                    bond: Some(linerate_facts::nic::Bond {
                        mode: "802.3ad".to_owned(),
                        ..Default::default()
                    }),
                    ..Default::default()
                },
                ..Nic::default()
            };
            if ports > 1 {
                route.ports.insert(0, bond);
            }
            let pcie = read(&facts, &[]).near.port.pcie;
            pcie.map(|slot| slot.to_string()).unwrap_or_default()
        };
        assert_eq!(slot(2, 1), "none");
        assert_eq!((slot(1, 1).as_str(), slot(2, 4).as_str()), ("gen1x1", "gen1x4"));
    }

    #[test]
    fn what_a_record_does_not_tell_is_left_open() {
        let mut hidden = facts();
        hidden.route.as_mut().unwrap().pci.clear();
        assert_eq!(read(&hidden, &[]).near.port.pcie, None);
        let mut old = facts();
        old.route = None;
        old.port.as_mut().unwrap().is_virtual = true;
        let case = read(&old, &[]);
        assert_eq!(case.near.port.pcie.map(|p| p.to_string()).as_deref(), Some("none"));
        assert_eq!((case.near.port.link, case.ip), (None, None));
    }

    #[test]
    fn a_speed_that_no_port_has_is_left_open() {
        let link = |speed: u64| {
            let mut odd = facts();
            odd.route.as_mut().unwrap().ports[0].link.speed = Some(Rate(speed));
            let port = read(&odd, &[]).near.port;
            port.link.map(|link| link.to_string())
        };
        for none in [0, u64::MAX] {
            assert_eq!(link(none), None, "{none}");
        }
        assert_eq!(link(2_500_000_000).as_deref(), Some("2.5 Gb/s"));
        assert_eq!(link(1_234_567_891).as_deref(), Some("1.23 Gb/s"));
        assert_eq!(link(1).as_deref(), Some("1 b/s"));
    }

    #[test]
    fn a_run_without_a_path_is_refused() {
        let mut record = record(&facts());
        record.start.plan.engine = "null".to_owned();
        assert!(measured(&record).unwrap_err().to_string().contains("null"));
    }
}
