#!/usr/bin/env python3
"""Round trips on loopback: `linerate lat` beside `sockperf ping-pong --tcp`, in turn, blocking and not.

    benches/peers/lat-sockperf.py LINERATE [PAIRS]

Prints the median of each pair and the ratio of medians, as Markdown. sockperf halves round trips; here both
are whole ones.
"""

import json
import re
import statistics
import subprocess
import sys
import time

LINERATE, PAIRS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10
PORT, RIVAL = "5390", "5391"


def start(*command):
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def linerate(busy):
    command = [LINERATE, "lat", "127.0.0.1", "--open", "--port", PORT, "-t", "1s", "--quiet", "--json"]
    out = subprocess.run(command + (["--busy-poll"] if busy else []), capture_output=True, check=True).stdout
    told = {p["percent"]: p["ns"] / 1000 for p in json.loads(out)["percentiles"]}
    return told[50], told[99]


def sockperf(busy):
    command = ["sockperf", "ping-pong", "--tcp", "-i", "127.0.0.1", "-p", RIVAL, "-t", "1", "-m", "64", "--full-rtt"]
    out = subprocess.run(command + (["--nonblocked"] if busy else []), capture_output=True, check=True, text=True).stdout
    percentile = lambda p: float(re.search(rf"percentile {p}\s*=\s*([\d.]+)", out).group(1))
    return percentile("50.000"), percentile("99.000")


for busy in (False, True):
    ours = start(LINERATE, "serve", "--open", "--listen", "127.0.0.1", "--port", PORT)
    theirs = start("sockperf", "server", "--tcp", "-i", "127.0.0.1", "-p", RIVAL, *(["--nonblocked"] if busy else []))
    time.sleep(1)
    print(f"\n## {'busy' if busy else 'blocking'}\n\n| linerate p50, p99 us | sockperf p50, p99 us |\n|---|---|")
    rows = []
    try:
        for pair in range(PAIRS):
            order = (linerate, sockperf) if pair % 2 == 0 else (sockperf, linerate)
            found = {tool: tool(busy) for tool in order}
            rows.append((found[linerate], found[sockperf]))
            print("| %.1f, %.1f | %.1f, %.1f |" % (rows[-1][0] + rows[-1][1]), flush=True)
    finally:
        for server in (ours, theirs):
            server.terminate()
            server.wait()
    for at, name in ((0, "p50"), (1, "p99")):
        a, b = (statistics.median(row[side][at] for row in rows) for side in (0, 1))
        print(f"\n{name}: medians {a:.1f} and {b:.1f} us, ratio {a / b:.2f}")
