#!/usr/bin/env bash
# Counts comments that are hard to read: sentences with two or more of `what`, `told`, `tells`, `came`, `beside`
# and `that of`.
#
#   benches/own/words.sh [-v] [REVISION]     counts the checkout, or REVISION; -v lists each sentence with its file and line
#
# It reads the comments `//`, `///` and `//!` of crates/**/*.rs and the `#` comments of all *.sh, but not strings.
# Consecutive lines of one kind of comment are a block; an empty comment line and a fenced example end it. A full stop, a
# colon or a semicolon, at the end of a word, ends a sentence. Case is ignored, names in backquotes are not read, and a
# word that stands twice in a sentence counts twice. Needs git and python3.
set -euo pipefail
cd "$(dirname "$0")/../.."
verbose=
if [[ ${1-} == -v ]]; then
    verbose=-v
    shift
fi
[[ $# -le 1 && ${1-} != -* ]] || { echo 'usage: words.sh [-v] [REVISION]' >&2; exit 2; }
if [[ $# -eq 0 ]]; then
    exec python3 benches/own/words.py $verbose .
fi
commit=$(git rev-parse --verify "$1^{commit}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
git archive "$commit" | tar -x -C "$folder"
python3 benches/own/words.py $verbose "$folder"
