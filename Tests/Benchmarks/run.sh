#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# run.sh [--write-baseline] [--only ROW]... [--divisor N]: measures the release build; `make bench`,
# docs/testing.md. Works in namespaces of its own, with its own pcscd and the two readers of vpcd.
# Ends with 1 when a figure is worse than its limit or than the baseline, with 2 when it cannot
# measure.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
bin=${BADGED_BIN:-$root/.build/release}
PATH=$PATH:/usr/sbin:/sbin
export SWIFT_BACKTRACE=enable=no LC_ALL=C.UTF-8

if [ -z "${BADGED_BENCH_GIVEN:-}" ]; then
    for program in unshare ip pcscd strip ldd swtpm; do
        command -v "$program" >/dev/null || {
            echo "bench: error: $program is missing" >&2
            echo "hint: apt-get install util-linux iproute2 pcscd vsmartcard-vpcd binutils swtpm" >&2
            exit 2
        }
    done
    [ -e /etc/reader.conf.d/vpcd ] || {
        echo "bench: error: no virtual readers in pcscd" >&2
        echo "hint: apt-get install vsmartcard-vpcd" >&2
        exit 2
    }
    echo "bench: load $(cut -d' ' -f1-3 /proc/loadavg)" >&2
    given=$("$here/packages.sh" "$bin/badged" "$bin/badgectl" |
        awk 'NR == 1 { print "packages=" $1 } NR == 2 { print "packageSize=" $1 / 1024 }')
    given="$given $("$here/packages.sh" "$bin/badged" "$bin/badgectl" "$bin/badged-network" |
        awk 'NR == 1 { print "onlinePackages=" $1 } NR == 2 { print "onlinePackageSize=" $1 / 1024 }')"
    # size ROW PROGRAM: the size in MB as `make install` installs it.
    size() {
        stripped=$(mktemp)
        strip -o "$stripped" "$bin/$2"
        echo "$1=$(stat -c %s "$stripped" | awk '{ print $1 / 1000000 }')"
        rm "$stripped"
    }
    given="$given $(size daemonSize badged) $(size clientSize badgectl) $(size cardSize badged-virtual-card)"
    # AusweisApp2 brings a hundred packages, so only `make peer-test` installs it.
    case " $* " in *" --only peer"*) wanted=yes ;; *" --only "*) wanted=no ;; *) wanted=yes ;; esac
    if [ "$wanted" = yes ] && command -v AusweisApp2 >/dev/null; then
        echo "bench: in turns with AusweisApp2" >&2
        peer=$(BADGED_BIN=$bin "$here/../System/peer/run.sh" speed) || :
        echo "$peer" >&2
        given="$given $(echo "$peer" | sed -n 's/^ratio \([a-zA-Z]*\) /\1=/p')"
    elif [ "$wanted" = yes ]; then
        echo "bench: AusweisApp2 is not installed, so there are no rows about it (make peer-test installs it)" >&2
    fi
    BADGED_BENCH_GIVEN=$given exec "$here/../System/in-namespace.sh" "$0" "$@"
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/badged-bench.XXXXXX")
code=0
trap 'if [ "$code" -gt 1 ]; then tail -n 20 "$work"/*.log >&2; fi; kill "$(cat "$work/tpm.pid")"; rm -rf "$work"' EXIT
mkdir -p /run/pcscd
"$here/../System/uncache.sh" "$bin/badged"
pcscd --foreground >"$work/pcscd.log" 2>&1 &
until [ -S /run/pcscd/pcscd.comm ]; do sleep 0.05; done
# A TPM in software. It becomes a daemon when its socket is ready.
mkdir "$work/tpm"
swtpm socket --tpm2 --daemon --server "type=unixio,path=$work/tpm.sock" --tpmstate "dir=$work/tpm" \
    --flags not-need-init,startup-clear --pid "file=$work/tpm.pid"
# shellcheck disable=SC2046,SC2086  # a list of words
"$bin/badged-bench" --badged "$bin/badged" --floor "$bin/badged-floor" --virtual-card "$bin/badged-virtual-card" \
    --eid-server "$bin/badged-eidserver" --tpm "$work/tpm.sock" --folder "$work" --baseline "$here/baseline.json" \
    --mpin-server "$here/../MPinServer/server.py" \
    --documents "$root/Tests/Vectors/documents/catalogue.json" \
    $(printf -- '--given %s ' $BADGED_BENCH_GIVEN) "$@" || code=$?
exit $code
