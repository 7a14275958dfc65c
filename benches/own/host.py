#!/usr/bin/env python3
"""What linerate costs a host on which it does little or nothing.

    host.py flows [CONNECTIONS [LOOKS]]   how long a round of `linerate flows` takes beside so many connections
                                          over loopback, whose both ends are held here
    host.py idle [SECONDS]                resident memory and wake-ups of `linerate serve` that nobody uses,
                                          before its first client and after one
    host.py inventory OLD NEW [PAIRS]     wall and CPU time of `linerate host` of two programs, run in turn and in
                                          changing order (60 pairs): medians, and the median of NEW over OLD with
                                          its 95 % interval by ranks; of all pairs, and of those in which other
                                          programs used less, and more, than a tenth of the CPUs
    host.py start OLD NEW [PAIRS]         the same of `linerate bw` over loopback from its start to its first step,
                                          each with a server of its own build

Needs no root. LINERATE is the program to measure.
"""

import contextlib
import json
import math
import multiprocessing
import os
import resource
import socket
import statistics
import subprocess
import sys
import time

from ranks import interval

LINERATE = os.environ.get("LINERATE", "target/dist/linerate")
# Connections that carry something while others rest: 64 KiB each 50 ms, ten times what `flows` calls busy.
BUSY = 20
PORT = "5399"
# Other programs that use a smaller share of the CPUs leave the machine quiet.
QUIET = 0.1


def hold(count, moving, ready, stop):
    """Holds both ends of so many connections, and moves payload over some of them until told to stop."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    made = []
    for _ in range(count):
        near = socket.create_connection(listener.getsockname())
        made.append((near, listener.accept()[0]))
    ready.set()
    carry(made[:moving], stop)


def carry(pairs, stop):
    """Moves payload over connections until told to stop."""
    payload = bytes(64 * 1024)
    while not stop.wait(0.05):
        for near, far in pairs:
            near.sendall(payload)
            left = len(payload)
            while left:
                left -= len(far.recv(left))


@contextlib.contextmanager
def connections(count, moving):
    """Holds so many connections meanwhile, in as many processes as the limit of open files asks for."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    share = min(count, (most - 100) // 2)
    stop = multiprocessing.Event()
    holders = []
    for first in range(0, count, share):
        ready = multiprocessing.Event()
        work = (min(share, count - first), moving if first == 0 else 0, ready, stop)
        holders.append(multiprocessing.Process(target=hold, args=work, daemon=True))
        holders[-1].start()
        if not ready.wait(60):
            sys.exit("the connections could not be made")
    try:
        yield
    finally:
        stop.set()
        for holder in holders:
            holder.join()


def look(arguments):
    """The longest round of a look in milliseconds, and what was seen."""
    command = [LINERATE, "flows", "--json", "--time", "3s", *arguments]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return told["longest_round_ns"] / 1e6, told["connections"], len(told["flows"])


def flows(count, looks):
    print("| connections | seen | shown | longest round of a look, ms (median) | most |\n|---|---|---|---|---|")
    with open("/proc/self/comm") as f:
        name = f.read().strip()
    for what, moving, arguments in [
        ("at rest", 0, []),
        (f"{BUSY} of them busy", BUSY, []),
        (f"{BUSY} of them busy, those of this program", BUSY, [name]),
    ]:
        with connections(count, moving):
            rounds, seen, shown = zip(*(look(arguments) for _ in range(looks)))
        print(f"| {count}, {what} | {max(seen)} | {max(shown)} | {statistics.median(rounds):.0f} | {max(rounds):.0f} |",
              flush=True)


def number(pid, key):
    """Sum of a line of the status of all threads of a process, or of its own."""
    threads = [f"/proc/{pid}/task/{t}/status" for t in os.listdir(f"/proc/{pid}/task")]
    files = [f"/proc/{pid}/status"] if key == "VmRSS" else threads
    total = 0
    for name in files:
        with open(name) as f:
            total += sum(int(line.split()[1]) for line in f if line.startswith(key + ":"))
    return total


def switches(pid):
    return number(pid, "voluntary_ctxt_switches") + number(pid, "nonvoluntary_ctxt_switches")


def rest(pid, seconds, when):
    time.sleep(2)
    before = switches(pid)
    time.sleep(seconds)
    woke = switches(pid) - before
    print(f"| {when} | {number(pid, 'VmRSS')} | {len(os.listdir(f'/proc/{pid}/task'))} | {woke} in {seconds} s |", flush=True)


