#!/usr/bin/env bash
# Two opensm with different --smkey are both masters of one subnet, and its ports obey the one that swept last.
#
# Seen: opensm 3.3.23-2+b1 with infiniband-diags 44.0-2 on ibsim-utils 0.10-2 (Debian 12), 2026-11-28. An opensm with the key of
# the master and a lower priority stands by. One with another key becomes a master as well, with the lower priority too, writes
# its own LID into all ports (SMLid), and both report "SUBNET UP". After each full sweep (here by SIGHUP) SMLid is that of the
# manager that swept. A full sweep also logs each manager with another key: "ERR 2F18: Got SM (0,1,2) with sm_key ... that
# doesn't match our local sm_key. Ignoring SMInfo", with a route instead of a LID, a GUID or a name. The light sweeps in between,
# which are the usual ones, log nothing. `sminfo` and `saquery SMIR` show one manager, the one that SMLid names, and end with 0.
#
# A typing error in the key of a standby manager gives a network with two masters, and usual checks show one healthy master. A
# tool must send SMInfo to all ports that say that a manager runs there (IsSM), as linerate's `fabric` does.
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
export LD_LIBRARY_PATH=$libraries IBSIM_SOCKNAME=finding-$$-$RANDOM

# Runs a program at a node of the network. It takes the place of the shell.
at() { exec env "SIM_HOST=$1" "LD_PRELOAD=$libraries/umad2sim/libumad2sim.so" "$folder/usr/sbin/$2" "${@:3}"; }
# Waits until a file has a text this many times.
until_has() {
    local count
    for _ in {1..100}; do
        count=$(grep -cs -- "$2" "$1" || true)
        if [ "${count:-0}" -ge "$3" ]; then return; fi
        sleep 0.1
    done
    echo "not $3 times \"$2\" in $1:" >&2
    cat "$1" >&2
    return 1
}
# Starts a manager with files of its own: its name, its node, and options.
manage() {
    local own=$folder/$1
    mkdir "$own"
    (
        export OSM_TMP_DIR=$own OSM_CACHE_DIR=$own
        at "$2" opensm -s 1 -d 2 -F "$folder/options" -f "$own/log" "${@:3}"
    ) >"$own/output" 2>&1 &
    running+=($!)
}

cat >net <<'NET'
Switch 4 "switch"
[1] "host-1"[1]
[2] "host-2"[1]
[3] "host-3"[1]
[4] "host-4"[1]

Hca 1 "host-1"
[1] "switch"[1]

Hca 1 "host-2"
[1] "switch"[2]

Hca 1 "host-3"
[1] "switch"[3]

Hca 1 "host-4"
[1] "switch"[4]
NET
usr/bin/ibsim -s -n net >ibsim.log 2>&1 </dev/null &
running+=($!)
until_has ibsim.log "simulator ready" 1

changed=0
# Says a fact, and whether it is the one that was seen.
is() {
    echo "$1: $2"
    [ "$2" = "$3" ] || { echo "    CHANGED: $3 was seen" && changed=1; }
}
# A field of a port, by its route from host-3.
field() { (at host-3 smpquery portinfo -D "$1") | sed -n "s/^$2:\.*//p"; }
# The state of a manager, by its route from host-3, or of the one that host-3 is told to use.
state() { (at host-3 sminfo "$@") | grep -o 'SMINFO_.*'; }
# Lines of a manager's log about one with another key.
remarks() { grep -c "ERR 2F18" "$folder/$1/log" || true; }
# Has a manager sweep, by its process and its name.
sweep() {
    local swept
    swept=$(grep -c "SUBNET UP" "$2/log")
    kill -HUP "$1"
    until_has "$2/log" "SUBNET UP" $((swept + 1))
}

# A manager that arrives does not answer at first, and ibsim has no timeouts: nobody asks it in that moment.
echo "sweep_on_trap FALSE" >options
manage one host-1 --priority 15 --smkey 1
until_has one/log "SUBNET UP" 1
manage same host-4 --priority 0 --smkey 1
until_has same/log "STANDBY state" 1
manage two host-2 --priority 0 --smkey 2
until_has two/log "SUBNET UP" 1
lid_one=$(field 0,1,1 Lid)
lid_two=$(field 0,1,2 Lid)
echo "LID of the first: $lid_one, of the second: $lid_two"
for round in 1 2; do
    sweep "${running[1]}" one
    is "$round: SMLid of host-3 after a full sweep of the first" "$(field 0 SMLid)" "$lid_one"
    sweep "${running[3]}" two
    is "$round: SMLid of host-3 after a full sweep of the second" "$(field 0 SMLid)" "$lid_two"
done
is "the third, key 1, priority 0" "$(state -D 0,1,4)" SMINFO_STANDBY
is "the first, key 1, priority 15" "$(state -D 0,1,1)" SMINFO_MASTER
is "the second, key 2, priority 0" "$(state -D 0,1,2)" SMINFO_MASTER
grep -hm1 "ERR 2F18" one/log two/log
before="$(remarks one), $(remarks two)"
sleep 4
is "such lines of both after 2 and 3 full sweeps: $before; four seconds later" "$(remarks one), $(remarks two)" "2, 6"
(at host-3 sminfo)
is "sminfo shows" "$(state)" SMINFO_MASTER
is "managers in \`saquery SMIR\`" "$( (at host-3 saquery SMIR) | grep -c '^SMInfoRecord')" 1
[ $changed = 0 ] && echo "as seen before" || echo "CHANGED"
exit $changed
