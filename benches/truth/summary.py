#!/usr/bin/env python3
"""Makes a table of what matrix.sh kept: summary.py OUT"""
import collections
import json
import sys

rows = [json.loads(line) for line in open(sys.argv[1] + "/outcomes.jsonl")]
cells = collections.OrderedDict()
for row in rows:
    name = (row["key"].rsplit("-", 2)[0], row["key"].rsplit("-", 2)[1])
    cells.setdefault(name, []).append(row)
print("| cell | congestion | runs | right | proved | unknown | wrong | failed | bites | named otherwise |")
print("|---|---|---|---|---|---|---|---|---|---|")
for (cell, congestion), of in sorted(cells.items()):
    count = lambda outcome: sum(r.get("outcome") == outcome for r in of)
    proved = sum(r.get("outcome") == "right" and r.get("certainty") == "proved" for r in of)
    bites = sum(bool((r.get("truth") or {}).get("bites")) for r in of)
    wrong = [f"{r['named']} ({r['key'].rsplit('-', 1)[1]})" for r in of if r.get("outcome") == "wrong"]
    print(
        f"| {cell} | {congestion} | {len(of)} | {count('right')} | {proved} | {count('unknown')} "
        f"| {count('wrong')} | {count('failed')} | {bites} | {', '.join(wrong)} |"
    )
