#!/usr/bin/env bash
# `ip link set ... vf N node_guid` refuses a GUID in the forms in which the kernel and the InfiniBand tools print it.
#
# Seen: iproute2 6.1.0-3 (Debian 12), 2026-11-28. The kernel shows a GUID in /sys/class/infiniband/*/node_guid as four groups
# (0002:c903:00a1:b2c3), ibstat, ibnetdiscover and the subnet manager show it as one number (0x0002c90300a1b2c3). `ip` takes
# neither ("Invalid GUID format"): it takes eight bytes with colons, a form that none of them prints. It shows GUIDs of virtual
# functions in that form itself.
#
# So a GUID that was read cannot be pasted into the command that gives it to a virtual function. linerate prints GUIDs for `ip`
# as bytes. Needs no InfiniBand: a GUID that is accepted is refused later, by the kernel, since the port has no functions.
# Exits with 0 if the behaviour is as described, 1 if it changed.
set -euo pipefail
readonly version=6.1.0-3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -q download "iproute2=$version" >/dev/null
for package in *.deb; do dpkg -x "$package" .; done
ip=$folder/bin/ip
"$ip" -V

# What `ip` says of a GUID in this form.
said() { "$ip" link set dev lo vf 0 node_guid "$1" 2>&1 || true; }
declare -A form=([kernel]=0002:c903:00a1:b2c3 [ibstat]=0x0002c90300a1b2c3 [bytes]=00:02:c9:03:00:a1:b2:c3)
changed=0
for name in kernel ibstat bytes; do
    answer=$(said "${form[$name]}")
    echo "$name: ${form[$name]}: $answer"
    case $name:$answer in
        bytes:*"GUID format"*) changed=1 ;;
        bytes:*) ;;
        *"GUID format"*) ;;
        *) changed=1 ;;
    esac
done
[ $changed = 0 ] && echo "as seen before" || echo "CHANGED"
exit $changed
