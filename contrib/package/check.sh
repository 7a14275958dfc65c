#!/usr/bin/env bash
# Builds the package and installs it on fresh systems: the oldest Debian that it is for, Debian 12, and the newest.
# `./test.sh --long` runs it.
#
#   contrib/package/check.sh
#
# Needs root, debootstrap and Debian's mirror. What debootstrap made is kept in target/package/roots. Also reads the
# package with lintian, groff, zsh and fish.
set -euo pipefail
cd "$(dirname "$0")/../.."

# dpkg in a fresh system wants the folders of administrators' programs too.
export PATH=$PATH:/usr/sbin:/sbin
readonly out=${CARGO_TARGET_DIR:-$PWD/target}/package mirror=http://deb.debian.org/debian
readonly suites=(bullseye bookworm sid)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/linerate-package.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

fail() { echo "FAILED: $1" && exit 1; }
ok() { echo "ok: $1"; }

# skip LACKING WHY: as in tests of Rust.
skip() {
  [[ ",${LINERATE_TEST_REQUIRE:-}," != *",$1,"* ]] || fail "$1 is required (LINERATE_TEST_REQUIRE): $2"
  echo "SKIPPED: package: $2"
}

has() { command -v "$1" >/dev/null || { skip "$1" "$1 is not installed" && false; }; }

# silent NAME COMMAND...: it succeeds and has nothing to say.
silent() {
  local name=$1 said
  shift
  said=$("$@" 2>&1 >/dev/null) || fail "$name: $said"
  [[ -z $said ]] || fail "$name: $said"
  ok "$name"
}

# says TEXT COMMAND...: its output, or that of its errors, has the text.
says() {
  local text=$1 said
  shift
  said=$("$@" 2>&1) || true
  grep -qE "$text" <<<"$said" || fail "'$text' is not what $* says: $said"
}

# What the package's files are read by.
read_files() {
  local tree=$scratch/tree share=$scratch/tree/usr/share
  dpkg-deb --extract "$deb" "$tree"
  gzip -dc "$share/man/man1/linerate.1.gz" >"$scratch/linerate.1"
  ! has groff || silent "groff reads the manual" groff -mandoc -Tascii -ww "$scratch/linerate.1"
  ! has man || silent "man reads the manual" env MANWIDTH=80 LC_ALL=C.UTF-8 man --warnings -l "$scratch/linerate.1"
  silent "bash reads its completions" bash -n "$share/bash-completion/completions/linerate"
  ! has zsh || silent "zsh reads its completions" zsh -n "$share/zsh/vendor-completions/_linerate"
  ! has fish || silent "fish reads its completions" fish --no-execute "$share/fish/vendor_completions.d/linerate.fish"
  # lintian complains on stdout.
  # shellcheck disable=SC2016 # for the inner shell
  ! has lintian || silent "lintian has no complaint" sh -c 'lintian --allow-root "$1" >&2' _ "$deb"
}

# inside ROOT COMMAND...: in a fresh system, with processes of its own, which end with it.
inside() { within "" "$@"; }
# alone ROOT COMMAND...: the same without a network but its own loopback.
alone() { within --net "$@"; }
within() {
  local net=$1
  shift
  # shellcheck disable=SC2016,SC2086 # for the inner shell; no word if there is none
  LC_ALL=C HOME=/root unshare --mount --pid --fork --kill-child --propagation private $net bash -c '
    mount -t proc proc "$1/proc" && { [ -z "$2" ] || ip link set lo up; } && root=$1 && shift 2 && exec chroot "$root" "$@"
  ' _ "$1" "$net" "${@:2}"
}

# root SUITE: a fresh system, from the kept one.
root() {
  local kept=$out/roots/$1.tar
  if [[ ! -r $kept ]]; then
    mkdir -p "$out/roots"
    debootstrap --variant=minbase "$1" "$scratch/fresh" $mirror >"$scratch/log" 2>&1 ||
      { tail -5 "$scratch/log" && skip mirror "debootstrap cannot make $1" && return 1; }
    tar --directory "$scratch/fresh" -cf "$kept.part" . && mv "$kept.part" "$kept"
    rm -rf "$scratch/fresh"
  fi
  mkdir "$scratch/$1" && tar --directory "$scratch/$1" -xf "$kept"
  cp "$deb" "$scratch/$1/linerate.deb"
  cp /etc/resolv.conf "$scratch/$1/etc/resolv.conf"
}

# What is in a system, but what dpkg and a user's runs leave of themselves.
files() { (cd "$1" && find . -path ./proc -prune -o -path ./var/lib/dpkg -prune -o -path ./var/log -prune -o -path ./root -prune -o -path ./tmp -prune -o -print | LC_ALL=C sort); }

# A port of an RDMA device as sysfs shows it, with the loopback's address and no driver.
plant_device() {
  local port=$1/sys/class/infiniband/planted0/ports/1
  mkdir -p "$port/gids" "$port/gid_attrs/types"
  echo "4: ACTIVE" >"$port/state"
  echo "5: LinkUp" >"$port/phys_state"
  echo Ethernet >"$port/link_layer"
  echo 0000:0000:0000:0000:0000:ffff:7f00:0001 >"$port/gids/0"
  echo "RoCE v2" >"$port/gid_attrs/types/0"
}

