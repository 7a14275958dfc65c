# Two hosts and a router between them, in network namespaces of a virtual machine. They go with the
# mount namespace of the shell that made them, and with the last program in them.
#
#   near: eth0 10.9.0.2 ---- near 10.9.0.1 :router: far 10.9.1.1 ---- eth0 10.9.1.2 :far
#
# What leaves the router by its port `far` is the way forward.

# on HOST COMMAND...
on() { ip netns exec "$@"; }

hosts() {
  local host net=0
  # The names of namespaces are files, which would stay.
  mkdir -p /run/netns
  mount -t tmpfs names /run/netns
  ip netns add router
  on router sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
  for host in near far; do
    ip netns add $host
    ip -n $host link add eth0 type veth peer name $host netns router
    ip -n $host addr add 10.9.$net.2/24 dev eth0
    ip -n router addr add 10.9.$net.1/24 dev $host
    ip -n $host link set lo up
    # A network carries single packets, and netem would lose a joined group as a whole.
    ip -n $host link set eth0 gso_max_segs 1 up
    ip -n router link set $host up
    ip -n $host route add default via 10.9.$net.1
    net=$((net + 1))
  done
}

# serve PROGRAM: its serving end on far, for 100 s, once it listens.
serve() {
  local told
  told=$(mktemp /run/serve.XXXXXX)
  on far timeout -k 5 100 "$1" serve --open >"$told" 2>&1 &
  for _ in $(seq 200); do
    grep -q listening "$told" && return
    sleep 0.1
  done
  cat "$told" >&2
  return 1
}

# measure PROGRAM OPTION...: a run from near to far. Its budget must be well under 60 s.
measure() {
  local program=$1
  shift
  on near timeout -k 5 60 "$program" run 10.9.1.2 --open --direction forward "$@"
}
