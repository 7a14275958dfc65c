#!/usr/bin/env python3
"""Holds single claims against the lab's paths, beside iperf3, and prints a table of what came.

    benches/truth/paths.py rate [PAIRS]      a slower link: goodput against what iperf3 gets on the
                                             same path, in turns
    benches/truth/paths.py datagrams [PAIRS] the same by datagrams, of which each tool sends 5 % more than
                                             the link carries
    benches/truth/paths.py advice            a small window or buffer: the gain that is predicted
                                             against the gain once the advice was followed

Every row is one lab; nothing is run again. Needs iperf3, and `cargo build --profile dist` unless LINERATE
names another program.
"""
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../peers"))
from student import interval

LINERATE = os.path.abspath(os.environ.get("LINERATE", os.path.join(HERE, "../../target/dist/linerate")))
BOTH_SERVERS = f"{LINERATE} serve --open & exec iperf3 -s"


def lab(faults, congestion, *inside):
    """Runs this file inside a lab; what it printed there, or None."""
    command = [LINERATE, "lab", "run", "--far", BOTH_SERVERS]
    command += ["--congestion", congestion] if congestion else []
    for fault in faults:
        command += ["--fault", fault]
    command += ["--", sys.executable, os.path.abspath(__file__), "inside", "FAR", *inside]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    try:
        return json.loads(done.stdout)
    except ValueError:
        print(done.stdout, done.stderr, file=sys.stderr)
        return None


def measured(far, direction, *more):
    command = [LINERATE, "run", far, "--open", "--json", "--no-save", "--quiet"]
    command += ["--direction", direction, *more]
    return json.loads(subprocess.run(command, capture_output=True, text=True).stdout)


def goodput(result, direction):
    return result["directions"][direction]["goodput_bps"]


def iperf3(far, direction):
    command = ["iperf3", "-c", far, "-J", "-t", "4", "-O", "1"]
    command += ["-R"] if direction == "reverse" else []
    done = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    return done["end"]["sum_received"]["bits_per_second"]


def first(result, direction):
    limits = [l for l in result["verdict"]["limits"] if l["direction"] == direction]
    return limits[0] if limits else {"cause": "unknown", "certainty": "", "advice": []}


def turns(pairs, ours, theirs):
    """What both tools find, in turns."""
    found = {"ours": [], "theirs": []}
    for pair in range(int(pairs)):
        for tool in ("ours", "theirs") if pair % 2 == 0 else ("theirs", "ours"):
            found[tool].append(ours() if tool == "ours" else theirs())
    return found


def inside_rate(far, direction, pairs):
    """Goodputs by turns."""
    alone = ("--no-trials", "--streams", "1", "--time", "20s")
    return turns(pairs, lambda: goodput(measured(far, direction, *alone), direction), lambda: iperf3(far, direction))


def own_datagrams(far, direction, rate, size):
    """Goodput, and what was sent, in bits of payload a second."""
    command = [LINERATE, "bw", far, "--open", "--engine", "udp", "-t", "2s", "-d", direction, "--json", "--quiet"]
    command += ["--pacing", f"{rate}bit/s", "--write-size", f"{size}B"]
    way = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)["directions"][direction]
    return way["goodput_bps"], way["datagrams"]["sent_bps"]


def iperf3_datagrams(far, direction, rate, size):
    """The same of iperf3, as its receiver counts them, with the buffer that linerate asks for."""
    command = ["iperf3", "-c", far, "-J", "-u", "-t", "3", "-w", "4M", "-b", str(rate), "-l", str(size)]
    command += ["-R"] if direction == "reverse" else []
    end = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)["end"]["sum"]
    bits = size * 8 / end["seconds"]
    return (end["packets"] - end["lost_packets"]) * bits, end["packets"] * bits


def inside_datagrams(far, direction, rate, size, pairs):
    """Goodputs and what was sent for them, by turns."""
    what = (far, direction, int(rate), int(size))
    return turns(pairs, lambda: own_datagrams(*what), lambda: iperf3_datagrams(*what))


def inside_advice(far, direction):
    """Goodput and advice, then the advice followed, then goodput again."""
    before = measured(far, direction, "--time", "25s")
    limit = first(before, direction)
    said = {"cause": limit["cause"], "certainty": limit["certainty"]}
    if not limit["advice"] or limit["advice"][0]["gain"] is None:
        return said
    advice = limit["advice"][0]
    # "on the near host: sysctl -w ...   (a buffer of ...)"
    # The lab is root of its own.
    command = advice["do"].split(":", 1)[1].split("   (")[0].replace("sudo ", "")
    subprocess.run(["sh", "-c", command], check=True, capture_output=True)
    again = ("--no-trials", "--streams", "1", "--time", "25s")
    after = measured(far, direction, *again)
    gain = goodput(after, direction) / goodput(before, direction)
    return said | {"do": command.strip(), "predicted": advice["gain"], "gain": gain}


