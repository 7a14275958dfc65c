#!/usr/bin/env python3
"""Whether linerate's two sides of iperf3's protocol give the figures that iperf3's own give.

    iperf3-protocol.py serve                              both servers, in the foreground
    iperf3-protocol.py measure HOST PAIRS SECONDS RATE... a report on stdout

RATE is what is sent by UDP, in Mb/s of payload; 0 is TCP. On a path of 1 Gb/s (a router between two hosts, tbf), and on
one that loses what exceeds 200 Mb/s, as any user:

    linerate lab run --fault path-rate:1Gb/s,deep --far 'benches/peers/iperf3-protocol.py serve' -- \\
        benches/peers/iperf3-protocol.py measure FAR 5 2 0 100
    linerate lab run --fault path-rate:200Mb/s,shallow --far 'benches/peers/iperf3-protocol.py serve' -- \\
        benches/peers/iperf3-protocol.py measure FAR 5 2 250

Interleaved pairs (A B B A), in each of which one side is linerate's and one not:

- server: `iperf3 -c` with `linerate serve --iperf3` as the far end, beside `iperf3 -s`;
- client: `linerate bw iperf3://` beside `iperf3 -c`, both with `iperf3 -s`.

Both ways each. Goodput is the receiver's, as each client tells it; lost is the receiver's share of what was sent up
to the last that came.
LINERATE is the program to measure.
"""

import json
import math
import os
import statistics
import subprocess
import sys
import time

LINERATE = os.environ.get("LINERATE", "target/dist/linerate")
# Payload of a datagram: what fits a packet of 1500 B.
SIZE = 1472
# Student, two-sided 95 %, by degrees of freedom.
QUANTILE = {4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}


def serve():
    commands = [["iperf3", "-s", "-p", "5201"], [LINERATE, "serve", "--open", "--iperf3=5202"]]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    servers = [subprocess.Popen(words, **quiet) for words in commands]
    for server in servers:
        server.wait()


def run(words):
    for _ in range(5):
        told = subprocess.run(words, capture_output=True, text=True, timeout=60)
        result = json.loads(told.stdout) if told.stdout else {"error": told.stderr}
        # iperf3 fails in its JSON alone.
        why = result.get("error") or result.get("ended_early")
        if not why:
            return result
        # The server may not have done with the test before.
        print(f"again: {' '.join(words)}: {why}", file=sys.stderr)
        time.sleep(0.5)
    sys.exit("given up")


def iperf3(host, port, rate, reverse, seconds):
    """Goodput in Mb/s and the share lost, as iperf3's client tells them."""
    words = ["iperf3", "-c", host, "-p", port, "-t", str(seconds), "-J"]
    # The first second of TCP counts for neither: linerate leaves it out.
    words += ["-u", "-b", f"{rate}M", "-l", str(SIZE)] if rate else ["-O", "1"]
    got = run(words + (["-R"] if reverse else []))["end"]["sum_received"]
    lost = got["lost_packets"] / max(got["packets"], 1) if rate else 0.0
    return got["bits_per_second"] / 1e6, lost


def linerate(host, port, rate, reverse, seconds):
    """The same, as linerate's client tells them."""
    way = "reverse" if reverse else "forward"
    words = [LINERATE, "bw", f"iperf3://{host}:{port}", "-t", f"{seconds}s", "-d", way, "--json"]
    words += ["--engine", "udp", "--pacing", f"{rate}Mbit/s", "--write-size", f"{SIZE}B"] if rate else []
    told = run(words)["directions"][way]
    return told["goodput_bps"] / 1e6, told["datagrams"]["lost_share"] if rate else 0.0


# Ours, and what it stands beside.
COMPARED = {
    "server": ((iperf3, "5202"), (iperf3, "5201")),
    "client": ((linerate, "5201"), (iperf3, "5201")),
}


def measure(host, pairs, seconds, rates):
    for what, both in COMPARED.items():
        for rate in rates:
            for reverse in (False, True):
                rows = []
                for pair in range(pairs):
                    told = {}
                    for at in (0, 1) if pair % 2 == 0 else (1, 0):
                        tool, port = both[at]
                        told[at] = tool(host, port, rate, reverse, seconds)
                    rows.append((told[0], told[1]))
                load = f"UDP, {rate} Mb/s sent" if rate else "TCP"
                yield what, f"{load}, {'reverse' if reverse else 'forward'}", rate, rows


def ratio(rows):
    logs = [math.log(ours[0] / theirs[0]) for ours, theirs in rows]
    half = QUANTILE[len(logs) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    mean = statistics.mean(logs)
    return " ".join([f"{math.exp(mean):.4f}", f"({math.exp(mean - half):.4f} to {math.exp(mean + half):.4f})"])


def report(host, pairs, seconds, rates):
    print("| linerate's side | load | goodput, linerate | goodput, iperf3 | ratio (95 %) | lost, linerate | lost, iperf3 |")
    print("|---|---|---|---|---|---|---|")
    each = []
    for what, load, rate, rows in measure(host, pairs, seconds, rates):
        goodput, lost = ([statistics.median(row[side][at] for row in rows) for side in (0, 1)] for at in (0, 1))
        lost = [f"{share:.2%}" if rate else "" for share in lost]
        figures = [f"{goodput[0]:.1f}", f"{goodput[1]:.1f}", ratio(rows), *lost]
        print(f"| {what} | {load} | {' | '.join(figures)} |")
        told = "; ".join(f"{ours[0]:.1f} {theirs[0]:.1f}" for ours, theirs in rows)
        each.append(f"- {what}, {load}: {told}")
    print(f"\n{pairs} pairs of {seconds} s each, medians in Mb/s. Goodput of each pair, linerate's first:\n")
    print("\n".join(each))


def main():
    match sys.argv[1:]:
        case ["serve"]:
            serve()
        case ["measure", host, pairs, seconds, *rates]:
            # The servers were started at the same time.
            time.sleep(1.5)
            report(host, int(pairs), int(seconds), [int(rate) for rate in rates])
        case _:
            sys.exit(__doc__)


main()
