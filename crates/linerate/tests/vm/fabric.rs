//! `linerate fabric` on a kernel with an RDMA device: Soft-RoCE, which has no InfiniBand network.

use super::guest::{Guest, PROGRAM};

/// Makes a Soft-RoCE device.
const DEVICE: &str = "modprobe -a veth rdma_rxe
ip link add soft0 type veth peer name soft1
ip link set soft1 up
ip link set soft0 up
rdma link add rxe0 type rxe netdev soft0";

/// Shows the port of that device as one of an InfiniBand card.
const INFINIBAND: &str = "plant /sys/class/infiniband/rxe0/ports/1/link_layer InfiniBand";

pub(crate) fn ports_that_cannot_ask(guest: &mut Guest) {
    let told = said(guest, "", "fabric");
    assert!(told.contains("this host has no InfiniBand device"), "{told}");
    guest.ask(DEVICE);

    // Whether ib_umad is loaded does not matter.
    for module in ["", "modprobe ib_umad"] {
        let told = said(guest, module, "fabric");
        assert!(told.contains("rxe0 port 1 is an Ethernet port"), "{told}");
        assert!(told.contains("no InfiniBand network to walk"), "{told}");
    }
    guest.ask("modprobe -r ib_umad");
    let told = said(guest, INFINIBAND, "fabric");
    assert!(told.contains("hint: sudo modprobe ib_umad"), "{told}");
    guest.ask("modprobe ib_umad");

    // The kernel has no queue pair 0 for the port, whatever sysfs says, as of a virtual function.
    for arguments in ["fabric", "fabric --device rxe0", "fabric --device rxe0:1"] {
        let told = said(guest, INFINIBAND, arguments);
        assert!(told.contains("rxe0 port 1 cannot send subnet management"), "{told}");
        assert!(told.contains("hint: a virtual function has none"), "{told}");
    }
    let told = said(guest, INFINIBAND, "fabric --device rxe0:2");
    assert!(told.contains("no rxe0 port 2; it has rxe0 port 1"), "{told}");
    assert!(told.contains("hint: linerate fabric --device rxe0:1"), "{told}");

    let user = "env HOME=/ setpriv --reuid 65534 --regid 65534 --clear-groups";
    let told = said_by(guest, user, INFINIBAND, "fabric");
    let want = "no permission to open /dev/infiniband/umad0, which belongs to user 0 and group 0, mode 0600";
    assert!(told.contains(want), "{told}");
    assert!(told.contains("hint: sudo linerate fabric"), "{told}");

    // A container has /sys of the host and no devices.
    let hidden = format!("{INFINIBAND}\nmount -t tmpfs hidden /dev/infiniband");
    let told = said(guest, &hidden, "fabric");
    assert!(told.contains("/dev/infiniband/umad0 does not exist"), "{told}");
    assert!(told.contains("docker run --device /dev/infiniband/umad0"), "{told}");

    guest.ask("rdma link delete rxe0\nip link del soft0\nmodprobe -r ib_umad rdma_rxe veth");
}

/// What `linerate` says in words, after a script has planted something. It must not measure.
fn said(guest: &mut Guest, script: &str, arguments: &str) -> String {
    said_by(guest, "", script, arguments)
}

/// The same, started by another program.
fn said_by(guest: &mut Guest, starter: &str, script: &str, arguments: &str) -> String {
    let text = guest
        .ask(&format!("{script}\n{starter} {PROGRAM} {arguments} 2>&1 || echo \"exit code $?\""));
    assert!(text.ends_with("exit code 3\n"), "{text}");
    text
}
