#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# nightly.sh [GOAL...]: runs the long goals of the Makefile one after another, also when one of them has failed, and
# prints a table. By default all of them, in about two hours on two processors; BADGED_NIGHTLY_MINUTES changes the limit.
# Guests have a clock of their own and one processor, so `system-test` runs beside the goals that follow it; `bench`
# needs the machine for itself, and AusweisApp2, which `peer-test` installs. A goal that is still running when the time
# is over is ended, and has failed. The targets of `make fuzz` share the time that is left at the end. The output of each
# goal is in .build-nightly/GOAL.log, the table in .build-nightly/table.md. A goal that says of a part "not run: ..." has
# passed in part. The last line is "N passed, N in part, N failed".
set -u
cd "$(dirname "$0")/.." || exit 1
[ $# -gt 0 ] || set -- test-all peer-test bench system-test sanitize-address sanitize-thread fuzz
minutes=${BADGED_NIGHTLY_MINUTES:-150}
out=$(pwd)/.build-nightly
mkdir -p "$out"
end=$(($(date +%s) + 60 * minutes))
# Each goal runs in a process group of its own, which a signal ends as a whole.
rm -f "$out"/*.group
end_all() {
    for group in "$out"/*.group; do
        [ ! -e "$group" ] || kill -- "-$(cat "$group")" 2>/dev/null
    done
}
trap 'end_all; exit 1' INT TERM HUP

# fuzz_seconds: the time for each target, so that all of them end in the time that is left. The build takes ten minutes.
fuzz_seconds() {
    targets=$(find Tests/Fuzz/corpus -mindepth 1 -maxdepth 1 -type d | wc -l)
    seconds=$(((end - $(date +%s) - 600) * $(nproc) / targets))
    [ "$seconds" -gt 10 ] && echo "$seconds" || echo 10
}

# run_goal NAME: runs the goal and writes its row.
run_goal() {
    begin=$(date +%s)
    echo "nightly: make $1, since $(date +%H:%M); the output is in .build-nightly/$1.log"
    [ "$1" != fuzz ] || export FUZZ_SECONDS="$(fuzz_seconds)"
    left=$((end - begin))
    [ "$left" -gt 60 ] || left=60
    setsid timeout --kill-after=30 "$left" make "$1" </dev/null >"$out/$1.log" 2>&1 &
    echo $! >"$out/$1.group"
    wait $!
    case $? in
        0) result=passed ;;
        124 | 137) result='time is over' ;;
        *) result=failed ;;
    esac
    rm "$out/$1.group"
    lines='^[0-9]+ passed|^ *not run:|Test run with|^swift test: exit|error:|\*\*\*'
    if [ "$result" = passed ] && grep -aq '^ *not run:' "$out/$1.log"; then
        result='passed in part' lines='^ *not run:'
    fi
    last=$(grep -aE "$lines" "$out/$1.log" | tail -n 1 | tr '|' ' ' | cut -c 1-200)
    printf '| %s | %s | %s | %s |\n' "$1" "$result" "$((($(date +%s) - begin + 30) / 60))" "$last" >>"$out/table.md"
}

printf '| Goal | Result | Minutes | Its last line |\n|---|---|---|---|\n' >"$out/table.md"
for name; do
    case $name in
        system-test) run_goal "$name" & ;;
        *)
            [ "$name" != bench ] || wait
            run_goal "$name"
            ;;
    esac
done
wait
cat "$out/table.md"
passed=$(grep -c '| passed |' "$out/table.md")
part=$(grep -c '| passed in part |' "$out/table.md")
failed=$(($# - passed - part))
echo "$passed passed, $part in part, $failed failed"
[ "$failed" = 0 ]
