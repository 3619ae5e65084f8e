#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# nightly.sh [GOAL...]: runs the long goals of the Makefile one after another, also when one of them has failed, and
# prints a table. By default all of them, in about three hours on two processors; BADGED_NIGHTLY_MINUTES changes that.
# A goal that is still running when the time is over is ended, and has failed. The targets of `make fuzz` share the time
# that is left at the end. The output of each goal is in .build-nightly/GOAL.log, the table in .build-nightly/table.md.
# The last line is "N passed, N failed".
set -u
cd "$(dirname "$0")/.." || exit 1
[ $# -gt 0 ] || set -- test-all system-test sanitize-address sanitize-thread bench peer-test fuzz
minutes=${BADGED_NIGHTLY_MINUTES:-180}
out=$(pwd)/.build-nightly
mkdir -p "$out"
end=$(($(date +%s) + 60 * minutes))
passed=0 failed=0
# The goal runs in a process group of its own, which a signal ends as a whole.
goal=
trap '[ -z "$goal" ] || kill -- "-$goal" 2>/dev/null; exit 1' INT TERM HUP

# fuzz_seconds: the time for each target, so that all of them end in the time that is left. The build takes ten minutes.
fuzz_seconds() {
    targets=$(find Tests/Fuzz/corpus -mindepth 1 -maxdepth 1 -type d | wc -l)
    seconds=$(((end - $(date +%s) - 600) * $(nproc) / targets))
    [ "$seconds" -gt 10 ] && echo "$seconds" || echo 10
}

printf '| Goal | Result | Minutes | Its last line |\n|---|---|---|---|\n' >"$out/table.md"
for name; do
    begin=$(date +%s)
    echo "nightly: make $name, since $(date +%H:%M); the output is in .build-nightly/$name.log"
    [ "$name" != fuzz ] || export FUZZ_SECONDS="$(fuzz_seconds)"
    left=$((end - begin))
    [ "$left" -gt 60 ] || left=60
    setsid timeout --kill-after=30 "$left" make "$name" </dev/null >"$out/$name.log" 2>&1 &
    goal=$!
    wait "$goal"
    code=$? goal=
    case $code in
        0) result=passed passed=$((passed + 1)) ;;
        124 | 137) result='time is over' failed=$((failed + 1)) ;;
        *) result=failed failed=$((failed + 1)) ;;
    esac
    last=$(grep -aE '^[0-9]+ passed|^not run|Test run with|^swift test: exit|[Ee]rror' "$out/$name.log" | tail -n 1 | tr '|' ' ' | cut -c 1-100)
    printf '| %s | %s | %s | %s |\n' "$name" "$result" "$((($(date +%s) - begin + 30) / 60))" "$last" >>"$out/table.md"
done
cat "$out/table.md"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
