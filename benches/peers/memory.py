#!/usr/bin/env python3
"""Copies in memory by linerate beside Debian's mbw, in interleaved rounds.

    benches/peers/memory.py LINERATE [ROUNDS] [MIB]

Each round measures mbw's three methods (memcpy, assignments, memcpy in blocks) and linerate once, in an order that
rotates, all on one CPU, with arrays of the same size, four times the last cache or more. Both count a byte that is copied
once. What counts is the ratio of linerate to the method of mbw that is best over all rounds, with its 95 % interval.
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from student import interval

METHODS = ["MEMCPY", "DUMB", "MCBLOCK"]
CPU = ["taskset", "-c", "0"]


def output(*command):
    done = subprocess.run([*CPU, *command], check=True, capture_output=True, text=True)
    return done.stdout


def mbw(method, mib):
    """Mean over 30 copies, bytes per second."""
    lines = output("mbw", "-q", f"-t{method}", "-n", "30", str(mib)).splitlines()
    last = next(line for line in lines if line.startswith("AVG"))
    return float(last.split()[-2]) * (1 << 20)


def linerate(program, mib):
    told = json.loads(output(program, "-q", "bw", "--engine", "memory", "--size", f"{mib}MiB", "-t", "1s", "--json"))
    return told["directions"]["forward"]["goodput_bps"] / 8


def main():
    program, *more = sys.argv[1:]
    rounds, mib = [int(n) for n in [*more, *["20", "128"][len(more) :]]]
    tools = [*[(name, lambda n=n: mbw(n, mib)) for n, name in enumerate(METHODS)], ("linerate", lambda: linerate(program, mib))]
    seen = {name: [] for name, _ in tools}
    for turn in range(rounds):
        at = turn % len(tools)
        for name, measure in tools[at:] + tools[:at]:
            seen[name].append(measure())
        print(" ".join(f"{name} {all[-1] / 1e9:.2f}" for name, all in seen.items()), "GB/s", flush=True)
    best = max(METHODS, key=lambda name: statistics.median(seen[name]))
    for name in METHODS:
        low, mean, high = interval([own / other for own, other in zip(seen["linerate"], seen[name])])
        mark = " (best of mbw)" if name == best else ""
        median = statistics.median(seen[name]) / 1e9
        print(f"linerate / mbw {name}: {mean:.3f} ({low:.3f} to {high:.3f}; {rounds}), {median:.2f} GB/s{mark}")
    print(f"linerate: {statistics.median(seen['linerate']) / 1e9:.2f} GB/s")


main()
