#!/usr/bin/env python3
"""Networks that no part of the lab made: namespaces joined by `ip`, faults by `tc`, `nft`, `sysctl` and `ethtool`.

    benches/truth/networks.py OUT [NAME ...]

Each row is one network, made, measured by iperf3 without and with its fault, diagnosed once by `linerate run` in
both directions with its default budget, and taken away; none is run again. A fault binds where iperf3 gets 10 % more
without it, else the path is healthy. OUT/NAME is the record, OUT/rows.jsonl what came; a row that is there is not
run. Prints a table. Needs root, iperf3 and nftables, and target/dist/linerate unless LINERATE names another.
"""
import json
import os
import shlex
import signal
import subprocess
import sys
import time

LINERATE = os.path.join(os.path.dirname(__file__), "../../target/dist/linerate")
LINERATE = os.path.abspath(os.environ.get("LINERATE", LINERATE))
PREFIX = f"lr{os.getpid()}-"
CORES = ("sender-core", "receiver-core", "path-reordering", "congestion-control")
BITES = 1.10


def sh(command, **more):
    """Runs a line of shell in which @NAME stands for `ip netns exec` of that host."""
    return subprocess.run(on_hosts(command), shell=True, check=True, capture_output=True, text=True, **more)


def on_hosts(command):
    for host in ("near", "far", "r1", "r2", "switch"):
        command = command.replace(f"@{host} ", f"ip netns exec {PREFIX}{host} ")
    return command


