#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# run.sh [NAME...]: runs these scripts of Tests/System, without a name all of them. They run side by
# side, BADGED_TEST_JOBS at once (by default two for each processor, since most of them wait). The output
# of a script is printed when it ends. The last line is "N passed, N failed"; the line before it names
# the scripts that cannot run on this machine. Some comments at the head of a script have an effect:
#   # shares: NAME  never runs beside another script with this line
#   # long          starts before the others; for scripts that share something, the first one says so
set -u
cd "$(dirname "$0")" || exit 1
width=${BADGED_TEST_JOBS:-$((2 * $(nproc)))}
[ $# -gt 0 ] || set -- $(grep -l '^\. .*/lib\.sh"$' ./*.sh | grep -v '/demo\.sh$')
work=$(mktemp -d "${TMPDIR:-/tmp}/badged-system.XXXXXX")
trap 'rm -rf "$work"' EXIT
# Each script is in a process group of its own, whose leader passes the signal on.
trap 'kill $workers $(cat "$work"/*.pid 2>/dev/null); exit 1' INT TERM HUP

# A job is the name of a script, or @NAME: the scripts that share NAME, one after another.
marked() { grep -qx "# $1" "$2.sh"; }
long='' jobs='' workers=''
for script; do
    name=$(basename "$script" .sh)
    job=$name
    lane=$(sed -n 's/^# shares: //p' "$name.sh")
    if [ -n "$lane" ]; then
        echo "$name" >>"$work/$lane.lane"
        job=@$lane
    fi
    case " $long $jobs " in *" $job "*) continue ;; esac
    if marked long "$name"; then
        long="$long $job"
    else
        jobs="$jobs $job"
    fi
done

# The jobs write the names of scripts that have ended to this pipe, and - at their own end.
mkfifo "$work/ended"
exec 3<>"$work/ended"
run_job() {
    case $1 in @*) names=$(cat "$work/${1#@}.lane") ;; *) names=$1 ;; esac
    for name in $names; do
        begin=$(date +%s)
        # The limit is for a script that hangs.
        timeout --kill-after=10 1800 "./$name.sh" </dev/null >"$work/$name.out" 2>&1 3>&- &
        echo $! >"$work/$name.pid"
        wait $!
        echo "$name $? $(($(date +%s) - begin))" >&3
        rm "$work/$name.pid"
    done
    echo - >&3
}
running=0 passed=0 failed=0 left=
# await_job: reports what ends until one job is over.
await_job() {
    while read -r name code seconds <&3 && [ "$name" != - ]; do
        echo "$name ($seconds s)"
        cat "$work/$name.out"
        case $code in
            0) passed=$((passed + 1)) ;;
            77) left="$left $name" ;;
            *) failed=$((failed + 1)) && echo "  $name: FAILED (exit code $code)" ;;
        esac
    done
    running=$((running - 1))
}
for job in $long $jobs; do
    [ $running -lt "$width" ] || await_job
    run_job "$job" &
    workers="$workers $!"
    running=$((running + 1))
done
while [ $running -gt 0 ]; do await_job; done
[ -z "$left" ] || echo "not run:$left (each says why above)"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
