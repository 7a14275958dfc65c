//! How the ends of a set get their queue pairs and connect them.

use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_core::parse::sysctl;
use linerate_core::plan::SetPlan;
use linerate_core::transport::rdma::{GID_INDEX, MTU, SERVICE_LEVEL, TRAFFIC_CLASS};
use linerate_sys::ibverbs::{
    Device, Endpoint, Library, Peer, QueuePlan, Refused, Region, Route, Service,
};
use linerate_sys::thread;

use super::choice::{Choice, Lack, choose};
use super::hello::{HELLO_BYTES, Hello, NONE};
use super::pair::Pair;
use super::shape::Shape;
use crate::host::{self, Live, Machine};
use crate::load::LoadError;
use crate::load::transport::Lines;
use crate::load::transport::line::Line;

/// What a host needs for verbs.
const INSTALL: &str = "install libibverbs with its providers (Debian, Ubuntu: libibverbs1 ibverbs-providers; Fedora: \
                       libibverbs), load ib_uverbs (sudo modprobe ib_uverbs), and let this user open /dev/infiniband/uverbs*";
/// Time for both ends to introduce themselves.
const PATIENCE: Duration = Duration::from_secs(20);
/// Reads in flight of each queue pair, as far as both devices allow.
const READS: u32 = 16;
/// Time without an acknowledgement until a packet is sent again: 4.096 us x 2^14, 67 ms.
const TIMEOUT: u8 = 14;
/// How often it is sent again: the most that there is.
const RETRIES: u8 = 7;
/// A sender waits without an end for a receive request; the end of a step ends the wait.
const RNR_RETRIES: u8 = 7;

/// The queue pairs of a set, connected.
pub(super) struct Met {
    pub(super) pairs: Vec<Pair>,
}

/// Makes the queue pairs of one end of a set, and connects them to the other end's.
pub(super) fn meet(plan: &SetPlan, shape: &Shape, lines: &mut dyn Lines) -> Result<Met, LoadError> {
    let fds = lines.lines(plan.id, plan.knobs.streams, &mut |_, _| Ok(()))?;
    let mut taken = Vec::new();
    for (stream, fd) in fds.into_iter().enumerate() {
        taken.push(Line::new(fd, plan.id, stream as u32)?);
    }
    let until = Instant::now() + PATIENCE;
    let made = introduce(plan, shape, &taken, until);
    if made.is_err() {
        // The other end need not wait. Its connection may be gone as well.
        for line in &taken {
            let _ = put(line, &NONE, until);
        }
    }
    let (port, pairs) = made?;
    let pairs = pairs.into_iter().zip(taken);
    let pairs = pairs.map(|((mut endpoint, own), line)| {
        let other = Hello::decode(&get(&line, until, lines)?);
        let other = other.map_err(|why| line.garbled(&why))?;
        let (peer, route) = route(&port.choice, plan, &own, &other)
            .map_err(|what| LoadError::Unsupported { what })?;
        let connected = endpoint.connect(peer, &route, own.first_packet);
        connected.map_err(|refused| failed(&line, refused))?;
        Ok(Pair::new(endpoint, line, shape.events))
    });
    Ok(Met {
        pairs: pairs.collect::<Result<_, LoadError>>()?,
    })
}

/// Makes the queue pairs of this end, and introduces them to the other end.
fn introduce(
    plan: &SetPlan,
    shape: &Shape,
    lines: &[Line],
    until: Instant,
) -> Result<(Port, Vec<(Endpoint, Hello)>), LoadError> {
    let first = lines.first().ok_or_else(|| LoadError::Unsupported {
        what: "a set without streams".to_owned(),
    })?;
    let port = Port::open(plan, local(first)?)?;
    let pairs = near(port.choice.node, || {
        let each = lines.iter().map(|line| port.endpoint(plan, shape, line));
        each.collect::<Result<Vec<_>, LoadError>>()
    })?;
    for (line, (_, hello)) in lines.iter().zip(&pairs) {
        put(line, &hello.encode(), until)?;
    }
    Ok((port, pairs))
}

/// Runs `work` on a CPU of a NUMA node, so that what it allocates is on that node. Without such a CPU it runs where the
/// scheduler places it.
fn near<T: Send>(node: Option<u32>, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            if let Some(cpu) = node.and_then(cpu_of) {
                // A CPU that cannot be used now is as good as none.
                let _ = thread::pin(cpu);
            }
            work()
        });
        match thread.join() {
            Ok(result) => result,
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
    state: linerate_sys::ibverbs::Port,
    reads_in: u8,
    /// Identifier of a GID-addressed port.
    gid: [u8; 16],
}

