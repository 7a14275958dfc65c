#!/usr/bin/env bash
# Goodput of one TCP stream beside iperf3: default against default, on one veth pair between two
# namespaces, interleaved. Needs root, iproute2, iperf3 and python3.
#
#   benches/peers/iperf3.sh [PAIRS]
set -eu
pairs=${1:-10}
cd "$(dirname "$0")/../.." && cargo build --profile dist --quiet
linerate=$PWD/target/dist/linerate
a=lr-bench-a-$$ b=lr-bench-b-$$
jobs_=()
cleanup() {
  for p in "${jobs_[@]}"; do kill "$p" 2>/dev/null || true; done
  ip netns del "$a" 2>/dev/null || true
  ip netns del "$b" 2>/dev/null || true
}
trap cleanup EXIT
ip netns add "$a"
ip netns add "$b"
ip link add va netns "$a" type veth peer name vb netns "$b"
ip -n "$a" addr add 10.78.0.1/24 dev va
ip -n "$b" addr add 10.78.0.2/24 dev vb
for n in "$a" "$b"; do ip -n "$n" link set lo up; done
ip -n "$a" link set va up
ip -n "$b" link set vb up
ip netns exec "$b" iperf3 -s >/dev/null & jobs_+=($!)
ip netns exec "$b" "$linerate" serve --open >/dev/null 2>&1 & jobs_+=($!)
sleep 1
for i in $(seq "$pairs"); do
  theirs=$(ip netns exec "$a" iperf3 -c 10.78.0.2 -t 3 -O 1 -J |
    python3 -c 'import json,sys; print(json.load(sys.stdin)["end"]["sum_received"]["bits_per_second"])')
  ours=$(ip netns exec "$a" "$linerate" run 10.78.0.2 --open --quiet --no-save --no-trials --json \
    --streams 1 --direction forward --time 16s |
    python3 -c 'import json,sys; print(json.load(sys.stdin)["directions"]["forward"]["goodput_bps"])')
  echo "$i $ours $theirs"
done | PYTHONPATH=benches/peers python3 -c '
import statistics as s, sys
from student import interval
rows = [list(map(float, line.split())) for line in sys.stdin]
low, mean, high = interval([o / t for _, o, t in rows])
print("| pair | linerate Gb/s | iperf3 Gb/s | ratio |\n|---|---|---|---|")
for i, o, t in rows:
    print(f"| {i:.0f} | {o / 1e9:.2f} | {t / 1e9:.2f} | {o / t:.2f} |")
print(f"\nratio of medians {s.median(r[1] for r in rows) / s.median(r[2] for r in rows):.2f}; mean ratio "
      f"{mean:.2f} (95 %: {low:.2f} to {high:.2f}, t with {len(rows) - 1} degrees of freedom)")
'
