#!/usr/bin/env bash
# A walk of linerate with one reading of all counters, against ibnetdiscover and ibqueryerrors one after the other, on a
# simulated network of 36 leaves x 32 hosts x 18 spines (1,206 nodes, 3,600 ports). Both are started in turn.
#
#   benches/rival/fabric.sh [PAIRS]      10 pairs unless told otherwise
#
# Needs a quiet machine, a release build, and Debian's ibsim-utils, libumad2sim0, opensm and infiniband-diags.
set -euo pipefail
cd "$(dirname "$0")/../.."

program=${LINERATE:-target/dist/linerate}
program=$(realpath "$program")
export program pairs=${1:-10}

"$program" lab ib --topology fat-tree:36,32,18 -- bash -c '
set -euo pipefail
scratch=$(mktemp -d) && trap "rm -rf $scratch" EXIT && cd "$scratch"

# seconds COMMAND...: its wall time; what it writes is thrown away. ibqueryerrors ends with 1 where it finds errors.
seconds() {
  local began=$EPOCHREALTIME code=0
  "$@" >out 2>errors || code=$?
  local ended=$EPOCHREALTIME
  [[ $code -le 1 ]] || { cat errors >&2; return 1; }
  awk "BEGIN { printf \"%.3f\", $ended - $began }"
}

both() { ibsim-run ibnetdiscover && ibsim-run ibqueryerrors; }

echo "pair linerate_s diags_s ratio"
for ((pair = 1; pair <= pairs; pair++)); do
  if ((pair % 2)); then
    own=$(seconds "$program" fabric --interval 0s) && diags=$(seconds both)
  else
    diags=$(seconds both) && own=$(seconds "$program" fabric --interval 0s)
  fi
  awk "BEGIN { printf \"%d %s %s %.3f\n\", $pair, $own, $diags, $own / $diags }"
done | tee table
awk "{ print \$4 }" table | sort -n | awk "{ r[NR] = \$1 } END { print \"median ratio\", (r[int((NR + 1) / 2)] + r[int(NR / 2) + 1]) / 2 }"
"$program" fabric --interval 0s >/dev/null &
pid=$!; peak=0
while read -r _ now _ < <(grep VmHWM "/proc/$pid/status" 2>/dev/null); do peak=$now; done
wait $pid
echo "memory at its largest: $((peak / 1024)) MiB"
'
