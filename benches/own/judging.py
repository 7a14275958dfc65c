#!/usr/bin/env python3
"""Measures two builds for judging.sh: OLD and NEW are folders with `linerate` and `examples/growing`."""
import os
import re
import statistics
import subprocess
import sys
import tempfile

TIMES = 21


def builds():
    return [os.environ[which] for which in ("OLD", "NEW")]


def instructions(command, function=None):
    """Instructions of a command, or of one of its functions alone."""
    with tempfile.NamedTemporaryFile() as out:
        only = [f"--toggle-collect={function}*"] if function else []
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", *only]
        done = subprocess.run([*tool, *command], capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if not found:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return int(found[1])


def cpu_time(command):
    """CPU time of a process, user and system, in milliseconds."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return (used.ru_utime + used.ru_stime) * 1e3


def own_time(command):
    """What the example took by its own clock, in milliseconds."""
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(re.search(r"(\d+) us$", done.stdout.strip())[1]) / 1e3


def answers(command):
    return re.sub(r", \d+ us$", "", subprocess.check_output(command, text=True).strip())


def row(record, what, pair, unit):
    old, new = pair
    print(f"| {record} | {what} | {old:.1f} {unit} | {new:.1f} {unit} | {new / old:.2f} |", flush=True)


def in_turn(measure, commands):
    taken = [[measure(command) for command in commands] for _ in range(TIMES)]
    return [statistics.median(column) for column in zip(*taken)]


def show(name, path):
    commands = [[f"{build}/linerate", "show", path] for build in builds()]
    row(name, "show", [instructions(command) / 1e6 for command in commands], "M")
    row(name, "show", in_turn(cpu_time, commands), "ms")


def growing(name, path, words, what, function):
    commands = [[f"{build}/examples/growing", path, *words] for build in builds()]
    same = [answers([*command, "once"]) for command in commands]
    if same[0] != same[1]:
        print(f"note: {name}, {what}: the builds answer otherwise: {same}", file=sys.stderr)
    counted = [instructions([*command, "once"], f"growing::{function}") / 1e6 for command in commands]
    row(name, what, counted, "M")
    row(name, what, in_turn(own_time, commands), "ms")


def main():
    print("| record | what | before | after | ratio |\n|---|---|---|---|---|")
    for path in sys.argv[1:]:
        name = os.path.basename(path).removesuffix(".lnr")
        show(name, path)
        growing(name, path, [], "between the steps of a run", "asked")
        growing(name, path, ["each"], "derived and judged after each step", "judged")


main()
