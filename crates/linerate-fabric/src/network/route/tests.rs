use super::*;
use crate::fake::{Drive, Fake};
use crate::walk::Walk;

/// The route from port 1 of `host-1-1` to the LID of another node, after `change`.
fn route(to: &str, change: impl Fn(&mut Fake, u16)) -> (Network, Routed, Drive) {
    let mut fake = Fake::fat_tree(3, 2, 2);
    fake.manage("host-1-2", 1);
    let end = fake.node(to);
    let lid = fake.nodes[end].ports.values().next().unwrap().lid;
    change(&mut fake, lid);
    let mut drive = fake.drive("host-1-1", 1);
    let mut walk = Walk::default();
    drive.run(&mut walk);
    walk.ask_for_route(lid);
    drive.run(&mut walk);
    let network = walk.into_network();
    let routed = network.route(network.own().unwrap(), lid);
    (network, routed, drive)
}

fn names(network: &Network, routed: &Routed) -> Vec<String> {
    let hops = routed.hops.iter();
    hops.map(|at| network.name(*at)).collect()
}

fn entry(fake: &mut Fake, switch: &str, lid: u16, port: u8) {
    let switch = fake.node(switch);
    fake.nodes[switch].forwarding[usize::from(lid)] = port;
}

#[test]
fn a_route_follows_the_tables() {
    let (network, routed, _) = route("host-3-2", |_, _| ());
    let End::Arrives(at) = routed.end else {
        panic!("{routed:?}");
    };
    assert_eq!(network.name(at), "host-3-2 port 1");
    assert_eq!(
        names(&network, &routed),
        ["host-1-1 port 1", "leaf1 port 3", "spine1 port 3", "leaf3 port 2"]
    );
    // One block of each switch was read.
    let blocks = network.nodes.iter().map(|node| node.forwarding.len());
    assert_eq!(blocks.sum::<usize>(), 5);
    let (network, routed, _) = route("spine2", |_, _| ());
    assert_eq!(names(&network, &routed), ["host-1-1 port 1", "leaf1 port 4"]);
    assert!(matches!(routed.end, End::Arrives(PortAt { port: 1, .. })));
    let (_, routed, _) = route("host-1-1", |_, _| ());
    assert_eq!(routed.hops, []);
}

#[test]
fn a_route_that_does_not_arrive_says_where_it_ends() {
    let end = |change: &dyn Fn(&mut Fake, u16)| {
        let (network, routed, _) = route("host-3-2", change);
        let name = match routed.end {
            End::Loop(node) | End::NoEntry(node) => network.nodes[node].name(),
            End::Arrives(at) | End::LinkDown(at) | End::Elsewhere(at) | End::Unknown(at) => {
                network.name(at)
            }
        };
        (routed.end, name)
    };
    let (how, name) = end(&|fake, lid| entry(fake, "spine1", lid, 1));
    assert!(matches!(how, End::Loop(_)), "{how:?}");
    assert_eq!(name, "leaf1");
    let (how, name) = end(&|fake, lid| entry(fake, "leaf1", lid, 0xff));
    assert!(matches!(how, End::NoEntry(_)), "{how:?}");
    assert_eq!(name, "leaf1");
    let (how, name) = end(&|fake, lid| entry(fake, "leaf3", lid, 1));
    assert!(matches!(how, End::Elsewhere(_)), "{how:?}");
    assert_eq!(name, "host-3-1 port 1");
    let (how, name) = end(&|fake, _| {
        let spine = fake.node("spine1");
        fake.unlink((spine, 3));
    });
    assert_eq!((how, name.as_str()), (End::LinkDown(how_at(how)), "spine1 port 3"));
    let (how, _) = end(&|fake, _| {
        let spine = fake.node("spine1");
        fake.nodes[spine].refused = vec![0x19];
    });
    assert!(matches!(how, End::Unknown(_)), "{how:?}");
}

fn how_at(end: End) -> PortAt {
    match end {
        End::LinkDown(at) => at,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_ping_reaches_the_node_with_the_lid() {
    use crate::mad::Get;
    use crate::mad::counters::Support;
    let (network, routed, drive) = route("host-3-2", |_, _| ());
    let End::Arrives(at) = routed.end else {
        panic!("{routed:?}");
    };
    let ping = Get::ping(network.nodes[at.node].lid(at.port).unwrap());
    let (node, reply) = drive.fake.answer(drive.from, ping.lid(), &ping.encode(1)).unwrap();
    assert_eq!(drive.fake.nodes[node].name, "host-3-2");
    assert!(Support::decode(ping.reply(&reply).unwrap()).wait);
}
