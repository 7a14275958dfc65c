#!/usr/bin/env bash
# The kernel's clock of time without room in the send buffer hardly runs while the send buffer limits the flow.
#
# Seen: Linux 6.18 with ss of iproute2 6.1.0-3 (Debian 12), 2026-11-27. A program asks for SO_SNDBUF 150000 and writes without
# a pause over a path of 50 ms (cubic, nothing lost). It is in write 100 % of the time, and with the buffer that the kernel
# sizes it carries seven to nine times as much. `ss -ti` shows `sndbuf_limited` at 0 to 10 % (tcpi_sndbuf_limited). The clock
# starts only where data were just sent while the program already waits for room (tcp_cwnd_validate()); a program that is
# woken, writes and is sent at once waits again after that.
#
# A tool that trusts this clock alone takes a full send buffer for a slow program or a slow path.
# Needs root or unprivileged user namespaces. Exits with 0 if the behaviour is as described, 1 if it changed.
set -euo pipefail
readonly version=6.1.0-3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
(cd "$folder" && apt-get -q download "iproute2=$version" >/dev/null && dpkg -x iproute2_*.deb .)
export IP=$folder/bin/ip SS=$folder/bin/ss
[ -x "$IP" ] || IP=$folder/sbin/ip
echo "kernel $(uname -r), $("$SS" -V)"
timeout 60 unshare --map-root-user --net python3 -c '
import collections, ctypes, fcntl, os, re, select, socket, struct, subprocess, sys, time

DELAY = 0.025

def port(name, own, peer):
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x1001))  # TUNSETIFF, a tun without a header
    for words in (f"addr add {own} peer {peer} dev {name}", f"link set {name} txqueuelen 10000 up"):
        subprocess.run([os.environ["IP"], *words.split()], check=True)
    return tun

def send(size):
    """Rate in Mb/s, share of the time in write, and per cent of it by the clock of the send buffer."""
    stream = socket.socket()
    stream.setsockopt(socket.IPPROTO_TCP, 13, b"cubic")  # TCP_CONGESTION
    if size:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
    for _ in range(100):
        try:
            stream.connect(("10.9.0.2", 7001))
            break
        except OSError:
            time.sleep(0.1)
    blocked, sent, began = 0.0, 0, time.monotonic()
    while time.monotonic() < began + 4:
        before = time.monotonic()
        stream.sendall(bytes(65_536))
        blocked, sent = blocked + time.monotonic() - before, sent + 65_536
    took = time.monotonic() - began
    text = subprocess.run([os.environ["SS"], "-Htinm", "dst", "10.9.0.2"], capture_output=True, text=True).stdout
    room = re.search(r",tb(\d+)", text).group(1)
    clock = re.search(r"sndbuf_limited:\S+\(([\d.]+)%\)", text)
    clock = float(clock.group(1)) if clock else 0.0
    stream.close()
    rate = sent * 8e-6 / took
    print(f"send buffer of {room} bytes: {rate:.0f} Mb/s, in write {blocked / took:.0%} of the time;",
          f"sndbuf_limited: {clock} %", flush=True)
    return rate, blocked / took, clock

def look():
    fixed, blocked, clock = send(150_000)
    own, *_ = send(0)
    if not (own > fixed * 1.5 and blocked > 0.9):
        print("the buffer was not what held the program here: nothing can be said")
        return 1
    if clock > 20:
        print("CHANGED: the clock ran")
        return 1
    return 0

near = port("near", "10.9.0.1", "10.9.0.2")
sender = os.fork()
if sender == 0:
    os._exit(look())
assert ctypes.CDLL(None).unshare(0x40000000) == 0  # CLONE_NEWNET
far = port("far", "10.9.0.2", "10.9.0.1")
receiver = os.fork()
if receiver == 0:
    server = socket.create_server(("10.9.0.2", 7001))
    for _ in range(2):
        stream, _ = server.accept()
        while stream.recv(1 << 18):
            pass
    os._exit(0)
waiting = {near: collections.deque(), far: collections.deque()}
while (ended := os.waitpid(sender, os.WNOHANG)) == (0, 0):
    ready, _, _ = select.select([near, far], [], [], 0.001)
    now = time.monotonic()
    for tun in ready:
        waiting[far if tun == near else near].append((now + DELAY, os.read(tun, 2048)))
    for tun, packets in waiting.items():
        while packets and packets[0][0] <= now:
            os.write(tun, packets.popleft()[1])
os.kill(receiver, 9)
sys.exit(os.waitstatus_to_exitcode(ended[1]))
'
echo "as seen before"
