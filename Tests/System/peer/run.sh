#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# run.sh [TEST...]: Debian's AusweisApp2, an independent terminal, changes PINs on badged-virtual-card through real pcscd
# and vpcd, and authenticates with it to badged-eidserver; `make peer-test`. docs/testing.md. The tests are `pin`,
# `auth` and, in which badged authenticates in turns with it, `speed`. Installs the packages that are missing, then works in namespaces of its own.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=${BADGED_BIN:-$(cd "$here/../../.." && pwd)/.build/release}

if [ "${BADGED_PEER_INNER:-}" != 1 ]; then
    PATH=$PATH:/usr/sbin:/sbin
    missing=
    for package in ausweisapp2 pcscd vsmartcard-vpcd python3 iproute2 util-linux; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] ||
            missing="$missing $package"
    done
    if [ -n "$missing" ]; then
        as_root=
        [ "$(id -u)" = 0 ] || as_root=sudo
        echo "peer-test: installing$missing"
        # shellcheck disable=SC2086  # lists of words
        $as_root env DEBIAN_FRONTEND=noninteractive sh -c '
            apt-get install -y -q --no-install-recommends "$@" </dev/null >/dev/null 2>&1 ||
                { apt-get update -q && apt-get install -y -q --no-install-recommends "$@"; } </dev/null
        ' install $missing
    fi
    user=
    [ "$(id -u)" = 0 ] || user=--map-root-user
    BADGED_PEER_INNER=1
    export BADGED_PEER_INNER PATH
    exec unshare $user --mount --net --pid --fork --kill-child --mount-proc -- "$0" "$@"
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/badged-peer.XXXXXX")
code=1
trap 'if [ "$code" != 0 ]; then tail -n 20 "$work"/*.log >&2; fi; rm -rf "$work"' EXIT
export SWIFT_BACKTRACE=enable=no LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1

mount -t tmpfs -o mode=0755 tmpfs /run
mkdir -p /run/pcscd
ip link set lo up
pcscd --foreground >"$work/pcscd.log" 2>&1 &
code=0
for test in ${*:-pin auth speed}; do
    python3 "$here/${test}_test.py" "$bin" "$work" || code=$?
done
exit $code
