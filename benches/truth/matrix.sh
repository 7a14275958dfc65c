#!/usr/bin/env bash
# Runs the demonstration's cells and keeps every outcome: one line of JSON each, with its record.
#
#   benches/truth/matrix.sh OUT [RUNS] [CELL ...]
#
# Seeds are 1, 2, ... RUNS, fixed beforehand; every cell is run under cubic and under bbr; nothing
# is run again, whatever came of it. A cell that is in OUT already is left out, so that a long
# matrix can be resumed. benches/truth/summary.py makes the table.
set -u
out=${1:?usage: matrix.sh OUT [RUNS] [CELL ...]}
runs=${2:-10}
shift; [ $# -gt 0 ] && shift
cells=${*:-healthy path-rate receive-window send-buffer receiver-core sender-core receiver-app sender-app pacing contended interrupted}
cd "$(dirname "$0")/../.." && cargo build --release --quiet || exit 1
mkdir -p "$out/records"
touch "$out/outcomes.jsonl"
for seed in $(seq 1 "$runs"); do
  for cell in $cells; do
    for congestion in cubic bbr; do
      key="$cell-$congestion-$seed"
      grep -q "\"key\":\"$key\"" "$out/outcomes.jsonl" && continue
      line=$(timeout 120 target/release/linerate demo "$cell" --seed "$seed" \
        --congestion "$congestion" --json --save "$out/records/$key" 2>"$out/records/$key.err")
      printf '{"key":"%s","load":"%s",%s\n' "$key" "$(cut -d' ' -f1 /proc/loadavg)" \
        "${line:-\{\"outcome\":\"failed\"\}}" | sed 's/,{/,/' >>"$out/outcomes.jsonl"
    done
  done
done
