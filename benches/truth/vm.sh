#!/usr/bin/env bash
# Plants faults with a kernel's own means (netem, tbf, fq, police) in a virtual machine with Debian's kernel,
# and keeps linerate's answers. This checks linerate with another implementation than the lab's own forwarder.
# Each cell gets one machine and one run, without a retry.
#
#   benches/truth/vm.sh OUT [CELL ...]       CELL is one of `benches/truth/vm.sh --list`, or CELL-bbr
#
# OUT/CELL.lnr is the record. OUT/CELL.txt lists the planted fault, the rate of iperf3, the counters of tc and
# the verdict. LINERATE names another program than target/dist/linerate, which is built otherwise. None of
# these may be below /tmp: a machine has its own /tmp.
set -u
cd "$(dirname "$0")/../.." || exit 1

# Cells, and the cause that is expected of each; `-` for a healthy path, which its CPUs limit.
readonly cells="
healthy -
rate path-rate
rate-shallow path-rate
tbf path-rate
police path-rate
loss path-loss
loss-bursts path-loss
corrupt path-loss
reorder path-loss
reorder-mild -
jitter path-loss
duplicate -
flow-rate flow-rate-cap
flow-limit flow-rate-cap
delay-acks -
own-netem host-shaping
own-tbf host-shaping
own-fq host-shaping
own-loss path-loss
own-limit local-drops
fq-pacing pacing
backlog local-drops
cards -
numa-threads -
ring -
budget -
"

# The network's fault: the router's port towards far.
path() { on router tc qdisc add dev far root "$@"; }
# A fault of near's own port.
own() { on near tc qdisc add dev eth0 root "$@"; }

# The machine's own two ports in the place of the hosts' virtual ones: one hub joins them, without a router.
# The first, of near, is on node 0, which has CPUs 0 and 1.
cards() {
  local host net=0
  for host in near far; do
    ip -n $host link del eth0
    set -- /sys/class/net/eth*
    ip link set "${1##*/}" name card netns $host
    net=$((net + 1))
    ip -n $host link set card name eth0
    ip -n $host addr add 10.9.1.$net/24 dev eth0
    ip -n $host link set eth0 up
  done
  for _ in $(seq 100); do
    # Whoever answers with a refusal is there.
    on near bash -c 'exec 3<>/dev/tcp/10.9.1.2/9' 2>&1 | grep -q refused && return
    sleep 0.1
  done
  return 1
}

plant() {
  case $1 in
  healthy) ;;
  rate) path netem rate 50mbit ;;
  rate-shallow) path netem rate 50mbit limit 20 ;;
  tbf) path tbf rate 50mbit burst 32k latency 50ms ;;
  police)
    on router tc qdisc add dev near clsact
    on router tc filter add dev near ingress matchall action police rate 50mbit burst 100k drop
    ;;
  loss) path netem delay 20ms loss 1% ;;
  loss-bursts) path netem delay 20ms loss gemodel 0.3% 20% ;;
  corrupt) path netem delay 20ms corrupt 1% ;;
  reorder) path netem delay 10ms reorder 2% 50% ;;
  reorder-mild) path netem delay 1ms reorder 1% rate 50mbit ;;
  jitter) path netem delay 20ms 5ms ;;
  duplicate) path netem delay 1ms duplicate 2% ;;
  flow-rate) path fq maxrate 20mbit ;;
  flow-limit) path fq maxrate 20mbit flow_limit 12 ;;
  delay-acks) on router tc qdisc add dev near root netem delay 20ms loss 5% ;;
  own-netem) own netem rate 50mbit ;;
  own-tbf) own tbf rate 50mbit burst 32k latency 50ms ;;
  own-fq) own fq maxrate 20mbit ;;
  own-loss) own netem loss 1% && path netem delay 20ms ;;
  own-limit) own netem delay 5ms limit 8 ;;
  fq-pacing) own fq ;;
  backlog) echo 4 >/proc/sys/net/core/netdev_max_backlog ;;
  cards) cards ;;
  # An emulated node is as near as any other: threads on the wrong one must not be proved to cost anything.
  numa-threads) cards && taskset -pc 2,3 $$ >/dev/null ;;
  ring) cards && on far ethtool -G eth0 rx 64 ;;
  budget) cards && echo 1 >/proc/sys/net/core/netdev_budget ;;
  *) return 1 ;;
  esac
}

# In the machine: the record goes to standard output, all else to standard error.
inside() {
  local program=$1 name=$2 cell=${2%-bbr} pace=()
  . crates/linerate/tests/vm/hosts.sh
  hosts
  if [[ $name == *-bbr ]]; then
    modprobe tcp_bbr
    for host in near far; do
      on $host sh -c 'echo bbr >/proc/sys/net/ipv4/tcp_congestion_control'
    done
  fi
  plant "$cell" || { echo "there is no cell $cell" >&2; return 1; }
  [[ $cell == fq-pacing ]] && pace=(--pacing 20Mb/s)
  {
    uname -r
    on far iperf3 -s -D --pidfile /run/iperf3.pid
    sleep 1
    on near timeout 20 iperf3 -c 10.9.1.2 -t 4 -O 1 -f m | grep -E 'sender|receiver'
    serve "$program"
    measure "$program" --time 33s --quiet --save /run/records "${pace[@]}"
    echo "exit $?"
    timeout 20 "$program" show /run/records/*.lnr --explain
    on router tc -s qdisc show dev far
    on router tc -s filter show dev near ingress 2>/dev/null
    on near tc -s qdisc show dev eth0
    cat /proc/net/softnet_stat
  } >&2
  cat /run/records/*.lnr
}

outside() {
  local out=$1 expected name
  shift
  mkdir -p "$out"
  if [[ -z ${LINERATE:-} ]]; then
    cargo build --profile dist --quiet || exit 1
    LINERATE=$PWD/target/dist/linerate
  fi
  for name in "$@"; do
    expected=$(awk -v c="${name%-bbr}" '$1 == c {print $2}' <<<"$cells")
    [[ -n $expected ]] || { echo "there is no cell $name" >&2; exit 2; }
    [[ -e $out/$name.txt ]] && continue
    timeout -k 5 300 "$LINERATE" lab vm -- bash benches/truth/vm.sh --inside "$LINERATE" "$name" \
      >"$out/$name.lnr" 2>"$out/$name.txt"
    echo "== $name, expected: $expected"
    grep -A1 "Limited by" "$out/$name.txt"
  done
}

case ${1:---help} in
--list) awk 'NF {print $1}' <<<"$cells" ;;
--inside) inside "$2" "$3" ;;
--help) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" ;;
*)
  out=$1
  shift
  [[ $# -gt 0 ]] || set -- $(awk 'NF {print $1}' <<<"$cells")
  outside "$out" "$@"
  ;;
esac
