#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# kernel.sh: builds a User-mode Linux kernel with Bluetooth and USB from Debian's source package and prints its path.
# Debian's own UML kernel has neither Bluetooth nor USB. The kernel is kept in .build-guest, or in $BADGED_GUEST_CACHE, and is
# built again only when this script, the configuration, the source package or the compiler changes.
#
# The script adds a scheduler clock to the source. The original clock has a resolution of 10 ms, which is too coarse to measure
# the processor time of badged. With the kernel option time-travel the original clock is used.
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
    echo "kernel.sh: building the kernel of the guest; this takes some minutes and is done once" >&2
    # Unpacks only what is compiled.
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
        echo "kernel.sh: error: the kernel configuration drops these options: $missing" >&2
        exit 1
    }
    in_kernel linux
    strip -o "$kernel.new" "$cache/kernel/build/linux"
    mv "$kernel.new" "$kernel"
    rm -rf "$cache/kernel"
}
echo "$kernel"
