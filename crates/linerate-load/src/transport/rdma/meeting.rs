//! How the ends of a set get their queue pairs and connect them.

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_facts::infiniband::Infiniband;
use linerate_facts::parse::sysctl;
use linerate_facts::rdma::RdmaEnd;
use linerate_plan::SetPlan;
use linerate_plan::path::Side;
use linerate_plan::transport::rdma::{
    ACK_TIMEOUT, Addressing, DEVICE, FAR_DEVICE, GID_INDEX, MTU, Operation, READS, READS_DEFAULT,
    RNR_TIMER, SERVICE_LEVEL, Service, TRAFFIC_CLASS,
};
use linerate_sys::ibverbs::{
    self, Device, Endpoint, Library, Limits, Peer, QueuePlan, Refused, Region, Route,
};
use linerate_sys::thread;

use super::choice::{Asked, Choice, Lack, choose};
use super::hello::{Hello, NONE};
use super::pair::Pair;
use super::reason::failed;
use super::shape::Shape;
use crate::LoadError;
use crate::transport::Lines;
use crate::transport::line::{Line, connections};
use linerate_host::{self as host, Live, Machine};

/// What a host needs for verbs.
const INSTALL: &str = "install libibverbs with its providers (Debian, Ubuntu: libibverbs1 ibverbs-providers; Fedora: \
                       libibverbs), load ib_uverbs (sudo modprobe ib_uverbs), and let this user open /dev/infiniband/uverbs*";
/// Time for both ends to introduce themselves.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it is sent again. The most that there is would be 7, which Soft-RoCE takes for "without an end".
//= torvalds/linux, drivers/infiniband/sw/rxe/rxe_comp.c: a retry_cnt of 7 is not lowered
const RETRIES: u8 = 6;
/// A sender waits without an end for a receive request; the end of a step ends the wait.
const RNR_RETRIES: u8 = 7;

/// Error texts for another end that takes, or sends, no hello.
const UNTAKEN: &str = "the other end takes no introduction";
const UNSAID: &str = "the other end introduces no queue pair";

/// The queue pairs of a set, connected.
pub(super) struct Met {
    pub(super) pairs: Vec<Pair>,
    /// The port that they use, with the sizes in force.
    pub(super) end: RdmaEnd,
}

/// Makes the queue pairs of one end of a set, and connects them to the other end's.
pub(super) fn meet(
    side: Side,
    plan: &SetPlan,
    shape: &mut Shape,
    lines: &mut dyn Lines,
) -> Result<Met, LoadError> {
    let taken = connections(plan, lines)?;
    let until = Instant::now() + PATIENCE;
    let made = introduce(side, plan, shape, &taken, until);
    if made.is_err() {
        // The other end need not wait. Its connection may be gone as well.
        for line in &taken {
            let _ = line.send_all(&NONE, until, UNTAKEN);
        }
    }
    let (port, made) = made?;
    let mut end = port.end(shape);
    let mut connected = Vec::new();
    let mut first = None;
    for ((mut endpoint, own), line) in made.into_iter().zip(taken) {
        for (at, own) in own.iter().enumerate() {
            let other = Hello::decode(&line.receive_all(until, || lines.given_up(), UNSAID)?);
            let other = other.map_err(|why| line.garbled(&why))?;
            if !first.get_or_insert(other).is_alike(&other) {
                return Err(line.garbled("the other end's queue pairs are of different ports"));
            }
            if shape.service.is_lossy() {
                expects(&other, line.peer()?.ip().to_canonical(), &port.owned)
                    .map_err(unsupported)?;
            }
            let (peer, route) = route(&port.choice, port.reads_out(plan), plan, own, &other)
                .map_err(unsupported)?;
            shape.fit(plan, route.mtu).map_err(unsupported)?;
            agreed(&mut end, &endpoint, &route);
            let ready = endpoint.connect(at, peer, &route, own.first_packet);
            ready.map_err(|refused| failed(&line, refused))?;
        }
        connected.push((endpoint, line));
    }
    let shared = Arc::new(end.clone());
    let connected = connected.into_iter();
    let pairs = connected
        .map(|(endpoint, line)| Pair::new(endpoint, line, shape, Arc::clone(&shared)))
        .collect();
    Ok(Met { pairs, end })
}

