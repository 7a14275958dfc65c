#!/usr/bin/env bash
# A VXLAN port keeps an MTU that its underlay no longer carries.
#
# Seen: Linux 6.18 with iproute2 6.1.0-3 (Debian 12), 2026-11-27. A VXLAN port that is bound to a port of MTU 1500 gets
# MTU 1450 and refuses 1451 ("Invalid argument"). When the port below shrinks to 1400 the VXLAN port keeps 1450, takes
# 1350 or less only if it is set by hand, and nothing is reported: full packets no longer fit.
#
# A tool that trusts the kernel to keep the MTU of an overlay right misses it: the headers of the tunnel must be counted.
# Needs root or unprivileged user namespaces. Exits with 0 if the behaviour is as described, 1 if it changed.
set -euo pipefail
readonly version=6.1.0-3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
(cd "$folder" && apt-get -q download "iproute2=$version" >/dev/null && dpkg -x iproute2_*.deb .)
export IP=$folder/bin/ip
[ -x "$IP" ] || IP=$folder/sbin/ip
echo "kernel $(uname -r), $("$IP" -V)"
unshare --map-root-user --net bash -euc '
  is() { now=$("$IP" -o link show dev "$1" | sed "s/.* mtu \([0-9]*\) .*/\1/"); echo "$3: mtu of $1 is $now"; [ "$now" = "$2" ] || { echo "CHANGED: $2 was seen"; exit 1; }; }
  "$IP" link add d0 mtu 1500 type veth peer name d1
  "$IP" addr add 10.9.0.1/24 dev d0
  "$IP" link set d0 up
  "$IP" link add vx type vxlan id 7 remote 10.9.0.2 dstport 4789 dev d0
  is vx 1450 "created"
  if "$IP" link set vx mtu 1451 2>&1; then echo "CHANGED: 1451 was accepted"; exit 1; fi
  is vx 1450 "1451 refused"
  "$IP" link set d0 mtu 1400
  is vx 1450 "the port below has 1400"
  if "$IP" link set vx mtu 1351 2>&1; then echo "CHANGED: 1351 was accepted"; exit 1; fi
  "$IP" link set vx mtu 1350
  is vx 1350 "set by hand"
'
echo "as seen before"
