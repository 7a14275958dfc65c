#!/usr/bin/env python3
"""Compares shared memory with TCP on loopback: round trips of 64 B, polling and blocking, and a stream of 64 KiB writes.

    benches/own/shm.py LINERATE [PAIRS]

LINERATE is one program, which measures both. Each pair runs both engines for a second, in turn and in changing order. Their
threads are on the same CPUs: those of streams where linerate keeps them, those of round trips where the scheduler puts them.
Printed is the median of shm/tcp over the pairs with its 95 % interval (by ranks: where two threads that poll share a CPU, a
round trip takes milliseconds with either engine), and the median of each engine.
"""
import json, statistics, subprocess, sys, time

from ranks import interval

PROBES = {
    "round trip, polling": ["lat", "--size", "64B", "--busy-poll"],
    "round trip, blocking": ["lat", "--size", "64B"],
    "stream": ["bw", "--size", "64KiB"],
}
PORT = "47103"
FAR = {"shm": ["--engine", "shm"], "tcp": ["127.0.0.1", "--open", "--port", PORT]}


def figure(program, options):
    """Nanoseconds of a round trip (p50), or bits a second of a stream."""
    done = subprocess.run([program, *options, "--time", "1s", "--json", "--quiet"], capture_output=True, timeout=60)
    document = json.loads(done.stdout)
    if options[0] == "lat":
        return next(p["ns"] for p in document["percentiles"] if p["percent"] == 50)
    return document["directions"]["forward"]["goodput_bps"]


def main():
    program, pairs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    serve = [program, "serve", "--open", "--listen", "127.0.0.1", "--port", PORT]
    server = subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = {name: {"shm": [], "tcp": []} for name in PROBES}
    try:
        time.sleep(1)
        for pair in range(pairs):
            for name, options in PROBES.items():
                for engine in sorted(FAR, reverse=pair % 2 == 1):
                    found[name][engine].append(figure(program, [*options, *FAR[engine]]))
    except KeyboardInterrupt:
        pass
    finally:
        server.terminate()
    for name, by_engine in found.items():
        ratios = [shm / tcp for shm, tcp in zip(by_engine["shm"], by_engine["tcp"])]
        low, high = interval(ratios)
        medians = ", ".join(f"{engine} {statistics.median(values):.4g}" for engine, values in by_engine.items())
        print(f"{name:20} x{statistics.median(ratios):.3f} ({low:.3f} to {high:.3f}), {len(ratios)} pairs; medians: {medians}")


main()
