#!/usr/bin/env bash
# Builds a .deb and a tarball of linerate that run on every Linux with glibc 2.17 or later (x86-64).
#
#   contrib/package/build.sh    writes target/package/linerate_*.deb, linerate-*.tar.gz and linerate-*.debug
#
# Needs Rust (rustup), python3 with venv, binutils, dpkg-deb, gzip and git. The linker (zig, 100 MB) comes from
# PyPI into target/package/zig, once. Decision 55 says why.
#
#   SOURCE_DATE_EPOCH       the time of all files [default: the last commit's]
#   DEBFULLNAME, DEBEMAIL   who makes the package
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly target=x86_64-unknown-linux-gnu architecture=amd64
# The oldest glibc that Rust's standard library supports.
readonly glibc=2.17
# What a program may need of a system that has glibc and nothing else.
readonly allowed='^(libc|libm|libdl|libpthread|librt|ld-linux-x86-64)\.so\.[0-9]+$'
readonly build=${CARGO_TARGET_DIR:-$PWD/target}
readonly out=$build/package
readonly zig=$out/zig from=$PWD/contrib/package
readonly maintainer="${DEBFULLNAME:-The linerate contributors} <${DEBEMAIL:-linerate@users.noreply.github.com}>"

die() { echo "error: $1" >&2 && echo "hint: $2" >&2 && exit 1; }

# command:package
needs() {
  local need
  command -v cargo >/dev/null || die "cargo is not installed" "install Rust: https://rustup.rs"
  for need in python3:python3 objcopy:binutils readelf:binutils dpkg-deb:dpkg gzip:gzip git:git; do
    command -v "${need%:*}" >/dev/null ||
      die "${need%:*} is not installed" "install ${need#*:}: sudo apt-get install ${need#*:}"
  done
  [[ $(uname -m) == x86_64 ]] || die "packages are made on x86-64 only" "decision 55 says what another one would need"
  [[ -d $(rustc --print sysroot)/lib/rustlib/$target ]] ||
    die "Rust has no standard library for $target" "rustup target add $target"
}

# The linker, by its hash.
fetch_zig() {
  "$zig/bin/cargo-zigbuild" --version >/dev/null 2>&1 && return
  python3 -m venv "$zig" || die "python3 cannot make a virtual environment" "sudo apt-get install python3-venv"
  "$zig/bin/pip" install --quiet --require-hashes --no-deps --only-binary :all: -r "$from/requirements.txt" ||
    die "the linker cannot be fetched from PyPI" "see the error of pip above; a proxy is named by HTTPS_PROXY"
}

# The same bytes wherever the sources and crates are: no path of this machine is left in the program.
compile() {
  local home=${CARGO_HOME:-$HOME/.cargo}
  RUSTFLAGS="--remap-path-prefix=$PWD=/linerate --remap-path-prefix=$home=/cargo -C link-arg=-Wl,--build-id=sha1" \
    PATH=$zig/bin:$PATH CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$build \
    cargo zigbuild --locked --profile symbols --package linerate --target $target.$glibc
}

# split PROGRAM: the program without symbols, and a file of its own that has them.
split() {
  objcopy --only-keep-debug "$1" "$name.debug"
  chmod 644 "$name.debug"
  objcopy --strip-all --add-gnu-debuglink="$name.debug" "$1" linerate
}

# The newest version of glibc's symbols that a program needs.
newest_glibc() {
  readelf --version-info --wide "$1" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -uV | tail -1
}

