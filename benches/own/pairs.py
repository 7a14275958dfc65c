#!/usr/bin/env python3
"""Compares two builds of linerate on loopback: goodput, round trips and CPU time of each transport.

    benches/own/pairs.py OLD NEW [PAIRS]

OLD and NEW are two linerate programs. Each pair runs both with the same options, in turn and in changing order, each against
a server of its own build (60 pairs take 25 minutes on a quiet machine; Ctrl-C keeps those that are done). Printed is the mean of new/old over the pairs with its
95 % interval, in the logarithm; of round trips and CPU time less is better.
"""
import json, math, statistics, subprocess, sys, time

PROBES = {
    "tcp": ["bw"],
    "tcp, io-uring": ["bw", "--copy", "io-uring"],
    "udp": ["bw", "--engine", "udp"],
    "tcp round trip": ["lat"],
    "udp round trip": ["lat", "--engine", "udp"],
    "connections": ["lat", "--engine", "connect"],
}
PORTS = (47101, 47102)


def student(n):
    """Two-sided 95 % quantile of Student's t, by its expansion (Abramowitz and Stegun 26.7.5)."""
    z, f = 1.959964, n - 1
    return z + (z**3 + z) / (4 * f) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * f**2)


def figures(program, port, options):
    done = subprocess.run([program, *options, "127.0.0.1", "--port", str(port), "--open", "--time", "1s", "--json", "--quiet"],
                          capture_output=True, timeout=60)
    document = json.loads(done.stdout)
    if options[0] == "lat":
        p50 = next(p["ns"] for p in document["percentiles"] if p["percent"] == 50)
        return {"p50": p50}
    way = document["directions"]["forward"]
    costs = [way[end]["cpu_ns_per_byte"] for end in ("near", "far")]
    return {"goodput": way["goodput_bps"], "CPU per byte": sum(costs)}


def main():
    programs, pairs = sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else 60
    serve = ["serve", "--open", "--listen", "127.0.0.1", "--port"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    servers = [subprocess.Popen([p, *serve, str(port)], **quiet) for p, port in zip(programs, PORTS)]
    try:
        time.sleep(1)
        ratios = {}
        for pair in range(pairs):
            for name, options in PROBES.items():
                order = (0, 1) if pair % 2 == 0 else (1, 0)
                found = {which: figures(programs[which], PORTS[which], options) for which in order}
                for figure, old in found[0].items():
                    ratios.setdefault((name, figure), []).append(math.log(found[1][figure] / old))
    except KeyboardInterrupt:
        pass
    finally:
        for server in servers:
            server.terminate()
    for (name, figure), logs in ratios.items():
        mean, half = statistics.mean(logs), student(len(logs)) * statistics.stdev(logs) / math.sqrt(len(logs))
        low, mid, high = (math.exp(mean + side * half) for side in (-1, 0, 1))
        print(f"{name:16} {figure:14} x{mid:.3f} ({low:.3f} to {high:.3f}), {len(logs)} pairs", flush=True)


main()
