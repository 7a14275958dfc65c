#!/usr/bin/env python3
"""TCP beside iperf3, nuttcp and qperf, in interleaved pairs (A B B A).

    tcp.py serve PIDS                      every server, in the foreground; their ids go to the file PIDS
    tcp.py measure HOST PIDS CASE PAIRS >> SAMPLES
    tcp.py loopback CASE PAIRS >> SAMPLES  both of them on this host
    tcp.py report TITLE NOTE OUT SAMPLES...  OUT.md and OUT.json of all samples
    tcp.py cases                           what can be measured

On the path of a lab (a router between two hosts), as any user:

    linerate lab run --far 'benches/peers/tcp.py serve /tmp/pids' -- \\
        benches/peers/tcp.py measure FAR /tmp/pids iperf3 8 >> /tmp/samples

Goodput is what the receiver counted, of all tools from the first byte on: linerate's base step has no wash-out, and its
`goodput_with_ramp_bps` covers all of it. CPU time is that of both
processes, from start to end (their own and the kernel's on their behalf), by the bytes that they moved;
of linerate without the threads that time round trips on the idle path before the load, which the others
do not. Nuttcp and qperf serve by children of which it cannot be read. LINERATE is the program to measure.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

from student import interval

LINERATE = os.environ.get("LINERATE", "target/dist/linerate")
PACKAGES = ["iperf3", "nuttcp", "qperf"]
TICK = os.sysconf("SC_CLK_TCK")
CPUS = sorted(os.sched_getaffinity(0))


def case(rival, reverse=False, streams=1, size=None, pinned=False, congestion=None, ours=()):
    return {"rival": rival, "reverse": reverse, "streams": streams, "size": size, "pinned": pinned,
            "congestion": congestion, "ours": list(ours)}


N = len(CPUS)
CASES = {
    "iperf3": case("iperf3"),
    "iperf3-reverse": case("iperf3", reverse=True),
    "iperf3-streams": case("iperf3", streams=N),
    "iperf3-streams-reverse": case("iperf3", reverse=True, streams=N),
    "iperf3-pinned": case("iperf3", pinned=True),
    "iperf3-128K": case("iperf3", size=128 * 1024),
    "iperf3-128K-pinned": case("iperf3", size=128 * 1024, pinned=True),
    "iperf3-512K": case("iperf3", size=512 * 1024),
    "iperf3-1M": case("iperf3", size=1024 * 1024),
    "iperf3-cubic": case("iperf3", congestion="cubic"),
    "iperf3-cubic-reverse": case("iperf3", reverse=True, congestion="cubic"),
    "iperf3-cubic-streams": case("iperf3", streams=N, congestion="cubic"),
    "iperf3-cubic-streams-reverse": case("iperf3", reverse=True, streams=N, congestion="cubic"),
    "nuttcp": case("nuttcp"),
    "nuttcp-reverse": case("nuttcp", reverse=True),
    "nuttcp-pinned": case("nuttcp", pinned=True),
    "nuttcp-streams": case("nuttcp", streams=N),
    "nuttcp-streams-reverse": case("nuttcp", reverse=True, streams=N),
    "qperf": case("qperf"),
    "qperf-pinned": case("qperf", pinned=True),
    # linerate beside itself: what another size, or another way to hand payload over, gives.
    **{f"size-{k}K": case("linerate", ours=["--size", f"{k}KiB"]) for k in [64, 128, 256, 512, 768, 1024, 1536, 2048, 4096]},
    **{f"copy-{how}": case("linerate", ours=["--copy", how]) for how in ["zerocopy", "sendfile", "io-uring"]},
}


def need():
    lacking = [p for p in PACKAGES if shutil.which(p) is None]
    if lacking:
        sys.exit(f"not installed: {' '.join(lacking)}\nhint: sudo apt-get install {' '.join(lacking)}")


# Servers. Ports are the usual ones of each.


def serve(path):
    need()
    commands = {
        "linerate": [LINERATE, "serve", "--open"],
        "iperf3": ["iperf3", "-s"],
        "nuttcp": ["nuttcp", "-S", "--nofork"],
        "qperf": ["qperf"],
    }
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = {name: subprocess.Popen(command, **quiet) for name, command in commands.items()}
    with open(path + ".part", "w") as f:
        json.dump({name: process.pid for name, process in running.items()}, f)
    os.rename(path + ".part", path)
    try:
        for process in running.values():
            process.wait()
    finally:
        for process in running.values():
            process.kill()


def pids(path):
    for _ in range(100):
        if os.path.exists(path):
            # They listen a moment after their start.
            time.sleep(0.7)
            with open(path) as f:
                return json.load(f)
        time.sleep(0.1)
    sys.exit("no server came up")


def spent(pid):
    """CPU seconds of a process and of its children that have ended."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return sum(int(v) for v in fields[11:15]) / TICK