def idle(seconds):
    server = subprocess.Popen([LINERATE, "serve", "--open", "--quiet", "--port", PORT],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        print("| server | resident KiB | threads | wake-ups |\n|---|---|---|---|")
        rest(server.pid, seconds, "before its first client")
        client = [LINERATE, "bw", f"127.0.0.1:{PORT}", "--open", "--json", "--time", "3s"]
        subprocess.run(client, check=True, stdout=subprocess.DEVNULL)
        rest(server.pid, seconds // 2, "after a client")
    finally:
        server.terminate()
        server.wait()


def whole(program, _):
    """Wall and CPU time of one `linerate host` in milliseconds."""
    null = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    begin = time.perf_counter()
    pid = os.posix_spawn(program, [program, "host"], os.environ, file_actions=null)
    _, status, used = os.wait4(pid, 0)
    wall = time.perf_counter() - begin
    if status:
        sys.exit(f"{program} host failed")
    return wall * 1e3, (used.ru_utime + used.ru_stime) * 1e3


def started(program, port):
    """Wall time until the first step of `linerate bw` begins, in milliseconds; the CPU time is not known."""
    command = [program, "bw", f"127.0.0.1:{port}", "--open", "--time", "1s", "--stream-json"]
    begin = time.perf_counter()
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    seen = b""
    while b'"event":"step"' not in seen:
        more = os.read(client.stdout.fileno(), 1 << 16)
        if not more:
            sys.exit(f"{program} bw failed")
        seen += more
    wall = time.perf_counter() - begin
    client.stdout.read()
    client.wait()
    return wall * 1e3, math.nan


@contextlib.contextmanager
def servers(programs):
    """The ports of a server of each program."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    ports = [int(PORT) + 1, int(PORT) + 2]
    serve = ["serve", "--open", "--quiet", "--listen", "127.0.0.1", "--port"]
    made = [subprocess.Popen([p, *serve, str(port)], **quiet) for p, port in zip(programs, ports)]
    time.sleep(1)
    try:
        yield ports
    finally:
        for server in made:
            server.terminate()
            server.wait()


def worked():
    """Milliseconds that all CPUs worked since boot."""
    with open("/proc/stat") as f:
        user, nice, system, _, _, irq, softirq, steal = (int(n) for n in f.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) * 1e3 / os.sysconf("SC_CLK_TCK")


def pair(measure, programs, ports, first):
    """Wall and CPU time of both, and the share of the CPUs that other programs used meanwhile."""
    begin, before = time.perf_counter(), worked()
    found = {which: measure(programs[which], ports[which]) for which in (first, 1 - first)}
    others = worked() - before - found[0][1] - found[1][1]
    share = others / ((time.perf_counter() - begin) * 1e3 * os.cpu_count())
    time.sleep(0.05)
    return found[0], found[1], share


def compare(measure, programs, ports, count):
    pairs = [pair(measure, programs, ports, n % 2) for n in range(count)]
    print("| pairs | | old, ms | new, ms | new over old (95 %) |\n|---|---|---|---|---|")
    for what, some in [
        ("all", pairs),
        ("others use less than a tenth", [p for p in pairs if p[2] < QUIET]),
        ("others use more", [p for p in pairs if p[2] >= QUIET]),
    ]:
        for which, name in enumerate(["wall", "CPU"]):
            if some and not math.isnan(some[0][0][which]):
                old, new = ([p[end][which] for p in some] for end in (0, 1))
                ratios = [b / a for a, b in zip(old, new)]
                low, high = interval(ratios)
                print(f"| {what}: {len(some)} | {name} | {statistics.median(old):.1f} | {statistics.median(new):.1f} | "
                      f"{statistics.median(ratios):.2f} ({low:.2f} to {high:.2f}) |")


def main(arguments):
    match arguments:
        case ["flows", *numbers]:
            count, looks = [int(n) for n in numbers] + [10000, 5][len(numbers):]
            flows(count, looks)
        case ["idle", *numbers]:
            idle(int(numbers[0]) if numbers else 30)
        case ["inventory", old, new, *numbers]:
            compare(whole, (old, new), (0, 0), int(numbers[0]) if numbers else 60)
        case ["start", old, new, *numbers]:
            with servers((old, new)) as ports:
                compare(started, (old, new), ports, int(numbers[0]) if numbers else 60)
        case _:
            sys.exit(__doc__)


main(sys.argv[1:])
