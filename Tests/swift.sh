#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# swift.sh [OPTION...]: runs the Swift tests with these options of `swift test`, and prints the failures again at the
# end. What begins, what each test says, and the log of the code under test are left out. BADGED_TEST_WIDTH tests run at
# the same time.
# swift.sh --only-build [OPTION...] builds with these options of `swift build`.
set -u
cd "$(dirname "$0")/.."
export SWIFT_BACKTRACE=enable=no
flags="--explicit-target-dependency-import-check error"
if [ "${1:-}" = --only-build ]; then
    shift
    # shellcheck disable=SC2086  # a list of words
    exec ${SWIFT:-swift} build $flags "$@"
fi
# All tests at once would keep the tasks of each one waiting for half a minute on a busy machine.
width=${BADGED_TEST_WIDTH:-24}
noise='^(◇|✔ Test ("|case )|<[0-7]>|swift test: exit status 0$)'
output=$(mktemp) memory=
trap 'rm -rf "$output" "$memory"' EXIT
# Many tests wait for a store that is written to a disk, at each of its transactions. They kill programs and never the
# machine, so memory is as good.
holds_programs() { cp /bin/true "$1" && "$1/true" && [ "$(df --output=avail --block-size=1M "$1" | tail -n 1)" -ge 1024 ]; }
if memory=$(mktemp -d /dev/shm/badged-tests.XXXXXX) && holds_programs "$memory"; then export TMPDIR="$memory"; fi 2>/dev/null
# shellcheck disable=SC2086  # a list of words
{
    ${SWIFT:-swift} test $flags --experimental-maximum-parallelization-width "$width" "$@" 2>&1
    # What the tests have written may not end with a line end.
    printf '\nswift test: exit status %s\n' $?
} | tee "$output" | grep -a -v -E --line-buffered "$noise"
# Without this line the output is not whole.
grep -a -q '^swift test: exit status 0$' "$output" && exit 0
echo
echo "swift.sh: the failures:"
grep -a -v -E "$noise" "$output" |
    grep -a -E -A 6 '^✘ .*(recorded an issue|Caught error)|^swift test: exit status|error:|Fatal error' | cut -c 1-600 | head -n 200
exit 1
