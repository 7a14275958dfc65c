#!/usr/bin/env bash
# 10,000 clients in a row at `linerate serve`, and as many at its iperf3 port: killed, stopped, slow, with
# garbage, reset. Prints the server's resources after each tenth. Takes minutes.
#
#   benches/server/siege.sh [CLIENTS]
set -eu
cd "$(dirname "$0")/../.."
LINERATE_TEST_CLIENTS=${1:-10000} cargo test --release -p linerate --test siege
