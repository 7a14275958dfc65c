#!/usr/bin/env python3
"""Instructions of linerate and of perftest for each RDMA request, in user space, without those of the library.

    instructions.py LINERATE

LINERATE is a program with symbols (`cargo build --profile symbols`; with rustix's feature `use-libc-auxv`, or valgrind 3.19 ends
it). Both programs run on `stub.c`, a stand-in for libibverbs whose device completes each request at once. One end runs under
callgrind, for a short and for a long time: the difference holds nothing of its start. Instructions of the stand-in are left out.
Prints Markdown. Needs root (a mount namespace with a made-up device in /sys), gcc, libibverbs-dev, perftest, valgrind.
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PORT = "47113"
COUNTS = (40_000, 240_000)  # above 20,000 perftest leaves the peak out, whose search takes the square of the number
SECONDS = (1, 3)
COST = re.compile(r"^[+\-*\d][^ ]* (\d+)$")
#: name, operation, size, whether the end that receives is counted
CASES = [
    ("write, 64 B", "write", 64, False),
    ("write, 64 KiB", "write", 65536, False),
    ("send, 64 B, sender", "send", 64, False),
    ("send, 64 B, receiver", "send", 64, True),
    ("send, 64 KiB, sender", "send", 65536, False),
    ("send, 64 KiB, receiver", "send", 65536, True),
]


def spent(part):
    """Instructions of a thread outside of the stand-in."""
    names, counted, total, skip = {}, True, 0, False
    with open(part) as file:
        for line in file:
            if line.startswith("ob="):
                found = re.match(r"ob=\((\d+)\)(?: (.*))?", line)
                names.setdefault(found[1], found[2])
                counted = "libibverbs" not in names[found[1]]
            elif line.startswith("cob="):
                found = re.match(r"cob=\((\d+)\)(?: (.*))?", line)
                names.setdefault(found[1], found[2])
            elif line.startswith("calls="):
                skip = True
            elif found := COST.match(line):
                if counted and not skip:
                    total += int(found[1])
                skip = False
    return total


def callgrind(folder, command, environment):
    """Runs a command; returns the instructions of its busiest thread, and what it printed."""
    out = os.path.join(folder, "out")
    for old in glob.glob(out + "*"):
        os.remove(old)
    tool = ["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={out}"]
    done = subprocess.run(tool + command, capture_output=True, text=True, timeout=300, env=environment)
    parts = glob.glob(out + "-*")
    return max(map(spent, parts)), done


def perftest(folder, environment, op, size, receives, count):
    words = [f"ib_{op}_bw", "-d", "stub0", "-F", "-s", str(size), "-n", str(count)]
    client = words + ["127.0.0.1"]
    # The client starts once the server listens, which takes longer under callgrind.
    other = ["sh", "-c", "sleep 4; exec " + " ".join(client)] if receives else words
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    other = subprocess.Popen(other, env=environment, **quiet)
    time.sleep(0 if receives else 1)
    total, done = callgrind(folder, words if receives else client, environment)
    other.wait(60)
    if f"{size}" not in done.stdout:
        sys.exit(done.stdout + done.stderr)
    return total


def linerate(folder, environment, program, op, size, receives, seconds):
    words = [program, "bw", "127.0.0.1", "--port", PORT, "--open", "--engine", "rdma", "--op", op, "--size", f"{size}B"]
    words += ["-d", "reverse" if receives else "forward", "--time", f"{seconds}s", "--json", "--with-record", "--quiet"]
    total, done = callgrind(folder, words, environment)
    try:
        record = json.loads(done.stdout)["record"]
    except (ValueError, KeyError):
        sys.exit(done.stdout[:500] + done.stderr[-3000:])
    moved = sum(max(t["sent"], t["received"]) for step in record["steps"] for t in step["ends"][0]["totals"])
    return total, moved / size


def measure(program):
    print("| | linerate | perftest | ratio |\n|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "libibverbs.so.1")
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, os.path.join(HERE, "stub.c")], check=True)
        both = dict(os.environ, STUB_VERBS=os.path.join(folder, "counters"), HOME=folder)
        # perftest needs the real library as well, for librdmacm.
        environment, preloaded = dict(both, LD_LIBRARY_PATH=folder), dict(both, LD_PRELOAD=library)
        server = subprocess.Popen([program, "serve", "--open", "--listen", "127.0.0.1", "--port", PORT], env=environment,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1)
        try:
            for name, op, size, receives in CASES:
                ours = [linerate(folder, environment, program, op, size, receives, s) for s in SECONDS]
                own = (ours[1][0] - ours[0][0]) / (ours[1][1] - ours[0][1])
                theirs = [perftest(folder, preloaded, op, size, receives, n) for n in COUNTS]
                rival = (theirs[1] - theirs[0]) / (COUNTS[1] - COUNTS[0])
                print(f"| {name} | {own:.1f} | {rival:.1f} | {own / rival:.2f} |", flush=True)
        finally:
            server.terminate()


def fake_device():
    """Puts an InfiniBand device into /sys/class of this mount namespace."""
    run = lambda *words: subprocess.run(words, check=True)
    real, made = tempfile.mkdtemp(), tempfile.mkdtemp()
    run("mount", "--rbind", "/sys", real)
    run("mount", "-t", "tmpfs", "class", made)
    for name in os.listdir(f"{real}/class"):
        if name != "infiniband":
            os.symlink(f"{real}/class/{name}", f"{made}/{name}")
    port = f"{made}/infiniband/stub0/ports/1"
    os.makedirs(f"{port}/gids")
    files = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "link_layer": "InfiniBand", "lid": "0x1", "sm_lid": "0x1",
             "rate": "100 Gb/sec (4X EDR)", "gids/0": ":".join(["0101"] * 8)}
    for name, text in files.items():
        with open(f"{port}/{name}", "w") as file:
            file.write(text + "\n")
    run("mount", "--bind", made, "/sys/class")


if len(sys.argv) == 3 and sys.argv[1] == "--inside":
    fake_device()
    measure(sys.argv[2])
else:
    os.execvp("unshare", ["unshare", "--mount", sys.executable, os.path.abspath(__file__), "--inside", os.path.abspath(sys.argv[1])])
