#!/usr/bin/env bash
# Compares the ceilings of two builds: those of records, also with hardware below their ports, and those of case files,
# with every digit, name and formula. Prints each difference; ends with 1 where there is one.
#
#   benches/truth/ceilings.sh OLD NEW [FOLDER ...]
#
# OLD and NEW are two builds of the example that prints them: `cargo build -p linerate-session --example ceilings`. Records
# (*.lnr) and case files (*.toml) are looked for below the folders; without one below crates/linerate/tests/records and
# crates/linerate/cases.
set -uo pipefail
old=${1:?usage: ceilings.sh OLD NEW [FOLDER ...]}
new=${2:?usage: ceilings.sh OLD NEW [FOLDER ...]}
shift 2
root=$(dirname "$0")/../..
[[ $# -gt 0 ]] || set -- "$root/crates/linerate/tests/records" "$root/crates/linerate/cases"
mapfile -d '' -t files < <(find "$@" \( -name '*.lnr' -o -name '*.toml' \) -print0 | sort -z)
if [[ ${#files[@]} -eq 0 ]]; then
  echo "no record and no case file below $*" >&2
  exit 2
fi
differ=0
for file in "${files[@]}"; do
  before=$("$old" "$file" 2>&1) after=$("$new" "$file" 2>&1)
  diff <(printf '%s\n' "$before") <(printf '%s\n' "$after") && continue
  differ=$((differ + 1))
done
echo "${#files[@]} files, $differ with differences"
[[ $differ -eq 0 ]]
