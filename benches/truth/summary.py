#!/usr/bin/env python3
"""Makes a table of what matrix.sh kept: summary.py OUT"""
import collections
import json
import sys

rows = [json.loads(line) for line in open(sys.argv[1] + "/outcomes.jsonl")]


def cell(row):
    """The kind of fault, with its rate where the rates are cells of their own."""
    kind, congestion, _ = row["key"].rsplit("-", 2)
    if kind == "path-rate" and row.get("planted"):
        kind += " " + row["planted"][0].split(":")[1].split(",")[0]
    return kind, congestion


def proved(row):
    return row.get("outcome") == "right" and row.get("certainty") == "proved"


def bites(row):
    return bool((row.get("truth") or {}).get("bites"))


def line(name, congestion, of):
    count = lambda outcome: sum(r.get("outcome") == outcome for r in of)
    wrong = [f"{r['named']} ({r['key'].rsplit('-', 1)[1]})" for r in of if r.get("outcome") == "wrong"]
    print(
        f"| {name} | {congestion} | {len(of)} | {count('right')} | {sum(map(proved, of))} "
        f"| {count('unknown')} | {count('wrong')} | {count('failed')} | {sum(map(bites, of))} "
        f"| {', '.join(wrong)} |"
    )


cells = collections.OrderedDict()
for row in rows:
    cells.setdefault(cell(row), []).append(row)
print("| cell | congestion | runs | right | proved | unknown | wrong | failed | bites | named otherwise |")
print("|---|---|---|---|---|---|---|---|---|---|")
for (name, congestion), of in sorted(cells.items()):
    line(name, congestion, of)
line("all", "", rows)
biting = [r for r in rows if bites(r)]
print(f"\nFaults that bite (10 % or more): {len(biting)}, proved {sum(map(proved, biting))}.")
