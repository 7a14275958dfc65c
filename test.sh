#!/usr/bin/env bash
# Formatting, lints, tests of every crate (as root: those that ask the kernel for something run as an ordinary user),
# documentation.
#
#   ./test.sh            what CI runs: everything but what takes long
#   ./test.sh --long     everything: long matrices, sieges, repeated labs (names with long::), package, fuzz targets
#   CI=true ./test.sh    the same, but a skip is a failure, and so are many tests that could not tell
#
# Needs Rust (rustup or Debian's cargo), a C linker and the Debian packages below; installs the
# packages itself where it may. LINERATE_TEST_REQUIRE names what must not be skipped.
set -uo pipefail
cd "$(dirname "$0")" || exit 1

case "${1:-}" in
'') readonly long= ;;
--long) readonly long=true ;;
*) echo "usage: $0 [--long]" >&2 && exit 2 ;;
esac

# command:package
packages=(
  iperf3:iperf3 curl:curl python3:python3 ip:iproute2 unshare:util-linux
  qemu-system-x86_64:qemu-system-x86 busybox:busybox-static depmod:kmod
  zsh:zsh fish:fish groff:groff-base ssh:openssh-client nft:nftables
  ibsim:ibsim-utils opensm:opensm
)
# What the package is built, installed and read with.
[[ -n $long ]] && packages+=(debootstrap:debootstrap lintian:lintian man:man-db objcopy:binutils)
# What planted disks are made with.
[[ -n $long ]] && packages+=(dmsetup:dmsetup mke2fs:e2fsprogs mdadm:mdadm)
# Debian starts an ssh server where it is installed: only a machine of continuous integration gets one.
[[ ${CI:-} == true ]] && packages+=(sshd:openssh-server)
readonly packages
readonly nobody=65534
readonly root=$PWD
readonly kernels=$PWD/target/tmp/linerate/kernels
# Where the long tests leave the date and the commit of their last run, and the seconds of each step.
readonly last_long=benches/long/last seconds_long=benches/own/test-seconds
# A test that hangs is a failure, and the rest still runs. The long tests boot several guests, one after the other.
if [[ -n $long ]]; then readonly patience=45m; else readonly patience=20m; fi
# Attempts that a disturbed machine may leave without an answer in one run.
readonly unclear_most=5

export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
export INSTA_UPDATE=no INSTA_WORKSPACE_ROOT=$PWD
if [[ ${CI:-} == true ]]; then
  # Nothing is built a second time there, so what would make that faster only costs.
  export CARGO_INCREMENTAL=0
  export LINERATE_TEST_REQUIRE=${LINERATE_TEST_REQUIRE:-curl,ibsim,iperf3,libumad2sim,namespaces,nft,opensm,python3,qemu,sshd}
fi