impl Port {
    /// Opens the port by which this end, at the address `local`, reaches the other one.
    fn open(plan: &SetPlan, local: IpAddr) -> Result<Self, LoadError> {
        let options = &plan.knobs.options;
        let facts = host::infiniband(&Live::new());
        let asked = options.number(GID_INDEX.key).map(|index| index as u8);
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
            choice,
            device,
            state,
            reads_in: limits.reads_in.min(READS) as u8,
            gid,
        })
    }

    /// Makes a queue pair, with what the other end must know of it.
    fn endpoint(
        &self,
        plan: &SetPlan,
        shape: &Shape,
        line: &Line,
    ) -> Result<(Endpoint, Hello), LoadError> {
        let refused = |refused| failed(line, refused);
        let region = Region::new(&self.device, shape.memory()).map_err(refused)?;
        let memory = region.remote();
        let queues = QueuePlan {
            service: Service::Rc,
            port: self.choice.port,
            depth: shape.depth,
            receives: shape.receives(),
            inline: shape.inline,
            events: shape.events,
        };
        let endpoint = Endpoint::new(region, queues).map_err(refused)?;
        let mut random = [0; 4];
        getrandom::fill(&mut random)
            .map_err(|e| line.failed("getrandom", std::io::Error::other(e)))?;
        let asked = plan.knobs.options.number(MTU.key);
        let mtu = asked.map_or(self.state.mtu, |asked| self.state.mtu.min(asked as u32));
        let hello = Hello {
            addressing: self.choice.addressing,
            mtu: mtu as u16,
            lid: self.state.lid,
            reads_in: self.reads_in,
            number: endpoint.number(),
            first_packet: u32::from_be_bytes(random) >> 8,
            gid: self.gid,
            memory,
        };
        Ok((endpoint, hello))
    }
}

fn lacking(Lack { what, hint }: Lack) -> LoadError {
    LoadError::Lacking { what, hint }
}

/// Returns how packets get to the other end. The error says why they cannot, as a lowercase fragment.
fn route(
    choice: &Choice,
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
    let number = |key: &str| options.number(key).unwrap_or(0) as u8;
    let route = Route {
        mtu: own.mtu.min(other.mtu).into(),
        gid_index: choice.gid_index,
        service_level: number(SERVICE_LEVEL.key),
        traffic_class: number(TRAFFIC_CLASS.key),
        reads_out: own.reads_in.min(other.reads_in),
        reads_in: own.reads_in,
        timeout: TIMEOUT,
        retries: RETRIES,
        rnr_retries: RNR_RETRIES,
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

/// Returns this end's address on a connection.
fn local(line: &Line) -> Result<IpAddr, LoadError> {
    let name = rustix::net::getsockname(line.fd().as_fd());
    let name = name.and_then(std::net::SocketAddr::try_from);
    let name = name.map_err(|e| line.failed("getsockname", e.into()))?;
    Ok(name.ip().to_canonical())
}

/// Sends all bytes.
fn put(line: &Line, bytes: &[u8], until: Instant) -> Result<(), LoadError> {
    let mut at = 0;
    while at < bytes.len() {
        at += line.send(&bytes[at..], false)?;
        if at < bytes.len() && Instant::now() >= until {
            return Err(line.garbled("the other end takes no introduction"));
        }
    }
    Ok(())
}

/// Receives a hello.
fn get(line: &Line, until: Instant, lines: &dyn Lines) -> Result<[u8; HELLO_BYTES], LoadError> {
    let mut raw = [0; HELLO_BYTES];
    let mut at = 0;
    while at < raw.len() {
        at += line.receive(&mut raw[at..], true)?;
        if at < raw.len() && (Instant::now() >= until || lines.given_up()) {
            return Err(line.garbled("the other end introduces no queue pair"));
        }
    }
    Ok(raw)
}

fn failed(line: &Line, refused: Refused) -> LoadError {
    line.failed(refused.call, refused.source)
}

#[cfg(test)]
mod tests {
    use linerate_core::path::Direction;
    use linerate_core::plan::{Knobs, Pattern};
    use linerate_core::transport::Setting;
    use linerate_sys::ibverbs::Remote;

    use super::super::hello::Addressing;
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
        let plan = SetPlan {
            id: 0,
            pattern: Pattern::Stream {
                direction: Direction::Forward,
            },
            knobs,
        };
        let choice = Choice {
            device: "mlx5_0".to_owned(),
            port: 1,
            gid_index: Some(3),
            addressing: own.addressing,
            node: None,
        };
        route(&choice, &plan, &own, &other)
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
        assert_eq!((route.mtu, route.reads_out, route.reads_in), (1024, 4, 4));
    }

    #[test]
    fn work_near_a_node_runs_on_one_of_its_cpus_or_anywhere() {
        let here = thread::allowed_cpus().unwrap();
        let on = |node| near(node, || thread::allowed_cpus().unwrap());
        assert_eq!(on(None), here);
        assert_eq!(on(Some(9999)), here, "no such node");
        let pinned = on(Some(0));
        let cpu = cpu_of(0).map_or(here.clone(), |cpu| vec![cpu]);
        assert_eq!(pinned, cpu);
        assert_eq!(
            thread::allowed_cpus().unwrap(),
            here,
            "the caller is not pinned"
        );
    }

    #[test]
    fn ends_that_address_packets_differently_are_refused() {
        let own = hello(Addressing::RoceV2, 1024, 1);
        for other in [Addressing::Lid, Addressing::RoceV1] {
            let why = routed(own, hello(other, 1024, 1)).unwrap_err();
            assert!(
                why.contains("RoCE v2") && why.contains(other.name()),
                "{why}"
            );
        }
    }
}
