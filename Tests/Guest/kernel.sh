#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# kernel.sh: builds a User-mode Linux kernel with Bluetooth and USB from Debian's source package, unless it is there, and prints
# its path. Debian's own UML kernel has neither. It stays in .build-guest, or in $BADGED_GUEST_CACHE, until one of its parts changes.
# One thing is added to it: a clock for the scheduler. The one that it has moves a hundred times a second, so that a process is
# charged with 10 ms or with nothing, by chance; what little badged uses could not be measured. Where time travels it stays.
set -eu
cd "$(dirname "$0")"
here=$PWD
source=/usr/src/linux-source-6.1.tar.xz
[ -e "$source" ] || { echo "kernel.sh: error: no $source" >&2; echo "hint: .ci/setup guest" >&2; exit 1; }
cache=${BADGED_GUEST_CACHE:-$here/../../.build-guest}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
key=$({ cat kernel.config kernel.sh; stat -L -c %s "$source"; gcc -dumpfullversion; } | sha256sum | cut -c 1-16)
kernel=$cache/linux-$key
[ -x "$kernel" ] || {
    echo "kernel.sh: building the guest's kernel, which takes some minutes, once" >&2
    # What is not compiled is not unpacked, either.
    rm -rf "$cache/kernel"
    mkdir -p "$cache/kernel/source"
    tar xf "$source" -C "$cache/kernel/source" --strip-components=1 --exclude='*/Documentation/*.rst' --exclude='*.dts*' \
        --exclude='*/arch/[a-tv-w]*/*.[chS]' --exclude='*/drivers/gpu/*.[ch]' --exclude='*/drivers/net/[ew]*/*.[ch]' \
        --exclude='*/drivers/media/*.[ch]' --exclude='*/sound/*.[ch]' --exclude='*/tools/testing/*'
    cat >>"$cache/kernel/source/arch/um/kernel/time.c" <<'END'

notrace unsigned long long sched_clock(void)
{
	if (time_travel_mode == TT_MODE_OFF)
		return os_nsecs();
	return (unsigned long long)(jiffies - INITIAL_JIFFIES) * (NSEC_PER_SEC / HZ);
}
END
    in_kernel() { make -C "$cache/kernel/source" ARCH=um O="$cache/kernel/build" -j"$(nproc)" "$@" >>"$cache/kernel/log" 2>&1 || {
        tail -20 "$cache/kernel/log" >&2
        exit 1
    }; }
    in_kernel KCONFIG_ALLCONFIG="$here/kernel.config" allnoconfig
    missing=$(grep ^CONFIG "$here/kernel.config" | grep -vxFf "$cache/kernel/build/.config") && {
        echo "kernel.sh: error: these do not go together with the others: $missing" >&2
        exit 1
    }
    in_kernel linux
    strip -o "$kernel.new" "$cache/kernel/build/linux"
    mv "$kernel.new" "$kernel"
    rm -rf "$cache/kernel"
}
echo "$kernel"
