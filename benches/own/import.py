#!/usr/bin/env python3
"""Compares `linerate import` of a long JSON output of iperf3 with Python's own reader of JSON, in interleaved pairs.

    cargo run --release -p linerate-import --example iperf3_size 100 64 FOLDER
    benches/own/import.py LINERATE FOLDER [PAIRS]

For each of document.json and stream.json: CPU and wall time of `linerate import --no-save FILE`, and of a Python that
reads the document (json.load) or each line (json.loads); their ratio is the median of the pairs, with the range of
all. Memory is the largest resident set of each process; the base is that of an import of a short file.
"""
import os, statistics, subprocess, sys, tempfile, time

DOCUMENT = "import json,sys; json.load(open(sys.argv[1]))"
STREAM = "import json,sys\nfor line in open(sys.argv[1]): json.loads(line)"
SHORT = '{"start":{"connected":[],"version":"iperf 3.18"},"intervals":[{"sum":{"seconds":1,"bytes":1,"bits_per_second":8}}]}'


def run(command):
    """Wall time, CPU time (s) and largest resident memory (MB) of a command."""
    began = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{command} ended with status {status}")
    return time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6


def main(program, folder, pairs=10):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as short:
        short.write(SHORT)
        short.flush()
        base = max(run([program, "import", "--no-save", short.name])[2] for _ in range(3))
    print(f"base {base:.1f} MB\n")
    print("| file | pairs | CPU, linerate | CPU, Python | ratio (range) | wall ratio | memory above the base, linerate | Python |")
    print("|---|---|---|---|---|---|---|---|")
    for name, reader in (("document.json", DOCUMENT), ("stream.json", STREAM)):
        path = os.path.join(folder, name)
        megabytes = os.path.getsize(path) / 1e6
        both = []
        for number in range(int(pairs)):
            commands = [[program, "import", "--no-save", path], ["python3", "-c", reader, path]]
            order = (0, 1) if number % 2 == 0 else (1, 0)
            found = {which: run(commands[which]) for which in order}
            both.append((found[0], found[1]))
        cpu = sorted(own[1] / other[1] for own, other in both)
        wall = statistics.median(own[0] / other[0] for own, other in both)
        middle = lambda which, value: statistics.median(pair[which][value] for pair in both)
        most = max(own[2] for own, _ in both) - base
        print(
            f"| {name}, {megabytes:.1f} MB | {pairs} | {middle(0, 1):.2f} s | {middle(1, 1):.2f} s "
            f"| {statistics.median(cpu):.3f} ({cpu[0]:.3f} to {cpu[-1]:.3f}) | {wall:.3f} "
            f"| {most:.1f} MB ({most / megabytes:.2f} x the file) | {middle(1, 2):.0f} MB |"
        )


main(*sys.argv[1:])
