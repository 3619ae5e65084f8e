#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The programs of docs/examples: built as packages of their own, as an app would do, they change the
# PIN of a virtual card.
# long
# shares: examples
. "$(dirname "$0")/lib.sh"
needs swift python3 setpriv
needs_programs badged badgectl
[ ! -e /run/badged/badged.sock ] || cannot "the example of the wrapper would use the badged of this machine"
built=$root/.build-examples
mkdir -p "$built/symbols"
check "the package builds" swift build --package-path "$root/docs/examples" --scratch-path "$built" \
    -Xswiftc -emit-symbol-graph -Xswiftc -emit-symbol-graph-dir -Xswiftc "$built/symbols"
examples=$built/debug

check "the reference compiles, and its links lead to symbols" \
    "$root/Sources/Client/reference.sh" "$built/symbols" "$work/reference"
pages=$work/reference/badged.doccarchive/data/documentation
check "the reference has the tutorial" test -e "$pages/badgedclient/changeapin.json"
# Every public type has a page: the path in the symbol graph is the path of the page. A part of the
# path has the kind of the symbol, too, if another symbol has the same name in lower case, such as
# events-swift.struct.
cat >"$work/types.py" <<'END'
import json, os, re, sys
symbols, pages, *modules = sys.argv[1:]
count = 0
found = set()
for folder, _, names in os.walk(pages):
    for name in names:
        path = os.path.relpath(os.path.join(folder, name.removesuffix(".json")), pages)
        found.add(re.sub(r"-swift\.[a-z]+", "", path))
for module in modules:
    with open(f"{symbols}/{module}.symbols.json", encoding="utf-8") as file:
        for symbol in json.load(file)["symbols"]:
            kind = symbol["kind"]["identifier"].removeprefix("swift.")
            if kind in ("struct", "class", "enum", "protocol", "typealias") and symbol["accessLevel"] in ("public", "open"):
                count += 1
                path = "/".join([module, *symbol["pathComponents"]]).lower()
                if path not in found:
                    sys.exit(f"no page for {path}")
print(count, "types")
sys.exit(0 if count > 50 else "too few types")
END
check "every public type of the library has a page in the reference" \
    python3 "$work/types.py" "$built/symbols" "$pages" BadgedClient BadgedSDKWrapper BadgedOSTWallet BadgedMYKEYWallet \
    BadgedMPin BadgedOrigoKeys Text
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

# They also run twice, and one after the other, with the same badged.
start_badged "$bin/badged" --virtual --no-pcsc --socket "$socket"
for turn in first second; do
    check "the $turn change-pin beside the others" sh -c '"$1" "$2" | grep "The PIN is changed"' sh "$examples/change-pin" "$socket"
    check "the $turn app of the wrapper beside the others" sh -c '"$1" | grep "^changed$"' sh "$examples/wrapper-app"
    check "the $turn example in Python beside the others" python3 "$root/docs/examples/change_pin.py" "$socket"
done
stop_badged
with_no_badged() { ! "$examples/change-pin" /nowhere/badged.sock >"$work/said" 2>&1; }
check "without badged change-pin fails" with_no_badged
check "it says why and what helps" holds "$work/said" 'badged is not running: no program listens on /nowhere/badged.sock; start it: systemctl start badged'

# refused COMMAND...: runs the command while no user may open the socket. root gives up the right to
# open it anyway.
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
