#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The programs of docs/examples: they build as packages of their own, as an app would, and change the PIN of a virtual card.
. "$(dirname "$0")/lib.sh"
needs swift python3 setpriv
needs_programs badged badgectl
[ ! -e /run/badged/badged.sock ] || cannot "this machine runs badged, which the example of the wrapper would use"
built=$root/.build-examples
mkdir -p "$built/symbols"
check "the package builds" swift build --package-path "$root/docs/examples" --scratch-path "$built" \
    -Xswiftc -emit-symbol-graph -Xswiftc -emit-symbol-graph-dir -Xswiftc "$built/symbols"
examples=$built/debug

docc=$(command -v docc || dirname "$(readlink -f "$(command -v swift)")" | sed 's|$|/docc|')
mkdir "$work/symbols"
cp "$built/symbols/BadgedClient.symbols.json" "$work/symbols"
check "the reference of BadgedClient compiles, every link in it leads somewhere" \
    "$docc" convert "$root/Sources/Client/BadgedClient/BadgedClient.docc" --additional-symbol-graph-dir "$work/symbols" \
    --output-dir "$work/reference" --fallback-bundle-identifier badged --warnings-as-errors
check "with the tutorial" test -e "$work/reference/data/documentation/badgedclient/changeapin.json"

check "nothing of the AusweisApp SDK Wrapper is missing in BadgedSDKWrapper" "$here/wrapper_api.py" \
    "$root/Tests/Vectors/wrapper-api.txt" "$built"/symbols/BadgedSDKWrapper*.symbols.json

# The socket of a user's own badged, where the wrapper looks for it.
export XDG_RUNTIME_DIR="$work"
socket=$work/badged/badged.sock
mkdir "$work/badged"
with_badged() {
    "$bin/badged" --virtual --no-pcsc --socket "$socket" 2>"$work/log" &
    daemon=$!
    until "$bin/badgectl" --socket "$socket" status >/dev/null 2>&1; do kill -0 $daemon || return 1; done
    code=0
    "$@" || code=$?
    kill $daemon
    wait $daemon
    return $code
}
says() { timeout 20 "$@" >"$work/said"; }
check "change-pin ends well" with_badged says "$examples/change-pin" "$socket"
check "and says so" holds "$work/said" 'The PIN is changed'
check "an app of the AusweisApp SDK Wrapper ends well with another import" with_badged says "$examples/wrapper-app"
check "and says so" holds "$work/said" '^changed$'
check "the same in Python" with_badged says python3 "$root/docs/examples/change_pin.py" "$socket"
check "in 15 lines" test "$(grep -cvE '^(#|"""|$)' "$root/docs/examples/change_pin.py")" -le 15

# refused PROGRAM...: with a socket whose permissions refuse everybody. root, too, when it may not override them.
refused() {
    [ "$(id -u)" != 0 ] || set -- setpriv --bounding-set=-dac_override,-dac_read_search "$@"
    chmod 0 "$socket"
    said=0
    "$@" >"$work/said" 2>&1 || said=$?
    chmod 600 "$socket"
    return $said
}
refusals() {
    refused "$bin/badgectl" --socket "$socket" status && return 1
    [ $said = 4 ] && holds "$work/said" "permission to use $socket denied" && holds "$work/said" '^hint: become a member' &&
        { refused "$examples/wrapper-app" || [ $said = 1 ]; } &&
        holds "$work/said" "^WorkflowController::start: permission to use $socket denied; become a member"
}
check "who may not use the socket is told what to do, by both modules" with_badged refusals
finish
