#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# run.sh [NAME...]: runs these scripts of Tests/System, without a name all of them. The last line is
# "N passed, N failed"; the line before it names the scripts that cannot run on this machine.
set -u
cd "$(dirname "$0")" || exit 1
passed=0 failed=0 left=
[ $# -gt 0 ] || set -- $(ls ./*.sh | grep -vE '/(run|lib|demo|in-namespace)\.sh$')
for script; do
    name=$(basename "$script" .sh)
    echo "$name"
    # The limit is for a script that hangs.
    timeout --kill-after=10 3600 "./$name.sh" </dev/null
    code=$?
    if [ $code = 0 ]; then
        passed=$((passed + 1))
    elif [ $code = 77 ]; then
        left="$left $name"
    else
        echo "  $name: FAILED (exit code $code)"
        failed=$((failed + 1))
    fi
done
[ -z "$left" ] || echo "not run:$left (each says why above)"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
