#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The programs of docs/examples: they build as packages of their own, as an app would, and change the PIN of a virtual card.
. "$(dirname "$0")/lib.sh"
needs swift python3
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
    "$docc" convert "$root/Sources/BadgedClient/BadgedClient.docc" --additional-symbol-graph-dir "$work/symbols" \
    --output-dir "$work/reference" --fallback-bundle-identifier badged --warnings-as-errors
check "with the tutorial" test -e "$work/reference/data/documentation/badgedclient/changeapin.json"

# The socket of a user's own badged, where the wrapper looks for it.
export XDG_RUNTIME_DIR="$work"
socket=$work/badged/badged.sock
mkdir "$work/badged"
with_badged() {
    "$bin/badged" --virtual --no-pcsc --socket "$socket" 2>"$work/log" &
    daemon=$!
    until "$bin/badgectl" --socket "$socket" status >/dev/null 2>&1; do kill -0 $daemon || return 1; done
    code=0
    timeout 20 "$@" >"$work/said" || code=$?
    kill $daemon
    wait $daemon
    return $code
}
check "change-pin ends well" with_badged "$examples/change-pin" "$socket"
check "and says so" holds "$work/said" 'The PIN is changed'
check "an app of the AusweisApp SDK Wrapper ends well with another import" with_badged "$examples/wrapper-app"
check "and says so" holds "$work/said" '^changed$'
check "the same in Python" with_badged python3 "$root/docs/examples/change_pin.py" "$socket"
check "in 15 lines" test "$(grep -cvE '^(#|"""|$)' "$root/docs/examples/change_pin.py")" -le 15
finish