def rate(pairs):
    print("| path | congestion | linerate | iperf3 | ratio | of single pairs |\n|---|---|---|---|---|---|")
    for direction in ("forward", "reverse"):
        for fault_rate in ("100Mb/s", "1Gb/s", "5Gb/s"):
            for congestion in ("cubic", "bbr"):
                fault = f"path-rate:{fault_rate},shallow,{direction}"
                r = lab([fault], congestion, "rate", direction, str(pairs))
                if r is None:
                    print(f"| {fault} | {congestion} | failed | | | |", flush=True)
                    continue
                ours, theirs = (statistics.mean(r[k]) / 1e6 for k in ("ours", "theirs"))
                ratios = [a / b for a, b in zip(r["ours"], r["theirs"])]
                print(
                    f"| {fault} | {congestion} | {ours:.1f} Mb/s | {theirs:.1f} Mb/s "
                    f"| {ours / theirs:.4f} | {min(ratios):.4f} to {max(ratios):.4f} |",
                    flush=True,
                )


def datagrams(pairs):
    print("| path | datagrams | frames leave | linerate | of sent | iperf3 | of sent | ratio (95 %) | of single pairs |")
    print("|---|---|---|---|---|---|---|---|---|")
    # Larger ones where iperf3 cannot send as many small ones as the link carries; each fits a packet.
    paths = [
        ("100Mb/s", 1e8, 1472, []),
        ("1Gb/s", 1e9, 1472, []),
        ("1Gb/s", 1e9, 8948, ["mtu:9000"]),
        ("5Gb/s", 5e9, 8948, ["mtu:9000"]),
        ("5Gb/s", 5e9, 60000, ["mtu:65535"]),
    ]
    for direction in ("forward", "reverse"):
        for name, rate, size, mtu in paths:
            faults = [f"path-rate:{name},shallow,{direction}", *mtu]
            offered = str(round(rate * 1.05))
            r = lab(faults, None, "datagrams", direction, offered, str(size), str(pairs))
            if r is None:
                print(f"| {faults[0]} | {size} B | failed | | | | | | |", flush=True)
                continue
            # Headers of UDP, IPv4 and Ethernet.
            leave = rate * size / (size + 42)
            cells = []
            for tool in ("ours", "theirs"):
                cells += [f"{statistics.mean(g for g, _ in r[tool]) / 1e6:.1f} Mb/s"]
                cells += [f"{statistics.mean(s for _, s in r[tool]) / 1e6:.1f} Mb/s"]
            ratios = [a / b for (a, _), (b, _) in zip(r["ours"], r["theirs"])]
            low, mean, high = interval(ratios)
            print(
                f"| {faults[0]} | {size} B | {leave / 1e6:.1f} Mb/s | {' | '.join(cells)} "
                f"| {mean:.4f} ({low:.4f} to {high:.4f}; {len(ratios)}) | {min(ratios):.4f} to {max(ratios):.4f} |",
                flush=True,
            )


def advice():
    print("| planted | congestion | verdict | done | predicted | came | off |\n|---|---|---|---|---|---|---|")
    for fault, side, direction in (
        ("receive-window", "near", "reverse"),
        ("send-buffer", "near", "forward"),
    ):
        for size in ("128KiB", "256KiB", "512KiB"):
            for congestion in ("cubic", "bbr"):
                planted = f"{fault}:{side},{size}"
                r = lab(["delay:20ms", planted], congestion, "advice", direction)
                if r is None or "gain" not in r:
                    print(f"| {planted} | {congestion} | {r and r['cause']} | | | | |", flush=True)
                    continue
                off = r["gain"] / r["predicted"] - 1
                print(
                    f"| {planted} | {congestion} | {r['cause']} {r['certainty']} | `{r['do']}` "
                    f"| x{r['predicted']:.2f} | x{r['gain']:.2f} | {off:+.1%} |",
                    flush=True,
                )


if __name__ == "__main__":
    what, *rest = sys.argv[1:] or ["help"]
    if what == "inside":
        far, kind, *rest = rest
        # Both servers listen a moment after their start.
        time.sleep(1)
        kinds = {"rate": inside_rate, "datagrams": inside_datagrams, "advice": inside_advice}
        print(json.dumps(kinds[kind](far, *rest)))
    elif what == "rate":
        rate(int(rest[0]) if rest else 3)
    elif what == "datagrams":
        datagrams(int(rest[0]) if rest else 5)
    elif what == "advice":
        advice()
    else:
        sys.exit(__doc__)
