#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# with-cgroup2.sh COMMAND...: runs the command with a cgroup tree without controllers, which is enough for systemd, also
# on a machine that has the older trees. The caller has made a mount namespace.
set -eu
umount -R /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 cgroup2 /sys/fs/cgroup
exec "$@"
