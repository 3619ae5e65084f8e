#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs a command in namespaces of its own, where it can start, stop and kill real pcscd as it likes: private mounts with
# an empty /run, a private network with nothing but the loopback, private process numbers. Whatever is left running dies
# with the command. Needs no root where the kernel lets users make namespaces.
#
#     Tests/System/in-namespace.sh swift test --filter SystemTests
#
# Debian packages: pcscd vsmartcard-vpcd libpcsclite-dev pkg-config util-linux iproute2, and a C compiler (clang of the
# Swift toolchain does).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
PATH=$PATH:/usr/sbin:/sbin
for tool in unshare ip pcscd pkg-config; do
    command -v "$tool" >/dev/null || { echo "in-namespace.sh: $tool is missing, see the packages in this file" >&2; exit 1; }
done

# The reader driver that forwards everything to a test.
BADGED_IFD_KEYPAD=$root/.build/ifd-keypad/libifdkeypad.so
mkdir -p "$(dirname "$BADGED_IFD_KEYPAD")"
compiler=$(command -v cc || command -v clang)
# shellcheck disable=SC2046
"$compiler" -std=c11 -O2 -Wall -Wextra -Werror -fPIC -shared -pthread $(pkg-config --cflags libpcsclite) \
    -o "$BADGED_IFD_KEYPAD" "$here/ifd-keypad/ifd-keypad.c"

BADGED_SYSTEM_TESTS=1
export BADGED_IFD_KEYPAD BADGED_SYSTEM_TESTS
user=
[ "$(id -u)" = 0 ] || user=--map-root-user
exec unshare $user --mount --net --pid --fork --kill-child --mount-proc sh -c '
    set -eu
    mount -t tmpfs -o mode=0755 tmpfs /run
    ip link set lo up
    exec "$@"' in-namespace "$@"
