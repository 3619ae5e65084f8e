#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# run.sh [--write-baseline] [--only ROW]... [--divisor N]: measures the release build; `make bench`. docs/testing.md.
# Works in namespaces of its own: a private /run, a network of nothing but the loopback, its own pcscd with the two
# readers of vpcd. Ends with 1 when a figure is worse than its limit or than the baseline, 2 when it cannot measure.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
bin=${BADGED_BIN:-$root/.build/release}

if [ "${BADGED_BENCH_INNER:-}" != 1 ]; then
    PATH=$PATH:/usr/sbin:/sbin
    for program in unshare ip pcscd strip ldd; do
        command -v "$program" >/dev/null || {
            echo "bench: error: $program is missing" >&2
            echo "hint: apt-get install util-linux iproute2 pcscd vsmartcard-vpcd binutils" >&2
            exit 2
        }
    done
    [ -e /etc/reader.conf.d/vpcd ] || {
        echo "bench: error: no virtual readers in pcscd" >&2
        echo "hint: apt-get install vsmartcard-vpcd" >&2
        exit 2
    }
    user=
    [ "$(id -u)" = 0 ] || user=--map-root-user
    BADGED_BENCH_INNER=1
    export BADGED_BENCH_INNER PATH
    # With BADGED_BENCH_REALTIME=1 other work on the machine disturbs less; but real-time threads are spread over the
    # processors, each wake-up crosses to another one, and the round trips become longer than any user sees.
    scheduling=
    if [ "${BADGED_BENCH_REALTIME:-0}" = 1 ]; then scheduling="chrt -f 1"; fi
    echo "bench: load $(cut -d' ' -f1-3 /proc/loadavg); scheduling: ${scheduling:-ordinary}" >&2
    # shellcheck disable=SC2086  # lists of words, or nothing
    exec $scheduling unshare $user --mount --net --pid --fork --kill-child --mount-proc -- "$0" "$@"
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/badged-bench.XXXXXX")
code=1
# What went wrong is in the logs; without a fault nobody wants them.
trap 'if [ "$code" -gt 1 ]; then tail -n 20 "$work"/*.log >&2; fi; rm -rf "$work"' EXIT
export SWIFT_BACKTRACE=enable=no LC_ALL=C.UTF-8

# Before /run is covered: what apt-get needs.
packages=$("$here/packages.sh" "$bin/badged" "$bin/badgectl")
count=$(printf '%s\n' "$packages" | sed -n 1p)
kib=$(printf '%s\n' "$packages" | sed -n 2p)
online=$("$here/packages.sh" --also libcurl4 "$bin/badged" "$bin/badgectl")
names=$(printf '%s\n' "$packages" | sed -n 3p)

# Against AusweisApp2, where it is installed: it brings a hundred packages, so nothing here installs it.
peer=
case " $* " in *" --only "*) wanted=no ;; *) wanted=yes ;; esac
case " $* " in *" --only peerAuth"*) wanted=yes ;; esac
if [ "$wanted" = yes ]; then
    if [ "$(dpkg-query -W -f '${db:Status-Status}' ausweisapp2 2>/dev/null || true)" = installed ]; then
        echo "bench: RUN_AUTH in turns with AusweisApp2" >&2
        BADGED_BIN=$bin "$here/../System/peer/run.sh" speed >"$work/peer.log" || :
        cat "$work/peer.log" >&2
        peer="--given peerAuth=$(sed -n 's/^ratio //p' "$work/peer.log")"
    else
        echo "bench: no row peerAuth: AusweisApp2 is not installed (make peer-test does it)" >&2
    fi
fi

mount -t tmpfs -o mode=0755 tmpfs /run
mkdir -p /run/pcscd
ip link set lo up
pcscd --foreground >"$work/pcscd.log" 2>&1 &

# size ROW PROGRAM: in MB, as it is installed.
size() {
    strip -o "$work/stripped" "$bin/$2"
    echo "--given $1=$(stat -c %s "$work/stripped" | awk '{ print $1 / 1000000 }')"
}
# pcscd has its socket after some milliseconds; the sizes take longer.
sizes="$(size daemonSize badged) $(size clientSize badgectl) $(size cardSize badged-virtual-card)"
code=0
# shellcheck disable=SC2086  # lists of words
"$bin/badged-bench" --badged "$bin/badged" --virtual-card "$bin/badged-virtual-card" --eid-server "$bin/badged-eidserver" --folder "$work" \
    --baseline "$here/baseline.json" --given packages="$count" \
    --given packageSize="$(echo "$kib" | awk '{ print $1 / 1024 }')" \
    --given onlinePackages="$(printf '%s\n' "$online" | sed -n 1p)" \
    --given onlinePackageSize="$(printf '%s\n' "$online" | sed -n 2p | awk '{ print $1 / 1024 }')" $sizes $peer "$@" || code=$?
echo "Debian packages beside pcscd: ${names:-none}"
exit $code
