//! How the two ends of a set make their queue pairs and connect them.

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

use super::choice::{Choice, Lack, Requested, choose};
use super::hello::{Hello, NONE};
use super::pair::Pair;
use super::reason::failed;
use super::shape::Shape;
use crate::LoadError;
use crate::transport::Lines;
use crate::transport::line::{Line, connections};
use linerate_host::{self as host, Live, Machine};

/// Hint that lists what a host needs for verbs.
const INSTALL: &str = "install libibverbs with its providers (Debian, Ubuntu: libibverbs1 ibverbs-providers; Fedora: \
                       libibverbs), load ib_uverbs (sudo modprobe ib_uverbs), and let this user open /dev/infiniband/uverbs*";
/// Longest time until both ends have sent their hellos.
const PATIENCE: Duration = Duration::from_secs(20);
/// Number of retransmissions of a packet that is not acknowledged. The largest possible value would be 7, but Soft-RoCE
/// then retransmits without a limit.
//= torvalds/linux, drivers/infiniband/sw/rxe/rxe_comp.c: a retry_cnt of 7 is not lowered
const RETRIES: u8 = 6;
/// Number of retries if the receiver has no receive request. 7 means no limit; the end of the step ends them.
const RNR_RETRIES: u8 = 7;

/// Error texts if the other end does not receive, or does not send, a hello.
const UNTAKEN: &str = "the other end takes no introduction";
const UNSAID: &str = "the other end introduces no queue pair";

/// The queue pairs of a set, after they were connected.
pub(super) struct Met {
    pub(super) pairs: Vec<Pair>,
    /// The RDMA port that they use, with the sizes that were agreed.
    pub(super) end: RdmaEnd,
}

/// Makes the queue pairs of one end of a set, and connects them to those of the other end.
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
        // After `NONE` the other end need not wait. The connection to it may be gone too, so errors are ignored.
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

/// Records what was agreed for a queue pair. All queue pairs have the same values, except inline payload, whose
/// smallest value is recorded.
fn agreed(end: &mut RdmaEnd, endpoint: &Endpoint, route: &Route) {
    end.mtu = route.mtu;
    end.reads_out = route.reads_out.into();
    end.reads_in = route.reads_in.into();
    end.inline = end.inline.min(endpoint.inline());
}

fn unsupported(what: String) -> LoadError {
    LoadError::Unsupported { what }
}

/// The queue pairs of a stream, with the hello of each.
type Made = (Endpoint, Vec<Hello>);

/// Makes the queue pairs of this end, and sends their hellos to the other end.
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

/// Runs `work` on a CPU of a NUMA node, so that the memory that it allocates is on that node. If this process may use
/// no CPU of the node, `work` runs where the scheduler places it.
fn near<T: Send>(node: Option<u32>, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, move || {
            if let Some(cpu) = node.and_then(cpu_of) {
                // If pinning fails, `work` runs where the scheduler places it.
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

/// Returns a CPU of a NUMA node that this process may use; `None` if there is none.
fn cpu_of(node: u32) -> Option<u32> {
    let path = format!("/sys/devices/system/node/node{node}/cpulist");
    let text = Live::new().file(&path).ok()?;
    let cpus = sysctl::list(&text).ok()?;
    let allowed = thread::allowed_cpus().ok()?;
    cpus.into_iter().find(|cpu| allowed.contains(cpu))
}

/// An RDMA port that was opened.
struct Port {
    choice: Choice,
    device: Arc<Device>,
    state: ibverbs::Port,
    limits: Limits,
    /// GID that packets carry; zero if the port is addressed by LID alone.
    gid: [u8; 16],
    /// Facts of the port from sysfs.
    described: RdmaEnd,
    /// IP addresses of all RDMA ports of this host.
    owned: Vec<IpAddr>,
}

impl Port {
    /// Opens the RDMA port through which this end, whose address is `local`, reaches the other end.
    fn open(side: Side, plan: &SetPlan, local: IpAddr) -> Result<Self, LoadError> {
        let options = &plan.knobs.options;
        let facts = host::infiniband(&Live::new());
        let named = match side {
            Side::Near => options.word(DEVICE.key),
            Side::Far => options.word(FAR_DEVICE.key),
        };
        let requested = Requested {
            device: named,
            gid_index: options.number(GID_INDEX.key).map(|index| index as u8),
        };
        let choice = choose(&facts, local, requested).map_err(lacking)?;
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

    /// Describes the port for the record, before the ends have agreed on sizes.
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

    /// Returns how many RDMA reads a queue pair may have in flight.
    fn reads_out(&self, plan: &SetPlan) -> u8 {
        self.limits.reads_out.min(reads(plan)) as u8
    }

    /// Refuses sizes of queues and messages that exceed those of the device, and operations that it lacks.
    fn check(&self, shape: &Shape) -> Result<(), LoadError> {
        let Limits { requests, completions, atomics, .. } = self.limits;
        let name = &self.choice.device;
        let requested = (shape.depth + shape.list).max(shape.receives());
        if requested > requests {
            let what = format!("{name} has queues of {requests} requests, not of {requested}");
            return Err(unsupported(what));
        }
        let requested = requested.saturating_mul(shape.pairs);
        if requested > completions {
            let what =
                format!("{name} has queues of {completions} completions, not of {requested}");
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

    /// Makes the queue pairs of a stream, and the hello of each.
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
        let requested = plan.knobs.options.number(MTU.key);
        let mtu =
            requested.map_or(self.state.mtu, |requested| self.state.mtu.min(requested as u32));
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

/// Returns how many RDMA reads in flight the plan requests.
fn reads(plan: &SetPlan) -> u32 {
    let requested = plan.knobs.options.number(READS.key);
    requested.unwrap_or(READS_DEFAULT) as u32
}

/// Returns a random number from which packets are numbered, so that late packets of an earlier queue pair with the same
/// number are not mistaken for new ones.
fn random(line: &Line) -> Result<u32, LoadError> {
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(|e| line.failed("getrandom", io::Error::other(e)))?;
    Ok(u32::from_be_bytes(random))
}

/// Reads the facts of a port from sysfs.
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

/// Returns how packets reach the other end. The error explains why they cannot, as a lowercase fragment.
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

/// Refuses to send packets of services without acknowledgement to a third host. Permitted are the other end's address
/// on the connection, `peer`, and this host's own addresses. The error is a lowercase fragment.
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

/// Returns the IP addresses of all RDMA ports of a host.
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
        // Packets with RoCE v1 or LID addressing are not routed out of the network that both ports belong to.
        assert_eq!(to(Addressing::RoceV1, "fe80::3"), Ok(()));
        assert_eq!(to(Addressing::Lid, "fe80::3"), Ok(()));
    }

    /// Decodes the hello when the other end sends the bytes `sent`, and then closes the connection or keeps it open.
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
