#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# in-namespace.sh COMMAND...: runs the command in namespaces of its own, where it can start, stop
# and kill a real pcscd. It has an empty /run, a network of the loopback alone, and private process
# ids. What it leaves running ends with it. Needs no root where the kernel lets users make
# namespaces.
set -eu
PATH=$PATH:/usr/sbin:/sbin
for tool in unshare ip; do
    command -v "$tool" >/dev/null || {
        echo "in-namespace.sh: error: $tool is missing" >&2
        echo "hint: apt-get install util-linux iproute2" >&2
        exit 1
    }
done
user=
[ "$(id -u)" = 0 ] || user=--map-root-user
exec unshare $user --mount --net --pid --fork --kill-child --mount-proc sh -c '
    set -eu
    mount -t tmpfs -o mode=0755 tmpfs /run
    ip link set lo up
    # The ports of virtual readers: no outgoing connection takes one while no pcscd listens there.
    echo 35963,35964,36000-36099 2>/dev/null >/proc/sys/net/ipv4/ip_local_reserved_ports || true
    exec "$@"' in-namespace "$@"
