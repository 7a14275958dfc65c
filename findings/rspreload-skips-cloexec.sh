#!/usr/bin/env bash
# Programs that make sockets with SOCK_CLOEXEC stay on the kernel's TCP under librdmacm's socket preload, without a word.
#
# Seen: librdmacm1 44.0-2 (Debian 12), 2026-11-28. rsocket() knows the types SOCK_STREAM and SOCK_DGRAM alone. With SOCK_CLOEXEC or
# SOCK_NONBLOCK it fails with "Operation not supported", even before it looks for a device (without one, a plain type fails with "No
# such device"). librspreload then makes a socket of the kernel's, and says nothing. Its manual page lists neither flag. The standard
# libraries of Python (3.4 and later), Go and Rust set SOCK_CLOEXEC on every socket. In a guest with Soft-RoCE a C program without
# the flag was carried by RDMA: its socket was no socket of the kernel's, and the device counted packets. With the flag it was
# not, and all its calls succeeded. accept4() is not replaced either: on an RDMA socket it fails with "Socket operation on
# non-socket".
#
# Whoever measures such a program with the preload measures TCP. It must be asked what carries the connection: getsockopt(TCP_INFO)
# fails where it is RDMA, and succeeds on the kernel's TCP. linerate's `--preload` does so.
# Needs no RDMA device. Exits with 0 if the behaviour is as described, 1 if it changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -q download librdmacm1=44.0-2 libibverbs1=44.0-2 libnl-3-200 libnl-route-3-200 >/dev/null
for package in *.deb; do dpkg -x "$package" .; done
LD_LIBRARY_PATH=$(find "$folder" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
preload=$(find "$folder" -name librspreload.so)
export LD_LIBRARY_PATH
python3 - <<'PYTHON' | tee rsocket
import ctypes, os, socket
library = ctypes.CDLL("librdmacm.so.1", use_errno=True)
for name, kind in [("stream", socket.SOCK_STREAM), ("stream, close on exec", socket.SOCK_STREAM | socket.SOCK_CLOEXEC),
                   ("stream, not blocking", socket.SOCK_STREAM | socket.SOCK_NONBLOCK)]:
    made = library.rsocket(socket.AF_INET, kind, 0)
    print(f"rsocket, {name}: {'made' if made >= 0 else os.strerror(ctypes.get_errno())}")
PYTHON
LD_PRELOAD=$preload python3 - 2>&1 <<'PYTHON' | tee preloaded
import os, socket
made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
print("with the preload, Python's socket is", os.readlink(f"/proc/self/fd/{made.fileno()}").split(":")[0])
PYTHON
changed=0
[ "$(grep -c 'close on exec: Operation not supported\|not blocking: Operation not supported' rsocket)" = 2 ] || changed=1
grep -q '^rsocket, stream: \(made\|No such device\)' rsocket || changed=1
[ "$(cat preloaded)" = "with the preload, Python's socket is socket" ] || changed=1
[ "$changed" = 0 ] && echo "as seen before" || echo "CHANGED"
exit "$changed"
