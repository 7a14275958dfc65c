//! Tests of a user MAD device of a real kernel: Soft-RoCE in a virtual machine.
//!
//! An Ethernet port has only queue pair 1, needs a global route to each address, and its kernel does not answer
//! requests for counters. So a program in the virtual machine answers them. The test shows that the device is opened,
//! that agents are registered, that a general request is sent, and that its reply or its time-out is received. Subnet
//! management needs an InfiniBand card.

use std::fs;
use std::net::Ipv6Addr;
use std::time::Instant;

use linerate_fabric::mad::counters::Support;
use linerate_fabric::mad::{Attribute, Route, To};
use linerate_lab::Program;
use linerate_lab::vm::{Kernel, Spec, Vm, VmError};
use linerate_test::{has, skip};

use super::*;
use crate::Live;

/// Longest time that the script in the virtual machine may take. A busy machine needs a hundredth of it.
const WITHIN: Duration = Duration::from_secs(120);

/// Address of the Soft-RoCE device, and an address at which nothing answers.
///
/// They are IPv6 addresses: the kernel (6.1) matches a reply by the global route that precedes it. For IPv4 that route
/// has another form, so no request over IPv4 ever gets a reply.
const OWN: Ipv6Addr = Ipv6Addr::new(0xfd00, 9, 0, 0, 0, 0, 0, 1);
const SILENT: Ipv6Addr = Ipv6Addr::new(0xfd00, 9, 0, 0, 0, 0, 0, 9);

/// A program that answers requests for counters: its agent returns each Get of class 4 as a GetResp. Bit 9 of the
/// capability mask announces 64-bit counters.
const RESPONDER: &str = "
import fcntl, os, struct
device = os.open('/dev/infiniband/umad0', os.O_RDWR)
fcntl.ioctl(device, 0x1b03)
agent = bytearray(struct.pack('<I16s7Bx', 0, bytes([2] + [0] * 15), 1, 4, 1, 0, 0, 0, 0))
fcntl.ioctl(device, 0xc01c1b01, agent)
open('/run/ready', 'w').close()
while True:
    packet = bytearray(os.read(device, 64 + 256))
    packet[0:4] = agent[0:4]
    packet[4:20] = bytes(16)
    packet[24:28] = bytes([0x80, 1, 0, 0])
    packet[64 + 3] = 0x81
    packet[64 + 64 + 2] = 2
    os.write(device, packet)
";

/// Makes the Soft-RoCE device, starts the program that answers, and runs the test below in the virtual machine.
const SCRIPT: &str = "set -e
cp /out/tests /run/tests
modprobe -a veth rdma_rxe ib_umad
ip link add d0 type veth peer name d1
ip addr add fd00:9::1/64 dev d0 nodad
ip link set d1 up
ip link set d0 up
ip neigh add fd00:9::9 lladdr 02:00:00:00:00:09 dev d0 nud permanent
rdma link add rxe0 type rxe netdev d0
python3 /out/responder >&2 &
for _ in $(seq 600); do [ -e /run/ready ] && break; sleep 0.1; done
/run/tests --exact fabric::umad::guest::inside --ignored --nocapture";

mod long {
    #[test]
    fn a_real_kernel_sends_general_requests_and_hands_over_replies() {
        super::outside();
    }
}

fn outside() {
    if !has("python3") {
        return;
    }
    let own = std::env::current_exe().unwrap();
    // The folder that tests of the whole program use too: target/tmp.
    let target = own.ancestors().nth(3).unwrap();
    let kernel = Kernel::find(&target.join("tmp/linerate/kernels"));
    let mut vm = match kernel.and_then(|kernel| Vm::boot(&Spec::default(), &kernel)) {
        Ok(vm) => vm,
        Err(error @ (VmError::Missing { .. } | VmError::NoKernel { .. })) => {
            return skip("qemu", &format!("this needs a virtual machine: {error}"));
        }
        Err(error) => panic!("no virtual machine: {error}"),
    };
    fs::copy(&own, vm.shared().join("tests")).unwrap();
    fs::write(vm.shared().join("responder"), RESPONDER).unwrap();
    let script = Program::new("sh").args(["-c", SCRIPT]).current_dir("/");
    let done = vm.run(&script, WITHIN).unwrap();
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{}: {out}\n{err}", done.status);
    assert!(out.contains("1 passed"), "{out}\n{err}");
}

