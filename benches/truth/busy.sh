#!/usr/bin/env bash
# Measures loopback while one busy program runs on each CPU, and prints the causes that each run named. Only CPUs
# limit such a path, so every limit must be a CPU's.
#
#   benches/truth/busy.sh OUT [RUNS [TIME]]
#
# OUT/N.json is the result of run N; none is run again. The table goes to standard output, and the exit code is 1 where
# something else was named. Needs python3. LINERATE names another program than target/dist/linerate, which is
# built otherwise.
set -u
out=${1:?usage: busy.sh OUT [RUNS [TIME]]}
runs=${2:-20} time=${3:-8s}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/../.." || exit 1
if [ -z "${LINERATE:-}" ]; then
  cargo build --profile dist --quiet || exit 1
  LINERATE=$PWD/target/dist/linerate
fi
spinning=()
stop() { kill "${spinning[@]}" 2>/dev/null; }
trap stop EXIT
for _ in $(seq "$(nproc)"); do
  python3 -c 'while True: pass' &
  spinning+=($!)
done
for run in $(seq "$runs"); do
  "$LINERATE" run --no-save --quiet --time "$time" --json >"$out/$run.json"
done
python3 - "$out" "$runs" <<'END'
import json, sys
# Causes that are a CPU's, of goodput and of latency.
CPUS = {"sender-core", "receiver-core", "cpu-contention", "cpu-steal", "shared-core", "softirq-core", "latency-wakeup"}
out, runs = sys.argv[1], int(sys.argv[2])
wrong = 0
print("| run | forward, reverse (Gb/s) | named first | limits | disturbed by |\n|---|---|---|---|---|")
for run in range(1, runs + 1):
    with open(f"{out}/{run}.json") as file:
        result = json.load(file)
    verdict, ways = result["verdict"], result["directions"]
    rates = ", ".join(f"{ways[way]['goodput_bps'] / 1e9:.1f}" for way in ("forward", "reverse") if ways[way])
    first = result["headline"]
    first = f"{first['cause'] or 'unknown'}, {first['direction']}" if first else "nothing"
    limits = verdict["limits"]
    other = [l for l in limits if l["cause"] not in CPUS]
    wrong += bool(other)
    told = "; ".join(f"{l['side']} {l['cause']}, {l['metric']} {l['direction']} ({l['certainty']})" for l in limits)
    beside = "; ".join(
        f"{d['side']} {d['cause']}, {d['direction']}" + (f" x{d['gain_about']:.2f}" if d["gain_about"] else "")
        for d in verdict["disturbances"])
    print(f"| {run} | {rates} | {first} | {told}{' WRONG' if other else ''} | {beside} |")
print(f"\nSomething else than a CPU was named in {wrong} of {runs} runs.")
sys.exit(wrong > 0)
END
