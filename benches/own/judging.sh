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
export CARGO_PROFILE_RELEASE_STRIP=none

build() { # FOLDER TARGET
    cargo build --release --quiet --manifest-path "$1/Cargo.toml" --target-dir "$2" \
        -p linerate -p linerate-session --bin linerate --example growing
}

[[ -d $old ]] || git worktree add --quiet --detach "$old" "$commit"
trap 'git worktree remove --force "$old"' EXIT
example=crates/linerate-session/examples/growing.rs
# An older core has no deriver: it derived the whole record each time.
if grep -rq 'struct Deriver' "$old/crates/linerate-judge/src/model"; then
    cp "$example" "$old/$example"
else
    sed -e 's/{Deriver, Model, effect, latency_of}/{Model, effect}/' "$example" >"$old/$example"
    cat >>"$old/$example" <<'RUST'
use linerate_judge::model::{self, DirectionModel, Latency, TrialModel, derive};

#[derive(Default)]
struct Deriver;

impl Deriver {
    fn derive(&mut self, record: &Record) -> Model {
        derive(record)
    }
    fn direction(&mut self, record: &Record, of: linerate_plan::path::Direction) -> Option<DirectionModel> {
        derive(record).direction(of).cloned()
    }
    fn slices(&mut self, record: &Record, id: u32) -> Vec<(bool, f64)> {
        model::slices(record, id)
    }
    fn trial(&mut self, record: &Record, id: u32) -> Option<TrialModel> {
        model::trial(record, id)
    }
}

fn latency_of(record: &Record, _: &Step) -> Option<Latency> {
    derive(record).idle
}
RUST
fi
# Before a rate could be another than goodput.
grep -rq 'enum Slowness' "$old/crates/linerate-core/src" ||
    sed -i -e 's/path::Slowness/path::Measure/' -e 's/Slowness::Rate/Measure::Goodput/' "$old/$example"
# Before there was a module `path`.
[[ -e $old/crates/linerate-plan/src/path.rs ]] ||
    sed -i -e 's/path::Measure/verdict::Measure/' -e 's/path::Direction/plan::Direction/' "$old/$example"
build . "$target"
build "$old" "$target/judging/target"
OLD=$target/judging/target/release NEW=$target/release python3 benches/own/judging.py "$@"
