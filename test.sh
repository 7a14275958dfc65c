#!/usr/bin/env bash
# Every test there is: formatting, lints, walls, licences, unit, property, golden and namespace
# tests (run by root: where rights may matter as root and again as an ordinary user), virtual
# machines, documentation, fuzz targets.
#
#   ./test.sh            run what can be run here, and say loudly what was skipped
#   CI=true ./test.sh    the same, but a skip is a failure
#
# Needs Rust (rustup or Debian's cargo), a C linker and the Debian packages below; installs the
# packages itself where it may. LINERATE_TEST_REQUIRE names what must not be skipped.
set -uo pipefail
cd "$(dirname "$0")" || exit 1

# command:package
packages=(
  iperf3:iperf3 curl:curl python3:python3 ip:iproute2 unshare:util-linux
  qemu-system-x86_64:qemu-system-x86 busybox:busybox-static depmod:kmod
  zsh:zsh fish:fish groff:groff-base ssh:openssh-client nft:nftables
)
# Debian starts an ssh server where it is installed: only a machine of continuous integration gets one.
[[ ${CI:-} == true ]] && packages+=(sshd:openssh-server)
readonly packages
readonly nobody=65534
readonly root=$PWD
readonly kernels=$PWD/target/tmp/linerate/kernels

export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
export INSTA_UPDATE=no INSTA_WORKSPACE_ROOT=$PWD
if [[ ${CI:-} == true ]]; then
  # Nothing is built a second time there, so what would make that faster only costs.
  export CARGO_INCREMENTAL=0
  # A panic names its line without it, and nobody debugs there.
  export CARGO_PROFILE_DEV_DEBUG=none
  export LINERATE_TEST_REQUIRE=${LINERATE_TEST_REQUIRE:-curl,iperf3,namespaces,nft,python3,qemu,sshd}
fi