# rdma ROOT: what the program says of RDMA on the way to a server there.
rdma() {
  alone "$1" sh -c 'linerate serve --open 2>/tmp/serve & sleep 2; linerate lat 127.0.0.1 --open --engine rdma --time 1s'
}

# measure ROOT: the program as a user first tries it, without rdma-core.
measure() {
  says "^linerate $version\$" inside "$1" linerate --version
  says "^Machine " alone "$1" linerate host
  says "SHM round trips" alone "$1" linerate lat --engine shm --time 1s
  says "TCP round trips" alone "$1" sh -c 'linerate serve --open 2>/tmp/serve & sleep 2; linerate lat 127.0.0.1 --open --time 1s'
  says "has no RDMA device" rdma "$1"
  plant_device "$1"
  says "libibverbs.so.1: cannot open shared object file" rdma "$1"
  says "^hint: install libibverbs" rdma "$1"
  rm -r "$1/sys/class"
}

# with_verbs ROOT: the same program, with the system's own libibverbs. A mirror may be behind: of unstable, lists
# expire after a week.
with_verbs() {
  inside "$1" sh -c 'apt-get -o Acquire::Check-Valid-Until=false update -q && apt-get install -qy --no-install-recommends ibverbs-providers' >"$scratch/log" 2>&1 ||
    { tail -5 "$scratch/log" && skip mirror "ibverbs-providers cannot be fetched" && return; }
  plant_device "$1"
  # The library answers: that the kernel has no verbs at all, or that no driver of its own is for this device.
  says "ibv_get_device_list: Function not implemented|libibverbs has no driver for planted0" rdma "$1"
  rm -r "$1/sys/class"
  # shellcheck disable=SC2016 # for dpkg-query
  ok "$(basename "$1"): loads libibverbs of rdma-core $(inside "$1" dpkg-query -f '${Version}' -W libibverbs1)"
}

install() { inside "$1" dpkg -i /linerate.deb >"$scratch/log" 2>&1 || fail "dpkg -i: $(cat "$scratch/log")"; }

# removed ROOT BEFORE: nothing of the package is left.
removed() {
  local left
  inside "$1" dpkg -r linerate >"$scratch/log" 2>&1 || fail "dpkg -r: $(cat "$scratch/log")"
  left=$(files "$1" | diff "$2" - || true)
  [[ -z $left ]] || fail "installing and removing leaves: $left"
}

check_suite() {
  local tree=$scratch/$1 before=$scratch/before
  root "$1" || return 0
  files "$tree" >"$before"
  install "$tree"
  silent "$1: files are as they were packed" inside "$tree" dpkg --verify linerate
  # shellcheck disable=SC2016 # for awk in the system
  says '^libc6$' inside "$tree" sh -c 'dpkg-query -f "\${Depends}\n" -W linerate | cut -d" " -f1'
  measure "$tree"
  ok "$1, glibc $(inside "$tree" ldd --version | sed -n '1s/.* //p'): measures, and says what RDMA lacks"
  removed "$tree" "$before"
  ok "$1: dpkg -r leaves nothing"
  install "$tree"
  with_verbs "$tree"
  tarball "$tree"
}

# tarball ROOT: its program runs where it was unpacked.
tarball() {
  tar --directory "$1/opt" -xzf "$archive"
  says "^linerate $version\$" inside "$1" sh -c '/opt/linerate-*/bin/linerate --version'
}

# The service where systemd is installed: as it comes, enabled, and gone with the package.
service() {
  local tree=$scratch/bookworm link=$scratch/bookworm/etc/systemd/system/multi-user.target.wants/linerate.service
  inside "$tree" apt-get install -qy --no-install-recommends systemd >"$scratch/log" 2>&1 ||
    { skip mirror "systemd cannot be fetched" && return; }
  silent "systemd reads the service" inside "$tree" systemd-analyze verify --man=no /usr/lib/systemd/system/linerate.service
  [[ ! -e $link && ! -L $link ]] || fail "the package enables its service"
  inside "$tree" systemctl enable linerate >/dev/null 2>&1
  [[ -L $link ]] || fail "the service cannot be enabled"
  inside "$tree" dpkg -r linerate >/dev/null 2>&1
  [[ ! -L $link ]] || fail "the service is still enabled without its program"
  ok "the service is neither enabled by the package nor left enabled without it"
}

[[ $(id -u) -eq 0 ]] || { skip root "only root can make fresh systems" && exit 0; }
has debootstrap || exit 0
contrib/package/build.sh
deb=$(echo "$out"/linerate_*.deb)
archive=$(echo "$out"/linerate-*.tar.gz)
version=$(dpkg-deb --field "$deb" Version)
version=${version%-*}
readonly deb archive version
read_files
for suite in "${suites[@]}"; do check_suite "$suite"; done
[[ ! -d $scratch/bookworm ]] || service
echo "the package passed"
