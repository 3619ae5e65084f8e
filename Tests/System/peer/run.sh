#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# run.sh [TEST...]: tests our virtual card and our eID-Server with AusweisApp2 of Debian, an
# independent client of the card; `make peer-test`, docs/testing.md. The tests: `pin` changes PINs
# through a real pcscd and vpcd, `auth` authenticates to badged-eidserver, `speed` authenticates in
# turns with badged. `chromium` opens WebSockets of badged from web pages. `keycard` uses the
# Keycard applet of its vendor, where KEYCARD_LAB and KEYCARD_APPLET name it. `mpin` logs in at
# M-Pin servers, whose folder is in the variable MILAGRO. `remote` lets AusweisApp2 use a reader
# that badged lends over the network, and badged pair with AusweisApp2. `credentials` reads PKOC
# cards of others, and lets readers of others read ours; the programs in the folder PKOC_PEERS
# simulate them. `aliro` does the same for Aliro with those in ALIRO_PEER. Installs the packages
# that are missing. Tests without what they need are named in the last line, "not run: ...".
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=${BADGED_BIN:-$(cd "$here/../../.." && pwd)/.build/release}

if [ "${BADGED_PEER_INNER:-}" != 1 ]; then
    "$here/../../../.ci/setup" run peer
    case " ${*:-keycard} " in *" keycard "*)
        if [ -n "${KEYCARD_LAB:-}" ] && [ -n "${KEYCARD_APPLET:-}" ]; then
            "$here/../../../.ci/setup" build keycard
            (cd "$here/../../.." && Tests/swift.sh --only-build --build-tests)
        fi ;;
    esac
    BADGED_PEER_INNER=1 exec "$here/../in-namespace.sh" "$0" "$@"
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/badged-peer.XXXXXX")
code=1
trap 'if [ "$code" != 0 ]; then tail -n 20 "$work"/*.log >&2; fi; rm -rf "$work"' EXIT
export SWIFT_BACKTRACE=enable=no LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$here/.."

mkdir -p /run/pcscd
"$here/../uncache.sh" "$bin/badged" "$(command -v AusweisApp2)"
pcscd --foreground >"$work/pcscd.log" 2>&1 &
code=0 left=
[ $# -gt 0 ] || {
    set -- pin auth speed remote chromium keycard ${MILAGRO:+mpin} ${PKOC_PEERS:+credentials} ${ALIRO_PEER:+aliro}
    [ -n "${MILAGRO:-}" ] || left="$left mpin"
    [ -n "${PKOC_PEERS:-}" ] || left="$left credentials"
    [ -n "${ALIRO_PEER:-}" ] || left="$left aliro"
}
for test; do
    result=0
    python3 "$here/${test}_test.py" "$bin" "$work" || result=$?
    case $result in
        0) ;;
        77) left="$left $test" ;;
        *) code=$result ;;
    esac
done
[ -z "$left" ] || echo "not run:$left (docs/testing.md, AusweisApp2 as the judge, has what they need)"
exit $code