# Clients: each gives bits per second, and the bytes that it moved where CPU time is told by them.


def client(command, cpu):
    """Output of a command, and its CPU seconds."""
    if cpu is not None:
        command = ["taskset", "-c", str(cpu), *command]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)}: status {status}: {err.strip()} {out[-300:]}")
    return out, usage.ru_utime + usage.ru_stime


def linerate(host, c, extra, cpu):
    command = [LINERATE, "run", host, "--open", "--quiet", "--no-save", "--no-trials", "--json", "--with-record", "-t5s",
               "-P", str(c["streams"]), "-d", "reverse" if c["reverse"] else "forward"]
    if c["size"]:
        command += ["--size", f"{c['size']}B"]
    if c["congestion"]:
        command += ["--congestion", c["congestion"]]
    out, used = client(command + extra, cpu)
    result = json.loads(out)
    direction = result["directions"]["reverse" if c["reverse"] else "forward"]
    receiver = 0 if c["reverse"] else 1
    *others, load = result["record"]["steps"]
    moved = sum(t["received"] for t in load["ends"][receiver]["totals"])
    return direction["goodput_with_ramp_bps"], moved, used - sum(threads(step) for step in others)


def threads(step):
    """CPU seconds of the threads of a step, both ends."""
    tables = [t for end in step["ends"] for t in end["tables"] if t["source"] == "thread"]
    runs = [c["values"] for t in tables for c in t["columns"] if c["name"] == "run_ns"]
    return sum(values[-1] - values[0] for values in runs) / 1e9


def iperf3(host, c, _, cpu):
    command = ["iperf3", "-c", host, "-t1", "-J", "-P", str(c["streams"])]
    if c["reverse"]:
        command.append("-R")
    if c["size"]:
        command += ["-l", str(c["size"])]
    if c["congestion"]:
        command += ["-C", c["congestion"]]
    out, used = client(command, cpu)
    end = json.loads(out)["end"]["sum_received"]
    return end["bits_per_second"], end["bytes"], used


def nuttcp(host, c, _, cpu):
    command = ["nuttcp", "-r" if c["reverse"] else "-t", "-T1", "-fparse"]
    if c["streams"] > 1:
        command.append(f"-N{c['streams']}")
    out, used = client([*command, host], cpu)
    return float(re.search(r"rate_Mbps=([0-9.]+)", out)[1]) * 1e6, None, used


def qperf(host, c, _, cpu):
    out, used = client(["qperf", "-t", "1", "-un", host, "tcp_bw"], cpu)
    found = re.search(r"bw\s*=\s*([0-9.,]+)\s*(\w+)/sec", out)
    unit = {"bytes": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9}[found[2]]
    return float(found[1].replace(",", "")) * unit * 8, None, used


TOOLS = {"linerate": linerate, "iperf3": iperf3, "nuttcp": nuttcp, "qperf": qperf}


def measure(host, servers, name, pairs, path):
    c = CASES[name]
    near, far = (CPUS[0], CPUS[-1]) if c["pinned"] else (None, None)
    for tool, pid in servers.items():
        affinity = {far} if c["pinned"] else set(CPUS)
        for task in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(task), affinity)

    def one(ours):
        tool = "linerate" if ours else c["rival"]
        before = spent(servers[tool])
        bps, moved, used = TOOLS[tool](host, c, c["ours"] if ours else [], near)
        # What the server still does for this one is its own.
        time.sleep(0.15)
        used += spent(servers[tool]) - before
        return {"bps": bps, "ns_per_byte": used / moved * 1e9 if moved else None}

    for pair in range(pairs):
        first = one(pair % 2 == 0)
        second = one(pair % 2 == 1)
        ours, theirs = (first, second) if pair % 2 == 0 else (second, first)
        print(json.dumps({"path": path, "case": name, "ours": ours, "theirs": theirs}), flush=True)