# verify PROGRAM: it needs glibc alone, and no later one than was promised.
verify() {
  local newest libraries other
  newest=$(newest_glibc "$1")
  [[ $(printf '%s\n' "$newest" $glibc | sort -V | tail -1) == "$glibc" ]] ||
    die "the program needs glibc $newest, later than $glibc" "readelf --version-info $out/linerate shows the symbols"
  libraries=$(readelf --dynamic --wide "$1" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p')
  [[ -n $libraries ]] || die "the program is not dynamic" "it could not load libibverbs: link it with glibc"
  other=$(grep -vE "$allowed" <<<"$libraries" || true)
  [[ -z $other ]] || die "the program needs ${other//$'\n'/, }" "only glibc's libraries may be needed"
  echo "the program needs glibc $newest or later, and no library but ${libraries//$'\n'/, }"
}

# What is linked into the program and is not its own, with the licences.
notices() {
  local std unwind
  std=$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html
  unwind=$(echo "$zig"/lib/python3*/site-packages/ziglang/lib/libunwind/LICENSE.TXT)
  [[ -r $std ]] || die "the licences of Rust's standard library are not there: $std" "rustup component add rust-docs"
  python3 "$from/notices.py" $target "Rust standard library=$std" "libunwind and compiler-rt of LLVM=$unwind" >"$1"
}

# put MODE FILE PATH [FILTER...]: a file of the package, from FILE (- is stdin), by a filter.
put() {
  local mode=$1 file=$2 path=$3
  shift 3
  mkdir -p "$(dirname "$path")"
  [[ $file == - ]] && file=/dev/stdin
  "${@:-cat}" <"$file" >"$path"
  chmod "$mode" "$path"
}

# generated MAN BASH ZSH FISH: the files that the program makes of its own declarations.
generated() {
  ./linerate generate man | put 644 - "$1"
  ./linerate generate completions bash | put 644 - "$2"
  ./linerate generate completions zsh | put 644 - "$3"
  ./linerate generate completions fish | put 644 - "$4"
}

# The service file for a program in /usr/bin; the lines on its own installation are of no use there.
service() { sed -e '/^#   install /d' -e 's|/usr/local/bin/|/usr/bin/|g'; }

stage_tarball() {
  local to=$name
  put 755 linerate "$to/bin/linerate"
  generated "$to"/share/{man/man1/linerate.1,bash-completion/completions/linerate,zsh/site-functions/_linerate,fish/vendor_completions.d/linerate.fish}
  put 644 "$source/contrib/systemd/linerate.service" "$to/linerate.service"
  put 644 notices "$to/THIRD-PARTY"
  documents "$to"
  for file in CHANGELOG.md LICENSE-APACHE LICENSE-MIT; do put 644 "$source/$file" "$to/$file"; done
}

# README, and the pages that it refers to.
documents() {
  local page
  put 644 "$source/README.md" "$1/README.md"
  for page in "$source"/docs/*.md; do put 644 "$page" "$1/docs/${page##*/}"; done
}

stage_deb() {
  local to=deb share=deb/usr/share doc=deb/usr/share/doc/linerate script
  put 755 linerate $to/usr/bin/linerate
  generated man $share/{bash-completion/completions/linerate,zsh/vendor-completions/_linerate,fish/vendor_completions.d/linerate.fish}
  put 644 man $share/man/man1/linerate.1.gz gzip -9n
  put 644 "$source/contrib/systemd/linerate.service" $to/usr/lib/systemd/system/linerate.service service
  put 644 notices $doc/THIRD-PARTY.gz gzip -9n
  documents $doc
  put 644 "$source/CHANGELOG.md" $doc/changelog.gz gzip -9n
  changelog | put 644 - $doc/changelog.Debian.gz gzip -9n
  put 644 "$from/debian/copyright" $doc/copyright
  put 644 "$from/debian/overrides" $share/lintian/overrides/linerate
  for script in postinst prerm postrm; do put 755 "$from/debian/$script" $to/DEBIAN/$script; done
  (cd $to && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
  chmod 644 $to/DEBIAN/md5sums
  control | put 644 - $to/DEBIAN/control
}

changelog() {
  cat <<END
linerate ($version-1) unstable; urgency=medium

  * Built from $commit; changelog.gz says what is new.

 -- $maintainer  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
END
}

control() {
  sed -e "s|@version@|$version-1|" -e "s|@architecture@|$architecture|" -e "s|@maintainer@|$maintainer|" \
    -e "s|@glibc@|$(newest_glibc linerate)|" -e "s|@size@|$(du -k -s --apparent-size deb/usr | cut -f1)|" "$from/debian/control"
}

pack() {
  find deb "$name" -depth -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
  find deb "$name" -type d -exec chmod 755 {} +
  dpkg-deb --root-owner-group -Zxz --build deb "$deb" >/dev/null
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$name" | gzip -9n >"$name.tar.gz"
  rm -rf deb "$name" man notices linerate
}

readonly source=$PWD
needs
version=$(cargo metadata --locked --no-deps --format-version=1 |
  python3 -c 'import json, sys; print(next(p["version"] for p in json.load(sys.stdin)["packages"] if p["name"] == "linerate"))')
commit=$(git describe --always --dirty --abbrev=12 --exclude "*")
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
readonly version commit name=linerate-$version-x86_64-linux deb=linerate_$version-1_$architecture.deb
mkdir -p "$out"
fetch_zig
compile
notices "$out/notices"
cd "$out"
rm -rf deb linerate-* linerate_*
split "$build/$target/symbols/linerate"
verify linerate
stage_tarball
stage_deb
pack
ls -l "$PWD/$deb" "$PWD/$name.tar.gz" "$PWD/$name.debug"
