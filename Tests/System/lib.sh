# SPDX-License-Identifier: GPL-3.0-or-later
# Shared steps of the scripts in this folder. A script begins with `. "$(dirname "$0")/lib.sh"`.
# A script tests one concern. It keeps its files in $work, which is removed at the end, prints the result of each check.
# It ends with 0 (passed), 1 (failed) or 77 (cannot run on this machine).
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BADGED_BIN:-$root/.build/release}
here=$root/Tests/System
work=$(mktemp -d "${TMPDIR:-/tmp}/badged-test.XXXXXX")
export SWIFT_BACKTRACE=enable=no LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
# Most of the time of a package is its compression, which changes nothing for a test.
export DPKG_DEB_COMPRESSOR_LEVEL=0
failures=0
# Process ids of the programs that `start_badged` and `start_eidserver` have started.
daemon='' server=''
trap 'stop_all; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

# MARK: Checks

# check SENTENCE COMMAND...: the command must succeed; its output is shown when it fails.
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

# holds FILE PATTERN, lacks FILE PATTERN: a line of the file matches the extended regular expression, or none does.
holds() { grep -qE -- "$2" "$1" || { cat "$1"; return 1; }; }
lacks() { ! grep -nE -- "$2" "$1"; }

# eventually COMMAND...: tries the command until it succeeds, for at most two minutes.
eventually() {
    tries=1200
    until "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.1
    done
}

# has_files PAGE: each link in the document leads to a file, or to another site.
has_files() {
    for link in $(grep -oE '\]\([^)#]+' "$1" | sed 's/^](//' | grep -v '^http'); do
        test -e "$(dirname "$1")/$link" || { echo "no file: $link"; return 1; }
    done
}

# finish: ends the script; the last line of each.
finish() { [ "$failures" = 0 ] || exit 1; }

# MARK: What this machine has

# cannot REASON: ends a script that this machine cannot run. What has failed before is still a failure.
cannot() {
    echo "  cannot run here: $*"
    finish
    exit 77
}
# not_run STEPS: names steps that this machine cannot run, in a script that goes on without them.
not_run() { echo "  not run: $*"; }
needs() { for program; do command -v "$program" >/dev/null || cannot "needs the program $program (make setup)"; done; }
needs_programs() {
    for program; do [ -x "$bin/$program" ] || { echo "  FAILED: no $bin/$program (make build)"; exit 1; }; done
}

# isolated COMMAND...: runs the command as root in a mount namespace; its mounts end with the command.
isolated() {
    if [ "$(id -u)" = 0 ]; then unshare --mount --propagation private "$@"; else unshare --map-root-user --mount "$@"; fi
}

# make_user: makes user and group badged by systemd-sysusers, in copies of the user tables in $work/root/etc.
make_user() {
    mkdir -p "$work/root/usr/lib/sysusers.d" "$work/root/etc"
    cp "$root/systemd/badged-sysusers.conf" "$work/root/usr/lib/sysusers.d/badged.conf"
    cp /etc/passwd /etc/group "$work/root/etc"
    isolated systemd-sysusers --root="$work/root"
}

# MARK: Programs

socket=$work/badged.sock
badgectl() { "$bin/badgectl" --socket "$socket" "$@"; }

# start_badged COMMAND...: starts badged by this command, and waits until badged answers at $socket.
# Its log is $work/log.
start_badged() {
    "$@" 2>"$work/log" &
    daemon=$!
    until badgectl status >"$work/status" 2>&1; do
        kill -0 "$daemon" 2>/dev/null || { cat "$work/log"; return 1; }
        sleep 0.02
    done
}

# stop_badged, stop_eidserver: end the program; another exit code than 0 is a failure.
stop_badged() {
    stop "$daemon" || { echo "  FAILED: badged ended with $?" && cat "$work/log" && failures=$((failures + 1)); }
    daemon=''
}
stop_eidserver() {
    stop "$server" || { echo "  FAILED: badged-eidserver ended with $?" && failures=$((failures + 1)); }
    server=''
}
stop() { kill "$1" && wait "$1"; }
stop_all() {
    for process in $daemon $server; do stop "$process" 2>/dev/null || true; done
    daemon='' server=''
}

# start_eidserver [OPTION...]: starts badged-eidserver and waits until it listens at $url. Its roots
# go to $work/anchors/test.
start_eidserver() {
    mkdir -p "$work/anchors/test"
    "$bin/badged-eidserver" --out "$work/anchors/test" "$@" >"$work/server.out" 2>"$work/server.log" &
    server=$!
    until grep -qs '^https' "$work/server.out"; do
        kill -0 "$server" 2>/dev/null || { cat "$work/server.log"; return 1; }
        sleep 0.02
    done
    url=$(head -n 1 "$work/server.out")
}
