#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# uncache.sh PROGRAM...: drops the cached pages of programs and of their libraries that are not in
# use. The cache keeps a newly written file in large pieces, and the kernel maps whole pieces. This
# needs megabytes more of resident memory than a start from the disk.
set -eu
for program in "$@"; do
    for file in "$program" $(ldd "$program" | awk '$3 ~ /^\// { print $3 }'); do
        # Pages that are not written yet stay.
        sync "$file"
        dd if="$file" iflag=nocache count=0 status=none
    done
done
