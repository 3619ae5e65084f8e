#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# pcsc.sh [SUITE]: the driver of PC/SC with a real pcscd that is stopped, killed, restarted and
# replaced. These are the Swift tests of Tests/SystemTests, in namespaces of their own. `make test`
# has built them.
# long
. "$(dirname "$0")/lib.sh"
needs swift unshare ip pkg-config
isolated unshare --pid --fork --net true 2>/dev/null || cannot "needs root, or user namespaces"
cd "$root"

# A reader driver that forwards every call to a test.
BADGED_IFD_KEYPAD=$work/libifdkeypad.so
BADGED_SYSTEM_TESTS=1
export BADGED_IFD_KEYPAD BADGED_SYSTEM_TESTS
compiler=$(command -v cc || command -v clang) || cannot "needs a C compiler"
# shellcheck disable=SC2046  # a list of words
check "the reader driver compiles" "$compiler" -std=c11 -O2 -Wall -Wextra -Werror -fPIC -shared -pthread \
    $(pkg-config --cflags libpcsclite) -o "$BADGED_IFD_KEYPAD" "$here/ifd-keypad/ifd-keypad.c"
check "Tests/SystemTests pass" "$here/in-namespace.sh" swift test --skip-build --filter "SystemTests${1:+.*$1}"
cp "$work/check.out" "$work/tests"
sed -n 's/.*\(Test run with .*\)/  \1/p' "$work/tests" | tail -n 1
check "at least one test has run" holds "$work/tests" 'Test run with [1-9]'
finish
