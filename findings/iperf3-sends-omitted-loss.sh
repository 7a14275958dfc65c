#!/usr/bin/env bash
# Client and server of one iperf3 test by UDP disagree about the loss when a part of the test is omitted.
#
# Seen: iperf3 3.12-1+deb12u2 (Debian 12), 2026-11-27, `iperf3 -u -O 4`, datagrams dropped in the omitted seconds only. The
# server reports no loss. The client reports all of the dropped datagrams, as a share of those of the part that counts: a
# loss of more than 10 % where there was none. In the results that the server sends, its count of lost datagrams includes the
# omitted part, and nothing in them says how many of them were lost in that part.
#
# A client that wants a wash-out by UDP cannot get the loss from such a server. linerate omits nothing by UDP.
# The server is stopped for a moment in the omitted part, so that its socket drops. Exits with 0 if the behaviour is as
# described, 1 if it changed, 2 if no datagram was dropped there.
set -euo pipefail
readonly version=3.12-1+deb12u2
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
apt-get -q download "iperf3=$version" "libiperf0=$version" libsctp1 >/dev/null
for package in *.deb; do dpkg -x "$package" .; done
LD_LIBRARY_PATH=$(dirname "$(find . -name 'libiperf.so.0*' | head -1)"):$(dirname "$(find . -name 'libsctp.so.1*' | head -1)")
export LD_LIBRARY_PATH=$folder/${LD_LIBRARY_PATH//.\//$folder/}
readonly port=47377
usr/bin/iperf3 --version | head -1
usr/bin/iperf3 -s -1 -J -B 127.0.0.1 -p $port >server.json &
server=$!
sleep 0.5
usr/bin/iperf3 -c 127.0.0.1 -p $port -u -b 400M -l 1400 -O 4 -t 3 -J >client.json &
client=$!
sleep 1.5
kill -STOP $server
sleep 0.4
kill -CONT $server
wait $client
wait $server
server=
python3 - <<'PYTHON'
import json, sys
server, client = (json.load(open(f"{end}.json")) for end in ("server", "client"))
parts = [interval["sum"] for interval in server["intervals"]]
omitted = sum(part["lost_packets"] for part in parts if part["omitted"])
counted = sum(part["lost_packets"] for part in parts if not part["omitted"])
print(f"intervals of the server: {omitted} lost in the omitted part, {counted} in the part that counts")
sums = [document["end"]["sum"] for document in (server, client)]
for end, told in zip(("server", "client"), sums):
    print(f"sum of the {end}: {told['lost_packets']} of {told['packets']} lost ({told['lost_percent']:.2f} %)")
if omitted == 0:
    sys.exit(2)
as_seen = sums[0]["lost_percent"] < 1 and sums[1]["lost_percent"] > 5
print("as seen before" if as_seen else "CHANGED")
sys.exit(not as_seen)
PYTHON
