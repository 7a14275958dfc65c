#!/usr/bin/env bash
# Runs the demonstration's cells and keeps every outcome: one line of JSON each, with its record.
#
#   benches/truth/matrix.sh OUT [FIRST [RUNS [CELL ...]]]
#
# Seeds are FIRST, FIRST + 1, ... (RUNS of them), fixed beforehand; path-rate, whose three rates go
# by turns of the seed, takes three seeds for each. Every cell is run under cubic and under bbr;
# nothing is run again, whatever came of it. A cell that is in OUT already is left out, so that a
# long matrix can be resumed. benches/truth/summary.py makes the table.
#
# LINERATE names another program than target/release/linerate, which is built otherwise. Whoever
# shares the machine takes turns by `flock OUT/turn COMMAND`: a run never shares it.
set -u
out=${1:?usage: matrix.sh OUT [FIRST [RUNS [CELL ...]]]}
first=${2:-1} runs=${3:-10}
shift; shift $(($# < 2 ? $# : 2))
cells=${*:-healthy path-rate receive-window send-buffer receiver-core sender-core receiver-app sender-app pacing contended interrupted}
mkdir -p "$out/records"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/../.." || exit 1
if [ -z "${LINERATE:-}" ]; then
  cargo build --release --quiet || exit 1
  LINERATE=target/release/linerate
fi
touch "$out/outcomes.jsonl"

# one CELL SEED CONGESTION
one() {
  local key="$1-$3-$2" line
  grep -q "\"key\":\"$key\"" "$out/outcomes.jsonl" && return
  line=$(flock "$out/turn" timeout 120 "$LINERATE" demo "$1" --seed "$2" --congestion "$3" --json \
    --save "$out/records/$key" 2>"$out/records/$key.err")
  printf '{"key":"%s","load":"%s",%s\n' "$key" "$(cut -d' ' -f1 /proc/loadavg)" \
    "${line:-\{\"outcome\":\"failed\"\}}" | sed 's/,{/,/' >>"$out/outcomes.jsonl"
  sleep 0.5
}

for seed in $(seq "$first" $((first + runs - 1))); do
  for cell in $cells; do
    seeds=$seed
    [ "$cell" = path-rate ] && seeds="$((3 * seed)) $((3 * seed + 1)) $((3 * seed + 2))"
    for each in $seeds; do
      for congestion in cubic bbr; do one "$cell" "$each" "$congestion"; done
    done
  done
done