/// Notes what was agreed for a queue pair: the same for all but inline payload, of which the least counts.
fn agreed(end: &mut RdmaEnd, endpoint: &Endpoint, route: &Route) {
    end.mtu = route.mtu;
    end.reads_out = route.reads_out.into();
    end.reads_in = route.reads_in.into();
    end.inline = end.inline.min(endpoint.inline());
}

fn unsupported(what: String) -> LoadError {
    LoadError::Unsupported { what }
}

/// The queue pairs of a stream, with the introduction of each.
type Made = (Endpoint, Vec<Hello>);

/// Makes the queue pairs of this end, and introduces them to the other end.
fn introduce(
    side: Side,
    plan: &SetPlan,
    shape: &Shape,
    lines: &[Line],
    until: Instant,
) -> Result<(Port, Vec<Made>), LoadError> {
    let first = lines
        .first()
        .ok_or_else(|| LoadError::Unsupported { what: "a set without streams".to_owned() })?;
    let port = Port::open(side, plan, first.local()?.ip().to_canonical())?;
    let pairs = near(port.choice.node, || {
        let each = lines.iter().map(|line| port.endpoint(plan, shape, line));
        each.collect::<Result<Vec<_>, LoadError>>()
    });
    let pairs = pairs.map_err(|error| first.failed("pthread_create", error))??;
    for (line, (_, hellos)) in lines.iter().zip(&pairs) {
        for hello in hellos {
            line.send_all(&hello.encode(), until, UNTAKEN)?;
        }
    }
    Ok((port, pairs))
}

