#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# run.sh [NAME...]: runs the scripts Tests/System/*.sh (but this one, lib.sh, demo.sh and in-namespace.sh), each on its own.
# The last line is "N passed, N failed". A script that cannot run on this machine counts as failed where everything
# must run (CI=true), else it is named and not counted.
set -u
cd "$(dirname "$0")" || exit 1
passed=0 failed=0
[ $# -gt 0 ] || set -- $(ls ./*.sh | grep -vE '/(run|lib|demo|in-namespace)\.sh$')
for script; do
    name=$(basename "$script" .sh)
    echo "$name"
    timeout --kill-after=10 "${LIMIT:-600}" "./$name.sh" </dev/null
    code=$?
    if [ $code = 0 ]; then
        passed=$((passed + 1))
    elif [ $code = 77 ] && [ "${CI:-}" != true ]; then
        echo "  $name: not run"
    else
        echo "  $name: FAILED (exit code $code)"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
