#!/usr/bin/env bash
# Compares the verdicts of two builds on the same records: limits, their order, certainty, evidence and advice,
# disturbances, next trials and unknowns. Prints each difference; ends with 1 where there is one.
#
#   benches/truth/same.sh OLD NEW [FOLDER ...]
#
# OLD and NEW are two linerate programs. Records (*.lnr) are looked for below the folders; without one below
# crates/linerate/tests/records. The causes that were evaluated, cleared or excluded are not compared: their number may change.
# Keys that moved are found in both places: docs/json-keys.md.
set -uo pipefail
old=${1:?usage: same.sh OLD NEW [FOLDER ...]}
new=${2:?usage: same.sh OLD NEW [FOLDER ...]}
shift 2
[[ $# -gt 0 ]] || set -- "$(dirname "$0")/../../crates/linerate/tests/records"
find "$@" -name '*.lnr' -print0 | sort -z | OLD=$old NEW=$new python3 -c '
import json, os, subprocess, sys

def told(program, record):
    done = subprocess.run([program, "show", record, "--json"], capture_output=True)
    try:
        document = json.loads(done.stdout)
        verdict = document["verdict"]
    except (ValueError, KeyError):
        return {"error": done.stderr.decode(errors="replace").strip()}
    for limit in verdict["limits"]:
        (limit["trial"] or {}).pop("excluded", None)
    first = document.get("headline", verdict.get("headline")) or {}
    if first.get("certainty") == "unknown":
        first["certainty"] = None
    keys = ["limits", "disturbances", "next", "unknown"]
    headline = [first.get(key) for key in ["cause", "direction", "certainty"]]
    return {"headline": headline, **{key: verdict.get(key) for key in keys}}

records = sys.stdin.read().split("\0")[:-1]
differ = 0
for record in records:
    before, after = (told(os.environ[which], record) for which in ("OLD", "NEW"))
    for key in before.keys() | after.keys():
        if before.get(key) != after.get(key):
            differ += 1
            print(f"{record}: {key}\n  - {json.dumps(before.get(key))}\n  + {json.dumps(after.get(key))}")
print(f"{len(records)} records, {differ} differences")
sys.exit(differ > 0 or not records)
'
