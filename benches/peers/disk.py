"""Files read by linerate and by fio, in turn: python3 benches/peers/disk.py LINERATE FILE

FILE exists and has at least 512 MiB. fio reads it with registered buffers and files, in batches ("tuned"), and with the
defaults of io_uring. Prints the medians of operations in a second, and the ratios linerate / fio with their range.
"""

import json
import statistics
import subprocess
import sys

LINERATE, FILE = sys.argv[1:]
PAIRS = 5
TUNED = (
    "--iomem_align=4k --registerfiles --fixedbufs --iodepth_batch_submit=32 --iodepth_batch_complete_max=32".split()
)
# Name, size of an operation, order, depth, and whether the page cache is used.
CASES = [
    ("cached, random 4 KiB, depth 32", "4KiB", "random", 32, True),
    ("direct, random 4 KiB, depth 32", "4KiB", "random", 32, False),
    ("direct, sequential 1 MiB, depth 8", "1MiB", "sequential", 8, False),
]


def result(command):
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def linerate(size, order, depth, buffered):
    command = f"{LINERATE} bw {FILE} --engine file --order {order} --size {size} --depth {depth} -t 2s --json -q"
    figures = result(command.split() + ["--buffered"] * buffered)["figures"]
    return next(figure["value"] for figure in figures if figure["figure"] == "operations_per_sec")


def fio(size, order, depth, buffered, more):
    rw = "randread" if order == "random" else "read"
    command = (
        f"fio --name=x --filename={FILE} --size=512M --rw={rw} --bs={size[:-2]} --iodepth={depth} --ioengine=io_uring "
        f"--direct={int(not buffered)} --time_based --runtime=2 --invalidate=0 --output-format=json"
    )
    return result(command.split() + more)["jobs"][0]["read"]["iops"]


for name, *case in CASES:
    with open(FILE, "rb") as file:
        while file.read(1 << 24):
            pass
    rounds = [(linerate(*case), fio(*case, TUNED), fio(*case, [])) for _ in range(PAIRS)]
    own, tuned, usual = zip(*rounds)
    print(f"{name}: {statistics.median(own):.0f}, tuned fio {statistics.median(tuned):.0f}, usual {statistics.median(usual):.0f}")
    for label, peer in (("tuned", tuned), ("usual", usual)):
        ratios = [a / b for a, b in zip(own, peer)]
        print(f"  over {label}: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})", flush=True)
