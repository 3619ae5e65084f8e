#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# run.sh [--short] [SCENARIO...]: runs scenarios/*, each in a guest of its own. A guest is a
# User-mode Linux kernel. Its root is the file system of the host, which the guest does not change.
# --short: only the scenarios with the line `# short`. The last line is "N passed, N failed"; it ends
# with 77 if no guest can run here.
#
# Some comments at the head of a scenario have an effect:
#   # short              marks a short scenario
#   # kernel: OPTION...  sets options of the kernel
#   # bluetoothd         the scenario also gets the bluetoothd of Debian 13
#   # debian             the root is a minimal Debian of its own, whose first process is systemd
#   # limit: SECONDS     the time after which a scenario that hangs is ended
# With the kernel option time-travel the guest's clock skips idle time. With time-travel=inf-cpu the
# clock also stands still while a program computes. Then a scenario does not depend on the load of
# the host.
set -u
cd "$(dirname "$0")" || exit 1
root=$(cd ../.. && pwd)
bin=${BADGED_BIN:-$root/.build/release}
bin=$(cd "$bin" 2>/dev/null && pwd -P) && [ -x "$bin/badged" ] || { echo "run.sh: error: no programs (make build)" >&2; exit 1; }
short=
[ "${1:-}" != --short ] || { short=yes; shift; }
[ $# -gt 0 ] || set -- scenarios/*.*
work=$(mktemp -d "${TMPDIR:-/tmp}/badged-guest.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
# The kernel keeps the memory of the guest in a file; /dev/shm is not on a disk.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm

# The guest has one processor, which several processes of the host emulate in turn. System calls of
# the guest take twice as long when these processes run on different processors, so they are bound
# to one. Which one depends on the process number of this script.
pin="taskset -c $(taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
    awk -F- -v chosen=$$ '{ for (i = $1; i <= $NF; i++) all[n++] = i } END { print all[chosen % n] }')"

# boot FOLDER COMMAND SECONDS OPTION...: runs the command in a guest; the exit code goes to FOLDER/code.
boot() {
    folder=$1 command=$2 seconds=$3
    shift 3
    mkdir -p "$folder"
    cp init "$folder"
    quote() { printf "%s='%s'\n" "$1" "$(printf %s "$2" | sed "s/'/'\\\\''/g")"; }
    { quote root "$root"; quote bin "$bin"; quote scenario "$command"; quote archive "$archive"; quote newer "$newer"; } >"$folder/parameters"
    # The console of the guest ends lines with CR LF.
    # shellcheck disable=SC2086  # a list of words
    $pin timeout --kill-after=5 "$seconds" "$kernel" mem=1G root=none rootfstype=hostfs rootflags=/ ro init="$folder/init" con=null \
        con0=null,fd:1 quiet "$@" -- "$folder" </dev/null 2>"$folder/kernel.log" | tr -d '\r' |
        sed -u '/^reboot: System halted$/d'
}

cannot() {
    echo "  cannot run here: $*"
    echo "not run: the guest (the reason is above)"
    exit 77
}
[ "$(uname -m)" = x86_64 ] || cannot "User-mode Linux is for x86_64, this is $(uname -m)"
kernel=$(./kernel.sh) || exit 1
archive= newer=
boot "$work/run/probe" true 300 >"$work/probe.out"
[ -e "$work/run/probe/code" ] || {
    cat "$work/probe.out" "$work/run/probe/kernel.log"
    # A container may forbid ptrace(2) or executable memory, which User-mode Linux needs.
    ! grep -qiE 'ptrace|noexec|PROT_EXEC|Operation not permitted' "$work/probe.out" "$work/run/probe/kernel.log" ||
        cannot "User-mode Linux does not start on this machine"
    echo "  FAILED: the guest does not boot"
    exit 1
}

passed=0 failed=0 left=
: >"$work/figures"
for name; do
    name=$(basename "$name")
    set -- scenarios/"${name%.*}".*
    script=$1
    [ -e "$script" ] || { echo "run.sh: error: no scenario $name" >&2; exit 1; }
    [ -z "$short" ] || grep -qx '# short' "$script" || continue
    name=$(basename "${script%.*}")
    echo "$name"
    case $script in *.py) command="python3 $script" ;; *) command="sh $script" ;; esac
    archive= newer=
    if grep -qx '# bluetoothd' "$script"; then
        newer=$(./newer-bluetoothd.sh)
        [ -n "$newer" ] || left="$left $name"
    fi
    ! grep -qx '# debian' "$script" || archive=$(./debian.sh) || { failed=$((failed + 1)); continue; }
    seconds=$(sed -n 's/^# limit: //p' "$script")
    # shellcheck disable=SC2046  # a list of words
    boot "$work/run/$name" "$command" "${seconds:-900}" $(sed -n 's/^# kernel: //p' "$script")
    code=$(cat "$work/run/$name/code" 2>/dev/null || echo none)
    [ ! -e "$work/run/$name/figures" ] || cat "$work/run/$name/figures" >>"$work/figures"
    if [ "$code" = 0 ]; then
        passed=$((passed + 1))
    else
        echo "  $name: FAILED (exit code $code)"
        for log in "$work/run/$name"/*.log; do
            [ ! -s "$log" ] || { echo "  --- $(basename "$log")"; tail -n 30 "$log" | sed 's/^/  /'; }
        done
        failed=$((failed + 1))
    fi
done
[ ! -s "$work/figures" ] || {
    echo
    sort -s -t "$(printf '\t')" -k 1,1 "$work/figures" | awk -F '\t' '
        BEGIN { printf "%-84s %22s %s\n", "Measured in the guest", "", "goal" } { printf "%-84s %22s %s\n", $1, $2, $3 }'
    echo
}
[ -z "$left" ] || echo "not run:$left, with the bluetoothd of Debian 13 (the reason is above)"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
