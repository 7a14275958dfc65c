//! `linerate fabric` on a kernel with an RDMA device that has no InfiniBand network: Soft-RoCE.

use super::guest::{Guest, PROGRAM};

/// Makes a Soft-RoCE device.
const DEVICE: &str = "modprobe -a veth rdma_rxe
ip link add soft0 type veth peer name soft1
ip link set soft1 up
ip link set soft0 up
rdma link add rxe0 type rxe netdev soft0";

/// Makes the port of that device look like one of an InfiniBand card.
const INFINIBAND: &str = "plant /sys/class/infiniband/rxe0/ports/1/link_layer InfiniBand";

pub(crate) fn ports_that_cannot_ask(guest: &mut Guest) {
    let reported = said(guest, "", "fabric");
    assert!(reported.contains("this host has no InfiniBand device"), "{reported}");
    guest.ask(DEVICE);

    // The message does not depend on whether ib_umad is loaded.
    for module in ["", "modprobe ib_umad"] {
        let reported = said(guest, module, "fabric");
        assert!(reported.contains("rxe0 port 1 is an Ethernet port"), "{reported}");
        assert!(reported.contains("no InfiniBand network to walk"), "{reported}");
    }
    guest.ask("modprobe -r ib_umad");
    let reported = said(guest, INFINIBAND, "fabric");
    assert!(reported.contains("hint: sudo modprobe ib_umad"), "{reported}");
    guest.ask("modprobe ib_umad");

    // Whatever sysfs shows, the kernel has no queue pair 0 for the port, as for a virtual function.
    for arguments in ["fabric", "fabric --device rxe0", "fabric --device rxe0:1"] {
        let reported = said(guest, INFINIBAND, arguments);
        assert!(reported.contains("rxe0 port 1 cannot send subnet management"), "{reported}");
        assert!(reported.contains("hint: a virtual function has none"), "{reported}");
    }
    let reported = said(guest, INFINIBAND, "fabric --device rxe0:2");
    assert!(reported.contains("no rxe0 port 2; it has rxe0 port 1"), "{reported}");
    assert!(reported.contains("hint: linerate fabric --device rxe0:1"), "{reported}");

    let user = "env HOME=/ setpriv --reuid 65534 --regid 65534 --clear-groups";
    let reported = said_by(guest, user, INFINIBAND, "fabric");
    let want = "no permission to open /dev/infiniband/umad0, which belongs to user 0 and group 0, mode 0600";
    assert!(reported.contains(want), "{reported}");
    assert!(reported.contains("hint: sudo linerate fabric"), "{reported}");

    // A container sees /sys of the host, but no devices.
    let hidden = format!("{INFINIBAND}\nmount -t tmpfs hidden /dev/infiniband");
    let reported = said(guest, &hidden, "fabric");
    assert!(reported.contains("/dev/infiniband/umad0 does not exist"), "{reported}");
    assert!(reported.contains("docker run --device /dev/infiniband/umad0"), "{reported}");

    guest.ask("rdma link delete rxe0\nip link del soft0\nmodprobe -r ib_umad rdma_rxe veth");
}

/// The output of `linerate` after a script has planted something. It must end with exit code 3.
fn said(guest: &mut Guest, script: &str, arguments: &str) -> String {
    said_by(guest, "", script, arguments)
}

/// The output of `linerate` if `starter` starts it, after a script has planted something.
fn said_by(guest: &mut Guest, starter: &str, script: &str, arguments: &str) -> String {
    let text = guest
        .ask(&format!("{script}\n{starter} {PROGRAM} {arguments} 2>&1 || echo \"exit code $?\""));
    assert!(text.ends_with("exit code 3\n"), "{text}");
    text
}
