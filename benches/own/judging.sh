#!/usr/bin/env bash
# What it costs to show a record, and to derive and judge one between the steps of a run: this checkout beside an older commit.
# Prints instructions, which are the same each time, and CPU time, the median of 21 runs taken in turn. Needs valgrind and
# python3. Builds both in release mode, the older one in a worktree below target/.
#
#   benches/own/judging.sh COMMIT [RECORD ...]     records of crates/linerate/tests/records where none is named
set -euo pipefail
cd "$(dirname "$0")/../.."
commit=$(git rev-parse --verify "${1:?usage: judging.sh COMMIT [RECORD ...]}^{commit}")
shift
records=crates/linerate/tests/records
[[ $# -gt 0 ]] || set -- "$records"/{planted-window-clamp,planted-two-streams,receiver-core-under}.lnr
target=$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
old=$target/judging/$commit
mkdir -p "$target/judging"

# Functions are counted by their names.
export CARGO_PROFILE_RELEASE_STRIP=none CARGO_PROFILE_DIST_STRIP=none

build() { # FOLDER TARGET: the folder of its programs
    local profile=release package
    ! grep -q '^\[profile.dist\]' "$1/Cargo.toml" || profile=dist
    # The example stands in the crate of sessions, before in that of the engine.
    package=$(basename "$(dirname "$(dirname "$(ls "$1"/crates/*/examples/growing.rs)")")")
    cargo build --profile $profile --quiet --manifest-path "$1/Cargo.toml" --target-dir "$2" \
        -p linerate -p "$package" --bin linerate --example growing
    echo "$2/$profile"
}

[[ -d $old ]] || git worktree add --quiet --detach "$old" "$commit"
trap 'git worktree remove --force "$old"' EXIT
new=$(build . "$target")
OLD=$(build "$old" "$target/judging/target") NEW=$new python3 benches/own/judging.py "$@"
