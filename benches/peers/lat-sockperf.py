#!/usr/bin/env python3
"""Round trips on loopback: `linerate lat` beside `sockperf ping-pong`, in interleaved pairs of 1 s.

    lat-sockperf.py pairs [PAIRS [SAMPLES]]   blocking and busy, as each places its threads and with both pinned alike;
                                              each pair's percentiles become a line of the file SAMPLES
    lat-sockperf.py sizes [PAIRS]             blocking, by size, TCP and UDP
    lat-sockperf.py stall                     open and closed loops while both servers stand still for 200 ms

Prints Markdown. Sockperf halves round trips unless told otherwise; here both are whole ones, of 64 bytes but for `sizes`. A ratio
is linerate's over sockperf's, with the 95 % interval of its geometric mean over the pairs (Student's t on logarithms).
LINERATE is the program to measure.
"""

import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

from student import interval

LINERATE = os.environ.get("LINERATE", "target/dist/linerate")
PORT, RIVAL = "5390", "5391"
CPUS = sorted(os.sched_getaffinity(0))


def start(*command):
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def pinned(command, cpu):
    return ["taskset", "-c", str(cpu), *command] if cpu is not None else list(command)


def linerate(busy=False, seconds=1, cpu=None, rate=None, size=64, engine="tcp"):
    """Percentiles in microseconds, as far as the samples support them, and how many there were."""
    command = [LINERATE, "lat", "127.0.0.1", "--open", "--port", PORT, "-t", f"{seconds}s", "--quiet", "--json"]
    command += ["--engine", engine, "--size", f"{size}B"]
    command += ["--busy-poll"] if busy else []
    command += ["--rate", str(rate)] if rate else []
    told = json.loads(subprocess.run(pinned(command, cpu), capture_output=True, check=True).stdout)
    return {p["percent"]: p["ns"] / 1000 for p in told["percentiles"]}, told["samples"]


def sockperf(busy=False, seconds=1, cpu=None, size=64, engine="tcp"):
    command = ["sockperf", "ping-pong", "-i", "127.0.0.1", "-p", RIVAL, "-t", str(seconds), "-m", str(size), "--full-rtt"]
    command += ["--tcp"] if engine == "tcp" else []
    command += ["--nonblocked"] if busy else []
    out = subprocess.run(pinned(command, cpu), capture_output=True, check=True, text=True).stdout
    found = re.findall(r"percentile ([\d.]+)\s*=\s*([\d.]+)", out)
    total = re.search(r"Total (\d+) observations", out)
    return {float(p): float(us) for p, us in found}, int(total.group(1)) if total else 0


class Servers:
    def __init__(self, busy=False, cpu=None, engine="tcp"):
        ours = [LINERATE, "serve", "--open", "--listen", "127.0.0.1", "--port", PORT]
        theirs = ["sockperf", "server", "-i", "127.0.0.1", "-p", RIVAL]
        theirs += (["--tcp"] if engine == "tcp" else []) + (["--nonblocked"] if busy else [])
        self.all = [start(*pinned(command, cpu)) for command in (ours, theirs)]
        time.sleep(1)

    def __enter__(self):
        return self.all

    def __exit__(self, *_):
        for server in self.all:
            server.terminate()
            server.wait()


def compare(pairs, busy, alike, samples):
    how = ("busy" if busy else "blocking") + (", pinned alike" if alike else "")
    near, far = (CPUS[0], CPUS[-1]) if alike else (None, None)
    rows = []
    with Servers(busy, far) as (ours, theirs):
        # Sockperf's busy server spins while nobody asks, too: it would take a CPU from the other tool.
        others = {linerate: theirs, sockperf: ours}

        def alone(tool):
            others[tool].send_signal(signal.SIGSTOP)
            told = tool(busy, cpu=near)[0]
            others[tool].send_signal(signal.SIGCONT)
            return told

        for pair in range(pairs):
            order = (linerate, sockperf) if pair % 2 == 0 else (sockperf, linerate)
            found = {tool: alone(tool) for tool in order}
            rows.append((found[linerate], found[sockperf]))
            print(json.dumps({"how": how, "linerate": found[linerate], "sockperf": found[sockperf]}), file=samples, flush=True)
    for p in (50, 99):
        tell(how, p, rows)


def tell(how, p, rows):
    both = [(a[p], b[p]) for a, b in rows if p in a and p in b]
    if len(both) < 3:
        return
    low, mid, high = interval([a / b for a, b in both])
    ours, theirs = (statistics.median(row[side] for row in both) for side in (0, 1))
    print(f"| {how} | p{p} | {ours:.1f} | {theirs:.1f} | {mid:.2f} ({low:.2f} to {high:.2f}; {len(both)}) |", flush=True)


# Datagrams of linerate have at least 24 bytes.
SIZES = {"tcp": [16, 64, 1024, 4096, 16384], "udp": [24, 64, 1024, 4096, 16384]}


def by_size(pairs):
    for engine, sizes in SIZES.items():
        with Servers(engine=engine):
            rows = {size: [] for size in sizes}
            for pair in range(pairs):
                order = (linerate, sockperf) if pair % 2 == 0 else (sockperf, linerate)
                for size in sizes:
                    found = {tool: tool(size=size, engine=engine)[0] for tool in order}
                    rows[size].append((found[linerate], found[sockperf]))
        for size in sizes:
            tell(f"{engine}, {size} B", 50, rows[size])


def stalled(server, measure):
    """What a tool tells of 10 s in which its server stood still for 200 ms."""

    def stall():
        time.sleep(5)
        os.kill(server.pid, signal.SIGSTOP)
        time.sleep(0.2)
        os.kill(server.pid, signal.SIGCONT)

    thread = threading.Thread(target=stall)
    thread.start()
    told = measure()
    thread.join()
    return told


def stall():
    print("| loop | p50 us | p99 us | p99.9 us | samples |\n|---|---|---|---|---|")
    with Servers() as (ours, theirs):
        for name, server, measure in [
            ("linerate, 1000 a second due, open", ours, lambda: linerate(seconds=10, rate=1000)),
            ("linerate, closed", ours, lambda: linerate(seconds=10)),
            ("sockperf, closed", theirs, lambda: sockperf(seconds=10)),
        ]:
            told, samples = stalled(server, measure)
            cells = [f"{told[p]:.0f}" if p in told else "-" for p in (50, 99, 99.9)]
            print(f"| {name} | {' | '.join(cells)} | {samples} |", flush=True)


def main():
    if shutil.which("sockperf") is None:
        sys.exit("sockperf is not installed\nhint: sudo apt-get install sockperf")
    match sys.argv[1:]:
        case ["stall"]:
            stall()
        case ["sizes", *rest]:
            print("| how | | linerate us | sockperf us | linerate / sockperf |\n|---|---|---|---|---|")
            by_size(int(rest[0]) if rest else 20)
        case ["pairs", *rest]:
            print("| how | | linerate us | sockperf us | linerate / sockperf |\n|---|---|---|---|---|")
            pairs, path = int(rest[0]) if rest else 100, rest[1] if len(rest) > 1 else os.devnull
            with open(path, "w") as samples:
                for busy in (False, True):
                    for alike in (False, True):
                        compare(pairs, busy, alike, samples)
        case _:
            sys.exit(__doc__)


main()