def loopback(name, pairs):
    path = f"/tmp/peers-{os.getpid()}"
    process = subprocess.Popen([sys.executable, __file__, "serve", path], start_new_session=True)
    try:
        measure("127.0.0.1", pids(path), name, pairs, "loopback")
    finally:
        os.killpg(process.pid, 15)
        process.wait()
        os.unlink(path)


# The report: ratios of pairs, on their logarithms.


def ratio(pairs):
    ratios = [a / b for a, b in pairs]
    low, mean, high = interval(ratios)
    return {
        "pairs": len(ratios),
        "median": round(statistics.geometric_mean([statistics.median_low(ratios), statistics.median_high(ratios)]), 3),
        "mean": round(mean, 3),
        "low": round(low, 3),
        "high": round(high, 3),
    }


def words(c):
    what = [f"{c['streams']} stream" + ("s" if c["streams"] > 1 else ""), "reverse" if c["reverse"] else "forward"]
    what.append(f"both {c['size'] // 1024} KiB" if c["size"] else "default" if not c["ours"] else " ".join(c["ours"]))
    if c["congestion"]:
        what.append(c["congestion"])
    if c["pinned"]:
        what.append("pinned")
    return ", ".join(what)


def summary(samples):
    found = []
    keys = dict.fromkeys((s["path"], s["case"]) for s in samples)
    for path, name in keys:
        own = [s for s in samples if (s["path"], s["case"]) == (path, name)]
        if len(own) < 6:
            continue
        cpu = [(s["ours"]["ns_per_byte"], s["theirs"]["ns_per_byte"]) for s in own]
        found.append({
            "path": path, "case": name, "rival": CASES[name]["rival"], "what": words(CASES[name]),
            "ours_bps": statistics.median(s["ours"]["bps"] for s in own),
            "theirs_bps": statistics.median(s["theirs"]["bps"] for s in own),
            "goodput": ratio([(s["ours"]["bps"], s["theirs"]["bps"]) for s in own]),
            "cpu_per_byte": ratio(cpu) if all(a and b for a, b in cpu) else None,
        })
    return found


def report(title, note, out, files):
    samples = [json.loads(line) for name in files for line in open(name)]
    found = summary(samples)
    interval = lambda r: "" if r is None else f"{r['median']:.2f} | {r['low']:.2f} to {r['high']:.2f}"
    with open(out + ".json", "w") as f:
        json.dump({"title": title, "note": note, "results": found, "samples": samples}, f, indent=1)
        f.write("\n")
    with open(out + ".md", "w") as f:
        f.write(f"# {title}\n\n{note}\n\n`benches/peers/tcp.py`; ratios are linerate over the other one: the median of pairs, and 95 % bounds of"
                " the mean (t, on logarithms).\n\n"
                "| path | beside | what | linerate Gb/s | other Gb/s | pairs | goodput ratio | 95 % | CPU per byte ratio | 95 % |\n"
                "|---|---|---|---|---|---|---|---|---|---|\n")
        for r in found:
            f.write(f"| {r['path']} | {r['rival']} | {r['what']} | {r['ours_bps'] / 1e9:.1f} | {r['theirs_bps'] / 1e9:.1f} | "
                    f"{r['goodput']['pairs']} | {interval(r['goodput'])} | {interval(r['cpu_per_byte']) or '|'} |\n")


def main(args):
    match args:
        case ["serve", path]:
            serve(path)
        case ["measure", host, path, name, pairs]:
            measure(host, pids(path), name, int(pairs), "lab")
        case ["loopback", name, pairs]:
            need()
            loopback(name, int(pairs))
        case ["report", title, note, out, *files]:
            report(title, note, out, files)
        case ["cases"]:
            print("\n".join(CASES))
        case _:
            sys.exit(__doc__)


main(sys.argv[1:])
