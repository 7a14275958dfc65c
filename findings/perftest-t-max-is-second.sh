#!/usr/bin/env bash
# The longest latency that perftest's table prints, t_max, is the second longest that it measured.
#
# Seen: perftest 4.5+0.17-1 (Debian 12), 2026-11-28, `ib_read_lat -n 40 -U`. -U lists each time before the table. The longest of
# the list, often the first read, is not in the table: its t_max is the second one, and so are its percentiles. The same
# with ib_write_lat over Soft-RoCE: 73259.6 us are listed, and t_max is 18671.70.
#
# Whoever looks for outliers in such a table misses the worst one. linerate's import takes the longest time from the list if there is
# one, and says of tables without it that the longest time is unknown (docs/import.md).
# The device is a stand-in that completes each read at once (benches/peers/verbs/stub.c); times are perftest's own.
# Needs a C compiler. Exits with 0 if the behaviour is as described, 1 if it changed.
set -euo pipefail
stub=$(cd "$(dirname "$0")/../benches/peers/verbs" && pwd)/stub.c
readonly stub
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
apt-get -q download perftest=4.5+0.17-1 libibverbs1=44.0-2 libibverbs-dev=44.0-2 librdmacm1=44.0-2 ibverbs-providers=44.0-2 \
  libnl-3-200 libnl-route-3-200 libpci3 >/dev/null
for package in *.deb; do dpkg -x "$package" .; done
cc -O2 -shared -fPIC -Iusr/include -o stub.so "$stub"
LD_LIBRARY_PATH=$folder/$(dirname "$(find usr -name 'libibverbs.so.1' | head -1)"):$folder/$(dirname "$(find . -name 'libnl-3.so.200' | head -1)")
export LD_LIBRARY_PATH STUB_VERBS=$folder/counters
read_lat() { LD_PRELOAD=$folder/stub.so timeout 30 usr/bin/ib_read_lat -d stub0 -F -p 47378 -n 40 "$@" 2>/dev/null; }
read_lat >server.txt &
server=$!
sleep 1
read_lat -U 127.0.0.1 >client.txt
wait $server
server=
python3 - <<'PYTHON'
import re, sys
text = open("client.txt").read()
listed = sorted((float(time) for time in re.findall(r"^\d+, ([\d.]+)$", text, re.M)), reverse=True)
row = re.search(r"^ 2 +40 +(.*)$", text, re.M)[1].split()
print(f"longest times of the list: {listed[0]:.4f} and {listed[1]:.4f} us; t_max of the table: {row[1]} us")
as_seen = f"{listed[1]:.2f}" == row[1] and f"{listed[0]:.2f}" != row[1]
print("as seen before" if as_seen else "CHANGED")
sys.exit(not as_seen)
PYTHON
