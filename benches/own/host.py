#!/usr/bin/env python3
"""What linerate costs a host on which it does little or nothing.

    host.py flows [CONNECTIONS [LOOKS]]   how long a round of `linerate flows` takes beside so many connections
                                          over loopback, whose both ends are held here
    host.py idle [SECONDS]                resident memory and wake-ups of `linerate serve` that nobody uses,
                                          before its first client and after one

Needs no root. LINERATE is the program to measure.
"""

import contextlib
import json
import multiprocessing
import os
import resource
import socket
import statistics
import subprocess
import sys
import time

LINERATE = os.environ.get("LINERATE", "target/release/linerate")
# Connections that carry something while others rest: 64 KiB each 50 ms, ten times what `flows` calls busy.
BUSY = 20
PORT = "5399"


def hold(count, moving, ready, stop):
    """Holds both ends of so many connections, and moves payload over some of them until told to stop."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    made = []
    for _ in range(count):
        near = socket.create_connection(listener.getsockname())
        made.append((near, listener.accept()[0]))
    ready.set()
    carry(made[:moving], stop)


def carry(pairs, stop):
    """Moves payload over connections until told to stop."""
    payload = bytes(64 * 1024)
    while not stop.wait(0.05):
        for near, far in pairs:
            near.sendall(payload)
            left = len(payload)
            while left:
                left -= len(far.recv(left))


@contextlib.contextmanager
def connections(count, moving):
    """Holds so many connections meanwhile, in as many processes as the limit of open files asks for."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    share = min(count, (most - 100) // 2)
    stop = multiprocessing.Event()
    holders = []
    for first in range(0, count, share):
        ready = multiprocessing.Event()
        work = (min(share, count - first), moving if first == 0 else 0, ready, stop)
        holders.append(multiprocessing.Process(target=hold, args=work, daemon=True))
        holders[-1].start()
        if not ready.wait(60):
            sys.exit("the connections could not be made")
    try:
        yield
    finally:
        stop.set()
        for holder in holders:
            holder.join()


def look(arguments):
    """The longest round of a look in milliseconds, and what was seen."""
    command = [LINERATE, "flows", "--json", "--time", "3s", *arguments]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return told["longest_round_ns"] / 1e6, told["connections"], len(told["flows"])


def flows(count, looks):
    print("| connections | seen | shown | longest round of a look, ms (median) | most |\n|---|---|---|---|---|")
    with open("/proc/self/comm") as f:
        name = f.read().strip()
    for what, moving, arguments in [
        ("at rest", 0, []),
        (f"{BUSY} of them busy", BUSY, []),
        (f"{BUSY} of them busy, those of this program", BUSY, [name]),
    ]:
        with connections(count, moving):
            rounds, seen, shown = zip(*(look(arguments) for _ in range(looks)))
        print(f"| {count}, {what} | {max(seen)} | {max(shown)} | {statistics.median(rounds):.0f} | {max(rounds):.0f} |",
              flush=True)


def number(pid, key):
    """Sum of a line of the status of all threads of a process, or of its own."""
    threads = [f"/proc/{pid}/task/{t}/status" for t in os.listdir(f"/proc/{pid}/task")]
    files = [f"/proc/{pid}/status"] if key == "VmRSS" else threads
    total = 0
    for name in files:
        with open(name) as f:
            total += sum(int(line.split()[1]) for line in f if line.startswith(key + ":"))
    return total


def switches(pid):
    return number(pid, "voluntary_ctxt_switches") + number(pid, "nonvoluntary_ctxt_switches")


def rest(pid, seconds, when):
    time.sleep(2)
    before = switches(pid)
    time.sleep(seconds)
    woke = switches(pid) - before
    print(f"| {when} | {number(pid, 'VmRSS')} | {len(os.listdir(f'/proc/{pid}/task'))} | {woke} in {seconds} s |", flush=True)


def idle(seconds):
    server = subprocess.Popen([LINERATE, "serve", "--open", "--quiet", "--port", PORT],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        print("| server | resident KiB | threads | wake-ups |\n|---|---|---|---|")
        rest(server.pid, seconds, "before its first client")
        client = [LINERATE, "bw", f"127.0.0.1:{PORT}", "--open", "--json", "--time", "3s"]
        subprocess.run(client, check=True, stdout=subprocess.DEVNULL)
        rest(server.pid, seconds // 2, "after a client")
    finally:
        server.terminate()
        server.wait()


def main(arguments):
    match arguments:
        case ["flows", *numbers]:
            count, looks = [int(n) for n in numbers] + [10000, 5][len(numbers):]
            flows(count, looks)
        case ["idle", *numbers]:
            idle(int(numbers[0]) if numbers else 30)
        case _:
            sys.exit(__doc__)


main(sys.argv[1:])