scratch=$(mktemp -d "${TMPDIR:-/tmp}/linerate-test.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
log=$scratch/log
failures=()

# step NAME COMMAND...: runs it, remembers a failure, goes on.
step() {
  local name=$1 began=$SECONDS
  shift
  echo "== $name"
  if "$@" 2>&1 | tee -a "$log"; then
    echo "== $name: ok, $((SECONDS - began)) s"
  else
    echo "== $name: FAILED, $((SECONDS - began)) s"
    failures+=("$name")
  fi
}

# Debian packages that tests need.
install_packages() {
  local package missing=()
  for package in "${packages[@]}"; do
    PATH=$PATH:/usr/sbin:/sbin command -v "${package%:*}" >/dev/null || missing+=("${package#*:}")
  done
  # Without a kernel here the tests fetch one, for which apt's lists must be fresh.
  if [[ ${#missing[@]} -eq 0 ]] &&
    { compgen -G "/boot/vmlinuz-*" || compgen -G "$kernels/*"; } >/dev/null; then
    return 0
  fi
  local line="apt-get install -y --no-install-recommends ${missing[*]}"
  if [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
    # A mirror that does not answer once is asked again.
    local -x DEBIAN_FRONTEND=noninteractive
    apt-get -o Acquire::Retries=3 update -q && $line -o Acquire::Retries=3 && return 0
  fi
  [[ ${#missing[@]} -eq 0 ]] && return 0
  echo "tests need ${missing[*]}; install with: sudo apt-get update && sudo $line"
  [[ ${CI:-} != true ]]
}

# The arrows between crates, and unsafe code in one crate only.
walls() {
  local crate allowed found rc=0
  while read -r crate allowed; do
    found=$(cargo tree --locked -q -p "$crate" --depth 1 -e normal,build --prefix none -f '{p}' |
      sed -n '2,$s/^\(linerate[a-z-]*\) .*/\1/p' | sort -u | tr '\n' ' ')
    if [[ -n $(comm -13 <(tr ' ' '\n' <<<"$allowed" | sort) <(tr ' ' '\n' <<<"$found" | sed '/^$/d')) ]]; then
      echo "$crate depends on: $found(allowed: ${allowed:-nothing})"
      rc=1
    fi
  done <<'ARROWS'
linerate-core
linerate-sys
linerate-engine linerate-core linerate-sys
linerate-lab linerate-core linerate-sys
linerate linerate-core linerate-engine linerate-lab
ARROWS
  # The keyword itself, however the lint was silenced; `unsafe_code` is another word.
  if grep -rnw unsafe crates fuzz/fuzz_targets --include='*.rs' |
    grep -vE '^crates/linerate-sys/|^[^:]+:[0-9]+: *//'; then
    echo "unsafe code belongs in linerate-sys"
    rc=1
  fi
  for found in crates/linerate{-core,-engine,-lab,}/src/lib.rs crates/linerate/src/main.rs; do
    grep -qxF '#![forbid(unsafe_code)]' "$found" || { echo "$found does not forbid unsafe code"; rc=1; }
  done
  return $rc
}

# Each dependency's licence against deny.toml: an expression of ids, AND, OR, WITH and parentheses.
licences() {
  local allowed crates expression rc=0
  allowed=$(sed -n '/^allow = \[/,/^\]/s/^  "\(.*\)",$/\1/p' deny.toml)
  crates=$(cargo tree --locked -q --workspace --target all -e normal,build,dev --prefix none -f '{l}|{p}' |
    sed 's/ (\*)$//' | grep . | sort -u)
  [[ $(wc -l <<<"$crates") -gt 20 ]] || { echo "cargo tree told no licences"; return 1; }
  while IFS= read -r expression; do
    licence_allowed "$expression" "$allowed" && continue
    echo "licence not allowed by deny.toml: ${expression:-none}"
    awk -F'|' -v l="$expression" '$1 == l {print "  " $2}' <<<"$crates"
    rc=1
  done < <(cut -d'|' -f1 <<<"$crates" | sort -u)
  if grep '^source = ' Cargo.lock | grep -v 'registry+https://github.com/rust-lang/crates.io-index'; then
    echo "a dependency is not from crates.io"
    rc=1
  fi
  return $rc
}

licence_allowed() {
  local formula
  formula=$(sed -E 's| WITH [^ )]+||g; s|/| OR |g; s/[()]/ & /g' <<<"$1" | tr -s ' ' '\n' |
    while read -r word; do
      case $word in
      '') ;;
      AND) printf '&&' ;;
      OR) printf '||' ;;
      '(' | ')') printf '%s' "$word" ;;
      *) grep -qxF -- "$word" <<<"$2" && printf 1 || printf 0 ;;
      esac
    done)
  [[ $formula =~ ^[01\|\&()]+$ ]] && ((formula))
}

# A test that hangs is a failure, and the rest is still told.
readonly patience=40m

# The built tests of the crates that touch the machine, by an ordinary user: what only root may do
# must not be needed. They are copied, since the build folder may be closed to others.
as_ordinary_user() {
  local crate name path rc=0 bin=$scratch/bin home=$scratch/home closed
  closed=$(closed_folder)
  mkdir "$scratch/tree"
  chmod 755 "$scratch" && mkdir "$bin" "$home" && chown $nobody:$nobody "$home"
  cargo test --locked -q --no-run --workspace --message-format=json 2>/dev/null |
    grep '"profile":{[^}]*"test":true' |
    sed -nE 's/.*"package_id":"[^"]*\/crates\/([a-z-]+)#.*"target":\{[^}]*"name":"([^"]+)".*"executable":"([^"]+)".*/\1 \2 \3/p' \
      >"$scratch/executables"
  [[ -s $scratch/executables ]] || { echo "no test executables were found"; return 1; }
  while read -r crate name path; do
    case $crate in
    linerate-sys | linerate-engine | linerate-lab | linerate) ;;
    *) continue ;;
    esac
    case $crate/$name in
    # Virtual machines need no rights, and these labs the same for everybody: they take minutes, once is
    # enough.
    linerate/vm | linerate/changes | linerate/datagrams | linerate/flows | linerate/latency | linerate/two_faults) continue ;;
    # Of what these ask, the rights change nothing.
    linerate-engine/sim | linerate-engine/verdicts | linerate-engine/statistics) continue ;;
    linerate-engine/peer_kill | linerate/iperf3) continue ;;
    # Nobody may log in as this user.
    linerate/ssh) continue ;;
    # Run by root, each of its cases has run as an ordinary user.
    linerate-lab/namespaces) continue ;;
    esac
    if [[ $crate == linerate ]] && ! as_nobody test -x "$path"; then
      echo "SKIPPED: tests of the binary as an ordinary user: $path cannot be reached by one"
      continue
    fi
    cp "$path" "$bin/$crate-$name" && chmod 755 "$bin/$crate-$name"
    echo "-- $crate $name, as uid $nobody"
    (cd "$home" && HOME=$home TMPDIR=$home XDG_STATE_HOME='' XDG_CONFIG_HOME='' \
      as_nobody timeout --kill-after=30 $patience "$bin/$crate-$name" </dev/null) || rc=1
  done <"$scratch/executables"
  return $rc
}

