#!/usr/bin/env bash
# Datagrams per second of one stream beside iperf3 -u at its fastest (-b 0 -w 4M: no rate, and the buffer
# that linerate asks for, too): on loopback, 64 B and what fits a packet of 1500, interleaved pairs, what
# the receiver counts. Needs iperf3 and python3.
#
#   benches/peers/udp-iperf3.sh [PAIRS] [SECONDS]
set -eu
pairs=${1:-10} secs=${2:-3}
cd "$(dirname "$0")/../.." && cargo build --release --quiet
linerate=$PWD/target/release/linerate
port=5299
iperf3 -s -p "$port" >/dev/null & server=$!
trap 'kill "$server"' EXIT
sleep 1
theirs() {
  iperf3 -c 127.0.0.1 -p "$port" -u -b 0 -w 4M -l "$1" -t "$secs" -J | python3 -c '
import json, sys
end = json.load(sys.stdin)["end"]["sum"]
print((end["packets"] - end["lost_packets"]) / end["seconds"], end["lost_percent"])'
}
# The base step of a run; its goodput over the size of a datagram.
ours() {
  "$linerate" run --engine udp --quiet --no-save --no-trials --json --streams 1 --direction forward \
    --write-size "$1B" --time "$((secs * 5))s" | python3 -c '
import json, re, sys
result = json.load(sys.stdin)
lost = re.search(r"([0-9.]+) % of the datagrams were lost", json.dumps(result["verdict"]))
print(result["directions"]["forward"]["goodput_bps"] / 8 / '"$1"', lost[1])'
}
for size in 64 1472; do
  for i in $(seq "$pairs"); do
    if ((i % 2)); then t=$(theirs "$size"); o=$(ours "$size"); else o=$(ours "$size"); t=$(theirs "$size"); fi
    echo "$size $i $o $t"
  done
done | python3 -c '
import math, statistics as s, sys
rows = [line.split() for line in sys.stdin]
print("| size | pair | linerate packets/s | lost | iperf3 packets/s | lost | ratio |\n|---|---|---|---|---|---|---|")
for size, i, o, own, t, lost in rows:
    o, t = float(o), float(t)
    print(f"| {size} B | {i} | {o:.0f} | {float(own):.1f} % | {t:.0f} | {float(lost):.1f} % | {o / t:.1f} |")
# Student, two-sided 95 %, by degrees of freedom.
quantile = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
for size in ("64", "1472"):
    logs = [math.log(float(o) / float(t)) for z, _, o, _, t, _ in rows if z == size]
    n = len(logs)
    half = quantile.get(n - 1, 2.0) * s.stdev(logs) / math.sqrt(n) if n > 1 else float("nan")
    mean = s.mean(logs)
    print(f"\n{size} B: mean ratio {math.exp(mean):.2f} (95 %: {math.exp(mean - half):.2f} to {math.exp(mean + half):.2f}, {n} pairs)")
'
