#!/usr/bin/env python3
"""Round trips and bandwidth of RDMA verbs beside perftest's, in interleaved pairs.

Runs in a guest with Soft-RoCE; the program must be a release build:

    target/dist/linerate lab vm --rdma -- python3 $PWD/benches/peers/verbs/beside.py $PWD/target/dist/linerate

Prints the median of the ratios to perftest's values, with the interval that holds it in 95 of 100 cases. Whole round
trips; perftest prints halves of those that are answered.
"""
import json
import subprocess
import sys
import time

PAIRS = 20
# Ranks of 20 sorted values between which the median lies in 95 of 100 cases: Conover, Practical Nonparametric
# Statistics, 3rd edition, section 3.2.
LOW, HIGH = 5, 14
DEVICE = ["-d", "rxe0", "-x", "1", "-F"]
ADDRESS = "10.9.0.1"
OPS = ["write", "read", "send"]
SIZES = [2, 4096, 65536]


def perftest(words):
    """Runs both ends; returns the numbers of the rows that the client prints."""
    server = subprocess.Popen(words + DEVICE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            client = subprocess.run(words + DEVICE + [ADDRESS], capture_output=True, text=True, timeout=300)
            if client.returncode == 0:
                break
            time.sleep(0.1)
        server.wait(20)
    finally:
        server.kill()
    rows = [line.split() for line in client.stdout.splitlines()]
    return [[float(cell) for cell in row] for row in rows if len(row) > 4 and row[0].isdigit()]


def linerate(program, words, within=120):
    words = [program, words[0], ADDRESS, "--open", "--engine", "rdma", "--quiet", "--json"] + words[1:]
    return json.loads(subprocess.run(words, capture_output=True, text=True, timeout=within).stdout)


def round_trips(program, op, size):
    ours = linerate(program, ["lat", "--op", op, "--size", f"{size}B", "--time", "1s"])
    theirs = perftest([f"ib_{op}_lat", "-s", str(size), "-n", "1000"])[-1]
    halves = 1 if op == "read" else 2
    return ours["percentiles"][0]["ns"] / 1e3, theirs[4] * halves


def bandwidth(program, op, size):
    ours = linerate(program, ["bw", "--op", op, "--size", f"{size}B", "--time", "2s"])
    theirs = perftest([f"ib_{op}_bw", "-s", str(size), "-D", "2", "--report_gbits"])[-1]
    return ours["directions"]["forward"]["goodput_bps"] / 1e9, theirs[3]


def table(program, op):
    """All sizes from 2 B to 8 MiB: the typical whole round trip of both, in microseconds."""
    ours = linerate(program, ["lat", "--op", op, "--sweep", "size", "--time", "120s", "--no-save"], 600)["sizes"]
    theirs = perftest([f"ib_{op}_lat", "-a", "-n", "20"])
    halves = 1 if op == "read" else 2
    print(f"{op}: bytes, linerate, perftest, us", flush=True)
    by_size = {int(row[0]): row[4] * halves for row in theirs}
    for size in ours:
        typical = size["typical_ns"] or size["least_ns"]
        us = f"{typical / 1e3:.1f}" if typical else size["not_measured"]
        print(f"{size['size_bytes']} {us} {by_size.get(size['size_bytes'], 0):.1f}", flush=True)


def compared(what, pair):
    pairs = []
    for _ in range(PAIRS):
        try:
            pairs.append(pair())
        except (subprocess.TimeoutExpired, ValueError, KeyError, IndexError, TypeError) as error:
            print(f"{what}: a pair is left out: {error!r}", flush=True)
    ratios = sorted(ours / theirs for ours, theirs in pairs)
    if len(ratios) < PAIRS:
        print(f"{what}: {len(ratios)} pairs, too few: {ratios}", flush=True)
        return
    middle = (ratios[PAIRS // 2 - 1] + ratios[PAIRS // 2]) / 2
    each = [sorted(values)[PAIRS // 2] for values in zip(*pairs)]
    print(f"{what}: {middle:.2f} ({ratios[LOW]:.2f} to {ratios[HIGH]:.2f}); linerate {each[0]:.4g}, perftest {each[1]:.4g}", flush=True)


def main():
    program, kinds = sys.argv[1], sys.argv[2:] or ["table", "lat", "bw"]
    server = subprocess.Popen([program, "serve", "--open"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(2)
    try:
        for op in OPS if "table" in kinds else []:
            table(program, op)
        for op in OPS if "lat" in kinds else []:
            for size in SIZES:
                compared(f"{op} of {size} B, us", lambda op=op, size=size: round_trips(program, op, size))
        for op in OPS if "bw" in kinds else []:
            compared(f"{op} of 64 KiB, Gb/s", lambda op=op: bandwidth(program, op, 65536))
    finally:
        server.kill()


if __name__ == "__main__":
    main()