#[test]
#[ignore = "runs in the virtual machine that another test boots"]
fn inside() {
    let machine = Live::new();
    let ethernet = Umad::open(&machine, None).unwrap_err().to_string();
    assert!(ethernet.starts_with("rxe0 port 1 is an Ethernet port"), "{ethernet}");

    let mut port = ethernet_port();
    let support = |to| Get { to, attribute: Attribute::CounterSupport };
    // An Ethernet port has no LIDs: the kernel refuses the address.
    port.send(1, &support(To::Lid(1))).unwrap();
    let got = port.receive(Duration::ZERO).unwrap();
    assert!(matches!(got, Some(Arrival::NotPossible(1))), "{got:?}");
    // Without an agent, as on queue pair 0 here, a write fails with the same error as after a device was removed.
    let own_node = Get { to: To::Route(Route::default()), attribute: Attribute::NodeInfo };
    let error = port.send(2, &own_node).unwrap_err();
    assert!(matches!(error, PortError::Umad(UmadError::Removed { .. })), "{error}");

    // On a busy machine the reply may be too late; then the request is sent again, as a walk does.
    let get = support(To::Lid(0));
    let answered = (100..200).find_map(|transaction| {
        send_globally(&port, transaction, &get, OWN);
        match next(&mut port) {
            Arrival::Mad(mad) => Some((transaction, mad)),
            Arrival::Lost(_) | Arrival::NotPossible(_) => None,
        }
    });
    let (sent, mad) = answered.unwrap();
    assert_eq!(transaction(&mad[..]), Some(sent));
    assert!(Support::decode(get.reply(&mad[..]).unwrap()).wide);

    // Nothing answers at this address, so the kernel reports a time-out.
    send_globally(&port, 4, &get, SILENT);
    let arrived = next(&mut port);
    assert!(matches!(arrived, Arrival::Lost(4)), "{arrived:?}");
}

/// Opens the port of the Soft-RoCE device, which has no agent on queue pair 0.
fn ethernet_port() -> Umad {
    let file = opened("/dev/infiniband/umad0").unwrap();
    umad::enable_partition_key(file.as_fd()).unwrap();
    let subnet = umad::register(file.as_fd(), 0).unwrap_err();
    assert_eq!(Errno::from_io_error(&subnet), Some(Errno::PROTONOSUPPORT));
    let general = umad::register(file.as_fd(), 1).unwrap();
    // The kernel does not change the header once an agent is registered.
    let late = umad::enable_partition_key(file.as_fd()).unwrap_err();
    assert_eq!(Errno::from_io_error(&late), Some(Errno::INVAL));
    Umad {
        file,
        name: Name { device: "rxe0".to_owned(), port: 1 },
        others: Vec::new(),
        subnet: general + 1,
        general,
        unsent: VecDeque::new(),
        opened: Instant::now(),
    }
}

/// Sends a request as `MadPort::send` does, but with a global route.
fn send_globally(port: &Umad, transaction: u32, get: &Get, to: Ipv6Addr) {
    let mut packet = header::encode(port.general, transaction, get, PATIENCE.duration());
    let (present, index, hops, gid) = (32, 33, 34, 36);
    packet[present] = 1;
    packet[index] = gid_index();
    packet[hops] = 64;
    packet[gid..gid + 16].copy_from_slice(&to.octets());
    rustix::io::write(&port.file, &packet).unwrap();
}

/// Returns the index of the GID of this host's address.
fn gid_index() -> u8 {
    let is_own = |index: &u8| {
        let path = format!("/sys/class/infiniband/rxe0/ports/1/gids/{index}");
        let gid = fs::read_to_string(path).unwrap_or_default();
        gid.trim().parse::<Ipv6Addr>() == Ok(OWN)
    };
    (0..16).find(is_own).unwrap()
}

fn next(port: &mut Umad) -> Arrival {
    let since = Instant::now();
    while since.elapsed() < WITHIN {
        if let Some(arrival) = port.receive(Duration::from_secs(1)).unwrap() {
            return arrival;
        }
    }
    panic!("nothing arrived");
}