def beside(command):
    """A line of shell that runs until its group of processes is ended."""
    return subprocess.Popen(on_hosts(command), shell=True, start_new_session=True,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def host(name):
    sh(f"ip netns add {PREFIX}{name} && @{name} ip link set lo up")
    # As a host has it that was set up for speed; the first kernel's default stands otherwise.
    sh(f"@{name} sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1")


def join(a, port_a, b, port_b):
    sh(f"ip -n {PREFIX}{a} link add {port_a} type veth peer name {port_b} netns {PREFIX}{b}")
    sh(f"@{a} ip link set {port_a} up && @{b} ip link set {port_b} up")


def address(name, port, *addresses):
    for a in addresses:
        sh(f"@{name} ip addr add {a} dev {port} {'nodad' if ':' in a else ''}")


def wire():
    for name in ("near", "far"):
        host(name)
    join("near", "eth0", "far", "eth0")
    address("near", "eth0", "10.77.0.1/24")
    address("far", "eth0", "10.77.0.2/24")
    return "10.77.0.2"


def vxlan():
    wire()
    for name, own, other in (("near", 1, 2), ("far", 2, 1)):
        sh(f"@{name} ip link add vx0 type vxlan id 7 dstport 4789 local 10.77.0.{own} remote 10.77.0.{other} dev eth0")
        sh(f"@{name} ip link set vx0 up")
        address(name, "vx0", f"10.79.0.{own}/24")
    return "10.79.0.2"


def macvlan():
    """Two hosts on one port of a switch that a third one owns."""
    for name in ("near", "far", "switch"):
        host(name)
    sh("@switch ip link add name uplink type veth peer name wall && ip netns exec %sswitch ip link set uplink up" % PREFIX)
    sh("@switch ip link set wall up")
    for name, a in (("near", "10.77.0.1/24"), ("far", "10.77.0.2/24")):
        sh(f"ip -n {PREFIX}switch link add name to-{name} link uplink type macvlan mode bridge")
        sh(f"ip -n {PREFIX}switch link set to-{name} netns {PREFIX}{name} name eth0")
        sh(f"@{name} ip link set eth0 up")
        address(name, "eth0", a)
    return "10.77.0.2"


def jumbo():
    far = wire()
    sh("@near ip link set eth0 mtu 9000 && ip netns exec %sfar ip link set eth0 mtu 9000" % PREFIX)
    return far


def bridge():
    for name in ("near", "far", "switch"):
        host(name)
    sh("@switch ip link add br0 type bridge && ip netns exec %sswitch ip link set br0 up" % PREFIX)
    for name, a in (("near", "10.77.0.1/24"), ("far", "10.77.0.2/24")):
        join(name, "eth0", "switch", f"to-{name}")
        sh(f"@switch ip link set to-{name} master br0")
        address(name, "eth0", a)
    return "10.77.0.2"


def routers(count):
    names = ["near"] + [f"r{n + 1}" for n in range(count)] + ["far"]
    for name in names:
        host(name)
    for n, (a, b) in enumerate(zip(names, names[1:])):
        join(a, f"to-{b}", b, f"to-{a}")
        address(a, f"to-{b}", f"10.77.{n}.1/24", f"fd77:{n}::1/64")
        address(b, f"to-{a}", f"10.77.{n}.2/24", f"fd77:{n}::2/64")
    for n, a in enumerate(names):
        for hop in range(count + 1):
            if hop > n:
                sh(f"@{a} ip route add 10.77.{hop}.0/24 via 10.77.{n}.2")
                sh(f"@{a} ip -6 route add fd77:{hop}::/64 via fd77:{n}::2")
            elif hop < n - 1:
                sh(f"@{a} ip route add 10.77.{hop}.0/24 via 10.77.{n - 1}.1")
                sh(f"@{a} ip -6 route add fd77:{hop}::/64 via fd77:{n - 1}::1")
    return f"10.77.{count}.2"


def router():
    return routers(1)


def two_routers():
    return routers(2)


def six():
    routers(1)
    return "fd77:1::2"


def rules(at, family, hook, rule):
    """One rule of nftables on a host."""
    table = f"add table {family} x; add chain {family} x c {{ type filter hook {hook} priority 0; }}"
    return f"@{at} nft '{table}; add rule {family} x c {rule}'"


def shaped(at, port, rate):
    """A class of htb that everything goes through."""
    return [f"@{at} tc qdisc add dev {port} root handle 1: htb default 1",
            f"@{at} tc class add dev {port} parent 1: classid 1:1 htb rate {rate} burst 64k"]


# Two busy loops for each CPU, where there are two.
HOGS = "for n in 1 2 3 4; do sh -c 'while :; do :; done' & done; wait &"
GROUP = f"/sys/fs/cgroup/cpu/lr{os.getpid()}"


def quota(percent):
    return f"mkdir -p {GROUP} && echo {percent * 1000} > {GROUP}/cpu.cfs_quota_us"


def inside():
    """What starts a program in the group that has the quota."""
    return f"sh -c 'echo $$ > {GROUP}/cgroup.procs; exec \"$@\"' sh "


# name: network, congestion control, direction of the fault, its commands, what is expected, and what each host's
# programs are started by.
ROWS = {
    "wire-cubic": (wire, "cubic", None, [], CORES),
    "wire-bbr": (wire, "bbr", None, [], CORES),
    "bridge-cubic": (bridge, "cubic", None, [], CORES),
    "two-routers-cubic": (two_routers, "cubic", None, [], CORES),
    "six-bbr": (six, "bbr", None, [], CORES),
    "vxlan-cubic": (vxlan, "cubic", None, [], CORES + ("tunnel",)),
    "bridge-tbf": (bridge, "bbr", "forward",
                   ["@switch tc qdisc add dev to-far root tbf rate 400mbit burst 128k latency 20ms"], ("path-rate",)),
    "two-routers-police": (two_routers, "cubic", "forward",
                           [rules("r2", "ip", "forward", "ip saddr 10.77.0.1 limit rate over 40 mbytes/second burst 1 mbytes drop")],
                           ("path-rate",)),
    "two-routers-loss": (two_routers, "cubic", "forward",
                         [rules("r1", "ip", "forward", "ip saddr 10.77.0.1 numgen random mod 100 == 0 drop")], ("path-loss",)),
    "bridge-loss": (bridge, "cubic", "reverse",
                    [rules("switch", "bridge", "forward", "ip saddr 10.77.0.2 numgen random mod 300 == 0 drop")], ("path-loss",)),
    "router-flow-rate": (router, "cubic", "forward",
                         ["@r1 nft 'add table ip x; add chain ip x c { type filter hook forward priority 0; }; "
                          "add set ip x m { type ipv4_addr . inet_service . inet_service; flags dynamic; }; "
                          "add rule ip x c ip saddr 10.77.0.1 add @m { ip saddr . tcp sport . tcp dport "
                          "limit rate over 30 mbytes/second burst 1 mbytes } drop'"], ("flow-rate-cap",)),
    "wire-window": (wire, "bbr", "forward", ["@far sysctl -qw net.ipv4.tcp_rmem='4096 8192 8192'"], ("receive-window",)),
    "six-black-hole": (six, "cubic", "forward",
                       ["@r1 ip link set to-far mtu 1400", "@far ip link set to-r1 mtu 1400",
                        rules("r1", "ip6", "output", "icmpv6 type packet-too-big drop"),
                        "@far ip -6 route change fd77:1::/64 dev to-r1 advmss 1440 || true",
                        "@far ip -6 route change fd77:0::/64 via fd77:1::1 advmss 1440"], ("mtu-black-hole",)),
    "wire-own-shaper": (wire, "cubic", "forward",
                        ["@near tc qdisc add dev eth0 root tbf rate 700mbit burst 256k latency 10ms"], ("host-shaping",)),
    "bridge-offloads": (bridge, "cubic", "forward",
                         ["@near ethtool -K eth0 tso off gso off gro off"], ("small-packets",)),
    "two-routers-deep-reverse": (two_routers, "bbr", "reverse",
                                 ["@r1 tc qdisc add dev to-near root tbf rate 50mbit burst 32k latency 200ms"], ("path-rate",)),
    "bridge-buffer": (bridge, "cubic", "forward", ["@near sysctl -qw net.ipv4.tcp_wmem='4096 16384 16384'"], ("send-buffer",)),
    "two-routers-both": (two_routers, "cubic", "forward",
                         ["@r1 tc qdisc add dev to-r2 root tbf rate 300mbit burst 64k latency 10ms",
                          "@r2 tc qdisc add dev to-r1 root tbf rate 900mbit burst 64k latency 10ms"], ("path-rate",)),
    # The second campaign.
    "macvlan-healthy-bbr": (macvlan, "bbr", None, [], CORES),
    "jumbo-healthy": (jumbo, "cubic", None, [], CORES),
    "router-htb": (router, "cubic", "forward", shaped("r1", "to-far", "250mbit"), ("path-rate",)),
    "own-htb-reverse": (wire, "bbr", "reverse", shaped("far", "eth0", "2gbit"), ("host-shaping",)),
    "bridge-tiny-queue": (bridge, "cubic", "forward",
                          ["@switch tc qdisc add dev to-far root tbf rate 2gbit burst 64k limit 20k"], ("path-rate",)),
    "six-police-reverse": (six, "bbr", "reverse",
                           [rules("r1", "ip6", "forward", "ip6 saddr fd77:1::2 limit rate over 90 mbytes/second burst 2 mbytes drop")],
                           ("path-rate",)),
    "bursts-of-loss": (router, "cubic", "forward",
                       [rules("r1", "ip", "forward", "ip saddr 10.77.0.1 numgen inc mod 6000 < 6 drop")], ("path-loss",)),
    "loss-bbr": (bridge, "bbr", "forward",
                 [rules("switch", "bridge", "forward", "ip saddr 10.77.0.1 numgen random mod 20 == 0 drop")], ("path-loss",)),
    "little-loss": (two_routers, "cubic", "reverse",
                    [rules("r2", "ip", "forward", "ip saddr 10.77.2.2 numgen random mod 1500 == 0 drop")], ("path-loss",)),
    "flow-rate-reverse": (router, "bbr", "reverse",
                          ["@r1 nft 'add table ip x; add chain ip x c { type filter hook forward priority 0; }; "
                           "add set ip x m { type ipv4_addr . inet_service . inet_service; flags dynamic; }; "
                           "add rule ip x c ip saddr 10.77.1.2 add @m { ip saddr . tcp sport . tcp dport "
                           "limit rate over 60 mbytes/second burst 2 mbytes } drop'"], ("flow-rate-cap",)),
    "slow-acks": (two_routers, "cubic", "forward",
                  ["@r1 tc qdisc add dev to-near root tbf rate 3mbit burst 16k latency 50ms"], ("path-rate",)),
    "mss-536": (bridge, "cubic", "forward",
                ["@far ip route change 10.77.0.0/24 dev eth0 advmss 536"], ("small-packets",)),
    "mtu-600": (wire, "cubic", "forward",
                ["@near ip link set eth0 mtu 600", "@far ip link set eth0 mtu 600"], ("small-packets",)),
    "gro-off-at-far": (wire, "cubic", "forward", ["@far ethtool -K eth0 gro off", "@near ethtool -K eth0 tso off gso off"],
                       ("small-packets",)),
    "window-at-near": (six, "cubic", "reverse", ["@near sysctl -qw net.ipv4.tcp_rmem='4096 16384 16384'"], ("receive-window",)),
    "buffer-at-far": (two_routers, "bbr", "reverse", ["@far sysctl -qw net.ipv4.tcp_wmem='4096 8192 8192'"], ("send-buffer",)),
    "competing": (bridge, "cubic", "forward",
                  ["@switch tc qdisc add dev to-far root tbf rate 600mbit burst 64k latency 10ms",
                   "@far iperf3 -s -p 5999 &", "sleep 1; @near iperf3 -c 10.77.0.2 -p 5999 -P 3 -t 300 &"], ("path-rate",)),
    "window-then-rate": (bridge, "cubic", "forward",
                         ["@switch tc qdisc add dev to-far root tbf rate 900mbit burst 64k latency 10ms",
                          "@far sysctl -qw net.ipv4.tcp_rmem='4096 6144 6144'"], ("receive-window", "path-rate")),
    "police-and-loss": (two_routers, "cubic", "forward",
                        [rules("r2", "ip", "forward", "ip saddr 10.77.0.1 limit rate over 100 mbytes/second burst 1 mbytes drop"),
                         rules("r1", "ip", "forward", "ip saddr 10.77.0.1 numgen random mod 30 == 0 drop")],
                        ("path-loss", "path-rate")),
    "rate-and-hogs": (router, "cubic", "forward",
                      ["@r1 tc qdisc add dev to-far root tbf rate 150mbit burst 64k latency 10ms", HOGS], ("path-rate",)),
    "hogs": (wire, "cubic", "forward", [HOGS], ("cpu-contention",)),
    "quota-at-near": (wire, "cubic", "forward", [quota(30)], ("cpu-quota",), {"near": inside()}),
    "quota-at-far": (router, "bbr", "forward", [quota(20)], ("cpu-quota",), {"far": inside()}),
    "one-cpu": (wire, "cubic", "forward", [], ("shared-core", *CORES), {"near": "taskset -c 1 ", "far": "taskset -c 1 "}),
    "black-hole-reverse": (router, "bbr", "reverse",
                           ["@r1 ip link set to-near mtu 1280", "@near ip link set to-r1 mtu 1280",
                            rules("r1", "ip", "output", "icmp type destination-unreachable drop"),
                            "@near ip route change 10.77.0.0/24 dev to-r1 advmss 1460 || true",
                            "@near ip route change 10.77.1.0/24 via 10.77.0.2 advmss 1460"], ("mtu-black-hole",)),
}


def start(name, command, by):
    """A process on a host, started by what its programs are started by."""
    enter = [*shlex.split(by.get(name, "")), "ip", "netns", "exec", PREFIX + name, *command.split()]
    process = subprocess.Popen(enter, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    return process


def iperf3(far, congestion, direction, by):
    """Goodput in bits per second."""
    server = start("far", "iperf3 -s -1", by)
    try:
        reverse = "-R" if direction == "reverse" else ""
        done = sh(f"{by.get('near', '')}@near iperf3 -c {far} -C {congestion} -J -t 4 -O 1 {reverse}", timeout=60)
        return json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"]
    finally:
        server.kill()
        server.wait()


def diagnose(far, congestion, record, by):
    """The whole diagnosis, and how long it took."""
    server = start("far", f"{LINERATE} serve --open", by)
    began = time.monotonic()
    try:
        sh(f"{by.get('near', '')}@near {LINERATE} run {far} --open --quiet --congestion {congestion} --save {record} || true", timeout=200)
        took = time.monotonic() - began
        done = subprocess.run([LINERATE, "show", "--save", record, "--json"], capture_output=True, text=True)
        return json.loads(done.stdout), took
    finally:
        server.terminate()
        server.wait()


def row(name, out):
    network, congestion, direction, commands, expected, by = (*ROWS[name], {})[:6]
    running = []
    try:
        far = network()
        without = iperf3(far, congestion, direction, {}) if direction else None
        for command in commands:
            if command.endswith("&"):
                running.append(beside(command.removesuffix("&")))
            else:
                sh(command)
        truth = iperf3(far, congestion, direction, by) if direction else None
        result, took = diagnose(far, congestion, os.path.join(out, name), by)
    finally:
        for process in running:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        names = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout.split()
        for ns in [n for n in names if n.startswith(PREFIX)]:
            subprocess.run(["ip", "netns", "del", ns], check=False)
    return {
        "name": name, "congestion": congestion, "direction": direction, "expected": expected,
        "without": without, "with": truth, "seconds": took,
        "goodput": {w: (d or {}).get("goodput_bps") for w, d in result["directions"].items()},
        "limits": [[l["direction"], l["cause"], l["side"], l["certainty"], (l.get("trial") or {}).get("kind")]
                   for l in result["verdict"]["limits"] if l.get("metric", "goodput") == "goodput"],
        "unknown": [[u["what"], u["why"]] for u in result["verdict"]["unknown"]],
    }


def outcome(r):
    """How the verdict of the planted direction stands to what iperf3 saw; of a healthy path, that of both."""
    bites = r["direction"] and r["without"] >= r["with"] * BITES
    expected = r["expected"] if bites else CORES
    limits = [l for l in r["limits"] if not bites or l[0] == r["direction"]]
    limits = [l for l in limits if l[1] != "cpu-steal"]
    if not limits:
        return "unknown"
    return "right" if all(l[1] in expected for l in limits) else "other"


def table(rows):
    print("| network and fault | congestion | iperf3 without, with | named in its direction | elsewhere | outcome |")
    print("|---|---|---|---|---|---|")
    for r in rows:
        def told(own):
            return "; ".join(
                f"{cause} {side}, {trial or certainty}" for d, cause, side, certainty, trial in r["limits"]
                if (d == r["direction"]) == own)
        truth = f"{r['without'] / 1e6:.0f}, {r['with'] / 1e6:.0f} Mb/s" if r["direction"] else ""
        print(f"| {r['name']} {r['direction'] or ''} | {r['congestion']} | {truth} | {told(True)} | {told(False)} "
              f"| {outcome(r)} |")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    out = os.path.abspath(sys.argv[1])
    os.makedirs(out, exist_ok=True)
    kept = os.path.join(out, "rows.jsonl")
    rows = [json.loads(line) for line in open(kept)] if os.path.exists(kept) else []
    done = {r["name"] for r in rows}
    for name in sys.argv[2:] or ROWS:
        if name in done:
            continue
        try:
            r = row(name, out)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as e:
            print(f"{name}: {e}: {e.stderr}", file=sys.stderr, flush=True)
            continue
        rows.append(r)
        with open(kept, "a") as f:
            f.write(json.dumps(r) + "\n")
        print(f"{name}: {outcome(r)} {r['limits']} {r['unknown']}", file=sys.stderr, flush=True)
    table(rows)


if __name__ == "__main__":
    main()
