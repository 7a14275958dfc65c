#!/usr/bin/env bash
# The cost of linerate itself: operations a second of its loop, the goodput that sampling costs, the time of a
# verdict, a round of `flows` with 10,000 connections open, an idle server. Takes a quarter of an hour, and
# needs an otherwise idle machine. Needs python3, no root.
#
#   benches/own/own.sh [RECORD]     RECORD is a file that is judged in addition to the generated one
set -eu
[[ $# -eq 0 ]] || given=$(realpath -- "$1")
cd "$(dirname "$0")/../.."
record=${given:-crates/linerate/tests/records/planted-window-clamp.lnr}
cargo build --profile dist --quiet -p linerate -p linerate-session --bins --examples
examples=target/dist/examples
echo '## The loop'
"$examples/null"
echo '## Sampling'
"$examples/sampling" 100 1
"$examples/sampling" 30 64
echo '## Judging'
"$examples/judging"
"$examples/judging" "$record"
echo '## A look at all connections'
benches/own/host.py flows
echo '## An idle server'
benches/own/host.py idle
