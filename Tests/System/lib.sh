# SPDX-License-Identifier: GPL-3.0-or-later
# For the scripts of this folder: `. "$(dirname "$0")/lib.sh"`. Each script is one concern, makes what it needs in
# $work (removed at the end), says each thing it checked, and ends with 0, 1 (failed) or 77 (cannot run here).
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BADGED_BIN:-$root/.build/release}
here=$root/Tests/System
work=$(mktemp -d "${TMPDIR:-/tmp}/badged-test.XXXXXX")
export SWIFT_BACKTRACE=enable=no LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
failures=0
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

# check SENTENCE COMMAND...: the command must succeed.
check() {
    sentence=$1
    shift
    if "$@" >"$work/check.out" 2>&1; then
        echo "  ok: $sentence"
    else
        echo "  FAILED: $sentence"
        echo "    command: $*"
        sed 's/^/    /' "$work/check.out"
        failures=$((failures + 1))
    fi
}

# holds FILE PATTERN, lacks FILE PATTERN: for check. Extended regular expressions.
holds() { grep -qE -- "$2" "$1" || { cat "$1"; return 1; }; }
lacks() { ! grep -nE -- "$2" "$1"; }

# cannot REASON: this machine cannot run the script.
cannot() {
    echo "  cannot run here: $*"
    exit 77
}
needs() { for program; do command -v "$program" >/dev/null || cannot "needs the program $program (make setup)"; done; }
needs_programs() {
    for program; do [ -x "$bin/$program" ] || { echo "  FAILED: no $bin/$program (make build)"; exit 1; }; done
}

# isolated COMMAND...: in a mount namespace of its own, as root there; what it mounts is gone with it.
isolated() {
    if [ "$(id -u)" = 0 ]; then unshare --mount --propagation private "$@"; else unshare --map-root-user --mount "$@"; fi
}

finish() { [ "$failures" = 0 ] || exit 1; }