scratch=$(mktemp -d "${TMPDIR:-/tmp}/linerate-test.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
readonly log=$scratch/log times=$scratch/times programs=$scratch/programs
touch "$log" "$times"
failures=()

# step NAME COMMAND...: runs it, remembers a failure, goes on.
step() {
  local name=$1 began=$SECONDS word=ok
  shift
  echo "== $name"
  "$@" 2>&1 | tee -a "$log" || { word=FAILED && failures+=("$name"); }
  echo "== $name: $word, $((SECONDS - began)) s"
  echo "$((SECONDS - began)) $name" >>"$times"
}

# Debian packages that tests need.
install_packages() {
  local package missing=()
  for package in "${packages[@]}"; do
    PATH=$PATH:/usr/sbin:/sbin command -v "${package%:*}" >/dev/null || missing+=("${package#*:}")
  done
  # A library has no program: the package's own folder is looked for.
  compgen -G "/usr/lib/*/umad2sim/libumad2sim.so" >/dev/null || missing+=(libumad2sim0)
  [[ -e /etc/libibverbs.d/rxe.driver ]] || missing+=(ibverbs-providers)
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

# Builds all test programs, and lists them: crate, name, path.
build_tests() {
  local messages=$scratch/messages
  cargo test --locked --workspace --no-run --message-format=json-render-diagnostics >"$messages" || return 1
  grep '"profile":{[^}]*"test":true' "$messages" |
    sed -nE 's/.*"package_id":"[^"]*\/crates\/([a-z-]+)#.*"target":\{[^}]*"name":"([^"]+)".*"executable":"([^"]+)".*/\1 \2 \3/p' |
    sort >"$programs"
  local built
  built=$(grep '"test":true' "$messages" | grep -c '"executable":"')
  [[ $(wc -l <"$programs") -eq $built && $built -ge 10 ]] ||
    { echo "cargo built $built test programs; these were found:" && cat "$programs" && return 1; }
}

# Arguments of a test program: long tests are left out unless they were asked for.
arguments() { [[ -n $long ]] || echo --skip long::; }

# Programs whose tests wait for deadlines most of their time. Beside them runs what computes: lints and documentation, of
# lower priority, and the second list, whose tests ask what is done and not how fast.
readonly waiting='^linerate-session (linerate_session|peer_kill|sockets) |^linerate (fabric|labs) '
readonly patient='^linerate vm |^linerate-lab namespaces '
# With --long this program waits for a guest as well.
readonly guest='^linerate cells '

# Programs that root runs as an ordinary user only: what they ask of the kernel must be allowed to one.
readonly unprivileged=(
  "linerate-sys linerate_sys"
  "linerate-host linerate_host"
  "linerate-load linerate_load"
  "linerate-lab linerate_lab"
)

# run_tests PATTERN: each test program of that list in the folder of its crate, as cargo runs it. Where most tests wait,
# more of them than there are CPUs run at a time.
run_tests() {
  local crate name path began threads rc=0 args
  read -ra args < <(arguments)
  while read -r crate name path; do
    [[ $(id -u) -ne 0 || " ${unprivileged[*]} " != *" $crate $name "* ]] || continue
    [[ $1 != . || ! "$crate $name " =~ $waiting|$patient${long:+|$guest} ]] || continue
    echo "-- $crate $name"
    began=$SECONDS
    threads=$(nproc)
    [[ $name != @(linerate_session|namespaces) ]] || threads=$((threads * 4))
    (cd "crates/$crate" && RUST_TEST_THREADS=$threads timeout --kill-after=30 $patience "$path" "${args[@]}" </dev/null) || rc=1
    echo "$((SECONDS - began)) $crate $name" >>"$times"
  done < <(grep -E "$1" "$programs")
  return $rc
}

# Lints and documentation.
check_code() {
  local began rc=0 crate pure=()
  # $SECONDS of a shell in the background is not that of this one.
  began=$(date +%s)
  cargo clippy --locked --workspace --all-targets -- -D warnings || rc=1
  echo "$(($(date +%s) - began)) lints" >>"$times"
  began=$(date +%s)
  # The crates whose public items must have documentation.
  for crate in $(grep -l '^#!\[warn(missing_docs)\]' crates/*/src/lib.rs); do
    pure+=(-p "$(basename "${crate%/src/lib.rs}")")
  done
  RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps "${pure[@]}" || rc=1
  echo "$(($(date +%s) - began)) documentation" >>"$times"
  return $rc
}

# Lints and patient tests beside tests that wait. The output of one follows that of the other.
beside_each_other() {
  local rc=0 lints patient_tests
  (renice -n 5 $BASHPID && check_code) >"$scratch/lints" 2>&1 &
  lints=$!
  run_tests "$patient" >"$scratch/patient" 2>&1 &
  patient_tests=$!
  run_tests "$waiting${long:+|$guest}" || rc=1
  wait $lints || rc=1
  wait $patient_tests || rc=1
  cat "$scratch/lints" "$scratch/patient"
  return $rc
}

# Tests as an ordinary user: the programs that root does not run, and of others what depends on rights. What only root
# may do must not be needed. CRATE PROGRAM FILTERS...; labs, virtual machines and simulations need no rights.
ordinary=(
  "${unprivileged[@]}"
  "linerate-session linerate_session end:: peer::descriptors peer::keys store::"
  "linerate-session sockets handover:: uring:: loopback::refused"
  "linerate command cli::a_run host:: hostile::a_read hostile::without import::what_has_no_end"
)
[[ -n $long ]] && ordinary+=("linerate siege")
readonly ordinary

# Programs are copied, since the build folder may be closed to others.
as_ordinary_user() {
  local row crate name filters path began rc=0 args without bin=$scratch/bin home=$scratch/home closed
  closed=$(closed_folder)
  mkdir "$scratch/tree"
  chmod 755 "$scratch" && mkdir "$bin" "$home" && chown $nobody:$nobody "$home"
  read -ra args < <(arguments)
  for row in "${ordinary[@]}"; do
    read -r crate name filters <<<"$row"
    path=$(sed -n "s|^$crate $name ||p" "$programs")
    [[ -n $path ]] || { echo "there is no test program $crate $name" && rc=1 && continue; }
    if [[ $crate == linerate ]] && ! as_nobody test -x "$path"; then
      echo "SKIPPED: tests of the binary as an ordinary user: $path cannot be reached by one"
      continue
    fi
    # shellcheck disable=SC2086 # one word each
    filters_match "$path" $filters || rc=1
    without=()
    # Nobody may log in as this user.
    [[ $crate == linerate && $name == command ]] && without=(--skip ssh::)
    cp "$path" "$bin/$crate-$name" && chmod 755 "$bin/$crate-$name"
    echo "-- $crate $name, as uid $nobody"
    began=$SECONDS
    # shellcheck disable=SC2086 # one word each
    (cd "$home" && HOME=$home TMPDIR=$home XDG_STATE_HOME='' XDG_CONFIG_HOME='' \
      as_nobody timeout --kill-after=30 $patience "$bin/$crate-$name" $filters "${args[@]}" "${without[@]}" </dev/null) || rc=1
    echo "$((SECONDS - began)) $crate $name, as an ordinary user" >>"$times"
  done
  return $rc
}

# filters_match PROGRAM FILTERS...: whether each of them names a test that is run.
filters_match() {
  local path=$1 filter rc=0 args
  shift
  read -ra args < <(arguments)
  for filter in "$@"; do
    "$path" --list "$filter" "${args[@]}" | grep ': test$' >/dev/null || { echo "no test is named by $filter" && rc=1; }
  done
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

tree() { git status --porcelain; }

# matching PATTERN: how many lines of the log match.
matching() { grep -cE "$1" "$log" || true; }

totals() {
  echo
  echo "== seconds of each step and test program"
  sort -rn "$times" | head -40
  echo
  echo "== totals"
  sed -nE 's/^test result: [a-zA-Z]+\. ([0-9]+) passed; ([0-9]+) failed; ([0-9]+) ignored; [0-9]+ measured; ([0-9]+) filtered out.*/\1 \2 \3 \4/p' "$log" |
    awk '{p += $1; f += $2; i += $3; o += $4} END {
      printf "test runner: %d passed, %d failed, %d ignored, in %d runs (both users); %d filtered out\n", p, f, i, NR, o}'
  echo "skipped: $(matching '^SKIPPED'); could not tell: $(matching '^COULD NOT TELL')"
  long_age
}

# When the long tests ran last, and how many commits ago.
long_age() {
  local date commit
  # The commit is followed by a colon, or by what else is said of it.
  if ! read -r date commit _ 2>/dev/null <"$last_long"; then
    echo "the long tests never ran: ./test.sh --long"
    return
  fi
  commit=${commit%:}
  echo "the long tests ran last on $date at $commit, $(git rev-list --count "$commit"..HEAD 2>/dev/null || echo "an unknown number of") commits ago"
}

before=$(tree) || exit 1
readonly before

step "packages" install_packages
step "format" cargo fmt --all --check
step "build of the tests" build_tests
step "tests that wait, beside lints and documentation" beside_each_other
step "tests" run_tests .
if [[ $(id -u) -eq 0 ]]; then
  step "tests as an ordinary user" as_ordinary_user
fi
if command -v cargo-deny >/dev/null; then
  step "cargo-deny" cargo deny --all-features check
else
  echo "note: cargo-deny is not installed; licences and sources were checked without it, advisories were not"
fi
if [[ -n $long ]]; then
  # A build as users install it, and three fresh systems.
  step "package" contrib/package/check.sh
  step "fuzz targets" cargo check --locked --manifest-path fuzz/Cargo.toml --target-dir target
fi

if ! after=$(tree); then
  failures+=("git status")
elif [[ $after != "$before" ]]; then
  echo "the tests changed the tree:"
  echo "$after"
  failures+=("clean tree")
fi

totals
if grep -qE '^SKIPPED' "$log"; then
  echo "SKIPPED, and why:"
  grep -E '^SKIPPED' "$log" | sort | uniq -c
  [[ ${CI:-} == true ]] && failures+=("skips, which CI does not allow")
fi
if grep -qE '^COULD NOT TELL' "$log"; then
  grep -E '^COULD NOT TELL' "$log"
  if [[ ${CI:-} == true && $(matching '^COULD NOT TELL') -gt $unclear_most ]]; then
    failures+=("more than $unclear_most attempts that could not tell")
  fi
fi
if [[ ${#failures[@]} -gt 0 ]]; then
  echo "FAILED after $SECONDS s:"
  printf '  %s\n' "${failures[@]}"
  exit 1
fi
if [[ -n $long ]]; then
  mkdir -p "${last_long%/*}"
  echo "$(date +%F) $(git rev-parse --short HEAD)${before:+ with changes}: all passed in $SECONDS s;" \
    "skipped: $(matching '^SKIPPED'); could not tell: $(matching '^COULD NOT TELL')" >"$last_long"
  sort -rn "$times" >"$seconds_long"
fi
echo "all passed in $SECONDS s"
