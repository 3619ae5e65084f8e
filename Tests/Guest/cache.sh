#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The folder for what takes long to make, for the scripts that make it. All checkouts of a user share it: what has a name
# here is complete and never changes, and its name has the hash of what it is made of.
cache=${BADGED_CACHE:-${XDG_CACHE_HOME:-${HOME:-$PWD/../../.build-guest}/.cache}/badged}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

# new_folder: makes the folder $new, which is removed at the end. Its files are moved to their names when they are complete,
# so that two scripts may make the same at once.
new_folder() {
    new=$(mktemp -d "$cache/new.XXXXXX")
    trap 'rm -rf "$new"' EXIT
    trap 'exit 1' INT TERM HUP
}

# use FILE: marks the file as used, and removes what no checkout has used for a month.
use() {
    touch "$1"
    find "$cache" -mindepth 1 -maxdepth 1 \( -name 'linux-*' -o -name 'debian-*' -o -name 'bluetoothd-*' -o -name 'new.*' \) -mtime +30 \
        -exec rm -rf {} +
}
