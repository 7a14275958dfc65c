#!/usr/bin/env python3
"""Compares two builds of linerate by the instructions that a worker's thread takes in user space for each operation.

    benches/own/instructions.py OLD NEW

OLD and NEW are two linerate programs with symbols (`cargo build --profile symbols`; with rustix's feature `use-libc-auxv`, or
valgrind 3.19 ends them). The near end of a short measurement on loopback runs under callgrind, once for 1 s and
once for 5 s: the difference of the worker's thread holds nothing of its start. The far end runs as it is. Other programs on the machine do not matter. Needs valgrind and python3.
"""
import glob, json, os, re, subprocess, sys, tempfile, time

SIZE = 65536
PROBES = {
    "send, TCP": ["bw", "--size", "64KiB"],
    "receive, TCP": ["bw", "--size", "64KiB", "-d", "reverse"],
    "send, UDP": ["bw", "--engine", "udp"],
    "receive, UDP": ["bw", "--engine", "udp", "-d", "reverse"],
    "round trip, TCP": ["lat"],
    "round trip, TCP, 2000/s": ["lat", "--rate", "2000"],
    "round trip, UDP": ["lat", "--engine", "udp"],
    "round trip, UDP, 2000/s": ["lat", "--engine", "udp", "--rate", "2000"],
    "connections": ["lat", "--engine", "connect"],
}
PORTS = (47111, 47112)
TOTAL = re.compile(r"^totals: (\d+)", re.M)


def operations(document):
    """Operations of the near end in the whole step, of the payload that it moved."""
    record = document["record"]
    moved = sum(max(t["sent"], t["received"]) for step in record["steps"] for t in step["ends"][0]["totals"])
    return moved / document.get("size_bytes", SIZE)


def total(part):
    """Instructions of a thread."""
    with open(part) as file:
        return max((int(found) for found in TOTAL.findall(file.read())), default=0)


def instructions(program, port, options, seconds):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        command = ["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={out}", program]
        command += [*options, "127.0.0.1", "--port", str(port), "--open", "--time", f"{seconds}s", "--json", "--with-record", "--quiet"]
        done = subprocess.run(command, capture_output=True, timeout=180)
        document = json.loads(done.stdout)
        # The first thread is the program's own; of the others the worker takes most. Its sampler and the control take little.
        parts = [part for part in glob.glob(out + "-*") if not part.endswith("-01")]
        loops = max(total(part) for part in parts)
        return loops, document


def main():
    programs = sys.argv[1:3]
    serve = ["serve", "--open", "--listen", "127.0.0.1", "--port"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    servers = [subprocess.Popen([p, *serve, str(port)], **quiet) for p, port in zip(programs, PORTS)]
    try:
        time.sleep(1)
        for name, options in PROBES.items():
            each = []
            for program, port in zip(programs, PORTS):
                short, long = (instructions(program, port, options, seconds) for seconds in (1, 5))
                spent, done = long[0] - short[0], operations(long[1]) - operations(short[1])
                each.append(spent / done)
            print(f"{name:26} {each[0]:10.0f} {each[1]:10.0f}   x{each[1] / each[0]:.3f}", flush=True)
    finally:
        for server in servers:
            server.terminate()


main()
