#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# swift.sh [OPTION...]: the Swift tests, with these options of `swift test`; what failed is said again at the end.
# Those of NFC run on their own: the crowds of the others have more descriptors than libnfc can wait for.
set -u
cd "$(dirname "$0")/.."
export SWIFT_BACKTRACE=enable=no
output=$(mktemp)
trap 'rm -f "$output"' EXIT
tests() {
    { ${SWIFT:-swift} test --explicit-target-dependency-import-check error "$@" 2>&1 || echo "swift test: exit status $?"; } | tee "$output"
    grep -q '^swift test: exit status' "$output" || return 0
    echo
    echo "swift.sh: what failed:"
    grep -a -E -A 6 '^✘ .*(recorded an issue|Caught error)|^swift test: exit status|error:|Fatal error' "$output" |
        cut -c 1-600 | head -n 200
    return 1
}
tests "$@" --skip NFC || exit 1
tests "$@" --skip-build --filter NFC