/// Runs `work` on a CPU of a NUMA node, so that what it allocates is on that node. Without such a CPU it runs where the
/// scheduler places it.
fn near<T: Send>(node: Option<u32>, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, move || {
            if let Some(cpu) = node.and_then(cpu_of) {
                // A CPU that cannot be used now is as good as none.
                let _ = thread::pin(cpu);
            }
            work()
        })?;
        match thread.join() {
            Ok(result) => Ok(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Returns a CPU of a NUMA node that this process may use.
fn cpu_of(node: u32) -> Option<u32> {
    let path = format!("/sys/devices/system/node/node{node}/cpulist");
    let text = Live::new().file(&path).ok()?;
    let cpus = sysctl::list(&text).ok()?;
    let allowed = thread::allowed_cpus().ok()?;
    cpus.into_iter().find(|cpu| allowed.contains(cpu))
}

/// A port that is open.
struct Port {
    choice: Choice,
    device: Arc<Device>,
    state: ibverbs::Port,
    limits: Limits,
    /// Identifier of a GID-addressed port.
    gid: [u8; 16],
    /// What sysfs says about the port.
    described: RdmaEnd,
    /// The addresses of all RDMA ports of this host.
    owned: Vec<IpAddr>,
}

impl Port {
    /// Opens the port by which this end, at the address `local`, reaches the other one.
    fn open(side: Side, plan: &SetPlan, local: IpAddr) -> Result<Self, LoadError> {
        let options = &plan.knobs.options;
        let facts = host::infiniband(&Live::new());
        let named = match side {
            Side::Near => options.word(DEVICE.key),
            Side::Far => options.word(FAR_DEVICE.key),
        };
        let asked = Asked {
            device: named,
            gid_index: options.number(GID_INDEX.key).map(|index| index as u8),
        };
        let choice = choose(&facts, local, asked).map_err(lacking)?;
        let library = Library::load();
        let library =
            library.map_err(|missing| lacking(Lack::new(missing.to_string(), INSTALL)))?;
        let name = &choice.device;
        let refused = |refused: Refused| lacking(Lack::new(format!("{name}: {refused}"), INSTALL));
        let device = Device::open(library, name).map_err(refused)?;
        let device = device.ok_or_else(|| {
            let what = format!("libibverbs has no driver for {name}, or no access to it");
            lacking(Lack::new(what, INSTALL))
        })?;
        let limits = device.limits().map_err(refused)?;
        let state = device.port(choice.port).map_err(refused)?;
        let gid = match choice.gid_index {
            Some(index) => device.gid(choice.port, index.into()).map_err(refused)?,
            None => [0; 16],
        };
        Ok(Self {
            described: described(&facts, &choice),
            owned: owned(&facts),
            choice,
            device,
            state,
            limits,
            gid,
        })
    }

    /// Describes the port for the record, before anything is agreed.
    fn end(&self, shape: &Shape) -> RdmaEnd {
        RdmaEnd {
            addressing: self.choice.addressing,
            lid: self.state.lid.into(),
            mtu_own: self.state.mtu,
            mtu_most: self.state.mtu_most,
            inline: u32::MAX,
            reads_out_most: self.limits.reads_out,
            reads_in_most: self.limits.reads_in,
            depth: shape.depth,
            polls: !shape.events,
            ..self.described.clone()
        }
    }

    /// Reads that a queue pair may have in flight.
    fn reads_out(&self, plan: &SetPlan) -> u8 {
        self.limits.reads_out.min(reads(plan)) as u8
    }

    /// Refuses queues and messages that the device does not have.
    fn check(&self, shape: &Shape) -> Result<(), LoadError> {
        let Limits { requests, completions, atomics, .. } = self.limits;
        let name = &self.choice.device;
        let asked = (shape.depth + shape.list).max(shape.receives());
        if asked > requests {
            let what = format!("{name} has queues of {requests} requests, not of {asked}");
            return Err(unsupported(what));
        }
        let asked = asked.saturating_mul(shape.pairs);
        if asked > completions {
            let what = format!("{name} has queues of {completions} completions, not of {asked}");
            return Err(unsupported(what));
        }
        if shape.size > self.state.message {
            let most = self.state.message;
            let what = format!("{name} has messages of {most} B, not of {} B", shape.size);
            return Err(unsupported(what));
        }
        if shape.op == Operation::Atomic && !atomics {
            return Err(unsupported(format!("{name} has no atomic operations")));
        }
        Ok(())
    }

    /// Makes the queue pairs of a stream, with what the other end must know of each.
    fn endpoint(&self, plan: &SetPlan, shape: &Shape, line: &Line) -> Result<Made, LoadError> {
        self.check(shape)?;
        let refused = |refused| failed(line, refused);
        let region = Region::new(&self.device, shape.memory()).map_err(refused)?;
        let memory = region.remote();
        let queues = QueuePlan {
            service: match shape.service {
                Service::Rc => ibverbs::Service::Rc,
                Service::Uc => ibverbs::Service::Uc,
                Service::Ud => ibverbs::Service::Ud,
            },
            pairs: shape.pairs,
            port: self.choice.port,
            depth: shape.depth + shape.list,
            receives: shape.receives(),
            inline: shape.inline,
            events: shape.events,
            vector: line.stream,
            calls: shape.calls,
        };
        let endpoint = Endpoint::new(region, queues).map_err(refused)?;
        let asked = plan.knobs.options.number(MTU.key);
        let mtu = asked.map_or(self.state.mtu, |asked| self.state.mtu.min(asked as u32));
        let hellos = endpoint.numbers().map(|number| {
            Ok(Hello {
                addressing: self.choice.addressing,
                mtu: mtu as u16,
                lid: self.state.lid,
                reads_in: self.limits.reads_in.min(reads(plan)) as u8,
                number,
                first_packet: random(line)? >> 8,
                gid: self.gid,
                memory,
            })
        });
        let hellos = hellos.collect::<Result<_, LoadError>>()?;
        Ok((endpoint, hellos))
    }
}

/// Reads in flight that are asked for.
fn reads(plan: &SetPlan) -> u32 {
    let asked = plan.knobs.options.number(READS.key);
    asked.unwrap_or(READS_DEFAULT) as u32
}

/// Returns a random number, so that packets of an earlier queue pair of the same number are not taken for new ones.
fn random(line: &Line) -> Result<u32, LoadError> {
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(|e| line.failed("getrandom", io::Error::other(e)))?;
    Ok(u32::from_be_bytes(random))
}

/// Reads what sysfs says about a port.
fn described(facts: &Infiniband, choice: &Choice) -> RdmaEnd {
    let devices = facts.devices.iter();
    let mut ports = devices.flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    let number = u32::from(choice.port);
    let used = ports.find(|(device, port)| device.name == choice.device && port.number == number);
    let index = choice.gid_index.map(u32::from);
    used.map_or_else(RdmaEnd::default, |used| host::rdma_end(&Live::new(), facts, used, index))
}

fn lacking(Lack { what, hint }: Lack) -> LoadError {
    LoadError::Failed { what, hint }
}

/// Returns how packets get to the other end. The error says why they cannot, as a lowercase fragment.
fn route(
    choice: &Choice,
    reads_out: u8,
    plan: &SetPlan,
    own: &Hello,
    other: &Hello,
) -> Result<(Peer, Route), String> {
    if own.addressing != other.addressing {
        return Err(format!(
            "this end's port is {}, the other end's is {}: they have no common way to address packets",
            own.addressing.name(),
            other.addressing.name()
        ));
    }
    let options = &plan.knobs.options;
    if Operation::of(options).returns() && other.reads_in == 0 {
        return Err("the other end's device answers no reads and no atomic operations".to_owned());
    }
    let number = |key: &str| options.number(key).unwrap_or(0) as u8;
    let route = Route {
        mtu: own.mtu.min(other.mtu).into(),
        gid_index: choice.gid_index,
        service_level: number(SERVICE_LEVEL.key),
        traffic_class: number(TRAFFIC_CLASS.key),
        reads_out: reads_out.min(other.reads_in),
        reads_in: own.reads_in,
        timeout: ACK_TIMEOUT,
        retries: RETRIES,
        rnr_retries: RNR_RETRIES,
        rnr_timer: RNR_TIMER,
    };
    let peer = Peer {
        number: other.number,
        first_packet: other.first_packet,
        lid: other.lid,
        gid: other.gid,
        memory: other.memory,
    };
    Ok((peer, route))
}

/// Refuses to send what nobody acknowledges to a third host: only to the other end's address on the connection, `peer`, and
/// to this host's own addresses. The error is a lowercase fragment.
fn expects(other: &Hello, peer: IpAddr, owned: &[IpAddr]) -> Result<(), String> {
    let to = IpAddr::V6(Ipv6Addr::from(other.gid)).to_canonical();
    let is_routed = other.addressing == Addressing::RoceV2;
    if !is_routed || to == peer || owned.contains(&to) {
        return Ok(());
    }
    Err(format!(
        "services uc and ud to {to}, while the connection is to {peer}: give the far host by the address of its RDMA port"
    ))
}

/// Returns the addresses of all RDMA ports of a host.
fn owned(facts: &Infiniband) -> Vec<IpAddr> {
    let ports = facts.devices.iter().flat_map(|device| &device.ports);
    let gids = ports.flat_map(|port| &port.gids);
    let addresses = gids.filter_map(|gid| gid.gid.parse::<Ipv6Addr>().ok());
    addresses.map(|address| IpAddr::V6(address).to_canonical()).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use linerate_plan::path::Direction;
    use linerate_plan::transport::Setting;
    use linerate_plan::transport::rdma::Addressing;
    use linerate_plan::{Knobs, Pattern};
    use linerate_sys::ibverbs::Remote;

    use super::super::hello::HELLO_BYTES;
    use super::*;

    fn hello(addressing: Addressing, mtu: u16, reads_in: u8) -> Hello {
        Hello {
            addressing,
            mtu,
            lid: 7,
            reads_in,
            number: 9,
            first_packet: 11,
            gid: [1; 16],
            memory: Remote::default(),
        }
    }

    fn routed(own: Hello, other: Hello) -> Result<(Peer, Route), String> {
        let mut knobs = Knobs::default();
        knobs.options.set(SERVICE_LEVEL.key, Setting::Number(3));
        let plan =
            SetPlan { id: 0, pattern: Pattern::Stream { direction: Direction::Forward }, knobs };
        let choice = Choice {
            device: "mlx5_0".to_owned(),
            port: 1,
            gid_index: Some(3),
            addressing: own.addressing,
            node: None,
        };
        route(&choice, 16, &plan, &own, &other)
    }

    #[test]
    fn the_smaller_packets_and_the_fewer_reads_of_both_ends_are_taken() {
        let [own, other] =
            [(4096, 16), (1024, 4)].map(|(mtu, reads)| hello(Addressing::RoceV2, mtu, reads));
        let (peer, route) = routed(own, other).unwrap();
        assert_eq!((route.mtu, route.reads_out, route.reads_in), (1024, 4, 16));
        assert_eq!((route.service_level, route.gid_index), (3, Some(3)));
        assert_eq!((peer.number, peer.first_packet, peer.lid), (9, 11, 7));
        let (_, route) = routed(other, own).unwrap();
        assert_eq!((route.mtu, route.reads_out, route.reads_in), (1024, 16, 4));
    }

    #[test]
    fn what_nobody_acknowledges_goes_to_no_third_host() {
        let [own, far, third] = ["10.9.0.1", "10.9.0.2", "10.9.0.3"].map(|ip| ip.parse().unwrap());
        let to = |addressing, ip: &str| {
            let gid: Ipv6Addr = ip.parse().unwrap();
            let hello = Hello { gid: gid.octets(), ..hello(addressing, 1024, 1) };
            expects(&hello, far, &[own])
        };
        assert_eq!(to(Addressing::RoceV2, "::ffff:10.9.0.2"), Ok(()));
        assert_eq!(to(Addressing::RoceV2, "::ffff:10.9.0.1"), Ok(()));
        let why = to(Addressing::RoceV2, "::ffff:10.9.0.3").unwrap_err();
        assert!(why.contains(&format!("{third}")), "{why}");
        // Packets of these do not leave the network that both are in.
        assert_eq!(to(Addressing::RoceV1, "fe80::3"), Ok(()));
        assert_eq!(to(Addressing::Lid, "fe80::3"), Ok(()));
    }

    /// Reads the hello that an end sends as `sent`, and closes its connection or keeps it.
    fn got(sent: &[u8], closes: bool) -> Result<Hello, String> {
        let (own, mut other) = UnixStream::pair().unwrap();
        let line = Line::new(own.into(), 0, 0).unwrap();
        other.write_all(sent).unwrap();
        let kept = (!closes).then_some(other);
        let until = Instant::now() + Duration::from_millis(50);
        let raw = line.receive_all(until, || false, UNSAID).map_err(|e| e.to_string());
        drop(kept);
        Hello::decode(&raw?)
    }

    #[test]
    fn an_end_that_introduces_no_queue_pair_is_not_waited_for() {
        let good = hello(Addressing::RoceV2, 1024, 1).encode();
        assert_eq!(got(&good, true), Ok(hello(Addressing::RoceV2, 1024, 1)));
        for (sent, closes, wanted) in [
            (&[][..], false, "introduces no queue pair"),
            (&good[1..], false, "introduces no queue pair"),
            (&good[1..], true, "closed stream 0 of set 0"),
            (&[b'x'; HELLO_BYTES], false, "introduced no queue pair"),
            (&NONE, false, "given up"),
        ] {
            let why = got(sent, closes).unwrap_err();
            assert!(why.contains(wanted), "{wanted}: {why}");
        }
    }

    #[test]
    fn work_near_a_node_runs_on_one_of_its_cpus_or_anywhere() {
        let here = thread::allowed_cpus().unwrap();
        let on = |node| near(node, || thread::allowed_cpus().unwrap()).unwrap();
        assert_eq!(on(None), here);
        assert_eq!(on(Some(9999)), here, "no such node");
        let pinned = on(Some(0));
        let cpu = cpu_of(0).map_or(here.clone(), |cpu| vec![cpu]);
        assert_eq!(pinned, cpu);
        assert_eq!(thread::allowed_cpus().unwrap(), here, "the caller is not pinned");
    }

    #[test]
    fn ends_that_address_packets_differently_are_refused() {
        let own = hello(Addressing::RoceV2, 1024, 1);
        for other in [Addressing::Lid, Addressing::RoceV1] {
            let why = routed(own, hello(other, 1024, 1)).unwrap_err();
            assert!(why.contains("RoCE v2") && why.contains(other.name()), "{why}");
        }
    }
}
