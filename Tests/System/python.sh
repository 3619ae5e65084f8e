#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The Python package of clients/python: its tests, its types, its wheel and source archive, and the
# examples in README.md, docs/clients.md and its own README.md.
. "$(dirname "$0")/lib.sh"
needs python3 mypy
needs_programs badged badged-eidserver
# The packages of Debian belong to its own Python, which need not be the first one.
python=/usr/bin/python3
"$python" -c 'import build, ensurepip, setuptools, wheel, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    cannot "needs Python 3.11, python3-build, python3-setuptools, python3-wheel and python3-venv (make setup)"
version=$("$bin/badged" --version | cut -d' ' -f2)
"$root/packaging/python" "$work/python" "$version"
version=$("$root/packaging/version" --python "$version")
cd "$work/python"

check "the tests of the package pass" env BADGED_BIN="$bin" PYTHONPATH="src:$root/clients/python/tests" PYTHONWARNINGS=error \
    "$python" -m unittest discover -s "$root/clients/python/tests"
check "mypy finds no fault in the package" mypy --cache-dir "$work/mypy"
check "mypy finds no fault in the tests" env MYPYPATH=src mypy --strict --cache-dir "$work/mypy" tests

# MARK: Wheel and source archive

check "wheel and source archive are built without a network" "$python" -m build --no-isolation --outdir "$work/dist" .
check "both have the version of badged" test -s "$work/dist/badged-$version-py3-none-any.whl" -a -s "$work/dist/badged-$version.tar.gz"
tar tf "$work/dist/badged-$version.tar.gz" >"$work/sources"
check "the source archive has the licence" holds "$work/sources" '/LICENSE$'
"$python" -m venv "$work/venv"
check "pip installs the wheel, and nothing else" "$work/venv/bin/pip" install -q --no-index "$work/dist/badged-$version-py3-none-any.whl"
typed() { cd / && "$work/venv/bin/python" -c 'import badged, pathlib; assert (pathlib.Path(badged.__file__).parent / "py.typed").exists()'; }
check "the installed package has types" typed

# MARK: Examples

mkdir "$work/samples"
cd "$root"
check "there are examples" "$here/samples.py" extract "$work/samples" README.md docs/clients.md clients/python/README.md
for sample in "$work"/samples/python/*; do
    check "mypy finds no fault in $(basename "$sample")" env MYPYPATH="$work/python/src" mypy --strict --cache-dir "$work/mypy" "$sample"
done
example=$(ls "$work"/samples/python/README-*)
check "the example of README.md has at most five lines" test "$(wc -l <"$example")" -le 5
start_badged "$bin/badged" --virtual --no-pcsc --socket "$socket"
# The script puts the card into the virtual reader, as a person would do by hand.
cat >"$work/run.py" <<'END'
import runpy, sys
import badged

def ask(message, original=badged.ask_in_terminal):
    if isinstance(message, badged.InsertCard):
        message_daemon.send("SET_CARD", {"name": "Simulator"})
    return original(message)

def connect(original=badged.connect):
    global message_daemon
    message_daemon = original()
    return message_daemon

badged.ask_in_terminal, badged.connect = ask, connect
runpy.run_path(sys.argv[1])
END
export BADGED_SOCKET="$socket"
sed "1i import sys; sys.argv[1:] = ['$example']" "$work/run.py" >"$work/typed.py"
"$here/samples.py" type "$work/venv/bin/python" "$work/typed.py" 111111 123456 654321 654321 >"$work/shown" 2>&1 && code=0 || code=$?
check "the example of README.md changes a PIN" test $code = 0
check "it says so" holds "$work/shown" 'The PIN is changed'
check "it asks for each value" test "$(grep -oE '(PIN \([0-9] tries left\)|new PIN): ' "$work/shown" | wc -l)" = 3
check "the terminal shows no PIN" lacks "$work/shown" '111111|123456|654321'
"$work/venv/bin/python" "$(ls "$work"/samples/python/docs-clients-*)" >"$work/shown" 2>&1 || true
check "the example of docs/clients.md lists the readers" holds "$work/shown" '^Simulator None$'
stop_badged
"$work/venv/bin/python" "$example" >"$work/shown" 2>&1 && code=0 || code=$?
check "without badged the example fails" test $code = 1
check "the error has its reason and its advice" holds "$work/shown" 'ConnectError: badged is not running: .*; start it: systemctl start badged'
finish
