#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# packages.sh [--also PACKAGE] PROGRAM...: the Debian packages that the programs need on an empty
# system beside pcscd. --also names a package that they load only when it is needed. Prints three
# lines: the number of packages, KiB installed, their names. apt-get plans the installation for a
# system without packages; nothing is installed.
set -eu
work=$(mktemp -d "${TMPDIR:-/tmp}/badged-packages.XXXXXX")
trap 'rm -rf "$work"' EXIT

also=
[ "${1:-}" != --also ] || { also=$2 && shift 2; }

# The packages that own the shared libraries of the programs. dpkg may know a library by its path without /usr.
for program; do ldd "$program"; done | sed -n 's|.*=> \(/[^ ]*\) .*|\1|p; s|^[[:space:]]*\(/[^ ]*\) (.*|\1|p' |
    sort -u >"$work/libraries"
while read -r library; do
    real=$(readlink -f "$library")
    dpkg -S "$real" 2>/dev/null || dpkg -S "${real#/usr}" 2>/dev/null || {
        echo "packages: error: no package owns $real" >&2
        exit 1
    }
done <"$work/libraries" | cut -d: -f1 | sort -u >"$work/direct"

: >"$work/status"
# plan PACKAGE...: name and KiB of each package that would be installed, sorted.
plan() {
    LC_ALL=C apt-get -s -o Dir::State::status="$work/status" -o Debug::NoLocking=1 -o APT::Install-Recommends=0 \
        install "$@" | sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*/\1=\2/p' | sort -u >"$work/plan"
    [ -s "$work/plan" ] || {
        echo "packages: error: apt-get does not know the packages (apt-get update)" >&2
        exit 1
    }
    LC_ALL=C apt-cache show $(cat "$work/plan") |
        awk '/^Package:/ { name = $2 } /^Installed-Size:/ { print name, $2 }' | sort -u
}
plan pcscd >"$work/without"
# shellcheck disable=SC2046  # a list of words
plan pcscd $also $(cat "$work/direct") >"$work/with"
comm -13 "$work/without" "$work/with" >"$work/more"
wc -l <"$work/more" | tr -d ' '
awk '{ sum += $2 } END { print sum + 0 }' "$work/more"
cut -d' ' -f1 "$work/more" | tr '\n' ' '
echo
