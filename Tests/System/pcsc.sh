#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The PC/SC driver and a real pcscd that is stopped, killed, restarted and replaced: Tests/SystemTests, in namespaces
# where all that hurts nobody. `make test` has built them.
. "$(dirname "$0")/lib.sh"
needs swift unshare ip pkg-config
command -v cc >/dev/null || needs clang
isolated unshare --pid --fork --net true 2>/dev/null || cannot "needs root, or user namespaces"
cd "$root"
check "Tests/SystemTests" "$here/in-namespace.sh" swift test --skip-build --filter SystemTests
cp "$work/check.out" "$work/tests"
sed -n 's/.*\(Test run with .*\)/  \1/p' "$work/tests" | tail -n 1
check "and they did run" holds "$work/tests" 'Test run with [1-9]'
finish
