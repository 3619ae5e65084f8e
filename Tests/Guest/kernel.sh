#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# kernel.sh: builds a User-mode Linux kernel with Bluetooth and USB from Debian's source package and prints its path.
# Debian's own UML kernel has neither Bluetooth nor USB. The kernel is kept in $BADGED_CACHE, below a name that is the hash of
# what it is made of: this script, the configuration, the version of the source package, and the compiler.
#
# The script adds a scheduler clock to the source. The original clock has a resolution of 10 ms, which is too coarse to measure
# the processor time of badged. With the kernel option time-travel the original clock is used.
set -eu
cd "$(dirname "$0")"
here=$PWD
source=/usr/src/linux-source-6.1.tar.xz
[ -e "$source" ] || { echo "kernel.sh: error: no $source" >&2; echo "hint: .ci/setup guest" >&2; exit 1; }
. ./cache.sh
key=$({ cat kernel.config kernel.sh; dpkg-query -W -f '${Version}\n' linux-source-6.1; gcc --version; } | sha256sum | cut -c 1-16)
kernel=$cache/linux-$key
[ -x "$kernel" ] || {
    echo "kernel.sh: building the kernel of the guest; this takes some minutes and is done once" >&2
    # Unpacks only what is compiled.
    new_folder
    mkdir "$new/source"
    tar xf "$source" -C "$new/source" --strip-components=1 --exclude='*/Documentation/*.rst' --exclude='*.dts*' \
        --exclude='*/arch/[a-tv-w]*/*.[chS]' --exclude='*/drivers/gpu/*.[ch]' --exclude='*/drivers/net/[ew]*/*.[ch]' \
        --exclude='*/drivers/media/*.[ch]' --exclude='*/sound/*.[ch]' --exclude='*/tools/testing/*'
    cat >>"$new/source/arch/um/kernel/time.c" <<'END'

notrace unsigned long long sched_clock(void)
{
	if (time_travel_mode == TT_MODE_OFF)
		return os_nsecs();
	return (unsigned long long)(jiffies - INITIAL_JIFFIES) * (NSEC_PER_SEC / HZ);
}
END
    in_kernel() { make -C "$new/source" ARCH=um O="$new/build" -j"$(nproc)" "$@" >>"$new/log" 2>&1 || {
        tail -20 "$new/log" >&2
        exit 1
    }; }
    in_kernel KCONFIG_ALLCONFIG="$here/kernel.config" allnoconfig
    missing=$(grep ^CONFIG "$here/kernel.config" | grep -vxFf "$new/build/.config") && {
        echo "kernel.sh: error: the kernel configuration drops these options: $missing" >&2
        exit 1
    }
    in_kernel linux
    strip -o "$new/linux" "$new/build/linux"
    mv "$new/linux" "$kernel"
}
use "$kernel"
echo "$kernel"
