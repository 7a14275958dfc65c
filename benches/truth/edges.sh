#!/usr/bin/env bash
# Records runs just over and just under what each cause needs: its limit about 15 % below another
# one, and about 20 % above it. crates/linerate/tests/cells/kept.rs judges them at each test run.
#
#   benches/truth/edges.sh OUT [NAME ...]
#
# Two causes have no edges here. `flow-rate-cap`: a lab limits all streams together, and a rate for each needs
# the qdisc fq, which not every kernel has. `congestion-control`: no setting makes one slow down by a chosen
# share without a queue and without loss.
#
# Each is one run in a lab, none is run again; OUT/NAME.lnr is its record. Needs iperf3 (for traffic
# that is not ours). LINERATE names another program than target/dist/linerate, which is built
# otherwise. Whoever shares the machine takes turns by `flock OUT/turn COMMAND`.
set -u
out=${1:?usage: edges.sh OUT [NAME ...]}
shift
only=" $* "
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/../.." || exit 1
if [ -z "${LINERATE:-}" ]; then
  cargo build --profile dist --quiet || exit 1
  LINERATE=$PWD/target/dist/linerate
fi
far="$LINERATE serve --open & exec iperf3 -s"
# $1 stands for the address of the far host.
run="$LINERATE run \$1 --open --quiet --direction forward --save $out/\$name"

# The servers on the far host need a moment, hence the pause.
# edge NAME 'COMMAND BESIDE IT' FAULT ... -- OPTION ...
edge() {
  local name=$1 beside=$2 faults=()
  shift 2
  [[ $only == "  " || $only == *" $name "* ]] || return
  [ -e "$out/$name.lnr" ] && return
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    faults+=(--fault "$1")
    shift
  done
  echo "== $name: ${faults[*]}"
  flock "$out/turn" timeout 120 "$LINERATE" lab run --congestion cubic "${faults[@]}" --far "$far" -- \
    sh -c "sleep 1; $beside ${run//\$name/$name} ${*:2}" sh FAR >"$out/$name.txt" 2>&1
  mv "$out/$name"/*.lnr "$out/$name.lnr" && rmdir "$out/$name"
  grep -A1 "Limited by" "$out/$name.txt"
}

# 95.6 Mb/s of payload over 20 ms: 239 kB in flight. A window is about 0.64 of tcp_rmem here.
slow=path-rate:100Mb/s,deep
long=(delay:20ms "$slow")
edge receive-window-over "" "${long[@]}" receive-window:far,312KiB -- --time 20s
edge receive-window-under "" "${long[@]}" receive-window:far,424KiB -- --time 20s
edge send-buffer-over "" "${long[@]}" send-buffer:near,192KiB -- --time 20s
edge send-buffer-under "" "${long[@]}" send-buffer:near,336KiB -- --time 20s
# 478 Mb/s of payload: 16,700 ps for each byte.
fast=path-rate:500Mb/s,shallow
for side in receiver:far sender:near; do
  role=${side%:*} host=${side#*:}
  edge "$role-core-over" "" "$fast" "application:$host,$role,work=20000ps/B" -- --time 20s
  edge "$role-core-under" "" "$fast" "application:$host,$role,work=14000ps/B" -- --time 20s
  # 95.6 Mb/s of payload: 11 ms for 128 KiB.
  edge "$role-app-over" "" "$slow" "application:$host,$role,pause=12900us/op" -- --time 20s --size 128KiB
  edge "$role-app-under" "" "$slow" "application:$host,$role,pause=9100us/op" -- --time 20s --size 128KiB
done
edge pacing-over "" "$slow" environment:near,LINERATE_PACING=80Mb/s -- --time 20s
edge pacing-under "" "$slow" environment:near,LINERATE_PACING=115Mb/s -- --time 20s
# A fifth of what the port carries is too much.
edge contended-over "iperf3 -c \$1 -u -b 30M -t 40 >/dev/null &" "$slow" -- --time 20s
edge contended-under "iperf3 -c \$1 -u -b 13M -t 40 >/dev/null &" "$slow" -- --time 20s
# Half a second without payload in the first base step of 2 s.
edge interrupted-over "" "$slow" link-down:far,1700ms,500ms -- --time 33s
# Windows of a path of 400 ms come with silence between them: nothing was interrupted.
edge interrupted-under "" delay:400ms receive-window:far,312KiB -- --time 33s
# What others are replayed on: one rate for all, far from every other limit.
edge path-rate-1g "" path-rate:1Gb/s,deep -- --time 15s
edge path-rate-5g "" path-rate:5Gb/s,deep -- --time 15s
