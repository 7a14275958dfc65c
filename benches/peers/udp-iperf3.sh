#!/usr/bin/env bash
# Compares datagrams per second of one stream with those of iperf3 -u at its fastest: -b 0 (no rate) and -w 4M
# (the buffer that linerate asks for, too). On loopback, with 64 B and with the payload of a 1500-byte packet,
# in interleaved pairs, as the receiver counts. Needs iperf3 and python3.
#
#   benches/peers/udp-iperf3.sh [PAIRS] [SECONDS]
set -eu
pairs=${1:-10} secs=${2:-3}
cd "$(dirname "$0")/../.." && cargo build --profile dist --quiet
linerate=$PWD/target/dist/linerate
port=5299 own=5298
iperf3 -s -p "$port" >/dev/null & servers=$!
"$linerate" serve --open --listen 127.0.0.1 --port "$own" --quiet 2>/dev/null & servers+=" $!"
# shellcheck disable=SC2086 # the ids of two
trap 'kill $servers' EXIT
sleep 1
theirs() {
  iperf3 -c 127.0.0.1 -p "$port" -u -b 0 -w 4M -l "$1" -t "$secs" -J | python3 -c '
import json, sys
end = json.load(sys.stdin)["end"]["sum"]
print((end["packets"] - end["lost_packets"]) / end["seconds"], end["lost_percent"])'
}
# Its goodput over the size of a datagram.
ours() {
  "$linerate" bw 127.0.0.1 --open --port "$own" --engine udp --quiet --json --write-size "$1B" --time "${secs}s" |
    python3 -c '
import json, sys
way = json.load(sys.stdin)["directions"]["forward"]
print(way["goodput_bps"] / 8 / '"$1"', way["datagrams"]["lost_share"] * 100)'
}
for size in 64 1472; do
  for i in $(seq "$pairs"); do
    if ((i % 2)); then t=$(theirs "$size"); o=$(ours "$size"); else o=$(ours "$size"); t=$(theirs "$size"); fi
    echo "$size $i $o $t"
  done
done | PYTHONPATH=benches/peers python3 -c '
import sys
from student import interval
rows = [line.split() for line in sys.stdin]
print("| size | pair | linerate packets/s | lost | iperf3 packets/s | lost | ratio |\n|---|---|---|---|---|---|---|")
for size, i, o, own, t, lost in rows:
    o, t = float(o), float(t)
    print(f"| {size} B | {i} | {o:.0f} | {float(own):.1f} % | {t:.0f} | {float(lost):.1f} % | {o / t:.1f} |")
for size in ("64", "1472"):
    ratios = [float(o) / float(t) for z, _, o, _, t, _ in rows if z == size]
    low, mean, high = interval(ratios)
    print(f"\n{size} B: mean ratio {mean:.2f} (95 %: {low:.2f} to {high:.2f}, {len(ratios)} pairs)")
'
