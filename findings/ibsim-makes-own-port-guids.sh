#!/usr/bin/env bash
# ibsim gives the ports of a network that ibnetdiscover wrote other GUIDs than the file has; one port gets the GUID of another.
#
# Seen: ibsim-utils 0.10-2 with infiniband-diags 44.0-2 and opensm 3.3.23-2+b1 (Debian 12), 2026-11-28. ibsim's README says that
# it reads the output of ibnetdiscover, such as a snapshot of a real cluster. It takes the GUIDs of nodes from it ("caguid="),
# and ignores those of ports (in parentheses): port N of an adapter gets the GUID of the node + N. Many adapters with one port
# per device, such as ConnectX-5, have the same GUID for the node and its port, and the next GUID is that of the second device
# of the card. In the simulation the port of the first device has the GUID that belongs to the port of the second one in the
# file: `smpquery -G nodedesc` of the second answers with the name of the first. ibsim says nothing.
#
# Settings by port GUID of the real network, such as opensm's partitions, act on other ports or on none when they are tried out on
# ibsim. What is compared with the real network must be named by the GUID of the node and the number of the port.
# Needs no InfiniBand. Exits with 0 if the behaviour is as described, 1 if it changed.
set -euo pipefail
folder=$(mktemp -d)
running=()
finish() {
    for program in "${running[@]}"; do
        kill -KILL "$program" 2>/dev/null || true
        wait "$program" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap finish EXIT
cd "$folder"
apt-get -q download ibsim-utils=0.10-2 libumad2sim0=0.10-2 opensm=3.3.23-2+b1 libopensm9=3.3.23-2+b1 libosmcomp5=3.3.23-2+b1 \
    libosmvendor5=3.3.23-2+b1 infiniband-diags=44.0-2 libibumad3=44.0-2 libibmad5=44.0-2 libibnetdisc5=44.0-2 libwrap0 >/dev/null
for package in *.deb; do dpkg -x "$package" .; done
libraries=$(dirname "$(find "$folder" -name 'libibumad.so.3' | head -1)")
export LD_LIBRARY_PATH=$libraries OSM_TMP_DIR=$folder OSM_CACHE_DIR=$folder IBSIM_SOCKNAME=finding-$$-$RANDOM

# Runs a program at the host "far" of the network. It takes the place of the shell.
at_far() {
    local preload=$libraries/umad2sim/libumad2sim.so
    exec env SIM_HOST=H-b8599f0300a1b300 "LD_PRELOAD=$preload" "$folder/usr/sbin/$1" "${@:2}"
}
# Waits until a file has a text.
until_has() {
    for _ in {1..100}; do
        if grep -qs -- "$2" "$1"; then return; fi
        sleep 0.1
    done
    echo "no \"$2\" in $1:" >&2
    cat "$1" >&2
    return 1
}

cat >net <<'NET'
vendid=0x2c9
devid=0xd2f0
sysimgguid=0x248a0703009c0100
switchguid=0x248a0703009c0100(248a0703009c0100)
Switch	4 "S-248a0703009c0100"		# "switch" enhanced port 0 lid 1 lmc 0
[1]	"H-b8599f0300a1b2c2"[1](b8599f0300a1b2c2) 		# "near mlx5_0" lid 2 4xEDR
[2]	"H-b8599f0300a1b2c3"[1](b8599f0300a1b2c3) 		# "near mlx5_1" lid 3 4xEDR
[3]	"H-b8599f0300a1b300"[1](b8599f0300a1b300) 		# "far mlx5_0" lid 4 4xEDR

vendid=0x2c9
devid=0x1017
sysimgguid=0xb8599f0300a1b2c2
caguid=0xb8599f0300a1b2c2
Ca	1 "H-b8599f0300a1b2c2"		# "near mlx5_0"
[1](b8599f0300a1b2c2) 	"S-248a0703009c0100"[1]		# lid 2 lmc 0 "switch" lid 1 4xEDR

vendid=0x2c9
devid=0x1017
sysimgguid=0xb8599f0300a1b2c2
caguid=0xb8599f0300a1b2c3
Ca	1 "H-b8599f0300a1b2c3"		# "near mlx5_1"
[1](b8599f0300a1b2c3) 	"S-248a0703009c0100"[2]		# lid 3 lmc 0 "switch" lid 1 4xEDR

vendid=0x2c9
devid=0x1017
sysimgguid=0xb8599f0300a1b300
caguid=0xb8599f0300a1b300
Ca	1 "H-b8599f0300a1b300"		# "far mlx5_0"
[1](b8599f0300a1b300) 	"S-248a0703009c0100"[3]		# lid 4 lmc 0 "switch" lid 1 4xEDR
NET
usr/bin/ibsim -s -n net >ibsim.log 2>&1 </dev/null &
running+=($!)
until_has ibsim.log "simulator ready"
(at_far opensm -s 0 -d 2 -F /dev/null -f opensm.log) >opensm.out 2>&1 &
running+=($!)
until_has opensm.log "SUBNET UP"

# The GUIDs of the adapters' ports as ibnetdiscover writes them, at the switch.
ports() { grep '^\[.*"H-' "$1" | sed 's/^\[\(.*\)\]\t.*(\(.*\)).*# \("[^"]*"\).*/port \1 of the switch: \2 \3/'; }
changed=0
echo "the file that ibsim was given:"
ports net | tee given
echo "the network that ibsim made of it, by ibnetdiscover:"
(at_far ibnetdiscover) >found.net
ports found.net | tee found
[ "$(sed 's/b2c3/b2c4/;s/b2c2/b2c3/;s/b300/b301/' given)" = "$(cat found)" ] || changed=1
echo "who has the GUID of the port of \"near mlx5_1\"?"
answer=$( (at_far smpquery -G nodedesc 0xb8599f0300a1b2c3) 2>&1 || true)
echo "$answer"
[[ $answer == *"near mlx5_0" ]] || changed=1
echo "what ibsim says of it:"
said=$(grep -i 'warn\|guid' ibsim.log || true)
echo "${said:-nothing}"
[ -z "$said" ] || changed=1
[ $changed = 0 ] && echo "as seen before" || echo "CHANGED"
exit $changed
