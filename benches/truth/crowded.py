#!/usr/bin/env python3
"""Runs of planted faults while busy programs use the machine's CPUs: whether each headline is right.

    benches/truth/crowded.py LINERATE [--busy N] [--time 60s] [--only NAME,...]
    benches/truth/crowded.py LINERATE --path RUNS [--busy N] [--time 7s]

The first form runs twelve cells once, and prints a row for each: right, unknown or WRONG, what each direction was
called, and the next step of an unknown. The second runs a path of 300 Mb/s, both ways, and counts what its directions
were called. Needs root, or namespaces for users, and nft for the cell "firewall". Ends with 1 where a headline is wrong, or an unknown has
no next step.
"""
import argparse
import collections
import json
import subprocess
import sys
import time

FAR = "10.77.2.2"  # the far host of a lab
FIREWALL = (
    "nft add table inet t; nft add chain inet t o '{ type filter hook output priority 0; }'; "
    "nft add rule inet t o meta length '>' 500 limit rate over 20 mbytes/second drop; exec "
)
# Name, faults, congestion control, and the causes that are right forward.
CELLS = [
    ("policed", ["police:300Mb/s,forward"], None, {"path-rate"}),
    ("shaped", ["path-rate:300Mb/s,deep,forward"], None, {"path-rate"}),
    ("lossy", ["loss:1%,forward", "delay:10ms"], "cubic", {"path-loss"}),
    # The acknowledgements that are left are enough: the send buffer is the limit over 10 ms.
    ("lost-acks", ["loss:5%,reverse", "delay:10ms"], "cubic", {"send-buffer"}),
    ("local-drops", ["queue:near,300Mb/s,20KiB"], "cubic", {"local-drops", "host-shaping"}),
    ("slow-reader", ["application:far,receiver,work=20000ps/B"], None, {"receiver-core", "receiver-app"}),
    ("contended-near", ["hog:cpu=0,threads=3"], None, {"cpu-contention"}),
    ("contended-far", ["hog:cpu=1,threads=3"], None, {"cpu-contention"}),
    ("firewall", [], None, {"local-drops", "path-rate"}),
    ("window", ["receive-window:far,256KiB", "delay:20ms"], None, {"receive-window"}),
    ("buffer", ["send-buffer:near,128KiB", "delay:20ms"], None, {"send-buffer"}),
    ("healthy", [], None, {"sender-core", "receiver-core", "shared-core", "cpu-contention"}),
]


def run(program, faults, congestion, seconds, firewall=False):
    command = [program, "lab", "run"]
    for fault in faults:
        command += ["--fault", fault]
    if congestion:
        command += ["--congestion", congestion]
    inner = [program, "run", FAR, "--open", "--time", seconds, "--no-save", "--quiet", "--json"]
    if firewall:
        inner = ["sh", "-c", FIREWALL + " ".join(inner)]
    done = subprocess.run(command + ["--"] + inner, capture_output=True, timeout=300)
    if not done.stdout:
        sys.exit(done.stderr.decode(errors="replace"))
    return json.loads(done.stdout)


def told(verdict, way):
    """What limits a direction: cause, certainty, largest gain; else why it is unknown, and the next step."""
    limits = [l for l in verdict["limits"] if l["direction"] == way and l["metric"] == "goodput"]
    gain = lambda limit: max([a["gain"] or 1 for a in limit["advice"]] or [1])
    named = [f"{l['side']} {l['cause']} {l['certainty']} x{gain(l):.2f}" for l in limits]
    unknown = [u for u in verdict["unknown"] if u["what"] == f"what limits {way}"]
    return limits, named or [f"{u['why']} -> {u['hint'] or 'NO STEP'}" for u in unknown]


def cells(args):
    wrong = 0
    only = args.only.split(",") if args.only else [cell[0] for cell in CELLS]
    for name, faults, congestion, right in CELLS:
        if name not in only:
            continue
        began = time.monotonic()
        result = run(args.program, faults, congestion, args.time or "60s", name == "firewall")
        took = time.monotonic() - began
        limits, forward = told(result["verdict"], "forward")
        reverse = told(result["verdict"], "reverse")[1]
        word = "unknown" if not limits else "right" if limits[0]["cause"] in right else "WRONG"
        wrong += word == "WRONG" or any("NO STEP" in text for text in forward + reverse)
        rates = [f"{d['goodput_bps'] / 1e6:.0f}" for d in (result["directions"][w] for w in ("forward", "reverse"))]
        print(f"| {name} | {word} | {took:.0f} | {', '.join(rates)} | {'; '.join(forward)} | {'; '.join(reverse)} |", flush=True)
    return wrong


def path(args):
    counts = collections.Counter()
    for _ in range(args.path):
        verdict = run(args.program, ["path-rate:300Mb/s,shallow"], None, args.time or "7s")["verdict"]
        for way in ("forward", "reverse"):
            limits, named = told(verdict, way)
            counts[f"{limits[0]['cause']} {limits[0]['certainty']}" if limits else f"unknown: {named}"] += 1
    for what, count in counts.most_common():
        print(f"{count} {what}")
    return sum(n for what, n in counts.items() if not what.startswith(("path-rate", "unknown")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--busy", type=int, default=2)
    parser.add_argument("--time")
    parser.add_argument("--only")
    parser.add_argument("--path", type=int)
    args = parser.parse_args()
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(args.busy)]
    try:
        wrong = path(args) if args.path else cells(args)
    finally:
        for program in spinning:
            program.kill()
    sys.exit(wrong > 0)


main()