as_nobody() {
  local drop=(setpriv --reuid=$nobody --regid=$nobody --clear-groups --)
  if [[ -z $closed ]]; then
    "${drop[@]}" "$@"
    return
  fi
  # In a mount namespace of its own the folder that is closed to others holds nothing but the
  # checkout, at the same path: tests know their files by it.
  unshare --mount --propagation private bash -c '
    mount --bind "$1" "$2" && mount -t tmpfs -o mode=755 none "$3" && mkdir -p "$1" &&
      mount --bind "$2" "$1" && shift 3 && exec "$@"
  ' _ "$root" "$scratch/tree" "$closed" "${drop[@]}" "$@"
}

# The topmost folder above the checkout that an ordinary user cannot enter; nothing if there is none.
closed_folder() {
  local folder=$root found=
  while [[ $folder != / ]]; do
    folder=$(dirname "$folder")
    setpriv --reuid=$nobody --regid=$nobody --clear-groups -- test -x "$folder" || found=$folder
  done
  echo "$found"
}

tree() { git status --porcelain 2>/dev/null; }

totals() {
  local key
  echo
  echo "== totals"
  sed -nE 's/^test result: [a-zA-Z]+\. ([0-9]+) passed; ([0-9]+) failed; ([0-9]+) ignored.*/\1 \2 \3/p' "$log" |
    awk '{p += $1; f += $2; i += $3} END {printf "test runner: %d passed, %d failed, %d ignored, in %d runs (both users)\n", p, f, i, NR}'
  for key in ok FAILED SKIPPED; do
    printf 'namespace cases %s: %d\n' "$key" "$(grep -cE "^test .* as .* \.\.\. $key\$" "$log")"
  done
  for key in ok FAILED SKIPPED; do
    printf 'cases in virtual machines %s: %d\n' "$key" \
      "$(grep -cE "^test .* in a virtual machine \.\.\. $key\$" "$log")"
  done
}

readonly before=$(tree)

step "packages" install_packages
step "format" cargo fmt --all --check
step "lints" cargo clippy --locked --workspace --all-targets -- -D warnings
step "walls" walls
step "licences" licences
if command -v cargo-deny >/dev/null; then
  step "cargo-deny" cargo deny --all-features check
else
  echo "note: cargo-deny is not installed; licences and sources were checked without it, advisories were not"
fi
step "tests" timeout --kill-after=30 $patience cargo test --locked --workspace --no-fail-fast
if [[ $(id -u) -eq 0 ]]; then
  step "tests as an ordinary user" as_ordinary_user
fi
step "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps
step "fuzz targets" cargo check --locked --manifest-path fuzz/Cargo.toml --target-dir target

if [[ $(tree) != "$before" ]]; then
  echo "the tests changed the tree:"
  tree
  failures+=("clean tree")
fi

totals
# A skipped case prints why on a line of its own, and its result on another.
if grep -qE '^SKIPPED|\.\.\. SKIPPED$' "$log"; then
  echo "SKIPPED, and why:"
  grep -E '^SKIPPED' "$log" | sort | uniq -c
  [[ ${CI:-} == true ]] && failures+=("skips, which CI does not allow")
fi
if [[ ${#failures[@]} -gt 0 ]]; then
  echo "FAILED after $SECONDS s:"
  printf '  %s\n' "${failures[@]}"
  exit 1
fi
echo "all passed in $SECONDS s"
