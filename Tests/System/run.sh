#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# run.sh [NAME...]: runs the scripts Tests/System/*.sh, each on its own, but this one and those that others use.
# The last line is "N passed, N failed"; before it stand the names of those that cannot run on this machine.
set -u
cd "$(dirname "$0")" || exit 1
passed=0 failed=0 left=
[ $# -gt 0 ] || set -- $(ls ./*.sh | grep -vE '/(run|lib|demo|in-namespace)\.sh$')
for script; do
    name=$(basename "$script" .sh)
    echo "$name"
    timeout --kill-after=10 "${LIMIT:-600}" "./$name.sh" </dev/null
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
