#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The programs of docs/examples: built as packages of their own, as an app would do, they change the PIN of a virtual card.
. "$(dirname "$0")/lib.sh"
needs swift python3 setpriv
needs_programs badged badgectl
[ ! -e /run/badged/badged.sock ] || cannot "the example of the wrapper would use the badged of this machine"
built=$root/.build-examples
mkdir -p "$built/symbols"
check "the package builds" swift build --package-path "$root/docs/examples" --scratch-path "$built" \
    -Xswiftc -emit-symbol-graph -Xswiftc -emit-symbol-graph-dir -Xswiftc "$built/symbols"
examples=$built/debug

docc=$(command -v docc || dirname "$(readlink -f "$(command -v swift)")" | sed 's|$|/docc|')
mkdir "$work/symbols"
cp "$built/symbols/BadgedClient.symbols.json" "$work/symbols"
check "the reference of BadgedClient compiles, and its links lead to symbols" \
    "$docc" convert "$root/Sources/Client/BadgedClient/BadgedClient.docc" --additional-symbol-graph-dir "$work/symbols" \
    --output-dir "$work/reference" --fallback-bundle-identifier badged --warnings-as-errors
check "the reference has the tutorial" test -e "$work/reference/data/documentation/badgedclient/changeapin.json"
check "BadgedSDKWrapper has every member of the AusweisApp SDK Wrapper" "$here/wrapper_api.py" \
    "$root/Tests/Vectors/wrapper-api.txt" "$built"/symbols/BadgedSDKWrapper*.symbols.json

# The wrapper looks here for the badged of a user.
export XDG_RUNTIME_DIR="$work"
socket=$work/badged/badged.sock
mkdir "$work/badged"
# with_badged COMMAND...: runs the command beside a new badged; its output is in $work/said.
with_badged() {
    start_badged "$bin/badged" --virtual --no-pcsc --socket "$socket" || return 1
    code=0
    "$@" >"$work/said" 2>&1 || code=$?
    stop_badged
    return $code
}
check "change-pin changes a PIN" with_badged "$examples/change-pin" "$socket"
check "change-pin prints that" holds "$work/said" 'The PIN is changed'
check "an app of the AusweisApp SDK Wrapper changes a PIN with another import" with_badged "$examples/wrapper-app"
check "the app prints that" holds "$work/said" '^changed$'
check "the example in Python changes a PIN" with_badged python3 "$root/docs/examples/change_pin.py" "$socket"
check "the example in Python has at most 15 lines" \
    test "$(grep -cvE '^(#|"""|$)' "$root/docs/examples/change_pin.py")" -le 15

# refused COMMAND...: runs the command while nobody may open the socket. root gives up the right to open it anyway.
refused() {
    [ "$(id -u)" != 0 ] || set -- setpriv --bounding-set=-dac_override,-dac_read_search "$@"
    chmod 0 "$socket"
    code=0
    "$@" >"$work/said" 2>&1 || code=$?
    chmod 600 "$socket"
    [ $code != 0 ]
}
start_badged "$bin/badged" --virtual --no-pcsc --socket "$socket"
check "without permission for the socket badgectl fails" refused "$bin/badgectl" --socket "$socket" status
check "the exit code is 4" test $code = 4
check "the error names the socket" holds "$work/said" "permission to use $socket denied"
check "the hint says what to do" holds "$work/said" '^hint: become a member'
check "without permission an app of the wrapper fails" refused "$examples/wrapper-app"
check "the wrapper prints the same error and hint" holds "$work/said" \
    "^WorkflowController::start: permission to use $socket denied; become a member"
stop_badged
finish
