#!/usr/bin/env bash
# ibqueryerrors reads no counter and ends with status 0 when the subnet manager does not answer.
#
# Seen: infiniband-diags 44.0-2 (Debian 12), 2026-11-28, on a network of ibsim-utils 0.10-2 with opensm 3.3.23-2+b1. A port has
# 99 symbol errors. While opensm runs, ibqueryerrors shows them and ends with 1. When opensm has ended, it prints "Query SA
# failed: Connection timed out" to standard error, nothing to standard output, and ends with 0. In a network that never had a
# manager the message is "No SM/SA found on port", and the status is 0 as well. Its manual page says: -1 if the scan fails, 0 if
# the scan succeeds without errors beyond thresholds. The counters can still be read when opensm has ended: `--skip-sl`, which
# does not ask the manager for service levels, shows the same errors and ends with 1.
#
# A check that trusts the status takes a network without a manager for one without errors. It must require the line that begins
# with "## Summary", or use `--skip-sl`. linerate's `fabric` reads counters without a manager's answer.
# Needs no InfiniBand. Exits with 0 if the behaviour is as described, 1 if it changed.
set -euo pipefail
folder=$(mktemp -d)
running=()
finish() {
    exec 9>&-
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

# Runs a program at a node of the network. It takes the place of the shell.
at() { exec env "SIM_HOST=$1" "LD_PRELOAD=$libraries/umad2sim/libumad2sim.so" "$folder/usr/sbin/$2" "${@:3}"; }
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
Switch 4 "switch"
[1] "host-1"[1]
[2] "host-2"[1]

Hca 1 "host-1"
[1] "switch"[1]

Hca 1 "host-2"
[1] "switch"[2]
NET
mkfifo console
usr/bin/ibsim -s net <console >ibsim.log 2>&1 &
running+=($!)
exec 9>console
until_has ibsim.log "sim> "
echo 'PerformanceSet "switch"[2] PortCounters.SymbolErrorCounter=99' >&9

changed=0
# Runs ibqueryerrors, and compares its status and the number of its summaries with what was seen.
look() {
    local when=$1 seen=$2 status=0 summaries
    shift 2
    (at host-2 ibqueryerrors --threshold-file etc/infiniband-diags/error_thresholds "$@") >output 2>errors || status=$?
    summaries=$(grep -c "^## Summary" output || true)
    echo "$when: ibqueryerrors${*:+ $*}: status $status, $summaries summary"
    sed 's/^/    /' output errors
    [ "$status $summaries" = "$seen" ] || changed=1
}
look "never a manager" "0 0"
(at host-1 opensm -s 0 -d 2 -F /dev/null -f opensm.log) >opensm.out 2>&1 &
running+=($!)
until_has opensm.log "SUBNET UP"
look "with a manager" "1 1"
kill -TERM "${running[1]}"
wait "${running[1]}" || true
look "manager has ended" "0 0"
look "manager has ended" "1 1" --skip-sl
[ $changed = 0 ] && echo "as seen before" || echo "CHANGED"
exit $changed
