#!/usr/bin/env python3
"""How soon two builds of linerate prove what was planted, and how often they are right.

    proof_time.py OLD NEW OUT SEEDS CELL...

SEEDS is FIRST-LAST. Each cell (`linerate demo --list`) is shown with each seed by both builds, one after the other, the first
of them in turn. A seed draws the same severity, side and direction for both. OUT is a file of lines of JSON; a run that is
in it already is not repeated. Needs no root; nothing else should run on the machine.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def show(program, cell, seed):
    """One demonstration: its report with the wall time that it took."""
    with tempfile.TemporaryDirectory() as kept:
        began = time.monotonic()
        args = [program, "demo", cell, "--seed", str(seed), "--json", "--quiet", "--save", kept]
        done = subprocess.run(args, capture_output=True, text=True, check=False)
        took = time.monotonic() - began
    try:
        report = json.loads(done.stdout)
    except ValueError:
        report = {"outcome": "failed", "error": done.stderr.strip()[-300:]}
    keep = ["outcome", "named", "certainty", "proved_after", "seconds", "steps", "error"]
    return {key: report.get(key) for key in keep} | {"wall": took}


def measured(out):
    if not os.path.exists(out):
        return []
    with open(out, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def measure(builds, out, seeds, cells):
    rows = measured(out)
    known = {(row["build"], row["cell"], row["seed"]) for row in rows}
    for number, (seed, cell) in enumerate((s, c) for s in seeds for c in cells):
        order = list(builds) if number % 2 == 0 else list(builds)[::-1]
        for build in order:
            if (build, cell, seed) in known:
                continue
            row = {"build": build, "cell": cell, "seed": seed} | show(builds[build], cell, seed)
            rows.append(row)
            with open(out, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{build} {cell} {seed}: {row['outcome']} {row['certainty']} {row['proved_after']}", file=sys.stderr)
    return rows


def middle(values):
    return f"{statistics.median(values):.1f}" if values else "-"


def table(rows, cells):
    by = {(row["build"], row["cell"], row["seed"]): row for row in rows}
    pairs = [(row, by[("new", *key)]) for (build, *key), row in by.items() if build == "old" and ("new", *key) in by]
    print("| cell | pairs | right, old | right, new | wrong, old | wrong, new | proved, old | proved, new "
          "| s to a proof, old | new | s of the run, old | new |")
    print("|---" * 12 + "|")
    for cell in [*cells, "all"]:
        of = [pair for pair in pairs if cell in (pair[0]["cell"], "all")]
        if not of:
            continue
        cols = [cell, str(len(of))]
        fine = ("right", "acceptable")
        cols += [str(sum(pair[i]["outcome"] in fine for pair in of)) for i in (0, 1)]
        cols += [str(sum(pair[i]["outcome"] == "wrong" for pair in of)) for i in (0, 1)]
        cols += [str(sum(pair[i]["proved_after"] is not None for pair in of)) for i in (0, 1)]
        # Times are compared where both proved.
        both = [pair for pair in of if all(row["proved_after"] is not None for row in pair)]
        cols += [middle([pair[i]["proved_after"] for pair in both]) for i in (0, 1)]
        cols += [middle([pair[i]["seconds"] for pair in of if pair[i]["seconds"]]) for i in (0, 1)]
        print("| " + " | ".join(cols) + " |")
    ratios = [new["proved_after"] / old["proved_after"] for old, new in pairs
              if old["proved_after"] and new["proved_after"]]
    if ratios:
        print(f"\nnew/old of the time to a proof, median of {len(ratios)} pairs: {statistics.median(ratios):.2f}")


def main():
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    old, new, out, seeds, *cells = sys.argv[1:]
    first, last = map(int, seeds.split("-"))
    table(measure({"old": old, "new": new}, out, range(first, last + 1), cells), cells)


main()
